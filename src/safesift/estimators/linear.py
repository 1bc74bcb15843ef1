"""What the linear estimators share: parameters, problems, solving, fitted attributes."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from safesift.alerts import warn
from safesift.arithmetic.devices.arrays import unwrapped
from safesift.arithmetic.devices.places import Place, brought_here, is_tensor, lives_elsewhere
from safesift.arithmetic.threads import computes
from safesift.design import as_design
from safesift.design.block_source import ArraySource, BlockSource
from safesift.design.factory import check_finite
from safesift.design.placing import placed
from safesift.estimators.following import Followable, fitted_attributes, whole
from safesift.estimators.showing import ShowsFit
from safesift.estimators.validating import validated
from safesift.losses import LOSSES, Loss
from safesift.parameters import check_positive
from safesift.penalties import Penalty
from safesift.problem.inputs import check_penalty, make_problems
from safesift.problem.problem import Problem
from safesift.problem.training import Training
from safesift.regions import Region
from safesift.registry import resolve
from safesift.solvers import Fit, Screening, Settings, print_history, solve_path
from safesift.solvers.records import Missed, complaint, missed
from safesift.workflows.proofs import Proof, write_proof
from safesift.workflows.scale.on_device import goes_to_device, samples_on_device
from safesift.workflows.scale.results import block_model, complain, rows_in_blocks
from safesift.workflows.scale.solve import Solution, solve_blocks

Array = NDArray[np.float64]

_TARGETS = {"classification": "labels", "regression": "numbers", "interval": "intervals"}
# memory maps beyond that are read a block at a time, and what is then held of them
_LARGEST_MAP, _MEMORY_OF_MAPS = 10**9, "1 GB"
# fitted attributes that tell of the samples and not of a solution
_OF_SAMPLES = ("n_features_in_", "feature_names_in_", "classes_")


@dataclass(frozen=True, eq=False)
class Samples:
    """Validated samples.

    Attributes
    ----------
    X : array or CSR matrix
    y : array
        As the user gave it.
    sample_weight : array of shape (n_samples,)
        As the user gave it, ones by default.
    weights : array of shape (n_samples,)
        The same, times the weights of the classes.
    classes : array or None
        Those with a sample of positive weight.
    """

    X: Any
    y: NDArray
    sample_weight: Array
    weights: Array
    classes: NDArray | None = None

    @property
    def known_classes(self) -> NDArray:
        """The classes, which samples of a classification have."""
        assert self.classes is not None
        return self.classes


class LinearModel(Followable, ShowsFit, BaseEstimator):
    """Base of the linear estimators.

    A subclass has the parameters loss, penalty, alpha, l1_ratio, fit_intercept, tol, max_iter,
    screening, solver, warm_start, n_jobs, random_state and verbose, says of which task its losses
    are, and how to read samples.
    """

    _task: ClassVar[str]

    if TYPE_CHECKING:
        # parameters of the subclasses
        loss: str | Loss
        penalty: str | Penalty
        alpha: float
        l1_ratio: float | None
        fit_intercept: bool
        tol: float
        max_iter: int
        screening: str | Region | None
        solver: str
        warm_start: bool
        n_jobs: int | None
        random_state: Any
        verbose: int

        # what a fit learns
        coef_: Array
        intercept_: Any
        kept_: NDArray[np.bool_]
        n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- fitting ----------------------------------------------------------------------------

    @whole
    @computes
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, target: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            float32 and float64 are used as they are; torch tensors and CuPy arrays where they are.
            Or rows in blocks, made by `safesift.blocks`, which have their targets and weights with
            them; or a dask array or frame, whose partitions are read where they are.
        y : array of shape (n_samples,), or (n_samples, 2) for intervals
            Labels, numbers, or lower and upper ends. None with blocks.
        sample_weight : array of shape (n_samples,), optional
            Weight 0 is exactly removal, weight 2 exactly repetition. The name of a column, where
            X is a dask frame.
        target : str, or pair of str for the ends of intervals, optional
            The column of targets, where X is a dask frame, in place of y.

        Returns
        -------
        self
        """
        settings, loss = self._checked_settings(), self._checked_loss()
        penalty = self._checked_penalty()
        source = self._blocks(X, y, sample_weight, target)
        if source is not None:
            return self._fit_blocks(source, settings, loss, penalty)
        samples = self._read(X, y, sample_weight)
        problems = self._problems(samples, loss, penalty, self.alpha)
        (fits,) = self._solve([problems], settings, self._starts(problems))
        self._publish(following(X, self._attributes(samples, fits)), fits)
        self._warn(settings, missed(fits), len(fits))
        return self

    def _blocks(self, X: Any, y: Any, sample_weight: Any, target: Any) -> BlockSource | None:
        """Rows that come in blocks, if these are such; memory maps beyond a size are."""
        if goes_to_device(X, self._device):
            return None
        source = rows_in_blocks(
            "fit", X, y, sample_weight, target, screening=(self.screening, "auto"),
            solver=(self.solver, "auto"), warm_start=(self.warm_start, False),
            device=(self._device, None), precision=(self._precision, "float64"),
        )  # fmt: skip
        if source is not None:
            return source
        large = isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes > _LARGEST_MAP
        usual = self.screening == "auto" and self.solver == "auto" and not self.warm_start
        usual = usual and self._device is None
        smooth = math.isfinite(self._checked_loss().proved_smoothness)
        if large and usual and smooth and y is not None:
            return ArraySource(X, y, sample_weight, _MEMORY_OF_MAPS, None)
        return None

    def _fit_blocks(
        self, source: BlockSource, settings: Settings, loss: Loss, penalty: Penalty
    ) -> Self:
        """Fit rows that come in blocks, in a few passes."""
        alpha = check_positive("alpha", self.alpha)
        training = Training(loss, penalty, alpha, None, bool(self.fit_intercept))
        model = block_model(training, [alpha], settings.tol, settings.seed)
        solution = solve_blocks(source, replace(model, class_weights=self._block_weights))
        self._publish_blocks(solution)
        complain(type(self).__name__, [fits[0] for fits in solution.fits], settings.tol)
        return self

    def _publish_blocks(self, solution: Solution, **more: Any) -> None:
        """Set the attributes of a model of rows that came in blocks."""
        self.n_features_in_ = len(solution.fits[0][0].coef)
        names = solution.reading.source.feature_names
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.__dict__.update(more | self._block_attributes(solution))

    def _block_weights(self, classes: NDArray, totals: Array) -> Array | None:
        """What the weights of classes are multiplied by; None for nothing."""
        return None

    def _block_attributes(self, solution: Solution) -> dict[str, Any]:
        """Fitted attributes, of one problem here; rows are told of part by part."""
        ((fit,),) = solution.fits
        return {
            "coef_": fit.coef,
            "intercept_": fit.intercept,
            "dual_gap_": float(fit.gap),
            "n_iter_": len(fit.history),
            "kept_": fit.kept,
            "undecided_": fit.undecided,
            "history_": [asdict(record) for record in fit.history],
            "scaling_": solution.reading.scaling,
        }

    @abstractmethod
    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Validate the samples."""

    @property
    def _device(self) -> str | None:
        """A parameter of those whose rows may be moved to a device."""
        return getattr(self, "device", None)

    @property
    def _precision(self) -> str:
        """Another one of those."""
        return getattr(self, "precision", "float64")

    def _moved(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Blocks on the device that is asked for; anything else as it is."""
        return samples_on_device("fit", X, y, sample_weight, self._device)

    def _problems(
        self, samples: Samples, loss: Loss, penalty: Penalty, alpha: float
    ) -> list[Problem]:
        """One problem for each row of coefficients, all on one design."""
        inputs = make_problems(
            placed(samples.X, self._device, self._precision), samples.y, loss=loss,
            penalty=penalty, alpha=alpha, fit_intercept=bool(self.fit_intercept),
            sample_weight=samples.weights, classes=samples.classes,
        )  # fmt: skip
        if lives_elsewhere(samples.X):
            check_finite(inputs.problems[0].design)  # nobody has looked at its entries yet
        return list(inputs.problems)

    def _solve(
        self,
        levels: Sequence[Sequence[Problem]],
        settings: Settings,
        starts: Sequence[Array | None] | None = None,
    ) -> Iterator[Sequence[Fit]]:
        """The fits of one level after another."""
        settings.screening.validate(levels[0][0])
        return solve_path(levels, settings, starts)

    def _starts(self, problems: Sequence[Problem]) -> list[Array] | None:
        """The last solution, with warm_start=True."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        points, n_columns = self._points, problems[0].design.n_columns
        if points.shape != (len(problems), n_columns):
            raise ValueError(
                f"warm_start=True, but the last model had {points.shape[1]} coefficients (with the "
                f"intercept) in {len(points)} rows and this one has {n_columns} in "
                f"{len(problems)}: set warm_start=False."
            )
        return list(points)

    @property
    def _points(self) -> Array:
        """The last solution, a row for each problem."""
        coef, intercept = self._solution
        coefs, intercepts = np.atleast_2d(coef), np.atleast_1d(intercept)[:, None]
        return np.hstack([coefs, intercepts]) if self.fit_intercept else coefs

    @property
    def _solution(self) -> tuple[Array, Any]:
        """Coefficients and intercept, in this process."""
        return brought(self.coef_), brought(self.intercept_)

    # --- parameters -------------------------------------------------------------------------

    def _checked_loss(self) -> Loss:
        table = {name: loss for name, loss in LOSSES.items() if loss().task == self._task}
        known = isinstance(self.loss, str) and self.loss in LOSSES
        loss = resolve("loss", self.loss, LOSSES if known else table, Loss)
        if loss.task != self._task:
            raise ValueError(
                f"loss={self.loss!r} is not a loss for {_TARGETS[self._task]}: use one of "
                f"{', '.join(table)}."
            )
        return self._with_parameters(loss) if known else loss

    def _with_parameters(self, loss: Loss) -> Loss:
        """A loss that is given by its name, with those parameters that the estimator has for it."""
        return loss

    def _checked_penalty(self) -> Penalty:
        return check_penalty(self.penalty, self.l1_ratio)

    def _checked_settings(self) -> Settings:
        return Settings.of(
            tol=self.tol,
            max_iter=self.max_iter,
            screening=self._checked_screening(),
            random_state=self.random_state,
            solver=self.solver,
        )

    def _checked_screening(self) -> Screening:
        return Screening.of(self.screening)

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool, **how: Any) -> Any:
        return validated(self, X, y, reset=reset, **how)

    # --- fitted attributes ------------------------------------------------------------------

    def _attributes(self, samples: Samples, fits: Sequence[Fit]) -> dict[str, Any]:
        """Fitted attributes, of one problem here."""
        (fit,) = fits
        return {
            "coef_": fit.coef,
            "intercept_": fit.intercept,
            "dual_gap_": float(fit.gap),
            "n_iter_": fit.n_iter,
            "kept_": fit.kept,
            "undecided_": fit.undecided,
            "history_": records(fit),
        }

    def _fitted_from(self, samples: Samples, fits: Sequence[Fit]) -> Self:
        """A copy as `fit` would leave it with these solutions; the estimator does not change."""
        return self._fitted_with(self._attributes(samples, fits))

    def _fitted_with(self, attributes: Mapping[str, Any]) -> Self:
        """A copy whose solution is given by its attributes; the estimator does not change.

        What it knows of the samples (features, classes) stays unless it is given, too; what it
        knows of another solution is forgotten.
        """
        model = copy.copy(self)
        for name in fitted_attributes(model).keys() - _OF_SAMPLES:
            delattr(model, name)
        model.__dict__.update(attributes)
        return model

    def _publish(self, attributes: dict[str, Any], fits: Sequence[Fit]) -> None:
        """Set all fitted attributes at once, and print how they came about."""
        self.__dict__.update(attributes)
        if self.verbose:
            print_history(fits)

    def _warn(self, settings: Settings, misses: Sequence[Missed], n_problems: int) -> None:
        """Say that some problems were not solved to the tolerance, and what to do about it."""
        if misses:
            names = getattr(self, "feature_names_in_", None)
            said = complaint(type(self).__name__, misses, n_problems, settings, names=names)
            warn(said, ConvergenceWarning)

    # --- proofs -----------------------------------------------------------------------------

    @computes
    def write_proof(
        self, path: Any, X: Any, y: Any, sample_weight: Any = None, *, seed: bytes | None = None
    ) -> Proof:
        """Write what is proved of the model, and of its samples, into a file.

        Parameters
        ----------
        path : str or Path
            An .npz file for `safesift_check`; beside it, in `path`.seed, the seed to keep.
        X, y, sample_weight
            The samples it was fitted on, which it does not hold itself. With class_weight the
            weights of the proof are the products of both.
        seed : bytes, optional
            To use in place of 32 random ones.

        Returns
        -------
        Proof
        """
        return self._prove(path, X, y, sample_weight, seed=seed)

    def _prove(self, path: Any, X: Any, y: Any, sample_weight: Any, **more: Any) -> Proof:
        check_is_fitted(self)
        reader = copy.copy(self)
        samples = reader._read(X, y, sample_weight)
        problems = reader._problems(
            samples, self._checked_loss(), self._checked_penalty(), self.alpha
        )
        points = self._points
        if points.shape != (len(problems), problems[0].design.n_columns):
            raise ValueError(
                f"the model has {points.shape[1]} coefficients (with the intercept) in "
                f"{len(points)} rows, and these samples ask for {problems[0].design.n_columns} in "
                f"{len(problems)}: pass the samples that it was fitted on."
            )
        target = samples.y if samples.classes is not None else problems[0].y
        return write_proof(
            path, problems, list(points), target=target, classes=samples.classes, **more
        )

    # --- using ------------------------------------------------------------------------------

    def _predictions(self, X: Any) -> Array:
        """X @ coef_ + intercept_, block by block, so that float32 rows are not copied whole.

        A `DeviceArray` where X is on a device.
        """
        check_is_fitted(self)
        design = as_design(self._validated(X, reset=False), intercept=True)
        if design.remote:
            check_finite(design)
        coef, intercept = self._solution
        return design.matvec(np.append(coef.T, [intercept], axis=0))


def returned_for(X: Any, values: Any) -> Any:
    """Predictions in the type of X, and on its device; those that are no numbers are NumPy's."""
    if is_tensor(X) and isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        import torch

        return torch.from_numpy(values)
    return unwrapped(values)


def following(X: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    """Fitted arrays with X, where scikit-learn is told so: `set_config(array_api_dispatch=True)`.

    Labels stay NumPy's, and everything does where it is not told so.
    """
    if not get_config()["array_api_dispatch"] or not (lives_elsewhere(X) or is_tensor(X)):
        return attributes
    place = Place.of(X)
    arrays = {
        name: place.moved(value)
        for name, value in attributes.items()
        if isinstance(value, np.ndarray) and name != "classes_"
    }
    return attributes | arrays


def brought(values: Any) -> Any:
    """A fitted array that followed X, in this process."""
    return brought_here(values) if lives_elsewhere(values) or is_tensor(values) else values


def records(fit: Fit) -> list[dict[str, Any]]:
    """The history of a fit, for `history_`."""
    return [asdict(check) for check in fit.history]
