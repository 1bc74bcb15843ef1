"""Hypothesis profiles, and the folder of real data."""

from __future__ import annotations

import os
from pathlib import Path

# tests run side by side: BLAS threads of one would spin while those of another work, and what is
# tested of the library's own threads says how many there are
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, Phase, settings

# Solving a reference problem takes as long as it takes, and some cannot be solved: no deadline,
# and no complaint about either.
_PATIENT = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
}

settings.register_profile("default", max_examples=60, derandomize=True, **_PATIENT)
settings.register_profile("check", max_examples=6, derandomize=True, **_PATIENT)
# a mistake is noticed, not boiled down
settings.register_profile(
    "few", max_examples=12, derandomize=True, phases=[Phase.explicit, Phase.generate], **_PATIENT
)
settings.register_profile("soak", max_examples=3000, print_blob=True, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets; tests that need it are skipped where there is none."""
    named = os.environ.get("SAFESIFT_DATA")
    if not named:
        pytest.skip(
            "SAFESIFT_DATA is not set: download the data sets (MNIST, covtype, a9a, ... from "
            "OpenML or the LIBSVM site) into a folder and set SAFESIFT_DATA to it"
        )
    folder = Path(named)
    if not folder.is_dir():
        pytest.skip(f"SAFESIFT_DATA={named} is not a folder: set it to where the data sets are")
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with the samples of `tests.cli_files` in every format."""
    from tests.cli_files import write_all

    write_all(tmp_path)
    return tmp_path
