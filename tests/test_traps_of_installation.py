"""What a container or a bare installation lacks: work goes on, or says what to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import safesift

PACKAGE = Path(safesift.__file__).parent

# every file with compiled loops, and one of them at work
_COMPILED = """
import numpy as np
from safesift.arithmetic.compiled import csr, dual, lasso, pairs
import safesift as ss
X = np.random.default_rng(0).normal(size=(30, 2))
path = ss.safe_path(X, X[:, 0] > 0, loss="hinge", alphas=[0.1], fit_intercept=False)
print(ss.__file__, bool(path.relative_gaps[0] <= 1e-6))
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    """A fresh process without the user's own settings."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG", "PYTHON"))}
    return subprocess.run(
        [sys.executable, "-c", code], env=plain | environment, capture_output=True, text=True
    )


def test_without_a_folder_for_caches_everything_is_compiled_anew(tmp_path: Path) -> None:
    """Neither the package's folder nor the user's can be written, not even by root."""
    copy = tmp_path / "safesift"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "arithmetic" / "compiled" / "__pycache__").write_text("no folder can be made here")
    done = run(
        _COMPILED, PYTHONPATH=str(tmp_path), HOME="/proc/nowhere", PYTHONDONTWRITEBYTECODE="1"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(copy / "__init__.py"), "True"]
