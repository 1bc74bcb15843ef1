"""Certificate files: written from a result, with commitments and receipts."""

from __future__ import annotations

import hashlib
import json
import secrets
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

import safesift_check as checker
import safesift_root as roots
import safesift_tables as tables
from safesift.arithmetic.printing import Brief
from safesift.problem.problem import Problem
from safesift.solvers import Fit
from safesift.workflows.proofs.rows import DataColumns, ProblemRows
from safesift.workflows.proofs.statements import epsilon_of, problem_record
from safesift.workflows.proofs.witnesses import Witness, find_witness, packed

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Proof(Brief):
    """A certificate file that was written, and the means to say things about single rows.

    Attributes
    ----------
    path : Path
        The file, for `safesift_check`.
    statement : dict
        What is claimed, as it is in the file.
    digest : str
        SHA-256 of the statement's text.
    verdicts : array of shape (n_samples, n_problems)
        0 where nothing is proved of a row; on a flat (1), quadratic (2) or linear (3) piece.
    zero_coef : mask of shape (n_problems, n_features)
        Features that are proved to be 0 at every optimum.
    seed : bytes
        From which the salts of the commitment are made: keep it. Whoever has it and the data can
        recompute the root; whoever has a row and no seed cannot find out whether it is in there.
    slots : array of shape (n_samples,)
        The places of the rows in the tree.
    """

    path: Path
    statement: dict[str, Any]
    digest: str
    verdicts: NDArray[np.uint8]
    zero_coef: NDArray[np.bool_]
    seed: bytes
    slots: NDArray[np.int64]
    leaves: tuple[bytes, ...]
    text: str

    @property
    def root(self) -> str:
        """The commitment to the data."""
        return self.statement["root"]

    @property
    def gap(self) -> float:
        """The largest gap that is claimed."""
        return max(self.statement["gaps"])

    @property
    def kept(self) -> NDArray[np.bool_]:
        """False where the row is proved to be of no influence, for every class."""
        return ~(self.verdicts == checker.FLAT).all(axis=1)

    def receipt(self, row: int) -> dict[str, Any]:
        """What shows the owner of a row that it is in the data, and what is asserted of it.

        It holds the salt of that row's leaf and the hashes on the way to the roots, nothing of
        other rows. That the assertion is true is shown by a checker with all data, not by this.

        Parameters
        ----------
        row : int

        Returns
        -------
        dict
            JSON types only: for `safesift_receipt`, together with the row itself.
        """
        n = len(self.verdicts)
        if not 0 <= row < n:
            raise IndexError(f"row {row} is not among the {n} rows of the proof.")
        slot = int(self.slots[row])
        asserted = roots.verdict_leaves(self.verdicts, self.slots)
        return {
            "row": row,
            "slot": slot,
            "salt": roots.sha(self.seed, roots.whole(slot)).hex(),
            "leaf": self.leaves[slot].hex(),
            "path": _path(list(self.leaves), slot),
            "verdicts": self.verdicts[row].tolist(),
            "verdict_path": _path(asserted, row),
            "statement": self.text,
        }


def write_proof(
    path: str | Path,
    problems: Sequence[Problem],
    points: Sequence[Array],
    *,
    target: NDArray,
    classes: NDArray | None = None,
    fits: Sequence[Fit | None] | None = None,
    columns: DataColumns | None = None,
    seed: bytes | None = None,
    before: Proof | None = None,
    removed: NDArray | None = None,
) -> Proof:
    """Write what is proved of models and of their rows into a file.

    Parameters
    ----------
    path : str or Path
        An .npz file; beside it `path`.seed is written, which holds the seed: keep that one.
    problems, points : sequences
        On the same rows, with a model for each.
    target : array
        Labels, numbers or ends of intervals as the data have them.
    classes : array, optional
        The labels; of two, the second stands for 1.
    fits : sequence of Fit, optional
        What is known of the models.
    columns : DataColumns, optional
        Where a checker finds the rows.
    seed : bytes, optional
        At least 16 of them, by default 32 random ones, or those of `before`.
    before, removed : Proof and array of int, optional
        The proof about the data before some rows were deleted, and their numbers there.
    """
    columns = DataColumns() if columns is None else columns
    seed = _checked_seed(seed, before)
    rows, own = ProblemRows(problems[0], target), epsilon_of(problems[0].loss).ndim > 0
    labels = None if classes is None else classes.tolist()
    if labels is not None and columns.features is not None:
        labels = [tables.label(one) for one in labels]
    statement = {
        "format": checker.FORMAT,
        **problem_record(problems[0]),
        "target": list(columns.target),
        "labels": labels,
        "positives": _positives(labels),
        **columns.record(bool((problems[0].weights != 1.0).any()), own),
    }
    known = [None] * len(problems) if fits is None else fits
    witnesses = [
        find_witness(problem, point, fit, statement, rows)
        for problem, point, fit in zip(problems, points, known, strict=True)
    ]
    slots, n_slots = _slots(len(target), before, removed)
    leaves = _leaves(rows, statement, slots, n_slots, seed)
    verdicts = np.stack([one.verdicts for one in witnesses], axis=1)
    statement |= {
        "root": roots.root_of(leaves),
        "verdicts": roots.root_of(roots.verdict_leaves(verdicts, slots)),
        "slots": n_slots,
        "root_before": None if before is None else before.root,
        "slots_before": None if before is None else before.statement["slots"],
        "transform": columns.steps(),
        "gaps": [one.gap for one in witnesses],
        "rules": [one.rules for one in witnesses],
    }
    arrays = _arrays(witnesses)
    arrays["absent"] = np.setdiff1d(np.arange(n_slots), slots).astype("<u8")
    gone = before.slots[removed] if before is not None and removed is not None else slots[:0]
    arrays["removed"] = gone.astype("<u8")
    joined = b"".join(before.leaves[slot] for slot in gone) if before is not None else b""
    arrays["removed_leaves"] = np.frombuffer(joined, dtype=np.uint8)
    text = json.dumps(statement, allow_nan=False)
    _store(Path(path), text, arrays)
    Path(f"{path}.seed").write_text(seed.hex() + "\n")
    return Proof(
        Path(path), json.loads(text), hashlib.sha256(text.encode()).hexdigest(), verdicts,
        np.stack([one.zero for one in witnesses]), seed, slots, tuple(leaves), text,
    )  # fmt: skip


def _checked_seed(seed: bytes | None, before: Proof | None) -> bytes:
    if seed is None:
        return secrets.token_bytes(32) if before is None else before.seed
    if not isinstance(seed, bytes) or len(seed) < 16:
        raise ValueError("seed must be 16 bytes or more: leave it out for 32 random ones.")
    return seed


def _positives(labels: list | None) -> list[Any]:
    """What stands for 1 in each problem: the second of two labels, or one after the other."""
    if labels is None:
        return [None]
    return labels[1:] if len(labels) == 2 else labels


def _slots(n: int, before: Proof | None, removed: NDArray | None) -> tuple[NDArray, int]:
    """The places of the rows in the tree: those they had, and new ones behind."""
    if before is None or removed is None:
        return np.arange(n), n
    stay = np.delete(before.slots, removed)
    first, n_new = before.statement["slots"], n - len(stay)
    return np.concatenate([stay, first + np.arange(n_new)]), first + n_new


def _leaves(
    rows: ProblemRows, statement: dict[str, Any], slots: NDArray, n_slots: int, seed: bytes
) -> list[bytes]:
    leaves = [roots.gone(slot) for slot in range(n_slots)]
    for slot, leaf in zip(slots, roots.data_leaves(rows, statement, slots, seed), strict=True):
        leaves[slot] = leaf
    return leaves


def _arrays(witnesses: Sequence[Witness]) -> dict[str, NDArray]:
    numbers = [those for one in witnesses for those in one.numbers]
    return {
        "verdicts": np.concatenate([packed(one.verdicts) for one in witnesses]),
        "numbers": np.concatenate(numbers).astype("<f8"),
    }


def _store(path: Path, text: str, arrays: dict[str, NDArray]) -> None:
    """Uncompressed: what a file holds is then no more than its size."""
    stated = np.frombuffer(text.encode(), dtype=np.uint8)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in {"statement": stated, **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, np.ascontiguousarray(array), version=(1, 0))


def _path(nodes: list[bytes], place: int) -> list[str]:
    """The partners of a leaf on the way to the top."""
    path = []
    while len(nodes) > 1:
        partner = place ^ 1
        if partner < len(nodes):
            path.append(nodes[partner].hex())
        pairs = [roots.sha(b"\1", *nodes[i : i + 2]) for i in range(0, len(nodes) - 1, 2)]
        nodes, place = pairs + nodes[2 * len(pairs) :], place // 2
    return path
