"""Follow a stream that drifts
===========================

A moving window, updated in place of being fitted again::

    python examples/tracking.py [tracking.png]

Two clouds of points turn slowly around each other. A tracker holds the last 10 000 samples and is
updated with 50 new ones at a time. Left: its accuracy on the samples to come, next to that of the
model that was fitted at the start. Right: how many rows an update reads, which now and then is all
of them, when the metric is renewed in which it measures its steps.
"""

import sys
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import safesift as ss

WINDOW, STEP, N_STEPS = 10_000, 50, 100


# %%
# Two clouds that turn
# --------------------
def drifting(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    angle = np.linspace(0.0, np.pi, n)
    y = rng.integers(0, 2, n)
    middle = np.column_stack([np.cos(angle), np.sin(angle), np.zeros((n, 4))])
    return (2 * y - 1)[:, None] * middle + rng.normal(size=(n, 6)), y


# %%
# Update by update, beside a fresh fit
# ------------------------------------
def main() -> None:
    X, y = drifting(WINDOW + (N_STEPS + 1) * STEP)
    model = ss.SafeClassifier(alpha=1e-3)
    first = ss.SafeClassifier(alpha=1e-3).fit(X[:WINDOW], y[:WINDOW])
    tracker = ss.SafeTracker(model).fit(X[:WINDOW], y[:WINDOW])
    scores, seconds = [], [0.0, 0.0]
    for start in range(WINDOW, WINDOW + N_STEPS * STEP, STEP):
        new, ahead = slice(start, start + STEP), slice(start + STEP, start + 2 * STEP)
        began = time.perf_counter()
        tracker.update(add=(X[new], y[new]), remove=slice(0, STEP))
        seconds[0] += time.perf_counter() - began
        began = time.perf_counter()
        model.fit(X[start + STEP - WINDOW : start + STEP], y[start + STEP - WINDOW : start + STEP])
        seconds[1] += time.perf_counter() - began
        scores.append([one.score(X[ahead], y[ahead]) for one in (tracker, first)])
    same = np.allclose(tracker.coef_, model.coef_, atol=1e-5)
    updates = tracker.history_[1:]
    largest = max(update["relative_gap"] for update in updates)
    print(f"{N_STEPS} updates, largest certified relative gap {largest:.1e}")
    print(f"rows read by an update: {np.mean([u['rows_read'] for u in updates]):.0f} of {WINDOW}")
    print(f"fitting again takes {seconds[1] / seconds[0]:.1f} times as long")
    print("the model is that of a fresh fit" if same else "FAILED: not the model of a fresh fit")
    draw(np.array(scores), [update["rows_read"] for update in updates])


# %%
# The picture
# -----------
def draw(scores: np.ndarray, rows_read: list[int]) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    smooth = np.apply_along_axis(np.convolve, 0, scores, np.full(8, 0.125), mode="valid")
    left.plot(smooth[:, 0], color="tab:blue", label="tracker")
    left.plot(smooth[:, 1], color="tab:gray", label="fitted once")
    left.set(xlabel="updates", ylabel="accuracy on what comes", ylim=(0, 1))
    left.legend(frameon=False, loc="lower left")
    right.axhline(WINDOW, color="tab:gray", ls="--", lw=1)
    right.annotate(
        "the window", (0, WINDOW), (0, -12), textcoords="offset points", color="tab:gray"
    )
    right.plot(rows_read, ".", color="tab:blue")
    right.set(xlabel="updates", ylabel="rows read", yscale="log", ylim=(STEP, 2 * WINDOW))
    figure.tight_layout()
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "tracking.png", dpi=90)


if __name__ == "__main__":
    main()
