"""What a release rests on: one version, Pythons that are tried, archives that are looked at.

`make release` builds the archives and tries them; here is what can be known without.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import safesift
from tests import archives, smoke

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def said(page: str, pattern: str) -> list[str]:
    """What a file says, at the beginnings of lines."""
    return re.findall(pattern, (ROOT / page).read_text(), flags=re.MULTILINE)


# --- one version ----------------------------------------------------------------------------------


def test_the_version_is_read_without_importing_anything() -> None:
    assert PROJECT["dynamic"] == ["version"] and "version" not in PROJECT
    assert PYPROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "safesift.__version__"}
    literal = said("src/safesift/__init__.py", r'^__version__ = "([\d.]+)"$')
    assert literal == [safesift.__version__]


def test_those_who_repeat_the_version_agree() -> None:
    assert said("CITATION.cff", r"^version: (\S+)$") == [safesift.__version__]
    # the newest comes first, and is the one that is being made
    assert said("CHANGELOG.md", r"^## \[([\d.]+)\] - ")[0] == safesift.__version__


# --- Pythons and dependencies ---------------------------------------------------------------------


def test_all_pythons_that_are_promised_are_tried() -> None:
    prefix = "Programming Language :: Python :: "
    named = [line for line in PROJECT["classifiers"] if line.startswith(prefix)]
    pythons = [line.removeprefix(prefix) for line in named]
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    (matrix,) = said(".github/workflows/ci.yml", r"^ +python: (\[.*\])$")
    assert ast.literal_eval(matrix) == pythons
    # for the wheel: the oldest last, since that is the one make finds
    assert said(".github/workflows/ci.yml", r"^ +(3\.\d+)$") == pythons[::-1]


def test_every_dependency_has_an_oldest_version() -> None:
    extras = [one for extra in PROJECT["optional-dependencies"].values() for one in extra]
    for one in [*PROJECT["dependencies"], *extras]:
        assert ">=" in one or one.startswith("safesift["), one


# --- archives -------------------------------------------------------------------------------------


def test_the_checker_is_linked_whole() -> None:
    modules = PYPROJECT["tool"]["setuptools"]["py-modules"]
    assert modules == sorted(path.stem for path in (ROOT / "check").glob("*.py"))
    assert sorted(smoke.CHECKER) == modules
    for name in modules:
        link = ROOT / "src" / f"{name}.py"
        assert link.is_symlink() and link.resolve() == ROOT / "check" / link.name


def whole(folder: str) -> dict[str, bytes]:
    """What belongs into an archive."""
    paths = {folder + str(path.relative_to(archives.SRC)): path for path in archives.package()}
    return {name: path.read_bytes() for name, path in paths.items()}


def test_archives_as_they_should_be() -> None:
    assert archives.faults_of_wheel(whole("") | {"safesift-0.1.0.dist-info/RECORD": b""}) == []
    about = {"pyproject.toml": b"", "src/safesift.egg-info/SOURCES.txt": b""}
    assert archives.faults_of_source(whole("src/") | about) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"safesift_check.py": b""}, "safesift_check.py is not the file"),  # a link, for instance
        ({"safesift/py.typed": None}, "safesift/py.typed is missing"),
        ({"safesift/faces/reports/page.js": None}, "safesift/faces/reports/page.js is missing"),
        ({"tests/test_release.py": b""}, "tests does not belong in it"),
        ({"safesift_paper/__init__.py": b""}, "safesift_paper does not belong in it"),
    ],
)
def test_faults_of_archives_are_found(change: dict[str, bytes | None], fault: str) -> None:
    changed = {
        name: content for name, content in (whole("") | change).items() if content is not None
    }
    assert archives.faults_of_wheel(changed) == [fault]


def test_the_smoke_test_works(tmp_path: Path) -> None:
    smoke.has_its_names()
    smoke.fits_and_proves(tmp_path)


# --- pages ----------------------------------------------------------------------------------------


def test_contributors_are_told_of_every_target() -> None:
    (targets,) = said("Makefile", r"^\.PHONY: (.*)$")
    told = said("CONTRIBUTING.md", r"^\| `make (\w+)` \|")
    assert sorted(told) == sorted(set(targets.split()) - {"clean", "clean-docs"})
