"""Kernels between rows and landmarks, a block of rows at a time.

============= ============================ ======================================
name          k(x, u)                      gamma by the "distance" rule
============= ============================ ======================================
rbf           exp(-gamma ||x - u||_2^2)    1 / mean ||x - mean||_2^2 (the paper's)
laplacian     exp(-gamma ||x - u||_1)      1 / mean ||x - mean||_1
rbf+laplacian the mean of these two        as rbf; the other's is always by its rule
polynomial    (gamma x.u + coef0)^degree   as rbf
linear        x.u                          not used
============= ============================ ======================================

Of "rbf+laplacian" the values are kept apart, those of the rbf first: each of the two has its own
projection to features, and weights of its own over the same landmarks.

Work is cut into row blocks that fit a core's cache share and spread over threads, with BLAS held to
one thread meanwhile: the exponential, which BLAS does not thread, is as long as the product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.projection import Projection
from aucmax.rows.validation import is_elsewhere, is_sparse
from aucmax.runtime import compiled
from aucmax.runtime.compiled import twins
from aucmax.runtime.threads import Scratch, over_blocks

Array = npt.NDArray[Any]

KERNELS = ("rbf", "laplacian", "polynomial", "linear")

#: Two side by side, for a map from landmarks.
BOTH = "rbf+laplacian"
LANDMARK_KERNELS = (*KERNELS, BOTH)

#: Those that fall with a distance, from 1 at none.
RADIAL = ("rbf", "laplacian", BOTH)

#: Rows are multiplied in multiples of so many: BLAS takes some together, and what is left over at the
#: end of a product goes another way, with other rounding.
_GROUP = 64

#: From so many landmarks on, float32 values go through compiled loops. (It cannot depend on the rows:
#: the same one is to get the same score in any company.)
_MANY = 256

#: Products with up to so many columns are summed in float64, by these loops.
_THIN = 12

#: Rounding of exponents above which CSR rows are made dense, a block at a time, and centred.
_FAR = 1e-4

#: Rows of smaller entries have squared distances that lose digits, or vanish.
_LEAST_SIZE = {np.dtype(np.float64): 2.0**-480, np.dtype(np.float32): 2.0**-50}

#: The paper takes its bandwidth from the first so-many rows.
GAMMA_ROWS = 80_000


class LandmarkKernel:
    """``k(., U)`` for fixed landmarks ``U`` (v, d), with all that depends on ``U`` alone prepared.

    Calling it on rows ``X`` (m, d), dense or CSR, fills an (m, v) array of the kernel's dtype; with
    "rbf+laplacian" (m, 2v), where ``gamma_l1`` is the laplacian's. ``wide``
    takes inner products in float64 all the same. Most BLAS kernels (of OpenBLAS's, Haswell's and
    Zen's) round these the same for equal rows wherever they stand in a block of whole groups, and in
    float32 they do not; products of rows and scores take half as long again.
    """

    def __init__(
        self,
        landmarks: Array,
        name: str,
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 1.0,
        dtype: npt.DTypeLike = np.float64,
        wide: bool = False,
        gamma_l1: float = 1.0,
    ) -> None:
        self.name, self.gamma, self.degree, self.coef0 = name, gamma, degree, coef0
        self._gamma_l1 = gamma_l1 if name == BOTH else gamma
        self.dtype = np.dtype(dtype)
        self._inner = np.dtype(np.float64) if wide else self.dtype
        self._scratch = Scratch()
        self._count = landmarks.shape[0]
        self.width = self._count * (2 if name == BOTH else 1)
        points = np.asarray(landmarks, dtype=np.float64)
        # Distances do not change when rows and landmarks move together, but the rounding of
        # ||x||^2 - 2 x.u + ||u||^2 does: far from the origin it would eat the distance.
        self._centre = points.mean(axis=0) if name in ("rbf", BOTH) else np.zeros(points.shape[1])
        self._landmarks = landmarks
        if name in ("rbf", BOTH):
            self._prepare_rbf(points)
        if name in ("laplacian", BOTH):
            self._columns = np.ascontiguousarray(landmarks.T, dtype=self.dtype)
        if name in ("polynomial", "linear"):
            self._right = (self.factor * points.T).astype(self._inner)

    @property
    def factor(self) -> Any:
        """What raw values at a gamma of 1 are multiplied with."""
        if self.name == BOTH:
            return np.repeat([self.gamma, self._gamma_l1], self._count).astype(self.dtype)
        return 1.0 if self.name == "linear" else self.gamma

    def _prepare_rbf(self, points: Array) -> None:
        shifted = points - self._centre
        self._right = self._exponent(shifted)
        # CSR rows are not centred, nor are their landmarks then, unless that loses the distances.
        eps = float(np.finfo(self._inner).eps)
        self._far = self.gamma * eps * float(self._centre @ self._centre) > _FAR
        self._right_raw = (2.0 * self.gamma * points.T).astype(self._inner)
        self._norms_raw = (-self.gamma * (points**2).sum(axis=1)).astype(self._inner)
        self._centre = self._centre.astype(self._inner)

    def _exponent(self, landmarks: Array) -> Array:
        """What rows ``[x, ||x||^2, 1]`` are multiplied with to give ``-gamma ||x - u||^2``."""
        norms = (landmarks**2).sum(axis=1)
        rows = [2.0 * landmarks.T, -np.ones((1, norms.size)), -norms[None]]
        return (self.gamma * np.vstack(rows)).astype(self._inner)

    def __call__(self, X: Any, out: Array) -> Array:
        raw = out if self._inner == out.dtype else self._scratch.array(out.shape, self._inner)
        return self.finish(self.raw(X, raw), out)

    def raw(self, X: Any, out: Array) -> Array:
        """What is linear in gamma: its product with minus the distances, or with inner products."""
        if self.name in ("rbf", BOTH):
            self._rbf(X, out[:, : self._count])
        if self.name in ("laplacian", BOTH):
            self._laplacian(X, out[:, -self._count :])
        if self.name in ("polynomial", "linear"):
            self._product(X, self._right, out)
        return out

    def finish(self, raw: Array, out: Array) -> Array:
        """Kernel values from raw ones, which may stand in ``out`` itself."""
        if self.name in RADIAL:
            if loops_pay(out):
                compiled.run("exponential", raw, out)
            else:
                twins.exponential(raw, out)
            return out
        if raw is not out:
            out[...] = raw
        if self.name == "polynomial":
            out += self.coef0
            np.power(out, self.degree, out=out)
        return out

    def gradients(self, X: Array, coef: Array) -> list[Array]:
        """Of ``sum_j coef_j k(x, u_j)`` at dense rows, (m, d) for each row of coef.

        At its kinks the laplacian's is the mean of either side.
        """
        X, U = np.asarray(X, dtype=self.dtype), np.asarray(self._landmarks, dtype=self.dtype)
        if self.name == "linear":
            return [np.broadcast_to(each.astype(self.dtype) @ U, X.shape) for each in coef]
        block = np.empty((len(X), self.width), dtype=self.dtype)
        if self.name == "polynomial":
            base = self.raw(X, block) + self.coef0
            slope = self.degree * self.gamma * base ** (self.degree - 1)
            return [(slope * each.astype(self.dtype)) @ U for each in coef]
        values, gradients = self(X, block), []
        for each in coef:
            pull, out = values * each.astype(self.dtype), np.zeros_like(X)
            if self.name in ("rbf", BOTH):
                near = pull[:, : self._count]
                out += 2.0 * self.gamma * (near @ U - near.sum(axis=1)[:, None] * X)
            if self.name in ("laplacian", BOTH):
                near = pull[:, -self._count :]
                for f in range(X.shape[1]):  # signs of all rows, landmarks and columns would not fit
                    side = np.sign(U[:, f] - X[:, f, None])
                    out[:, f] += self._gamma_l1 * np.einsum("ij,ij->i", near, side)
            gradients.append(out)
        return gradients

    def _rbf(self, X: Any, out: Array) -> None:
        if is_sparse(X) and self._far:
            X = X.toarray()
        if is_sparse(X):
            self._product(X, self._right_raw, out)
            norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
            out -= (self.gamma * norms).astype(self._inner)[:, None]
            out += self._norms_raw
        else:
            wide = np.ones((X.shape[0], X.shape[1] + 2), dtype=self._inner)
            rows = wide[:, :-2]
            np.subtract(X, self._centre, out=rows)
            wide[:, -2] = np.einsum("ij,ij->i", rows, rows)
            self._product(wide, self._right, out)

    def _laplacian(self, X: Any, out: Array) -> None:
        dense = X.toarray() if is_sparse(X) else X
        # Sums over columns in the dtype of ``out``, which is float64 for scores
        loop = compiled.run if self.dtype == np.float32 and self._count >= _MANY else _by_twin
        loop("manhattan", np.ascontiguousarray(dense, self.dtype), self._columns, -self._gamma_l1, out)

    def _product(self, X: Any, right: Array, out: Array) -> None:
        if is_sparse(X):
            out[...] = X @ right
        else:
            np.matmul(X.astype(self._inner, copy=False), right, out=out)


def _by_twin(name: str, *arguments: Any) -> None:
    getattr(twins, name)(*arguments)


def check_features(features: Array) -> Array:
    """The same features; refused if some are not finite, naming the first row of X."""
    finite = np.isfinite(features).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"The features of row {int(finite.argmin())} of X are not finite "
            f"({int((~finite).sum())} such rows): its entries are too large for this kernel. "
            "Standardize X."
        )
    return features


def loops_pay(values: Array) -> bool:
    """Whether kernel values of this shape are worth compiled loops."""
    return bool(values.dtype == np.float32 and values.shape[1] >= _MANY)


def raw_matrix(kernel: LandmarkKernel, X: Any) -> Array:
    """Raw values (n, v) of a kernel whose gamma is 1: from them, any other gamma's follow."""
    out = np.empty((X.shape[0], kernel.width), dtype=kernel.dtype)

    def work(rows: slice) -> None:
        kernel.raw(X[rows], out[rows])

    over_blocks(work, X.shape[0], _row_bytes(kernel, X))
    return out


def kernel_matrix(kernel: LandmarkKernel, X: Any, raw: Array | None = None) -> Array:
    """``k(X, U)``, shape (n, v), in the dtype of the kernel; from :func:`raw_matrix` where given."""
    out = np.empty((X.shape[0], kernel.width), dtype=kernel.dtype)

    def work(rows: slice) -> None:
        _block(kernel, X, raw, rows, out[rows])

    over_blocks(work, X.shape[0], _row_bytes(kernel, X))
    return out


def kernel_product(
    kernel: LandmarkKernel,
    X: Any,
    coef: Array | Projection,
    block_rows: int | None = None,
    raw: Array | None = None,
) -> Array:
    """``k(X, U) @ coef`` for coef (v, m), of which only blocks of kernel values are ever held."""
    if raw is None:
        return product_over_blocks(kernel, X, coef, kernel.dtype, block_rows)

    def finish(part: Array, out: Array) -> Array:
        return kernel.finish(np.multiply(part, kernel.factor, out=out), out)

    return product_over_blocks(finish, raw, coef, kernel.dtype, block_rows)


def product_over_blocks(
    fill: Callable[[Any, Array], Array],
    X: Any,
    coef: Array | Projection,
    dtype: np.dtype[Any],
    block_rows: int | None = None,
) -> Array:
    """``F(X) @ coef`` for coef (v, m), of which only blocks of ``F(X)`` are ever held.

    ``fill`` puts F of some rows into an array (rows, v) of a dtype, which the product has as well.
    Blocks are whole groups of rows, the last one filled up with zeros: so equal rows give equal results
    wherever they stand.
    """
    width, scratch = coef.shape[0], Scratch()
    out = np.empty((X.shape[0], coef.shape[1]), dtype=dtype)
    times = _by_blocks(coef, dtype) if isinstance(coef, Projection) else _by_matrix(coef, dtype)

    def work(rows: slice) -> None:
        size = rows.stop - rows.start
        block = scratch.array((-(-size // _GROUP) * _GROUP, width), dtype)
        part = X[rows]
        if is_sparse(part):
            fill(part, block[:size])
        else:
            if len(block) > size:
                part = np.concatenate([part, np.zeros((len(block) - size, part.shape[1]), part.dtype)])
            fill(part, block)
        out[rows] = times(block)[:size]  # what fills up may be anything

    over_blocks(work, X.shape[0], (width + X.shape[1]) * dtype.itemsize, block_rows, _GROUP)
    return out


def _by_blocks(projection: Projection, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    if len(projection.blocks) == 1:
        return _by_matrix(projection.blocks[0], dtype)
    cast = projection.astype(dtype)
    return lambda values: cast.features(values, slice(None))


def _by_matrix(coef: Array, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    right, cast = np.ascontiguousarray(coef.T, dtype=np.float64), coef.astype(dtype)

    def times(values: Array) -> Array:
        if len(right) > _THIN or not loops_pay(values):
            return np.asarray(values @ cast)
        # Weights over landmarks are large and cancel.
        sums = np.empty((len(right), len(values)))
        compiled.run("thin_scores", values, right, sums, 0, len(values))
        return sums.T

    return times


def _block(kernel: LandmarkKernel, X: Any, raw: Array | None, rows: slice, out: Array) -> Array:
    if raw is None:
        return kernel(X[rows], out)
    return kernel.finish(np.multiply(raw[rows], kernel.factor, out=out), out)


def _row_bytes(kernel: LandmarkKernel, X: Any) -> int:
    return int((kernel.width + X.shape[1]) * kernel.dtype.itemsize)


def resolve_gamma(gamma: str | float, X: Any, weight: Array, kernel: str) -> float:
    """A number for ``gamma``: itself, or by a rule from rows and their weights.

    ``"distance"`` is the paper's rule over the first 80,000 rows, in the distance of the kernel;
    ``"scale"`` is scikit-learn's, ``1 / (d * variance of all entries)``. Constant data gives 1.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if not is_elsewhere(X):
        _refuse_tiny(X, gamma)
    if gamma == "distance":
        X, weight = X[:GAMMA_ROWS], weight[:GAMMA_ROWS]
    power = 1 if gamma == "distance" and kernel == "laplacian" else 2
    if is_elsewhere(X):  # all of them: by "scale"
        centre, variance = X.moments(weight)
        spread = float((variance + (centre - centre.mean()) ** 2).sum())
    else:
        with np.errstate(over="ignore", invalid="ignore"):  # found and named
            centre = np.asarray(X.T @ weight).ravel() / weight.sum()
        middle = np.full(centre.size, centre.mean()) if gamma == "scale" else centre
        spread = _mean_distance(X, weight, middle, power)
    if not np.isfinite(spread) or not np.isfinite(1.0 / spread if spread else 1.0):
        raise ValueError(
            f"gamma={gamma!r} cannot be found: squared distances between rows of X, about {spread:g}, "
            "overflow or vanish. Standardize X, or give gamma as a number."
        )
    size = float(np.abs(centre).max(initial=0.0))
    # What rounding leaves of a constant column is no spread.
    noise = X.shape[1] * (4.0 * np.finfo(X.dtype).eps * size) ** power
    return 1.0 / spread if spread > noise else 1.0


def _refuse_tiny(X: Any, gamma: str) -> None:
    """Refuse rows whose squared distances vanish, so that they would be taken for constant."""
    values = X.data if is_sparse(X) else X
    size = float(np.abs(values).max(initial=0.0))
    if 0.0 < size < _LEAST_SIZE[np.dtype(X.dtype)]:
        raise ValueError(
            f"gamma={gamma!r} cannot be found: the largest entry of X is {size:.3g}, whose square "
            "vanishes. Standardize or multiply X."
        )


def _mean_distance(X: Any, weight: Array, centre: Array, power: int) -> float:
    """Weighted mean over rows of ``sum |x - centre|**power``, without the cancelling of squares."""
    away = np.empty(X.shape[0])

    def measure(block: slice) -> None:
        rows = X[block].toarray() if is_sparse(X) else X[block]
        with np.errstate(over="ignore", invalid="ignore"):  # found and named; threads have their own
            away[block] = (np.abs(rows - centre) ** power).sum(axis=1)

    over_blocks(measure, X.shape[0], X.shape[1] * 8)
    return float(np.average(away, weights=weight))
