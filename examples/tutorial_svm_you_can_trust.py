"""
An SVM you can trust
====================

``LinearSVC`` on a raw table warns that it failed to converge. How bad is that? And is all well
where it does not warn? This tutorial measures what such fits are worth, solves the same problem to
the end, goes on to a path of models and to the best alpha of four decades, proves that no other
alpha is better, and puts the last model on file for others to check.

It takes some seconds, and needs ``pip install 'safesift[plot]'``.
"""

# %%
# A warning
# ---------
#
# The breast cancer data of scikit-learn, as they come. ``dual=True`` is the solver that LinearSVC
# used by default for many years.

import os
import tempfile
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import safesift as ss
import safesift_check

raw, y = load_breast_cancer(return_X_y=True)
scaled = StandardScaler().fit_transform(raw)
C = 1.0


def fitted(X, **settings):
    """A LinearSVC, and whether it complained."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = LinearSVC(C=C, random_state=0, **settings).fit(X, y)
    return model, [str(warning.message) for warning in caught]


model, complaints = fitted(raw, dual=True)
print(complaints)
print(f"training accuracy {model.score(raw, y):.3f}")

# %%
# What is it worth?
# -----------------
#
# A duality gap says it: the objective of the model is at most so much above the least possible one.
# ``ss.screen`` measures it for any model from anywhere, when it is handed over as ``coef``. Then
# nothing is solved. We divide by the objective of the best constant model, so that 1 means "maybe
# no better than a constant" and 1e-6 "solved".
#
# Two things make it LinearSVC's own problem. Its ``C`` is an alpha of ours, by ``alpha_from_C``.
# And its intercept is penalised like a coefficient, so that we say it as it is: one more column, of
# ones.

alpha = ss.alpha_from_C(C, n_samples=len(y), loss="squared_hinge")


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def measured(X, model):
    """What is known of a LinearSVC's model: its gap and its objective."""
    point = np.append(model.coef_, model.intercept_)
    return ss.screen(with_ones(X), y, alpha=alpha, fit_intercept=False, coef=point)


print(f"relative gap {measured(raw, model).relative_gap:.2g}")

# %%
# Far from solved. More iterations? Another solver? Scaled columns?

attempts = {
    "raw, dual": (raw, {"dual": True}),
    "raw, dual, 100 times the iterations": (raw, {"dual": True, "max_iter": 100_000}),
    "raw, primal (today's default)": (raw, {"dual": False}),
    "scaled, dual": (scaled, {"dual": True}),
    "scaled, primal": (scaled, {"dual": False}),
}
found = {}
for name, (X, settings) in attempts.items():
    model, complaints = fitted(X, **settings)
    found[name] = (measured(X, model).relative_gap, bool(complaints))
    print(f"{name:<37} gap {found[name][0]:8.1e}  {'warned' if complaints else 'silent'}")

# %%
# The warning and the worth have little to do with each other. The fit of the raw table by the
# default solver is silent, and may be off by some per cent of what a constant has to pay; the dual
# solver complains about a model of the scaled one that is as good as solved. A gap is a number, and
# does not depend on who found the model, or how.

figure, axes = plt.subplots(figsize=(7.2, 3.0), layout="constrained")
for place, (gap, warned) in enumerate(reversed(found.values())):
    axes.plot(gap, place, "o", ms=9, color="#dd7733" if warned else "#4477aa")
axes.set_yticks(range(len(found)), list(reversed(found)))
axes.margins(y=0.15)
axes.set_xscale("log")
axes.set_xlabel("relative duality gap (orange: warned, blue: silent)")
axes.spines[["top", "right"]].set_visible(False)

# %%
# Solved
# ------
#
# The same problem, the raw columns, by ``SafeClassifier``. It stops when the gap is small enough,
# and says what it is. The units of the columns do not bother it.

same = ss.SafeClassifier(alpha=alpha, fit_intercept=False).fit(with_ones(raw), y)
print(f"relative gap {same.history_[-1]['relative_gap']:.1e}")
print(f"{(~same.kept_).sum()} of {len(y)} rows have no influence on it")

# %%
# Now that the least objective is known, it can be seen how far LinearSVC was above it, and that the
# gap had not promised too much: what is lost is less than what was feared.

best = ss.screen(with_ones(raw), y, alpha=alpha, fit_intercept=False)
for name in ("raw, dual", "raw, primal (today's default)"):
    X, settings = attempts[name]
    theirs = measured(X, fitted(X, **settings)[0])
    lost = theirs.certificate.value - best.certificate.value
    print(f"{name}: objective {lost:.4f} above the least one, gap {theirs.gap:.4f}")

# %%
# A path
# ------
#
# One alpha is a guess. From here on columns are scaled, since a penalty weighs them all alike
# whatever their units, and the intercept is free, as it should be. ``safe_path`` has a certified
# model for each alpha.

path = ss.safe_path(scaled, y, alphas=np.geomspace(1, 1e-5, 30))
print(path.summary())
_ = path.plot()

# %%
# The best alpha
# --------------
#
# ``SafeClassifierCV`` tries a grid on five folds, all of them along one path.

grid = ss.SafeClassifierCV(alphas=np.geomspace(1, 1e-4, 25), cv=5).fit(scaled, y)
print(f"best of 25: alpha {grid.alpha_:.2g}, error {1 - grid.mean_score_path_.max():.4f}")

# %%
# Between the points of a grid there may be a better one. ``certify_alpha`` bounds the validation
# error of *every* alpha of the interval. With ``epsilon=0`` it goes on until none can be better
# than the one that it returns.

certified = ss.certify_alpha(scaled, y, alphas=(1e-4, 1.0), cv=5, epsilon=0)
print(certified.summary())
print("nothing left open:", certified.resolved)
axes = certified.plot()
axes.plot(grid.alphas_, 1 - grid.mean_score_path_, "x", color="#aa3377", label="the grid")
axes.set_ylim(bottom=0.015)
_ = axes.legend(frameon=False)

# %%
# So the search is over: on these folds no alpha does better, and nobody has to try a finer grid.
# What it does not say is how the model does on other patients. An error that was chosen as the
# least of many is a little too good, and the scaler has seen all rows. For an estimate keep some
# rows aside, and put the scaler into a Pipeline.
#
# The model, on file
# ------------------
#
# The last model, with a proof that ``safesift_check`` verifies from the data without the library:
# its gap, and for every row on which piece of its loss it lies at every optimum.

final = ss.SafeClassifier(alpha=certified.alpha).fit(scaled, y)
folder = tempfile.mkdtemp()
proof_file, data_file = os.path.join(folder, "proof.npz"), os.path.join(folder, "data.npz")
proof = final.write_proof(proof_file, scaled, y)
np.savez(data_file, X=scaled, y=y)
print("exit status:", safesift_check.main([proof_file, data_file]))
print(f"gap at most {proof.gap:.1e}; {(~proof.kept).sum()} of {len(y)} rows may be deleted")

plt.show()

# %%
# :doc:`Coming from LinearSVC </coming_from>` has the other differences between both, and
# :doc:`How sure is it? </how_sure>` what each of these numbers says and does not say.
