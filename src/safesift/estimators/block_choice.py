"""An alpha chosen by cross-validation, for rows that come in blocks."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from safesift.alerts import warn
from safesift.design.block_source import BlockSource
from safesift.grids import MOVES, check_eps, check_levels
from safesift.losses import Loss
from safesift.parameters import check_count
from safesift.penalties import Penalty
from safesift.problem.training import Training
from safesift.solvers import Settings
from safesift.workflows.scale.on_device import goes_to_device
from safesift.workflows.scale.results import block_model, complain, rows_in_blocks
from safesift.workflows.scale.solve import BlockFit, Spaced, solve_blocks
from safesift.workflows.scale.validating import fold_scores

if TYPE_CHECKING:
    from safesift.estimators.cross_validation import CrossValidated

# the smallest alpha over the largest one, where neither is given
_EPS = 1e-4


def rows_to_choose_on(
    model: CrossValidated, X: Any, y: Any, sample_weight: Any, target: Any, params: dict[str, Any]
) -> BlockSource | None:
    """Rows that come in blocks, if these are such; what means nothing for them is refused."""
    if goes_to_device(X, model._device):
        return None
    routed = {name: (value, None) for name, value in params.items()}
    return rows_in_blocks(
        "fit", X, y, sample_weight, target, screening=(model.screening, "auto"),
        solver=(model.solver, "auto"), scoring=(model.scoring, None),
        device=(model._device, None), precision=(model._precision, "float64"), **routed,
    )  # fmt: skip


def choose_on_blocks(
    model: CrossValidated, source: BlockSource, settings: Settings, loss: Loss, penalty: Penalty
) -> None:
    """Fit the model: all folds and alphas share their passes, and one more scores them."""
    training = Training(loss, penalty, 1.0, None, bool(model.fit_intercept))
    levels, places = _levels(model.alphas, model.eps, penalty)
    asked = replace(
        block_model(training, [1.0], settings.tol, settings.seed),
        alphas=levels,
        class_weights=model._block_weights,
        n_folds=_n_folds(model.cv, model._task == "classification"),
    )
    solution = solve_blocks(source, asked)
    scores, weights = fold_scores(solution)
    means = np.average(scores, axis=0, weights=weights)
    # of equal scores the first one counts, that of the strongest regularisation
    best, found = int(np.argmax(means)), np.array([fit.alpha for fit in solution.fits[0]])
    order = np.arange(len(found)) if places is None else places
    model._publish_blocks(
        solution.at_level(best),
        alpha_=float(found[best]),
        alphas_=found[order],
        scores_=scores[:, order],
        mean_score_path_=means[order],
    )
    grids = [*solution.fits, *(fits for of_fold in solution.without for fits in of_fold)]
    complain(type(model).__name__, [fit for fits in grids for fit in fits], settings.tol)
    if len(found) > 1:
        moving = any(_moves(fits, found) for fits in solution.fits)
        _warn_of_edge(model, best, len(found), given=places is not None, moving=moving)


def _levels(
    alphas: Any, eps: float | None, penalty: Penalty
) -> tuple[list[float] | Spaced, NDArray[np.intp] | None]:
    """From the strongest regularisation on, and where those that were asked for are in that."""
    if isinstance(alphas, str):
        raise ValueError(
            f"alphas={alphas!r} needs rows in memory: list some, or say how many there are to be."
        )
    check_eps(eps, alphas_given=not isinstance(alphas, Integral))
    if isinstance(alphas, Integral):
        return Spaced(check_count("alphas", operator.index(alphas)), eps or _EPS), None
    levels, places = np.unique(check_levels(alphas), return_inverse=True)
    if not penalty.is_constraint:
        levels, places = levels[::-1], len(levels) - 1 - places
    return levels.tolist(), places


def _n_folds(cv: Any, classifies: bool) -> int:
    """How many folds, which go by the numbers of the rows."""
    if cv is None:
        return 5
    if isinstance(cv, StratifiedKFold if classifies else KFold) and not cv.shuffle:
        return cv.n_splits
    if isinstance(cv, Integral) and operator.index(cv) >= 2:
        return operator.index(cv)
    raise ValueError(
        f"cv={cv!r} needs rows in memory: for rows that come in blocks pass the number of folds, "
        "2 or more."
    )


def _moves(fits: Sequence[BlockFit], levels: NDArray[np.float64]) -> bool:
    """Whether the objective still falls at the last of some levels."""
    fall = (fits[-2].value - fits[-1].value) / fits[0].value
    return bool(fall > MOVES * abs(np.log10(levels[-2] / levels[-1])))


def _warn_of_edge(
    model: CrossValidated, best: int, n_levels: int, *, given: bool, moving: bool
) -> None:
    """Say that a better alpha may lie beyond those that were looked at."""
    if not ((best == n_levels - 1 and moving) or (best == 0 and given)):
        return
    weak = (best > 0) != model._checked_penalty().is_constraint
    end, beyond = ("smallest", "smaller") if weak else ("largest", "larger")
    remedy = f"add {beyond} ones" if given else "set a smaller eps"
    warn(
        f"{type(model).__name__} found its best score at the {end} of {n_levels} alphas, "
        f"{model.alpha_:.3g}: {remedy}."
    )
