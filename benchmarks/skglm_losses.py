"""The squared hinge and the safe logistic loss as datafits of skglm, which has neither."""

from __future__ import annotations

import numpy as np
from skglm.datafits import Logistic
from skglm.datafits.base import BaseDatafit


class SquaredHinge(BaseDatafit):
    """(1/n) Σ ½[1 − y_i (Xw)_i]₊², smooth with constant 1."""

    def __init__(self):
        pass

    def get_spec(self):
        return ()

    def params_to_dict(self):
        return {}

    def value(self, y, w, Xw):
        return 0.5 * np.mean(np.maximum(1.0 - y * Xw, 0.0) ** 2)

    def raw_grad(self, y, Xw):
        return -y * np.maximum(1.0 - y * Xw, 0.0) / len(y)

    def raw_hessian(self, y, Xw):
        return np.where(y * Xw < 1.0, 1.0, 0.0) / len(y)

    def get_lipschitz(self, X, y):
        return (X**2).sum(axis=0) / len(y)

    def get_lipschitz_sparse(self, X_data, X_indptr, X_indices, y):
        lipschitz = np.zeros(len(X_indptr) - 1)
        for j in range(len(lipschitz)):
            for k in range(X_indptr[j], X_indptr[j + 1]):
                lipschitz[j] += X_data[k] ** 2 / len(y)
        return lipschitz

    def gradient_scalar(self, X, y, w, Xw, j):
        return X[:, j] @ self.raw_grad(y, Xw)

    def gradient_scalar_sparse(self, X_data, X_indptr, X_indices, y, Xw, j):
        gradient = 0.0
        for k in range(X_indptr[j], X_indptr[j + 1]):
            i = X_indices[k]
            gradient -= X_data[k] * y[i] * max(1.0 - y[i] * Xw[i], 0.0)
        return gradient / len(y)

    def intercept_update_step(self, y, Xw):
        # the gradient over the Lipschitz constant of a column of ones, which is 1
        return np.sum(self.raw_grad(y, Xw))

    def full_grad_sparse(self, X_data, X_indptr, X_indices, y, Xw):
        raw = self.raw_grad(y, Xw)
        gradient = np.zeros(len(X_indptr) - 1)
        for j in range(len(gradient)):
            for k in range(X_indptr[j], X_indptr[j + 1]):
                gradient[j] += X_data[k] * raw[X_indices[k]]
        return gradient


class SafeLogistic(BaseDatafit):
    """(1/n) Σ (e^z − 1 − z) with z = min(y_i (Xw)_i − 1, 0), smooth with constant 1."""

    # a compiled class inherits no methods: those that do not depend on the loss are taken over
    __init__ = SquaredHinge.__init__
    get_spec = SquaredHinge.get_spec
    params_to_dict = SquaredHinge.params_to_dict
    get_lipschitz = SquaredHinge.get_lipschitz
    get_lipschitz_sparse = SquaredHinge.get_lipschitz_sparse
    gradient_scalar = SquaredHinge.gradient_scalar
    full_grad_sparse = SquaredHinge.full_grad_sparse
    intercept_update_step = SquaredHinge.intercept_update_step

    def value(self, y, w, Xw):
        z = np.minimum(y * Xw - 1.0, 0.0)
        return np.mean(np.expm1(z) - z)

    def raw_grad(self, y, Xw):
        return y * np.expm1(np.minimum(y * Xw - 1.0, 0.0)) / len(y)

    def raw_hessian(self, y, Xw):
        margin = y * Xw
        return np.where(margin < 1.0, np.exp(np.minimum(margin - 1.0, 0.0)), 0.0) / len(y)

    def gradient_scalar_sparse(self, X_data, X_indptr, X_indices, y, Xw, j):
        gradient = 0.0
        for k in range(X_indptr[j], X_indptr[j + 1]):
            i = X_indices[k]
            gradient += X_data[k] * y[i] * np.expm1(min(y[i] * Xw[i] - 1.0, 0.0))
        return gradient / len(y)


# by the names of the library
DATAFITS = {"squared_hinge": SquaredHinge, "safe_logistic": SafeLogistic, "logistic": Logistic}
