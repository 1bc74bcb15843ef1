"""
Which of my rows matter?
========================

A table of 569 patients, and a linear classifier. Most of the rows could be deleted, and the
classifier would be the same. This tutorial finds out which, says why, asks which of the labels look
wrong, trains another estimator on what is left, and writes a proof for somebody who trusts nobody.

It takes a few seconds, and needs ``pip install 'safesift[plot]' pandas``.
"""

# %%
# A table as it comes
# -------------------
#
# Columns with names and in their own units, rows with names, labels in words. Nothing is scaled:
# the largest column is some hundred thousand times as large as the smallest.

import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import safesift as ss
import safesift_check

data = load_breast_cancer(as_frame=True)
names = [f"patient {number:03}" for number in range(1, len(data.target) + 1)]
patients = data.data.set_axis(names)
diagnosis = pd.Series(data.target_names[data.target], index=names)

print(patients.iloc[:3, :4])
print(diagnosis.value_counts())

# %%
# Which rows matter
# -----------------
#
# One call. The model is a support vector machine with a squared hinge loss, an l2 penalty of weight
# ``alpha`` and an intercept: the defaults. What is proved is proved of *this* model: another loss
# or another alpha has other rows that matter.

result = ss.screen(patients, diagnosis, alpha=1e-4)
print(result.summary())

# %%
# "Dropped" means: with any or all of these rows deleted (and the loss still divided by the number
# of *all* rows), the best model is the same. That is no estimate. It holds at every optimum, and
# rounding errors are part of the bounds.
#
# In the picture every row is a dot, and its height says how far its prediction is from where the
# loss is flat. Below the line a row has no loss and no pull.

_ = result.plot()

# %%
# Why
# ---
#
# For every row there are bounds on its decision value at every optimum. *benign* stands for -1 and
# *malignant* for +1 (the summary says so), and the squared hinge is flat from 1 on, on the side of
# the label. So a malignant row is dropped where its lower bound is above 1, and a benign one where
# its upper bound is below -1.

rows = pd.DataFrame(
    {
        "diagnosis": diagnosis,
        "lower": result.lower,
        "upper": result.upper,
        "kept": result.kept,
        "score": result.score,
    }
)
print(rows.groupby(["diagnosis", "kept"]).head(2).sort_values("score").round(3))

# %%
# ``score`` is how far these bounds stick out of the flat piece: negative where a row is dropped,
# and the larger, the harder the row. These are the ones that pull most, by name:

hardest = rows.sort_values("score", ascending=False).head(5)
print(hardest.round(3))

# %%
# A row that is kept is not a bad row. It is one that the boundary leans on, or one on the wrong
# side of it. Which of both, the sign of its decision value tells: the rows of this list that have
# the wrong one are the errors that the best model makes.
#
# What is left
# ------------
#
# ``take`` cuts any table with the same rows, and gives back the type that it got.

few, their_diagnosis = result.take(patients, diagnosis)
print(type(few).__name__, few.shape, list(few.index[:3]))

# %%
# The model of these rows is the model of all. Only the divisor has to stay: a solver that averages
# the loss over its rows takes ``alpha_kept`` in place of alpha.

on_all = result.to_estimator()
on_few = ss.SafeClassifier(alpha=result.alpha_kept, tol=1e-9).fit(few, their_diagnosis)
difference = np.abs(on_few.decision_function(patients) - on_all.decision_function(patients))
print(f"decision values of {len(few)} and of all rows differ by {difference.max():.1e}")

# %%
# Another estimator
# -----------------
#
# LinearSVC has the same loss, if it is asked for the same problem. It sums the loss, so that its
# ``C`` needs no correction; it penalises its intercept, so that we do without one; and it needs
# scaled columns. The scaler is fitted to *all* rows: what is kept are the hard ones, with other
# means.

C = 0.1
scaled = StandardScaler().set_output(transform="pandas").fit_transform(patients)
alpha = ss.alpha_from_C(C, n_samples=len(scaled), loss="squared_hinge")
for_svc = ss.screen(scaled, diagnosis, alpha=alpha, fit_intercept=False)

svc = LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-10)
from_all = svc.fit(scaled, diagnosis).coef_.copy()
from_few = svc.fit(*for_svc.take(scaled, diagnosis)).coef_
print(f"LinearSVC on {for_svc.kept.sum()} rows: {np.abs(from_few - from_all).max():.1e} apart")

# %%
# For estimators of another kind, trees say, nothing is promised: these rows are the ones that
# *this* loss depends on. To keep a given number of rows, chosen and weighted for training, there is
# ``ss.compress``.
#
# Which labels look wrong?
# ------------------------
#
# Rows that matter are where label errors hide. We make twelve of them, and ask every row what the
# model says that was trained *without* it. All 569 models come from one call.

rng = np.random.default_rng(0)
mistaken = rng.choice(len(diagnosis), 12, replace=False)
written = diagnosis.copy()
written.iloc[mistaken] = np.where(diagnosis.iloc[mistaken] == "benign", "malignant", "benign")

loo = ss.leave_one_out(patients, written, alpha=1e-4)
print(loo.summary())

# %%
# ``suspects`` ranks the rows by how strongly the model of the others disagrees with their label.
# Somebody who looks at the first dozen files again finds most of the mistakes:

suspects = loo.suspects(12)
looked_at = pd.DataFrame(
    {
        "written": written.iloc[suspects],
        "the others say": loo.prediction[suspects],
        "decision": loo.decision[suspects].round(2),
        "planted": np.isin(suspects, mistaken),
    }
)
print(looked_at)
print(f"{looked_at['planted'].sum()} of 12 planted errors are among the first 12")

# %%
# The others of the list are patients who are hard to tell as they are. Being at odds with a model
# is a reason to look, no verdict.
#
# The picture has what the model of all rows says of a row, and upwards what the model without it
# says. Most dots are on the diagonal: no single row changes much. One is not.

axes = loo.plot()
axes.plot(loo.fitted[mistaken], loo.decision[mistaken], "x", color="#aa3377", label="planted error")
axes.legend(frameon=False, loc="lower right")

most = np.abs(loo.change).argmax()
with_it, without = loo.fitted[most], loo.decision[most]
print(f"{names[most]}, written {written.iloc[most]}: {with_it:.2f} with it, {without:.2f} without")

# %%
# With its wrong label this row bends the model so far that the model agrees with it. Whoever looks
# at the residuals of the fitted model passes it by; without it there is no doubt.

# %%
# A proof to hand on
# ------------------
#
# Whoever receives the short table need not believe any of this. ``write_proof`` writes down what
# was proved, and ``safesift_check``, one file that needs NumPy and nothing of the library, verifies
# it against the data. It is called here as a function; ``python safesift_check.py proof.npz
# data.npz`` does the same elsewhere, and ends with 0 for proved.

folder = tempfile.mkdtemp()
proof_file, data_file = os.path.join(folder, "proof.npz"), os.path.join(folder, "data.npz")
proof = result.write_proof(proof_file)
np.savez(data_file, X=patients.to_numpy(), y=diagnosis.to_numpy(dtype=str))

status = safesift_check.main([proof_file, data_file, "--expect", "alpha=1e-4,intercept=true"])
print("exit status:", status)
print(f"{(~proof.kept).sum()} rows proved to be of no influence, by a reader of the file alone")

# %%
# A page for somebody else
# ------------------------
#
# The labels as they are written, on one page for the person who knows the patients and does not
# run code: the rows that matter, the labels in doubt, both with all columns of the table. The file
# needs no network.

table = patients.assign(diagnosis=written)
doubted = ss.screen(patients, written, alpha=1e-4)
page = doubted.report(os.path.join(folder, "report.html"), table, also=[loo])
print(f"{page.name}: {page.stat().st_size // 1000} kB")

plt.show()

# %%
# What it does not say: that the dropped rows were never read, or that they are worth nothing to
# another model. :doc:`How sure is it? </how_sure>` has the list.
