"""Nothing stands on a page that is not so."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import safesift as ss

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + 0.7 * RNG.normal(size=N) > 0


def text_of(page) -> str:
    return unescape(page.read_text("utf-8"))


def test_a_guess_is_called_one_everywhere(tmp_path):
    guessed = ss.screen(X, Y, alpha=1e-2, screening=ss.regions.GuessedBall(1e-3))
    assert not guessed.certified
    text = text_of(guessed.report(tmp_path / "r.html"))
    assert "<h1>A guess, not proved: " in text and "<title>A guess, not proved: " in text
    assert "If the guess holds:" in text and "is guessed to contain every optimum" in text
    (told,) = re.findall(r'"told":(\[.*?\])', text)
    assert all(line.endswith(" if the guess holds") for line in json.loads(told))


def test_a_ball_has_no_alpha(tmp_path):
    text = text_of(ss.screen(X, Y, penalty="l2_ball").report(tmp_path / "r.html"))
    assert "within the ball" in text and "alpha is " not in text and "alpha=" not in text


def test_where_no_sample_is_kept_there_is_no_alpha(tmp_path):
    loss = ss.losses.SquaredEpsilonInsensitive(1.0)
    result = ss.screen(X, np.zeros(N), loss=loss, alpha=1e-2, fit_intercept=False)
    assert not result.kept.any()
    text = text_of(result.report(tmp_path / "r.html"))
    assert "60 of 60 samples cannot" in text and "alpha is inf" not in text


@pytest.mark.parametrize(
    ("penalty", "given", "order"),
    [("l2", [1e-3, 1.0, 1e-2], [1.0, 1e-2, 1e-3]), ("l2_ball", [0.1, 3.0, 1.0], [0.1, 1.0, 3.0])],
)
def test_the_slider_goes_from_the_most_to_the_least_regularised(tmp_path, penalty, given, order):
    path = ss.safe_path(X, Y, penalty=penalty, alphas=given)
    text = text_of(path.report(tmp_path / "r.html"))
    (data,) = re.findall(r'id="data">(.*?)</script>', text)
    shown = json.loads(data)["path"]
    levels = [float(re.findall(r"= (\S+):", level)[0]) for level in shown["levels"]]
    assert levels == order and shown["x"] == sorted(shown["x"])
    norms = np.linalg.norm(shown["values"], axis=1)
    assert (np.diff(norms) > 0).all()
    assert f"Along {path.parameter}</h2>" in text


@pytest.mark.parametrize("alpha", [np.float32(0.01), np.float64(0.01), 1])
def test_the_call_can_be_made(tmp_path, alpha):
    weights = np.where(Y, 2.0, 1.0)
    groups = np.arange(N) // 5
    screened = ss.screen(X, Y, alpha=alpha, sample_weight=weights)
    loo = ss.leave_one_out(X, Y, alpha=alpha, sample_weight=weights, groups=groups)
    path = ss.safe_path(X, Y, alphas=np.geomspace(1, 1e-3, 4))
    text = text_of(screened.report(tmp_path / "r.html", also=[loo, path]))
    (calls,) = re.findall(r"<code>(import safesift.*?)</code>", text, re.S)
    made: dict = {"X": X, "y": Y, "sample_weight": weights, "groups": groups}
    exec(calls, made)
    np.testing.assert_array_equal(made["path"].alphas, path.alphas)
    np.testing.assert_array_equal(made["screening"].coef, screened.coef)
    np.testing.assert_array_equal(made["loo"].decision, loo.decision)


def test_models_that_differ_are_named(tmp_path):
    screened = ss.screen(X, Y, loss="hinge", alpha=1e-2)
    loo = ss.leave_one_out(X, Y, alpha=0.5)
    path = ss.safe_path(X, Y, loss="hinge", n_alphas=3)
    text = text_of(screened.report(tmp_path / "r.html", also=[loo, path]))
    assert re.findall("of another model: .*?<", text) == [f"of another model: {loo.training}<"]


def test_another_y_is_refused(tmp_path):
    screened = ss.screen(X, Y, alpha=1e-2)
    others = [
        ss.leave_one_out(X, ~Y, alpha=1e-2),
        ss.leave_one_out(X, X[:, 0], loss="huber", alpha=1e-2),
        ss.safe_path(X, X[:, 0], loss="huber", n_alphas=2),
    ]
    for other in others:
        with pytest.raises(ValueError, match="for another y"):
            screened.report(tmp_path / "r.html", also=[other])
    assert not (tmp_path / "r.html").exists()


def test_numbers_and_intervals_are_the_same_y(tmp_path):
    ends = np.stack([X[:, 0], np.where(Y, np.inf, X[:, 0] + 1)], axis=1)
    for y, loss in ((X[:, 0], "huber"), (ends, "squared_interval")):
        loo = ss.leave_one_out(X, y, loss=loss, alpha=1e-2)
        screened = ss.screen(X, y, loss=loss, alpha=1e-2)
        assert screened.report(tmp_path / "r.html", also=[loo]).exists()


def test_intervals_without_an_end_are_counted(tmp_path):
    loo = ss.leave_one_out(X, np.arange(N) % 3, alpha=1e-2)
    upper = loo.upper.copy()
    upper[:2] = np.inf
    text = text_of(replace(loo, upper=upper).report(tmp_path / "r.html"))
    assert "at most inf" not in text and "for 2 samples there is no finite one" in text
