"""What a numeric loss costs: a million values, slopes, curvatures and conjugates.

    python benchmarks/convolution_cost.py [--samples 1000000] [--repeats 3]

Target: under a second each, for functions given with or without their derivative.
"""

from __future__ import annotations

import argparse

import numpy as np
from screening_cost import median_seconds

import safesift as ss
from safesift.losses.numeric import numeric_version


def log_cosh(r: np.ndarray) -> np.ndarray:
    size = np.abs(r)
    return size + np.log1p(np.exp(-2 * size)) - np.log(2.0)


def cases() -> dict[str, ss.losses.Loss]:
    given = ss.losses.from_function(log_cosh, np.tanh, task="regression")
    bare = ss.losses.from_function(log_cosh, task="regression")
    curved = ss.CustomOmega(lambda u: np.abs(u) + u**2, lambda u: np.sign(u) + 2 * u)
    logistic = numeric_version(ss.losses.Logistic())
    hinge = numeric_version(ss.losses.Hinge())
    return {
        "log cosh, l1": ss.make_safe(given, "l1", 0.5),
        "log cosh without derivative, l1": ss.make_safe(bare, "l1", 0.5),
        "log cosh, |u| + u²": ss.make_safe(given, curved, 0.5),
        "log cosh without derivative, |u| + u²": ss.make_safe(bare, curved, 0.5),
        "logistic, entropy": ss.infimum_convolution(logistic, "entropy", 0.5),
        "hinge, ½u²": ss.infimum_convolution(hinge, "quadratic", 0.5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    t = 3.0 * np.random.default_rng(0).standard_normal(args.samples)
    print(f"seconds for {args.samples} samples (target: 1.0)")
    print(f"{'loss, omega':<40}{'value':>9}{'slope':>9}{'curvature':>11}{'conjugate':>11}")
    for name, loss in cases().items():
        y = 1.0 if loss.task == "classification" else 0.0
        slopes = loss.slope(t, y)
        calls = [
            lambda loss=loss, y=y: loss.value(t, y),
            lambda loss=loss, y=y: loss.slope(t, y),
            lambda loss=loss, y=y: loss.curvature(t, y),
            lambda loss=loss, y=y, slopes=slopes: loss.conjugate(slopes, y),
        ]
        seconds = [median_seconds(call, args.repeats) for call in calls]
        print("{:<40}{:9.2f}{:9.2f}{:11.2f}{:11.2f}".format(name, *seconds))


if __name__ == "__main__":
    main()
