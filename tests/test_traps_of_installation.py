"""What a container or a bare installation lacks: work goes on, or says what to install."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import safesift
from safesift import registry
from tests import bare

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
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


def process(code: str, **environment: str) -> subprocess.CompletedProcess:
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
    done = process(
        _COMPILED, PYTHONPATH=str(tmp_path), HOME="/proc/nowhere", PYTHONDONTWRITEBYTECODE="1"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(copy / "__init__.py"), "True"]


# --- extras -------------------------------------------------------------------------------------

# what needs an extra, the extra, and what it brings
NEEDS = {
    "ss.plot_losses([ss.losses.Hinge()])": ("plot", "matplotlib"),
    "path.plot()": ("plot", "matplotlib"),
    "ss.SampleScreener()": ("sampler", "imbalanced-learn"),
    "ss.SampleCompressor()": ("sampler", "imbalanced-learn"),
    "ss.mine_hard('pool.csv', model, X, y, label=0)": ("cli", "pyarrow"),
}
_BEFORE = """
import json, numpy as np
from tests.bare import block_imports
block_imports([])
import safesift as ss
from safesift import *
X = np.random.default_rng(0).normal(size=(30, 2))
y = (X[:, 0] > 0).astype(int)
path, model = ss.safe_path(X, y, alphas=[0.1]), ss.SafeClassifier().fit(X, y)
open("pool.csv", "w").write("a,b\\n1,2\\n")
said = {}
"""
_ASK = """
try:
    %s
except ImportError as error:
    said[%r] = str(error)
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each of `NEEDS` says in an environment without extras."""
    code = _BEFORE + "".join(_ASK % (need, need) for need in NEEDS) + "print(json.dumps(said))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=_with_path(),
        cwd=tmp_path_factory.mktemp("bare"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _with_path() -> dict[str, str]:
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.mark.parametrize("need", NEEDS)
def test_what_needs_an_extra_names_it(need: str, said: dict[str, str]) -> None:
    extra, project = NEEDS[need]
    assert said[need].endswith(f" {project}: pip install 'safesift[{extra}]'.")


def test_the_command_names_its_extra() -> None:
    code = (
        "from tests.bare import block_imports; block_imports(['plot'])\n"
        "from safesift.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=_with_path()
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        "The command line needs click and rich and pyarrow: pip install 'safesift[cli]'.\n"
    )


def test_the_table_of_extras_is_that_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra in ("cli", "plot", "sampler", "dask"):
        projects = {re.match(r"[\w-]+", one)[0] for one in declared["optional-dependencies"][extra]}
        assert projects == {e.project for e in registry.OPTIONAL.values() if e.extra == extra}


# --- pages --------------------------------------------------------------------------------------


def raised(page: str, installed: frozenset[str], lines: list[int]) -> list[dict]:
    """What blocks of a page raise where only some extras are installed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bare", page, json.dumps([sorted(installed), lines])],
        capture_output=True, text=True, cwd=ROOT, env=_with_path(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_blocks_run_after_the_install_command_above_them(page: str) -> None:
    blocks = bare.read(ROOT / page).blocks
    for installed in {block.extras for block in blocks if block.extras}:
        # blocks build on each other: those run, too, that need less
        lines = [block.line for block in blocks if block.extras <= installed]
        failed = raised(page, installed, lines)
        assert not failed, failed[0]["trace"]
    assert_only_extras_are_missed(page, blocks)


def assert_only_extras_are_missed(page: str, blocks: list[bare.Block]) -> None:
    """Without any extra: blocks run that need none, and what fails in the others says which."""
    said = {block.line: block.extras for block in blocks}
    for failure in raised(page, frozenset(), list(said)):
        assert said[max(line for line in said if line <= failure["line"])], failure["trace"]
        # a consequence, or the page's own import: its text named the extra
        if failure["type"] != "NameError" and not failure["source"].startswith(("import", "from")):
            assert re.search(r"pip install 'safesift\[\w+\]'\.$", failure["message"]), failure


def test_the_command_is_shown_where_it_is_installed() -> None:
    commands = bare.read(ROOT / "README.md").commands
    assert commands and all("cli" in command.extras for command in commands)


def test_the_walk_finds_what_would_fail(tmp_path: Path) -> None:
    """A page with a block that needs more than the command above it installs."""
    text = "`pip install .`\n```python\n>>> import safesift as ss\n>>> ss.SampleScreener()\n```\n"
    page = tmp_path / "page.md"
    page.write_text(text)
    (failure,) = raised(str(page), frozenset(), [3])
    assert failure["type"] == "ImportError" and failure["line"] == 4
