"""Kernels between rows and landmarks, a block of rows at a time.

========== ============================ ======================================
name       k(x, u)                      gamma by the "distance" rule
========== ============================ ======================================
rbf        exp(-gamma ||x - u||_2^2)    1 / mean ||x - mean||_2^2 (the paper's)
laplacian  exp(-gamma ||x - u||_1)      1 / mean ||x - mean||_1
polynomial (gamma x.u + coef0)^degree   as rbf
linear     x.u                          not used
========== ============================ ======================================

Work is cut into row blocks that fit a core's cache share and spread over threads, with BLAS held to
one thread meanwhile: the exponential, which BLAS does not thread, is as long as the product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax._checks import is_sparse
from aucmax._threads import over_blocks

Array = npt.NDArray[Any]

KERNELS = ("rbf", "laplacian", "polynomial", "linear")

#: The paper takes its bandwidth from the first so-many rows.
GAMMA_ROWS = 80_000


class LandmarkKernel:
    """``k(., U)`` for fixed landmarks ``U`` (v, d), with all that depends on ``U`` alone prepared.

    Calling it on rows ``X`` (m, d), dense or CSR, fills an (m, v) array of the kernel's dtype.
    """

    def __init__(
        self,
        landmarks: Array,
        name: str,
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 1.0,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        self.name, self.gamma, self.degree, self.coef0 = name, gamma, degree, coef0
        self.factor = 1.0 if name == "linear" else gamma  # of raw values
        self.dtype = np.dtype(dtype)
        self.n_landmarks = landmarks.shape[0]
        wide = np.asarray(landmarks, dtype=np.float64)
        # Distances do not change when rows and landmarks move together, but the rounding of
        # ||x||^2 - 2 x.u + ||u||^2 does: far from the origin it would eat the distance.
        self._centre = wide.mean(axis=0) if name == "rbf" else np.zeros(wide.shape[1])
        self._landmarks = landmarks
        if name == "rbf":
            self._prepare_rbf(wide)
        elif name != "laplacian":
            self._right = (self.factor * wide.T).astype(self.dtype)

    def _prepare_rbf(self, wide: Array) -> None:
        shifted = wide - self._centre
        self._right = self._exponent(shifted)
        # CSR rows cannot be centred; their landmarks then are not either.
        self._right_raw = (2.0 * self.gamma * wide.T).astype(self.dtype)
        self._norms_raw = (-self.gamma * (wide**2).sum(axis=1)).astype(self.dtype)
        self._centre = self._centre.astype(self.dtype)

    def _exponent(self, landmarks: Array) -> Array:
        """What rows ``[x, ||x||^2, 1]`` are multiplied with to give ``-gamma ||x - u||^2``."""
        norms = (landmarks**2).sum(axis=1)
        rows = [2.0 * landmarks.T, -np.ones((1, norms.size)), -norms[None]]
        return (self.gamma * np.vstack(rows)).astype(self.dtype)

    def __call__(self, X: Any, out: Array) -> Array:
        return self.finish(self.raw(X, out))

    def raw(self, X: Any, out: Array) -> Array:
        """What is linear in gamma: its product with minus the distances, or with inner products."""
        if self.name == "rbf":
            return self._rbf(X, out)
        if self.name == "laplacian":
            from sklearn.metrics.pairwise import manhattan_distances

            dense = X.toarray() if is_sparse(X) else X
            np.multiply(manhattan_distances(dense, self._landmarks), -self.gamma, out=out)
            return out
        self._product(X, self._right, out)
        return out

    def finish(self, out: Array) -> Array:
        """Kernel values from raw ones, in place."""
        if self.name in ("rbf", "laplacian"):
            return np.exp(out, out=out)
        if self.name == "polynomial":
            out += self.coef0
            np.power(out, self.degree, out=out)
        return out

    def _rbf(self, X: Any, out: Array) -> Array:
        if is_sparse(X):
            self._product(X, self._right_raw, out)
            norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
            out -= (self.gamma * norms).astype(self.dtype)[:, None]
            out += self._norms_raw
        else:
            wide = np.ones((X.shape[0], X.shape[1] + 2), dtype=self.dtype)
            rows = wide[:, :-2]
            np.subtract(X, self._centre, out=rows)
            wide[:, -2] = np.einsum("ij,ij->i", rows, rows)
            np.matmul(wide, self._right, out=out)
        return np.minimum(out, 0, out=out)

    def _product(self, X: Any, right: Array, out: Array) -> None:
        if is_sparse(X):
            out[...] = X @ right
        else:
            np.matmul(X.astype(self.dtype, copy=False), right, out=out)


def raw_matrix(kernel: LandmarkKernel, X: Any) -> Array:
    """Raw values (n, v) of a kernel whose gamma is 1: from them, any other gamma's follow."""
    out = np.empty((X.shape[0], kernel.n_landmarks), dtype=kernel.dtype)

    def work(rows: slice) -> None:
        kernel.raw(X[rows], out[rows])

    over_blocks(work, X.shape[0], _row_bytes(kernel, X))
    return out


def kernel_matrix(kernel: LandmarkKernel, X: Any, raw: Array | None = None) -> Array:
    """``k(X, U)``, shape (n, v), in the dtype of the kernel; from :func:`raw_matrix` where given."""
    out = np.empty((X.shape[0], kernel.n_landmarks), dtype=kernel.dtype)

    def work(rows: slice) -> None:
        _block(kernel, X, raw, rows, out[rows])

    over_blocks(work, X.shape[0], _row_bytes(kernel, X))
    return out


def kernel_product(
    kernel: LandmarkKernel,
    X: Any,
    coef: Array,
    block_rows: int | None = None,
    raw: Array | None = None,
) -> Array:
    """``k(X, U) @ coef`` for coef (v, m), of which only blocks of kernel values are ever held."""
    coef = coef.astype(kernel.dtype)
    out = np.empty((X.shape[0], coef.shape[1]), dtype=kernel.dtype)

    def work(rows: slice) -> None:
        block = np.empty((rows.stop - rows.start, kernel.n_landmarks), dtype=kernel.dtype)
        np.matmul(_block(kernel, X, raw, rows, block), coef, out=out[rows])

    over_blocks(work, X.shape[0], _row_bytes(kernel, X), block_rows)
    return out


def _block(kernel: LandmarkKernel, X: Any, raw: Array | None, rows: slice, out: Array) -> Array:
    if raw is None:
        return kernel(X[rows], out)
    return kernel.finish(np.multiply(raw[rows], kernel.factor, out=out))


def _row_bytes(kernel: LandmarkKernel, X: Any) -> int:
    return int((kernel.n_landmarks + X.shape[1]) * kernel.dtype.itemsize)


def resolve_gamma(gamma: str | float, X: Any, weight: Array, kernel: str) -> float:
    """A number for ``gamma``: itself, or by a rule from rows and their weights.

    ``"distance"`` is the paper's rule over the first 80,000 rows, in the distance of the kernel;
    ``"scale"`` is scikit-learn's, ``1 / (d * variance of all entries)``. Constant data gives 1.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "distance":
        X, weight = X[:GAMMA_ROWS], weight[:GAMMA_ROWS]
    centre = np.asarray(X.T @ weight).ravel() / weight.sum()
    size = float(np.abs(centre).max(initial=0.0))
    if gamma == "scale":
        centre = np.full(centre.size, centre.mean())
    power = 1 if gamma == "distance" and kernel == "laplacian" else 2
    spread = _mean_distance(X, weight, centre, power)
    # What rounding leaves of a constant column is no spread.
    noise = X.shape[1] * (4.0 * np.finfo(X.dtype).eps * size) ** power
    return 1.0 / spread if spread > noise else 1.0


def _mean_distance(X: Any, weight: Array, centre: Array, power: int) -> float:
    """Weighted mean over rows of ``sum |x - centre|**power``, without the cancelling of squares."""
    away = np.empty(X.shape[0])

    def measure(block: slice) -> None:
        rows = X[block].toarray() if is_sparse(X) else X[block]
        away[block] = (np.abs(rows - centre) ** power).sum(axis=1)

    over_blocks(measure, X.shape[0], X.shape[1] * 8)
    return float(np.average(away, weights=weight))
