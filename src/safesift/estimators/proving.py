"""Proofs about data that change, and about what was deleted from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from safesift.arithmetic.threads import computes
from safesift.workflows.proofs import Proof


class ProvesEdits:
    """What a tracker writes about its samples as they are."""

    if TYPE_CHECKING:

        @property
        def _turn(self) -> Any: ...

        @property
        def _known(self) -> Any: ...

        X_: Any
        y_: Any
        sample_weight_: Any

    @computes
    def write_proof(
        self,
        path: Any,
        *,
        before: Proof | None = None,
        removed: Any = None,
        seed: bytes | None = None,
    ) -> Proof:
        """Write what is proved of the model and of the samples as they are now.

        With `before`, the proof about the data before the last update, and `removed`, the numbers
        that its samples had there, the file also shows that exactly these are missing: the model
        in use is optimal, up to the gap, for the data without them.

        Parameters
        ----------
        path : str or Path
            An .npz file for `safesift_check`; beside it, in `path`.seed, the seed to keep.
        before : Proof, optional
        removed : array of int, optional
            As given to `update(remove=...)`.
        seed : bytes, optional
            To use in place of 32 random ones, or of that of `before`.

        Returns
        -------
        Proof
        """
        if (before is None) != (removed is None):
            raise ValueError("before and removed go together: pass both, or none of them.")
        gone = None if removed is None else np.unique(np.atleast_1d(removed))
        with self._turn:
            samples = self.X_, self.y_, self.sample_weight_
            return self._known._prove(path, *samples, seed=seed, before=before, removed=gone)
