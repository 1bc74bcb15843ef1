"""Pages about tables as they come: whatever cells, names and labels hold."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import safesift as ss

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + 0.7 * RNG.normal(size=N) > 0


@pytest.fixture(scope="module")
def screened():
    return ss.screen(X, Y, alpha=1e-2)


def objects(*cells) -> pd.DataFrame:
    repeated = pd.Series([cells[k % len(cells)] for k in range(N)], dtype=object)
    return pd.DataFrame({"given": repeated})


def last_cells(page) -> set[str]:
    """What the last column of the samples shows, with its attributes."""
    return set(
        re.findall(r"<td([^<]*)</td></tr>", page.read_text("utf-8").split('id="samples"')[1])
    )


@pytest.mark.parametrize(
    "cell",
    [None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN"), Decimal("sNaN")],
    ids=repr,
)
def test_what_is_missing_is_not_shown_and_no_number(tmp_path, screened, cell):
    assert last_cells(screened.report(tmp_path / "r.html", objects(cell))) == {">"}


def test_numbers_have_all_that_a_script_sorts_them_by(tmp_path, screened):
    cells = objects(np.inf, -np.inf, 10**400, -(10**5000), Decimal("2.50"), "nan")
    found = last_cells(screened.report(tmp_path / "r.html", cells))
    keys = {found_key for cell in found for found_key in re.findall('data-value="(.*?)"', cell)}
    assert keys == {"Infinity", "-Infinity", "2.5"} and ">nan" in found
    assert any("1.000e+400" in cell for cell in found)


def test_half_of_a_surrogate_pair_can_be_written(tmp_path):
    labels = np.where(Y, "\ud800 yes", "no").astype(object)
    result = ss.screen(X, labels, alpha=1e-2)
    text = result.report(tmp_path / "r.html", objects("\udcff")).read_text("utf-8")
    assert "? yes" in text and result._repr_html_().encode()


def test_a_long_label_is_cut_wherever_it_is(tmp_path):
    labels = np.where(Y, "a" * 10_000, "b" * 10_000)
    result = ss.screen(X, labels, alpha=1e-2)
    text = result.report(tmp_path / "r.html", also=[ss.leave_one_out(X, labels, alpha=1e-2)])
    assert "a" * 300 not in text.read_text() and "a" * 300 not in result.summary()


def test_columns_of_different_types_keep_them(tmp_path, screened):
    day = datetime.date(2020, 2, 29)
    held = {
        "day": [day] * N,
        "gone": [None if k % 2 else 7 for k in range(N)],
        "deep": [[1, 2]] * N,
    }
    for data in (pl.DataFrame(held), pa.table(held)):
        text = screened.report(tmp_path / "r.html", data).read_text()
        assert "2020-02-29" in text and ">deep<" in text and "[1, 2]" in text
        assert 'data-value="7.0">7<' in text


def test_names_need_not_be_strings(tmp_path, screened):
    data = pd.DataFrame(X, columns=[7, ("deep", "name"), "text"])
    text = screened.report(tmp_path / "r.html", data).read_text()
    assert ">7</button>" in text and "(&#x27;deep&#x27;, &#x27;name&#x27;)" in text


def test_what_is_masked_stays_hidden(tmp_path, screened):
    hidden = np.ma.masked_array(np.full((N, 1), 1234.5), mask=True)
    assert "1234" not in screened.report(tmp_path / "r.html", hidden).read_text()


@pytest.mark.parametrize("data", [np.zeros((N, 2, 2)), [[1] * (k % 3) for k in range(N)]])
def test_what_is_no_table_is_refused(tmp_path, screened, data):
    with pytest.raises(ValueError, match="data is no table"):
        screened.report(tmp_path / "r.html", data)


def test_no_sample_to_list_is_no_error(tmp_path):
    apart = X + np.where(Y, 9.0, -9.0)[:, None]
    loo = ss.leave_one_out(apart, Y, alpha=1e-4)
    assert (loo.strangeness < 0).all()
    text = loo.report(tmp_path / "r.html", pd.DataFrame(apart)).read_text()
    assert "data-row" not in text and "> 0 rows<" in text
