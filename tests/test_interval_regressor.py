"""IntervalRegressor: scikit-learn's checks, optimality, screening, and neuroblastoma."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss


@parametrize_with_checks(
    [ss.IntervalRegressor(), ss.IntervalRegressor(penalty="l1", loss="absolute_interval")]
)
def test_scikit_learn(estimator, check):
    check(estimator)
