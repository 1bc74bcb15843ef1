"""A proof on file, verified without the library
=============================================

A receipt for a row; the deletion of some::

    python examples/proofs.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import safesift as ss
import safesift_receipt
import safesift_root

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 6))
y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=2000) > 0, "yes", "no")
folder = Path(tempfile.mkdtemp())


def verify(proof: str, data: str) -> None:
    """With the checker's own root of the data, which needs NumPy only."""
    files = [str(folder / name) for name in (proof, data)]
    assert safesift_root.main([*files, "--seed", f"{files[0]}.seed"]) == 0


# %%
# Write it, and have it verified
# ------------------------------
tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X, y)
before = tracker.write_proof(str(folder / "before.npz"))
np.savez(folder / "data.npz", X=X, y=y)
verify("before.npz", "data.npz")

# %%
# Somebody wants to know about row 7
# ----------------------------------
shown = safesift_receipt.verify(
    before.receipt(7), {"features": X[7].tolist(), "target": y[7]}, before.root
)
print("row 7 is in the data;", "of no influence" if shown == [1] else "it may have an influence")

# %%
# And three others want to be deleted
# -----------------------------------
# The model is that of the data without them.
gone = np.array([3, 5, 8])
tracker.update(remove=gone)
after = tracker.write_proof(str(folder / "after.npz"), before=before, removed=gone)
np.savez(folder / "left.npz", X=tracker.X_, y=tracker.y_)
verify("after.npz", "left.npz")
print("exactly", len(gone), "rows are missing from the data behind", before.root[:16], "…")
