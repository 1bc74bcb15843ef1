"""Losses with a flat region
=========================

The paper's Figure 2: what a flat region does to the squared and to the logistic loss.

Writes plot_losses.png. Left the squared loss with Ω = ``|u|``, right the logistic loss with its
entropic Ω; the bars below are the flat regions, where samples can be dropped.
"""

import matplotlib.pyplot as plt

import safesift as ss


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    squared = {"squared loss": ss.losses.Squared()}
    squared |= {f"μ = {mu:g}": ss.make_safe("squared", "l1", mu) for mu in (0.5, 1.0)}
    ss.plot_losses(squared, left, limits=(-3.0, 3.0))
    left.set_title("squared loss, Ω(u) = |u|", loc="left")
    logistic = {"logistic loss": ss.losses.Logistic()}
    logistic |= {f"μ = {mu:g}": ss.make_safe("logistic", "entropy", mu) for mu in (0.0, 0.5, 1.0)}
    ss.plot_losses(logistic, right, limits=(-3.0, 3.0))
    right.set_title("logistic loss, Ω(u) = u log(−u) + μ|u|", loc="left")
    figure.savefig("plot_losses.png", dpi=150)
    print("plot_losses.png: the flat regions are", *map(_flat, [*squared.values()][1:]))


def _flat(loss: ss.losses.Loss) -> str:
    piece = next(piece for piece in loss.pieces(0.0) if piece.is_flat)
    return f"[{float(piece.lower):g}, {float(piece.upper):g}]"


if __name__ == "__main__":
    main()
