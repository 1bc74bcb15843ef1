"""What every loader returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Part = Literal["train", "test"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples with their labels, and what they are in words.

    Attributes
    ----------
    name : str
    title : str
        For people, with the classes.
    X : array or CSR matrix of shape (n_samples, n_features)
        Images are rows of uint8 pixels.
    labels : array of shape (n_samples,)
        As they come with the data: digits, categories, numbers.
    positive : object, optional
        The label that is told from all others; None for regression.
    image_shape : tuple of int, optional
        (height, width) or (height, width, channels) of the images in the rows of `X`.
    stands_in_for : str, optional
        The data set that this one is used in place of. Whatever is computed from a stand-in says
        so.

    Examples
    --------
    >>> import numpy as np
    >>> from safesift_paper.datasets import Dataset
    >>> data = Dataset("toy", "a or not", X=np.eye(3), labels=np.array(["a", "b", "a"]),
    ...                positive="a")
    >>> print(data.y, data.drawn(2).title)
    [ 1. -1.  1.] a or not (2 of 3, drawn)
    """

    name: str
    title: str
    X: Any
    labels: NDArray
    positive: Any = None
    image_shape: tuple[int, ...] | None = None
    stands_in_for: str | None = None

    @property
    def y(self) -> Array:
        """1 for the positive label and -1 for the others; the labels themselves for regression."""
        if self.positive is None:
            return self.labels.astype(np.float64)
        return np.where(self.labels == self.positive, 1.0, -1.0)

    def drawn(self, n_samples: int, random_state: int = 0) -> Dataset:
        """At most so many samples, drawn at random and in their order; the title says so."""
        n = len(self.labels)
        if n_samples >= n:
            return self
        rng = np.random.default_rng(random_state)
        rows = np.sort(rng.permutation(n)[:n_samples])
        title = f"{self.title} ({n_samples} of {n}, drawn)"
        return replace(self, title=title, X=self.X[rows], labels=self.labels[rows])


def check_part(part: str) -> None:
    """Refuse what is neither the training nor the test part."""
    if part not in ("train", "test"):
        raise ValueError(f"part must be 'train' or 'test', got {part!r}.")
