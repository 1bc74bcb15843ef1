"""SampleCompressor: imbalanced-learn's and scikit-learn's checks, and use in a pipeline."""

from __future__ import annotations

import pytest
from imblearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss

# a list of what imblearn's own parametrize_with_checks passes to pytest as a generator
CHECKS = list(estimator_checks_generator(ss.SampleCompressor(random_state=0)))


@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=lambda x: getattr(x, "func", x))
def test_imbalanced_learn(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        ss.SampleCompressor(0.5, reweight=True, stratify=True),
        ss.SampleCompressor(0.5, method="screening"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
