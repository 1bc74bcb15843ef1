"""The site, as far as it can be checked without building it: `make docs` builds it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import safesift as ss
from tests.docstrings import complaints, public_names

DOCS = Path(__file__).parent.parent / "docs"
sys.path.append(str(DOCS))

import links  # noqa: E402
import measured  # noqa: E402
import staging  # noqa: E402
from figures import FIGURES, Column, Figure, digits, entries, plain  # noqa: E402

_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)


def contents(page: str) -> list[str]:
    """What the toctrees of a page list."""
    path = DOCS / f"{page}.md"
    if not path.exists():
        return []
    lines = "\n".join(_TOCTREE.findall(path.read_text())).splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith(":")]


def listed_from(page: str) -> set[str]:
    below = {one for name in contents(page) for one in listed_from(name)}
    return {page} | below


def test_every_page_is_in_a_toctree():
    pages = {path.stem for path in DOCS.glob("*.md")} | {path.stem for path in DOCS.glob("*.rst")}
    assert pages - listed_from("index") == set()


def test_pages_that_are_made_are_in_a_toctree():
    assert listed_from("index") >= {"gallery/index", "tutorials/index", "measured"}
    assert "{toctree}\n:hidden:\n\nmeasured_race\n" in measured.page()


def test_new_pages_have_their_place():
    reserved = {"which_function", "when_not", "coming_from", "how_sure", "changelog"}
    assert listed_from("index") >= reserved | {"contributing", "reports"}


def test_front_page_has_one_measured_figure_and_where_not_to_go():
    front = (DOCS / "index.md").read_text()
    assert front.count("{{ front_figure }}") == 1
    assert "{button-ref} when_not" in front


def test_every_public_name_is_in_the_reference():
    reference = (DOCS / "api.rst").read_text()
    listed = set(re.findall(r"^   ([\w.]+)$", reference, re.MULTILINE))
    described = set(re.findall(r"^\.\. py:data:: ([\w.]+)$", reference, re.MULTILINE))
    assert ss.regions.RegionError is ss.RegionError  # one page for both
    assert listed == set(public_names()) - {"regions.RegionError"}
    assert described == {"__version__", "losses.LOSSES", "penalties.PENALTIES", "regions.REGIONS"}
    assert {name.partition(".")[0] for name in listed | described} == set(ss.__all__)


def test_docstrings_are_what_numpydoc_asks_for():
    pytest.importorskip("numpydoc")
    found = [one for name, thing in public_names().items() for one in complaints(name, thing)]
    assert found == []


def test_a_bad_docstring_would_be_found():
    pytest.importorskip("numpydoc")

    def scale(factor, shift):
        """Scale it.

        Parameters
        ----------
        factor : float
        offset : float
        """
        return factor * shift

    found = " ".join(complaints("scale", scale))
    assert "PR01" in found
    assert "PR02" in found
    assert "RT01" in found


@pytest.mark.parametrize("example", staging.examples(), ids=lambda path: path.stem)
def test_examples_have_a_heading_and_are_linked(example):
    title, rule = example.read_text().split("\n", 2)[:2]
    if title == '"""':
        title, rule = example.read_text().split("\n", 3)[1:3]
    assert len(rule) >= len(title.removeprefix('"""')), "the title needs a rule below it"
    assert set(rule) == {"="}, "the title needs a rule below it"
    if staging.gallery_of(example) == "gallery":
        pages = [path.read_text() for path in DOCS.glob("*.md")]
        assert any(f"](../examples/{example.name})" in page for page in pages)


def test_pages_of_names_that_are_gone_are_removed(tmp_path):
    for name in ("safesift.screen", "safesift.losses.Hinge", "safesift.gone"):
        (tmp_path / f"{name}.rst").write_text("")
    staging.forget(tmp_path, "   screen\n   losses.Hinge\n")
    assert {path.stem for path in tmp_path.iterdir()} == {
        "safesift.screen",
        "safesift.losses.Hinge",
    }


def test_examples_are_copied_to_their_galleries(tmp_path):
    staging.stage(tmp_path)
    for example in staging.examples():
        assert (tmp_path / staging.gallery_of(example) / example.name).exists()
    for name in staging.GALLERIES:
        assert (tmp_path / name / "GALLERY_HEADER.rst").exists()


# --- measured figures -------------------------------------------------------------------------

LITTLE = Figure(
    "speeds", "speeds.py", "Speeds", "How fast.", entries("runs"),
    (Column("who", "who", plain), Column("s", ("seconds", "fit"), digits), Column("x", "x")),
)  # fmt: skip


def test_a_figure_says_what_is_in_its_file():
    facts = {"machine": "an abacus", "runs": [{"who": "we", "seconds": {"fit": 12.345}}]}
    page = measured.page([LITTLE], {"speeds": facts}.get)
    assert "## Speeds" in page
    assert "| we | 12.3 |" in page
    assert "an abacus" in page


def test_what_is_not_measured_is_left_out():
    rows = [{"who": "we", "seconds": {"fit": 2.0}}, {"who": "they"}, {}]
    assert measured.section(LITTLE, {"runs": rows}).count("|") == 9  # two columns, three lines
    assert measured.section(LITTLE, {}) == ""
    assert measured.section(LITTLE, {"runs": [{"who": "they"}]}) == ""


@pytest.mark.parametrize("source", sorted({figure.source for figure in FIGURES}))
def test_every_file_of_results_that_is_there_is_shown(source):
    page = measured.page()
    titles = [figure.title for figure in FIGURES if figure.source == source]
    assert any(f"## {title}\n" in page for title in titles) == bool(measured.read(source))


def race_of(**solvers):
    """A record of the race: seconds of paths, None where one did not arrive."""
    stages = {
        name: {"path": {"seconds": seconds, "reached": seconds is not None, "tols": [1e-6] * 10}}
        for name, seconds in solvers.items()
    }
    return {
        "machines": [{"machine": "an abacus"}],
        "records": [{
            "case": "covtype/squared_hinge-l2", "tol": 1e-6, "load": "quiet",
            "solvers": {name: {"stages": one, "machine": 0} for name, one in stages.items()},
        }],
    }  # fmt: skip


def test_the_figure_of_the_front_page_is_read_from_the_race():
    race = race_of(**{"safesift": 0.5, "LIBLINEAR dual": None, "LIBLINEAR primal": 20.0})
    ridge = {"data": [{"data": "covtype", "shape": [1234, 5]}]}
    words = measured.front({"paths_vs_peers": race, "price_of_ridge": ridge}.get).markdown()
    assert "**0.5 s against 20 s**" in words
    assert "10 models of covtype (1\u202f234 rows)" in words
    assert "40 times" in words
    assert "an abacus" in words


def test_a_race_without_the_figure_is_named():
    race = race_of(**{"safesift": 0.5, "LIBLINEAR dual": None})
    with pytest.raises(ValueError, match=r"paths_vs_peers\.json must have"):
        measured.front({"paths_vs_peers": race}.get)


def test_the_whole_race_has_a_page():
    assert measured.race().startswith("# Paths against the peers\n")


# --- links ------------------------------------------------------------------------------------


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="below/page.html#there">a</a><a href="#top">b</a>'
        '<a href="https://example.org/none">c</a><a href="below/page.html#gone">d</a>'
        '<img src="none.png"><a href="../outside.html">e</a>'
    )
    (tmp_path / "below" / "page.html").write_text('<p id="there"></p><a href="../index.html">f</a>')
    (tmp_path.parent / "outside.html").write_text("")
    assert list(links.broken(tmp_path)) == [
        "index.html: below/page.html#gone",
        "index.html: none.png",
        "index.html: ../outside.html",
    ]


def test_links_of_a_page_lead_to_pages_of_the_site():
    text = "[a](../examples/tutorial_first.py) [b](../CHANGELOG.md) [c](https://x.org/a.md)"
    assert staging.linked(text, "docs/page.md") == (
        "[a](tutorials/tutorial_first.rst) [b](changelog.md) [c](https://x.org/a.md)"
    )
    assert staging.linked("![p](docs/pictures/a.png)", "README.md") == "![p](pictures/a.png)"
