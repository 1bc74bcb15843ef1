"""The floor plan: layers, no cycles, few names at the top. `make lint` has the layers' contract."""

from __future__ import annotations

from tests.imports import ROOT, cycles, graph

MOST_PACKAGES, MOST_MODULES, MOST_LINES = 11, 5, 500


def test_no_modules_import_each_other():
    assert cycles(graph()) == []


def test_a_cycle_would_be_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_lazy_imports_count_and_imports_for_types_do_not(tmp_path):
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "lazy.py").write_text("def f():\n    from p.other import g\n")
    (package / "typed.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import other\n"
    )
    (package / "other.py").write_text("")
    found = graph(package)
    assert found["p.lazy"] == {"p.other"}
    assert found["p.typed"] == set()


def test_few_names_at_the_top():
    packages = [path.parent for path in ROOT.glob("*/__init__.py")]
    modules = [path for path in ROOT.glob("*.py") if not path.stem.startswith("__")]
    assert len(packages) <= MOST_PACKAGES
    assert len(modules) <= MOST_MODULES


def test_files_can_be_read_in_a_sitting():
    long = {
        str(path.relative_to(ROOT)): n
        for path in ROOT.rglob("*.py")
        if (n := len(path.read_text().splitlines())) > MOST_LINES
    }
    assert long == {}
