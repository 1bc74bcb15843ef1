"""Results as they show themselves in a notebook: a headline, a bar, a few facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from safesift.estimators.cross_validation import CrossValidated
from safesift.estimators.linear import LinearModel
from safesift.estimators.mining import MiningResult
from safesift.estimators.tracker import SafeTracker
from safesift.faces import summaries
from safesift.faces.markup import Markup, Share, bar, element, joined, table
from safesift.workflows.compression import Compressed
from safesift.workflows.path import CertifiedPath
from safesift.workflows.scale.results import BlockScreening
from safesift.workflows.verdicts import Verdicts

# of a path with more levels some are shown
_LEVELS = 12


@dataclass(frozen=True)
class Card:
    """What a reader sees first.

    Attributes
    ----------
    title : str
    notes : sequence of str
        A line each.
    shares : sequence of Share
        What became of the samples.
    table : Markup
    """

    title: str
    notes: Sequence[str] = ()
    shares: Sequence[Share] = ()
    table: Markup | None = None

    @classmethod
    def of_summary(cls, text: str, *shares: Share) -> Card:
        """A summary in plain text has its headline first."""
        title, *notes = text.splitlines()
        return cls(title, [note.strip() for note in notes], shares)

    @property
    def html(self) -> Markup:
        """In place: no style sheet, so that it looks the same wherever it is shown."""
        notes = [element("div", note, style="font-size:.9em") for note in self.notes]
        return element(
            "div",
            element("div", self.title, style="font-weight:600;margin-bottom:.4em"),
            bar(self.shares) if self.shares else None,
            self.table,
            joined(notes),
            style="font-family:sans-serif;line-height:1.5;padding:.4em 0;max-width:60em",
        )


def card_html(result: Any) -> str:
    """What a notebook shows of a result."""
    return card_of(result).html


@singledispatch
def card_of(result: Any) -> Card:
    """The card of a result, by its type; most tell all they have to tell in their summary."""
    return Card.of_summary(result.summary())


@card_of.register
def _of_verdicts(result: Verdicts) -> Card:
    shares = [Share(name, count) for name, count, _, _ in summaries.rows(result)]
    return Card(summaries.headline(result), [*summaries.notes(result)], shares)


@card_of.register
def _of_blocks(result: BlockScreening) -> Card:
    n, kept, undecided = len(result.kept), result.kept.sum(), result.undecided.sum()
    found = {"dropped": n - kept, "folded": kept - undecided, "undecided": undecided}
    return Card.of_summary(result.summary(), *(Share(*one) for one in found.items()))


@card_of.register
def _of_path(path: CertifiedPath) -> Card:
    title, *notes = path.summary().splitlines()
    chosen = np.unique(np.linspace(0, len(path.alphas) - 1, _LEVELS).round().astype(int))
    rows = [
        (float(path.alphas[k]), int(path.n_kept[k]), int(path.n_undecided[k]),
         float(path.relative_gaps[k]), float(path.passes[k]))
        for k in chosen
    ]  # fmt: skip
    head = (path.parameter, "samples kept", "undecided", "relative gap", "passes")
    more = len(path.alphas) - len(chosen)
    if more:
        notes.append(f"{len(chosen)} of {len(path.alphas)} levels are shown")
    return Card(title, [note.strip() for note in notes], table=table(head, rows))


@card_of.register
def _of_compressed(small: Compressed) -> Card:
    kept = len(small.indices)
    dropped = Share("dropped", small.n_samples - kept)
    return Card.of_summary(small.summary(), Share("kept", kept), dropped)


@card_of.register
def _of_mining(mined: MiningResult) -> Card:
    shares = (Share("dropped", mined.n_pool - mined.n_kept), Share("kept", mined.n_kept))
    return Card.of_summary(mined.summary(), *shares)


# --- estimators: what is proved of a fit, under scikit-learn's own picture ----------------------


@card_of.register(LinearModel)
def _of_model(model: Any) -> Card:
    gap = float(np.max(model.dual_gap_))
    kept, n = int(model.kept_.sum()), len(model.kept_)
    title = f"fitted on {n:,} samples, duality gap at most {gap:.3g}"
    shares = (Share("dropped", n - kept), Share("kept", kept))
    notes = ["dropped: proved to be of no influence on the model"] if kept < n else []
    return Card(title, notes, shares)


@card_of.register
def _of_cross_validated(model: CrossValidated) -> Card:
    best = float(np.max(model.mean_score_path_))
    inner = _of_model(model)
    chosen = f"alpha {model.alpha_:.3g} of {len(model.alphas_)}, mean score {best:.4g}"
    return Card(inner.title, [chosen, *inner.notes], inner.shares)


@card_of.register
def _of_tracker(tracker: SafeTracker) -> Card:
    inner, last = _of_model(tracker), tracker.history_[-1]
    how = "locally" if last["local"] else f"by a refit ({last['why']})"
    n_updates = len(tracker.history_) - 1
    came = f"; the last came about {how}, {last['rows_read']:,} rows read" if n_updates else ""
    return Card(inner.title, [f"updates: {n_updates}{came}", *inner.notes], inner.shares)
