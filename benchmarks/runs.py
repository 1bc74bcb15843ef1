"""What a process of the race is told: which solver, on which files, for which alphas."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from tasks import Task

OURS = "safesift"
SINGLE, PATH, CV = "single", "path", "cv"

# lower bounds on the optimal values, for every alpha one per problem
Floors = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Stage:
    """One fit, a path, or a cross-validation, to one accuracy.

    Attributes
    ----------
    name : "single", "path" or "cv"
    tol : float
        The relative gap that has to be reached.
    alphas : tuple of float
    limit : float
        Seconds after which a solver gives up.
    floors : tuple of tuples of float, optional
        Lower bounds on the optimal values.
    tols : tuple of float, optional
        The solver's own tolerances, where they are known and need not be searched for.
    """

    name: str
    tol: float
    alphas: tuple[float, ...]
    limit: float
    floors: Floors | None = None
    tols: tuple[float, ...] | None = None

    @property
    def key(self) -> str:
        return f"{self.name}@{self.tol:g}"

    def floors_at(self, alpha: float) -> tuple[float, ...] | None:
        """None where there are none, as at the alpha that a cross-validation chose."""
        known = {} if self.floors is None else dict(zip(self.alphas, self.floors, strict=True))
        return known.get(alpha)


@dataclass(frozen=True)
class Run:
    """Which solver is to solve what.

    Attributes
    ----------
    data : str
        A file without its ending, as `save` writes it.
    task : Task
    solver : str
        `OURS` or a name in `PEERS`.
    stages : tuple of Stage
        Of the same name the looser ones first.
    repeats, threads : int
    output : str
        File for the events.
    storages : dict of str, optional
        Of the matrix, by the names of the stages, where they are known and need not be tried out.
    """

    data: str
    task: Task
    solver: str
    stages: tuple[Stage, ...]
    repeats: int
    threads: int
    output: str
    storages: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Run:
        fields = json.loads(text)
        fields["task"] = Task(**fields["task"])
        fields["stages"] = tuple(Stage(**_tuples(stage)) for stage in fields["stages"])
        return cls(**fields)

    def text(self) -> str:
        return json.dumps(asdict(self))


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(entry) for key, entry in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def save(folder: Path, name: str, X: Any, y: np.ndarray) -> str:
    """Data in files that load at once."""
    path = folder / name
    np.save(f"{path}.y.npy", y)
    if sparse.issparse(X):
        sparse.save_npz(f"{path}.npz", sparse.csr_matrix(X), compressed=False)
    else:
        np.save(f"{path}.npy", X)
    return str(path)


def load(path: str) -> tuple[Any, np.ndarray]:
    y = np.load(f"{path}.y.npy")
    if Path(f"{path}.npz").exists():
        return sparse.load_npz(f"{path}.npz"), y
    return np.load(f"{path}.npy"), y
