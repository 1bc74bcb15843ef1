"""SafeTracker: scikit-learn's conventions, and what it promises of an update."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss


@parametrize_with_checks([ss.SafeTracker(ss.SafeClassifier()), ss.SafeTracker(ss.SafeRegressor())])
def test_scikit_learn(estimator, check):
    check(estimator)
