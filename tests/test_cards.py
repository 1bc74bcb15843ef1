"""What a notebook shows of results and of fitted estimators."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_breast_cancer, load_wine, make_moons
from sklearn.preprocessing import scale

import safesift as ss
from safesift.faces.markup import Markup, element, joined

X, Y = load_breast_cancer(return_X_y=True)
LABELS = np.where(Y == 1, "benign", "malignant")


class Balance(HTMLParser):
    """Whether every element that begins ends, and what is text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.names: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        if tag not in ("meta", "input", "link", "br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def shown(result) -> str:
    text = result._repr_html_()
    balance = Balance(text)
    assert not balance.open
    return balance.text


def test_text_is_escaped_and_markup_is_not():
    inner = element("b", "<script>", title='"x"')
    assert inner == '<b title="&quot;x&quot;">&lt;script&gt;</b>'
    assert joined([inner, "a & b", None]) == inner + "a &amp; b"
    assert isinstance(inner, Markup) and not isinstance(inner + "<b>", Markup)


def test_control_characters_do_not_get_into_a_page():
    assert element("p", "a\x00b\x1b[0m\nc") == "<p>a b [0m\nc</p>"


def test_screening():
    result = ss.screen(X, LABELS, alpha=1e-4)
    text = shown(result)
    n_kept = int(result.kept.sum())
    assert f"{n_kept} of 569 samples kept, {569 - n_kept} dropped (proved)" in text
    assert f"dropped {569 - n_kept}" in text and "duality gap" in text and "undecided 0" in text


def test_what_is_not_certified_says_so():
    guess = ss.regions.GuessedBall(radius=0.01)
    assert "NOT certified" in shown(ss.screen(X, LABELS, alpha=1e-4, screening=guess))
    assert "NOT certified" not in shown(ss.screen(X, LABELS, alpha=1e-4))


def test_range_path_and_kernel_path():
    found = ss.screen_range(X, LABELS, alpha_range=(1e-3, 2e-3))
    assert "for every alpha from 0.001 to 0.002" in shown(found)
    path = ss.safe_path(X, LABELS, alphas=np.geomspace(1e-1, 1e-4, 15))
    text = shown(path)
    assert "15 models" in text and "12 of 15 levels are shown" in text and "relative gap" in text
    moons, side = make_moons(100, noise=0.2, random_state=0)
    kernels = ss.safe_kernel_path(moons, side, alphas=[1e-2, 1e-3], gamma=2.0)
    assert "2 models" in shown(kernels)


def test_blocks_compression_mining_and_leaving_out():
    rows = ss.blocks.arrays(X, Y, memory="10 MB")
    assert "569 rows" in shown(ss.screen(rows, alpha=1e-3))
    assert "114 of 569" in shown(ss.compress(X, Y, n_keep=0.2, alpha=1e-3, random_state=0))
    begun = ss.SafeClassifier(alpha=1e-3).fit(X[:300], Y[:300])
    mined = ss.mine_hard(X[300:][Y[300:] == 0], begun, X[:300], Y[:300], label=0)
    assert "rows of the pool kept" in shown(mined)
    assert "569 models without a sample" in shown(ss.leave_one_out(X, Y, alpha=1e-2))
    assert "569 samples ranked" in shown(ss.rank_samples(X, Y, alpha=1e-3))


def fitted():
    wine, kind = load_wine(return_X_y=True)
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(scale(X), Y)
    return {
        "classifier": ss.SafeClassifier(alpha=1e-3).fit(wine, kind),
        "regressor": ss.SafeRegressor(loss="huber", alpha=1e-3).fit(wine, wine[:, 0]),
        "intervals": ss.IntervalRegressor(alpha=1e-3).fit(wine, wine[:, :2] + [0, 20]),
        "kernel": ss.SafeKernelClassifier(gamma=1e-4).fit(wine[:130], kind[:130]),
        "cv": ss.SafeClassifierCV(alphas=[10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4], cv=3).fit(wine, kind),
        "tracker": tracker.update(remove=[3]),
        "blocks": ss.SafeClassifier(alpha=1e-3).fit(ss.blocks.arrays(X, Y, memory="10 MB")),
    }


def test_estimators_keep_the_picture_of_scikit_learn_and_add_what_is_proved():
    texts = {}
    for name, model in fitted().items():
        bundle = model._repr_mimebundle_()
        texts[name] = text = Balance(bundle["text/html"]).text
        assert type(model).__name__ in text, name  # scikit-learn's own
        assert "duality gap at most" in text and "dropped" in text, name
        assert model._repr_html_().count("duality gap at most") == 1, name
    assert "updates: 1; the last came about locally" in texts["tracker"]
    assert "mean score" in texts["cv"]


def test_an_estimator_that_is_not_fitted_is_as_scikit_learn_shows_it():
    text = ss.SafeClassifier()._repr_mimebundle_()["text/html"]
    assert "duality gap" not in text and "SafeClassifier" in text


def test_text_is_shown_where_scikit_learn_is_told_to():
    model = ss.SafeClassifier(alpha=1e-3).fit(X, Y)
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        with pytest.raises(AttributeError):
            model._repr_html_()
