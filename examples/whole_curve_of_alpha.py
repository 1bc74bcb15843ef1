"""The validation error of every alpha at once
===========================================

Between proved bounds::

    python examples/whole_curve_of_alpha.py [certified_alpha.png] [rows]

a9a where SAFESIFT_DATA names a folder with a9a.svmlight.bz2 (2 000 rows of it, or as many as are
asked for), breast cancer otherwise; squared hinge, l2, five folds. A grid of a few alphas sees
dots; the band is where the error of every alpha in between lies, and no alpha of it is better than
the chosen one by more than epsilon.
"""

import os
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_svmlight_file
from sklearn.preprocessing import scale

import safesift as ss


# %%
# The data
# --------
def samples(n_rows: int) -> tuple[np.ndarray, np.ndarray, float]:
    file = Path(os.environ.get("SAFESIFT_DATA", ".")) / "a9a.svmlight.bz2"
    if file.exists():
        X, y = load_svmlight_file(str(file))
        return X.toarray()[:n_rows], y[:n_rows], 2e-3
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y, 5e-3


# %%
# The band in which all errors lie
# --------------------------------
def main() -> None:
    X, y, epsilon = samples(int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
    began = time.perf_counter()
    found = ss.certify_alpha(X, y, alphas=(1e-4, 1.0), epsilon=epsilon)
    print(found.summary())
    print(f"  {time.perf_counter() - began:.1f} s")
    axes = found.plot()
    axes.set_title(
        f"no alpha is better than {found.alpha:.3g} by more than {epsilon:g}", loc="left"
    )
    assert found.resolved, "FAILED: not resolved"
    plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "certified_alpha.png", dpi=110)


if __name__ == "__main__":
    main()
