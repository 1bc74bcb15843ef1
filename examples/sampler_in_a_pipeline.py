"""A screener in a Pipeline
========================

Between the scaler and the classifier, in imbalanced-learn's Pipeline.

Screening depends on the scale of the features, so the scaler comes first; a Pipeline resamples for
fitting only, so predictions are made for every row. An estimator that sums the loss (LinearSVC)
needs nothing else. One that averages it over its rows must take `alpha_kept_`, the alpha for which
the divisor is still that of all rows.
"""

import numpy as np
from imblearn.pipeline import make_pipeline
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import safesift as ss

ALPHA = 1e-2


# %%
# An estimator that sums, and one that averages
# ---------------------------------------------
def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)

    svc = LinearSVC(C=1 / (2 * len(y) * ALPHA), fit_intercept=False, dual=False, tol=1e-8)
    screener = ss.SampleScreener(alpha=ALPHA, fit_intercept=False)
    everything = make_pipeline(StandardScaler(), svc).fit(X, y)
    fewer = make_pipeline(StandardScaler(), screener, clone(svc)).fit(X, y)
    print(f"LinearSVC sees {len(screener.sample_indices_)} of {len(y)} rows")
    report(everything, fewer, X)

    screener = ss.SampleScreener(alpha=ALPHA)
    screener.fit(StandardScaler().fit_transform(X), y)
    averaging = ss.SafeClassifier(alpha=screener.alpha_kept_, tol=1e-10)
    everything = make_pipeline(StandardScaler(), ss.SafeClassifier(alpha=ALPHA, tol=1e-10))
    fewer = make_pipeline(StandardScaler(), screener, averaging)
    print(f"alpha {ALPHA:g} of all rows is alpha {screener.alpha_kept_:.4f} of the kept ones")
    report(everything.fit(X, y), fewer.fit(X, y), X)


def report(everything, fewer, X) -> None:
    difference = np.abs(everything[-1].coef_ - fewer[-1].coef_).max()
    same = difference < 1e-5 and (everything.predict(X) == fewer.predict(X)).all()
    print(f"  {'same model' if same else 'FAILED'}: coefficients differ by {difference:.1e}")


if __name__ == "__main__":
    main()
