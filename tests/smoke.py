"""The first minute of a stranger with an installed safesift; nothing of the checkout is used.

`python -I tests/smoke.py 0.1.0` ends with 0 where an installation of that version works. It needs
no extra, and says what the command says without one.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import subprocess
import sys
import sysconfig
import tempfile
from importlib.resources import files
from pathlib import Path

CHECKER = ("safesift_check", "safesift_receipt", "safesift_root", "safesift_tables")
# of the checkout, and no part of what is installed
ABSENT = ("tests", "safesift_paper", "benchmarks", "noxfile")
WITHOUT_EXTRA = "The command line needs click and rich and pyarrow: pip install 'safesift[cli]'.\n"


def main() -> None:
    version = sys.argv[1]
    is_installed(version)
    has_its_names()
    with tempfile.TemporaryDirectory() as folder:
        fits_and_proves(Path(folder))
    has_its_command(version)
    dependencies = ("numpy", "scipy", "scikit-learn", "numba")
    found = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in dependencies)
    print(f"safesift {version} works with Python {sys.version.split()[0]}, {found}")


def is_installed(version: str) -> None:
    """As a package of this environment, with its types and the checker beside it."""
    import safesift

    assert safesift.__version__ == importlib.metadata.version("safesift") == version
    assert files("safesift").joinpath("py.typed").is_file()
    here = Path(sysconfig.get_path("purelib")).resolve()
    for name in ("safesift", *CHECKER):
        module = importlib.import_module(name)
        assert here in Path(str(module.__file__)).resolve().parents, module.__file__
    for name in ABSENT:
        assert importlib.util.find_spec(name) is None, f"{name} is installed as well"


def has_its_names() -> None:
    """Every public name, whatever extras there are."""
    import safesift

    for name in safesift.__all__:
        getattr(safesift, name)


def fits_and_proves(folder: Path) -> None:
    """A certified fit, and a proof that the checker, in a process of its own, believes."""
    import numpy as np

    import safesift as ss

    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=500) > 0, "yes", "no")
    model = ss.SafeClassifier(alpha=1e-2).fit(X, y)
    assert model.dual_gap_ < 1e-6 and model.score(X, y) > 0.9
    result = ss.screen(X, y, alpha=1e-2)
    assert 0 < result.kept.sum() < 250
    # compiled loops, of the dual solvers
    path = ss.safe_path(X, y, loss="hinge", alphas=[0.1], fit_intercept=False)
    assert path.relative_gaps[0] <= 1e-6

    # made of files that are no Python
    assert result.report(folder / "report.html").read_text().startswith("<!doctype html>")

    result.write_proof(folder / "proof.npz")
    np.savez(folder / "data.npz", X=X, y=y)
    checked = run("-I", "-m", "safesift_check", folder / "proof.npz", folder / "data.npz")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def has_its_command(version: str) -> None:
    """It says its version, or which extra it needs."""
    command = Path(sysconfig.get_path("scripts")) / "safesift"
    assert command.exists(), f"there is no {command}"
    said = run("-I", command, "--version")
    if all(importlib.util.find_spec(name) for name in ("click", "rich", "pyarrow")):
        assert said.stdout == f"safesift, version {version}\n", said.stdout + said.stderr
    else:
        assert (said.returncode, said.stderr) == (2, WITHOUT_EXTRA), said.stdout + said.stderr


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Another process of this Python."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    main()
