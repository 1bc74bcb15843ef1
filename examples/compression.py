"""How few samples does a classifier need?
=======================================

Delete more and more of them, and look::

    python examples/compression.py [compression.png]

Handwritten digits, odd ones against even ones: the test accuracy when samples are deleted by the
value of the screening test (the easy ones first), at random, and by the hybrid method, which mixes
hard with representative samples and weights them to stand for the others.
"""

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import safesift as ss


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X / 16.0, y % 2
    curve = ss.compression_curve(X, y, alpha=1e-4, fit_intercept=True, random_state=0)
    print(f"all {curve.n_kept[0]} training samples: accuracy {curve.full.mean():.3f}")
    for fraction, kept, scores in zip(curve.fractions, curve.n_kept, curve.mean.T, strict=True):
        found = ", ".join(f"{m} {s:.3f}" for m, s in zip(curve.methods, scores, strict=True))
        print(f"{fraction:4.0%} deleted, {kept:4d} left: {found}")
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    curve.plot(axes)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "compression.png", dpi=100)


if __name__ == "__main__":
    main()
