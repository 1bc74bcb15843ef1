"""What was asked, what is proved and how strongly, and how to come to the same result."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from safesift import __version__
from safesift.faces import summaries
from safesift.faces.markup import Markup, Share, bar, brief, element, joined, table
from safesift.faces.reports.subject import Subject, hash_of
from safesift.problem.training import Training
from safesift.workflows.leaving_out import LeaveOneOut
from safesift.workflows.verdicts import ScreeningResult

# of more classes those with most samples are listed
_MOST_CLASSES = 50


def definitions(pairs: Sequence[tuple[str, Any]]) -> Markup:
    """Names and what they stand for."""
    lines = [joined([element("dt", name), element("dd", value)]) for name, value in pairs]
    return element("dl", *lines)


# --- what was asked -------------------------------------------------------------------------


def headline(subject: Subject) -> str:
    """One sentence."""
    if subject.screening is not None:
        kept = subject.screening.kept
        found = f"{int((~kept).sum()):,} of {len(kept):,} samples cannot change the model"
        return found if subject.screening.certified else f"A guess, not proved: {found}"
    if subject.loo is not None:
        return f"{len(subject.loo.n_changed):,} models, each without a part of the samples"
    assert subject.path is not None  # one of the three is there
    return f"{len(subject.path.alphas)} certified models along {subject.path.parameter}"


def asked(subject: Subject) -> Markup:
    """Samples, labels and the model, in words."""
    return joined([_bar(subject), definitions([*_samples(subject), *_model(subject)])])


def _bar(subject: Subject) -> Markup | None:
    if subject.screening is None:
        return None
    found = summaries.rows(subject.screening)
    listed = [
        element("li", element("b", f"{name}: "), f"{count:,} ({share:.1f} %), {why}")
        for name, count, share, why in found
        if count
    ]
    shares = [Share(name, count) for name, count, _, _ in found]
    guessed = None if subject.screening.certified else element("p", "If the guess holds:")
    return joined([bar(shares), guessed, element("ul", *listed)])


def _samples(subject: Subject) -> Iterator[tuple[str, Any]]:
    if subject.n_samples is not None and subject.problem is not None:
        yield (
            "samples",
            f"{subject.n_samples:,}, with {subject.problem.design.n_features:,} features",
        )
    elif subject.path is not None:
        yield "features", f"{subject.path.coefs.shape[1]:,}"
    if subject.classes is not None:
        yield "labels", summaries.describe_labels(subject.classes)


def _model(subject: Subject) -> Iterator[tuple[str, Any]]:
    training = subject.training
    yield "model", str(training)
    if training.constraint is None:
        penalised = " plus alpha times the penalty of its coefficients"
    else:
        penalised = ", its coefficients within the ball"
    yield "in words", f"the linear model that minimises the mean loss of all samples{penalised}"
    if subject.path is not None:
        low, high = subject.path.alphas.min(), subject.path.alphas.max()
        count = len(subject.path.alphas)
        levels = f"{count} models with {subject.path.parameter} from {low:.3g} to {high:.3g}"
        yield "also", levels + _unlike(training, subject.path.training)
    if subject.loo is not None:
        score = "accuracy" if subject.classes is not None else "score"
        yield (
            "without a sample",
            f"{len(subject.loo.n_changed):,} models, each trained without the samples that it is "
            f"then asked about; {score} {subject.loo.score():.4g}"
            f"{_unlike(training, subject.loo.training)}",
        )


def _unlike(training: Training, other: Training) -> str:
    """The other model, where it differs in more than the alphas of a path."""
    same = str(replace(training, alpha=other.alpha) if np.isnan(other.alpha) else training)
    return "" if same == str(other) else f", of another model: {other}"


# --- what is proved -------------------------------------------------------------------------


def proved(subject: Subject, proof: Path | None) -> Markup:
    """How sure it is."""
    return definitions([
        *_verdicts(subject), *_gaps(subject), *_without(subject), *_on_file(subject, proof),
    ])  # fmt: skip


def _verdicts(subject: Subject) -> Iterator[tuple[str, Any]]:
    result = subject.screening
    if result is None:
        return
    if result.certified:
        yield (
            "dropped samples",
            "proved, rounding errors included: with them or without them every optimum of the "
            f"model is the same{_for_solvers(result)}.",
        )
    else:
        yield "dropped samples", "NOT certified: a guess entered, so check the model on all samples"
    contains = "contains" if result.certified else "is guessed to contain"
    yield f"the set that {contains} every optimum", summaries.describe_regions(result)
    zero = int(result.zero_coef.sum())
    if zero:
        yield "features", f"{zero:,} of {len(result.zero_coef):,} are proved to be 0"
    if result.reason:
        yield "note", result.reason


def _for_solvers(result: ScreeningResult) -> str:
    """What to watch when only the kept samples are trained on."""
    if result.training.constraint is not None or not result.kept.any():
        return ""
    return (
        ", as long as the loss is divided by the number of all samples. For a solver that averages "
        f"over the kept ones, alpha is {result.alpha_kept:.6g}"
    )


def _gaps(subject: Subject) -> Iterator[tuple[str, Any]]:
    if subject.screening is not None:
        gap, finite = summaries.describe_gap(subject.screening), np.isfinite(subject.screening.gap)
        meaning = ": no model has an objective that is lower by more than that"
        yield "duality gap", gap + (meaning if np.all(finite) else ", so nothing is said by it")
    if subject.path is not None:
        worst = subject.path.relative_gaps.max()
        yield "duality gaps along the path", f"at most {worst:.2g} relative, on all samples"


def _without(subject: Subject) -> Iterator[tuple[str, Any]]:
    loo = subject.loo
    if loo is None:
        return
    widths = loo.upper - loo.lower
    known = np.isfinite(widths)
    length = f"of a length of at most {np.max(widths, where=known, initial=0.0):.2g}"
    n_unknown = int((~known.reshape(len(known), -1)).any(axis=1).sum())
    unknown = f"; for {n_unknown:,} samples there is no finite one" if n_unknown else ""
    yield (
        "models without a sample",
        f"what each of them says is known up to intervals {length}{unknown}",
    )


def _on_file(subject: Subject, proof: Path | None) -> Iterator[tuple[str, Any]]:
    if proof is not None:
        name = element("code", proof.name)
        yield "proof on file", joined([name, ", SHA-256 ", element("code", hash_of(proof))])
        yield (
            "to check it",
            joined([
                element("code", f"python safesift_check.py {proof.name} DATA"),
                ", which needs NumPy and nothing of safesift",
            ]),
        )  # fmt: skip
    elif subject.screening is not None:
        yield "proof on file", "none was written: write_proof makes one that others can check"


# --- classes --------------------------------------------------------------------------------


def by_class(subject: Subject) -> Markup | None:
    """How many samples of each label were dropped, folded and left open."""
    result = subject.screening
    if result is None or result.classes is None or result.labels is None:
        return None
    fates = {name: mask for name, mask in summaries.fates(result).items() if mask.any()}
    labels, sizes = np.unique(result.labels, return_counts=True)
    chosen = np.argsort(-sizes, kind="stable")[:_MOST_CLASSES]
    rows = [
        (brief(str(labels[k])), *_shares(result, labels[k], int(sizes[k]), fates))
        for k in sorted(chosen)
    ]
    head = ("label", "samples", *(name.replace("_", " ") for name in fates))
    more = len(labels) - len(chosen)
    note = element("p", f"{more} labels with fewer samples are not listed.") if more else None
    return joined([element("div", table(head, rows), class_="wide"), note])


def _shares(result: ScreeningResult, label: Any, size: int, fates: dict) -> Iterator[str]:
    own = result.labels == label
    yield f"{size:,}"
    for mask in fates.values():
        count = int((mask & own).sum())
        yield f"{count:,} ({100 * count / size:.1f} %)"


# --- how to come to the same ------------------------------------------------------------------


def reproduce(subject: Subject, command: str | None) -> Markup:
    """The call, or the command, and with which versions."""
    versions = f"safesift {__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    code = command if command is not None else "\n".join(_calls(subject))
    same = (
        "With the same samples, and what else was given (weights, a tolerance, a region), the "
        "result is the same to the last bit on the same machine, and on another one to what the "
        "duality gap allows."
    )
    shown = element("pre", element("code", code), tabindex=0)
    return joined([shown, element("p", f"Made with {versions}. {same}")])


def _calls(subject: Subject) -> Iterator[str]:
    yield "import safesift as ss"
    names = {"screening": "screen", "loo": "leave_one_out"}
    for name, function in names.items():
        result = getattr(subject, name)
        if result is not None:
            yield f"{name} = ss.{function}(X, y, {_arguments(result.training)}{_more(result)})"
    if subject.path is not None:
        alphas = ", ".join(repr(float(alpha)) for alpha in subject.path.alphas)
        yield f"path = ss.safe_path(X, y, alphas=[{alphas}], {_arguments(subject.path.training)})"


def _more(result: ScreeningResult | LeaveOneOut) -> str:
    """What a result tells of its samples beyond X and y."""
    if isinstance(result, LeaveOneOut):
        weights, grouped = result.sample_weight, len(result.n_changed) < len(result.y)
    else:
        weights, grouped = result.weights, False
    weighted = ", sample_weight=sample_weight" if np.any(weights != 1) else ""
    return weighted + (", groups=groups" if grouped else "")


def _arguments(training: Training) -> str:
    given = {
        # NumPy's numbers print as calls of NumPy
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in vars(training).items()
        if value is not None
    }
    if np.isnan(given["alpha"]) or training.constraint is not None:
        del given["alpha"]
    # a loss with parameters prints as the call that makes it
    prefix = {"loss": "ss.losses.", "penalty": "ss.penalties."}
    return ", ".join(
        f"{name}={value!r}" if isinstance(value, str | float | bool | int)
        else f"{name}={prefix[name]}{value!r}"
        for name, value in given.items()
    )  # fmt: skip
