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

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from aucmax._checks import is_sparse

Array = npt.NDArray[Any]

KERNELS = ("rbf", "laplacian", "polynomial", "linear")

#: The paper takes its bandwidth from the first so-many rows.
GAMMA_ROWS = 80_000

_BLOCK_BYTES = 2**21


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
            factor = 1.0 if name == "linear" else gamma
            self._right = (factor * wide.T).astype(self.dtype)

    def _prepare_rbf(self, wide: Array) -> None:
        shifted = wide - self._centre
        self._right = (2.0 * self.gamma * shifted.T).astype(self.dtype)
        self._norms = (-self.gamma * (shifted**2).sum(axis=1)).astype(self.dtype)
        # CSR rows cannot be centred; their landmarks then are not either.
        self._right_raw = (2.0 * self.gamma * wide.T).astype(self.dtype)
        self._norms_raw = (-self.gamma * (wide**2).sum(axis=1)).astype(self.dtype)
        self._centre = self._centre.astype(self.dtype)

    def __call__(self, X: Any, out: Array) -> Array:
        if self.name == "rbf":
            return self._rbf(X, out)
        if self.name == "laplacian":
            from sklearn.metrics.pairwise import manhattan_distances

            dense = X.toarray() if is_sparse(X) else X
            np.multiply(manhattan_distances(dense, self._landmarks), -self.gamma, out=out)
            return np.exp(out, out=out)
        self._product(X, self._right, out)
        if self.name == "polynomial":
            out += self.coef0
            np.power(out, self.degree, out=out)
        return out

    def _rbf(self, X: Any, out: Array) -> Array:
        if is_sparse(X):
            norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
            right, landmark_norms = self._right_raw, self._norms_raw
        else:
            X = X - self._centre
            norms = np.einsum("ij,ij->i", X, X)
            right, landmark_norms = self._right, self._norms
        self._product(X, right, out)
        out -= (self.gamma * norms).astype(self.dtype)[:, None]
        out += landmark_norms
        np.minimum(out, 0, out=out)
        return np.exp(out, out=out)

    def _product(self, X: Any, right: Array, out: Array) -> None:
        if is_sparse(X):
            out[...] = X @ right
        else:
            np.matmul(X.astype(self.dtype, copy=False), right, out=out)


def over_blocks(
    work: Callable[[slice], None], n_rows: int, row_bytes: int, block_rows: int | None = None
) -> None:
    """Call ``work`` on consecutive slices of the rows, over threads. Slices do not overlap."""
    step = block_rows or max(16, _BLOCK_BYTES // max(1, row_bytes))
    blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    workers = min(cpu_count(), len(blocks))
    if workers <= 1:
        for block in blocks:
            work(block)
        return
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
        try:
            # Each in a copy of the caller's context, which holds numpy's error state.
            contexts = [copy_context() for _ in blocks]
            list(pool.map(lambda context, rows: context.run(work, rows), contexts, blocks))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # Ctrl-C: do not finish the queue first
            raise


def cpu_count() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1


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
