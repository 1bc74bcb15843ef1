"""The folder of real data."""

from __future__ import annotations

from pathlib import Path

import pytest

from safesift_paper.datasets import store


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets; tests that need it are skipped where there is none."""
    folder = store.data_folder()
    if folder is None or not folder.is_dir():
        pytest.skip("SAFESIFT_DATA names no folder: set it to where the data sets (MNIST) are")
    return folder
