"""A proof on file, verified without the library; a receipt for a row; the deletion of some.

python examples/proofs.py
"""

from __future__ import annotations

import os
import tempfile

import numpy as np

import safesift as ss
import safesift_receipt
import safesift_root

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 6))
y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=2000) > 0, "yes", "no")
os.chdir(tempfile.mkdtemp())

tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X, y)
before = tracker.write_proof("before.npz")
np.savez("data.npz", X=X, y=y)
assert safesift_root.main(["before.npz", "data.npz", "--seed", "before.npz.seed"]) == 0

# somebody wants to know about row 7
shown = safesift_receipt.verify(
    before.receipt(7), {"features": X[7].tolist(), "target": y[7]}, before.root
)
print("row 7 is in the data;", "of no influence" if shown == [1] else "it may have an influence")

# and three others want to be deleted: the model is that of the data without them
gone = np.array([3, 5, 8])
tracker.update(remove=gone)
after = tracker.write_proof("after.npz", before=before, removed=gone)
np.savez("left.npz", X=tracker.X_, y=tracker.y_)
assert safesift_root.main(["after.npz", "left.npz", "--seed", "after.npz.seed"]) == 0
print("exactly", len(gone), "rows are missing from the data behind", before.root[:16], "…")
