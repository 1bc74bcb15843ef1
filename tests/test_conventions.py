"""An alpha of ours and a C of theirs: the same models."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

import safesift as ss

LABELS = make_classification(120, 5, flip_y=0.1, random_state=0)
NUMBERS = make_regression(120, 5, noise=20.0, random_state=0)
NUMBERS = (NUMBERS[0], NUMBERS[1] / NUMBERS[1].std())
C = 0.3
WEIGHTS = np.random.default_rng(0).integers(0, 4, 120).astype(float)

# their estimator, our loss, whether both have an intercept
CASES = {
    "LinearSVC": (LinearSVC(C=C, tol=1e-10, max_iter=10**6, fit_intercept=False),
                  "squared_hinge"),
    "LinearSVC l1": (LinearSVC(C=C, penalty="l1", dual=False, tol=1e-10, max_iter=10**6,
                               fit_intercept=False), "squared_hinge"),
    "LinearSVC hinge": (LinearSVC(C=C, loss="hinge", tol=1e-10, max_iter=10**6,
                                  fit_intercept=False), "hinge"),
    "SVC": (SVC(C=C, kernel="linear", tol=1e-9), "hinge"),
    "LogisticRegression": (LogisticRegression(C=C, tol=1e-10), "logistic"),
    "LinearSVR": (LinearSVR(C=C, epsilon=0.2, tol=1e-10, max_iter=10**6, fit_intercept=False,
                            random_state=0), "epsilon_insensitive"),
    "LinearSVR squared": (LinearSVR(C=C, epsilon=0.2, loss="squared_epsilon_insensitive",
                                    dual=True, tol=1e-10, max_iter=10**6, fit_intercept=False),
                          "squared_epsilon_insensitive"),
    "SVR": (SVR(C=C, kernel="linear", epsilon=0.2, tol=1e-9), "epsilon_insensitive"),
    "Ridge": (Ridge(alpha=1 / (2 * C), tol=1e-12), "squared"),
}  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_the_models_are_the_same(name, weighted):
    theirs, loss = CASES[name]
    labels = ss.losses.LOSSES[loss].task == "classification"
    X, y = LABELS if labels else NUMBERS
    weights = WEIGHTS if weighted else np.ones(len(y))
    theirs.fit(X, y, sample_weight=weights)
    ours = (ss.SafeClassifier if labels else ss.SafeRegressor)(
        loss,
        alpha=ss.alpha_from_C(C, weights.sum(), loss),
        penalty="l1" if name.endswith("l1") else "l2",
        fit_intercept=getattr(theirs, "fit_intercept", True),
        tol=1e-10,
        **({} if labels else {"epsilon": 0.2}),
    ).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(np.ravel(ours.coef_), np.ravel(theirs.coef_), atol=2e-4)


@pytest.mark.parametrize("loss", [loss for _, loss in CASES.values()])
def test_there_and_back(loss):
    alpha = ss.alpha_from_C(0.7, 123.5, loss)
    assert ss.C_from_alpha(alpha, 123.5, loss) == pytest.approx(0.7, rel=1e-15)


def test_an_object_is_its_name():
    tube = ss.losses.EpsilonInsensitive(0.5)
    assert ss.alpha_from_C(2.0, 10, tube) == ss.alpha_from_C(2.0, 10, "epsilon_insensitive")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 10), "C must be positive"),
        ((1.0, 0), "n_samples must be positive"),
        ((1.0, 10, "huber"), "loss='huber' belongs to no estimator.*squared_hinge"),
        ((1.0, 10, "hnige"), "did you mean 'hinge'"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ss.alpha_from_C(*arguments)
    with pytest.raises(ValueError, match="alpha must be positive"):
        ss.C_from_alpha(-1.0, 10)
