"""What a process of the race is told: which solver, on which files, for which alphas."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

OURS = "safesift"


@dataclass(frozen=True)
class Stage:
    """The path, or the single fit.

    Attributes
    ----------
    name : "path" or "single"
    alphas : tuple of float
    limit : float
        Seconds after which a solver gives up.
    floors : tuple of float
        Lower bounds on the optimal values, for the peers.
    """

    name: str
    alphas: tuple[float, ...]
    limit: float
    floors: tuple[float, ...] = ()


@dataclass(frozen=True)
class Run:
    """Which solver is to solve what.

    Attributes
    ----------
    data : str
        A file without its ending, as `save` writes it.
    task : tuple of loss and penalty
    solver : str
        `OURS` or a name in `PEERS`.
    stages : tuple of Stage
    tol : float
        The relative gap that has to be reached.
    repeats, threads : int
    output : str
        File for the events.
    """

    data: str
    task: tuple[str, str]
    solver: str
    stages: tuple[Stage, ...]
    tol: float
    repeats: int
    threads: int
    output: str

    @classmethod
    def parse(cls, text: str) -> Run:
        fields = json.loads(text)
        fields["stages"] = tuple(Stage(**stage) for stage in fields["stages"])
        return cls(**fields)


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
