import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import normalize, scale


def _breast_cancer():
    """Standardised, rows of norm about 1; benign against malignant."""
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X) / np.sqrt(X.shape[1]), np.where(y == 1, 1.0, -1.0)


def _digits():
    """Rows of norm 1; 9 against the rest."""
    X, y = load_digits(return_X_y=True)
    return normalize(X), np.where(y == 9, 1.0, -1.0)


_LOADERS = {"breast_cancer": _breast_cancer, "digits": _digits}


class Dataset(BaseDataset):
    """Small real data that come with scikit-learn."""

    name = "Scikit-learn"
    requirements = ["scikit-learn"]
    parameters = {"data": ["breast_cancer", "digits"]}

    def get_data(self):
        X, y = _LOADERS[self.data]()
        return {"X": X, "y": y}
