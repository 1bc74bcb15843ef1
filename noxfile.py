#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox[uv]>=2025.5"]
# ///
"""What a release has to pass. `make release` runs all of it, `nox -s smoke-3.12` a part.

A Python that is not there is left out, and the list at the end says so.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv"
nox.options.error_on_missing_interpreters = False

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)
DIST = Path("dist")

# files whose form others have laid down
SCHEMAS = {
    "citation-file-format": "CITATION.cff",
    "dependabot": ".github/dependabot.yml",
    "github-workflows": ".github/workflows/ci.yml",
    "readthedocs": ".readthedocs.yaml",
}

# what the oldest dependencies are tried on: every layer, and whoever talks to another library; but
# for devices, whose stand-in needs NumPy 2
ON_OLDEST = (
    "known_fits", "estimators", "screen", "path", "kernel_machines", "tracking", "leave_one_out",
    "saving", "sampler", "compressor", "proofs", "files", "blocks_files", "cli", "demo", "cluster",
    "release",
)  # fmt: skip


@nox.session
def repository(session: nox.Session) -> None:
    """The files about the project are what those who read them expect."""
    session.install(*nox.project.dependency_groups(PROJECT, "repository"))
    session.run("repo-review", ".")
    session.run("pre-commit", "validate-config")
    for schema, path in SCHEMAS.items():
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", path)
    session.run("zizmor", "--offline", ".github")


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the source archive, and the wheel from it; both have what they should have."""
    session.install("build", "twine")
    shutil.rmtree(DIST, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(DIST))
    session.run("twine", "check", "--strict", *map(str, DIST.iterdir()))
    session.run("python", "-m", "tests.archives", str(DIST))


@nox.session(python=PYTHONS, requires=["wheel"])
def smoke(session: nox.Session) -> None:
    """The wheel in an empty environment, without extras and with the command."""
    built = _wheel()
    session.install(str(built))
    _try(session, built)
    session.install(f"{built}[cli]")
    _try(session, built)


@nox.session(python=PYTHONS[0], requires=["wheel"])
def oldest(session: nox.Session) -> None:
    """The wheel with the oldest dependencies that pyproject.toml allows."""
    built = _wheel()
    session.install("--resolution", "lowest-direct", "-r", "pyproject.toml", "--extra", "test")
    session.install("--no-deps", str(built))
    _try(session, built)
    tests = [f"tests/test_{name}.py" for name in ON_OLDEST]
    # an old release may use what a newer one of somebody else has deprecated
    how = ("-m", "not slow", "-W", "ignore::DeprecationWarning")
    session.run("pytest", *how, *tests, env={"HYPOTHESIS_PROFILE": "check"})


def _wheel() -> Path:
    (built,) = DIST.glob("*.whl")
    return built


def _try(session: nox.Session, built: Path) -> None:
    version = built.name.split("-")[1]
    session.run("python", "-I", "tests/smoke.py", version)


if __name__ == "__main__":
    nox.main()
