"""Kernels between rows and landmarks, a block of rows at a time.

============= ============================ =======================================
name          k(x, u)                      gamma by the "distance" rule
============= ============================ =======================================
rbf           exp(-gamma ||x - u||_2^2)    1 / mean ||x - mean||_2^2
laplacian     exp(-gamma ||x - u||_1)      1 / mean ||x - mean||_1
rbf+laplacian the mean of these two        as rbf; the laplacian's is always by its rule
polynomial    (gamma x.u + coef0)^degree   as rbf
linear        x.u                          not used
============= ============================ =======================================

Values of "rbf+laplacian" stay side by side, those of the rbf first: each of the two has its own
projection to features, and its own weights over the same landmarks.

To add a kernel, write a class with the members of :class:`Part` and add it to ``_PARTS``. Raw values
are linear in gamma; ``bandwidth.py`` has the rules for gamma.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from aucmax.rows.interface import Block, dense, is_sparse, squared_norms
from aucmax.runtime import compiled
from aucmax.runtime.compiled import twins
from aucmax.runtime.threads import Scratch

Array = npt.NDArray[Any]

#: Two kernels over the same landmarks.
BOTH = "rbf+laplacian"

#: From this many landmarks on, float32 values go through compiled loops. The number of rows must not
#: matter: a row has the same score in any company.
_MANY = 256

#: Above this rounding of exponents, CSR rows are made dense, a block at a time, and centred.
_FAR = 1e-4


@dataclass(frozen=True)
class KernelSpec:
    """A kernel with its parameters; ``gamma_l1`` is the laplacian's in "rbf+laplacian"."""

    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0
    gamma_l1: float = 1.0

    @property
    def parts(self) -> tuple[KernelSpec, ...]:
        """The kernel itself, or the two that it is the mean of."""
        if self.name != BOTH:
            return (self,)
        return KernelSpec("rbf", self.gamma), KernelSpec("laplacian", self.gamma_l1)

    @property
    def radial(self) -> bool:
        return self.name in RADIAL


class LandmarkKernel:
    """``k(., U)`` for fixed landmarks ``U`` (v, d), with everything that depends on ``U`` prepared.

    Calling it on a block of rows (m, d) fills an (m, v) array of its dtype, or (m, 2v) for two kernels.
    ``wide`` computes inner products in float64 in any case: most BLAS kernels (of OpenBLAS's those for
    Haswell and Zen) then round equal rows equally wherever they are in a block of whole groups, which
    they do not in float32. Scores take half as long again.
    """

    def __init__(
        self,
        landmarks: Array,
        spec: KernelSpec,
        dtype: npt.DTypeLike = np.float64,
        wide: bool = False,
    ) -> None:
        self.spec, self.dtype = spec, np.dtype(dtype)
        self._inner = np.dtype(np.float64) if wide else self.dtype
        self._scratch, self._count = Scratch(), landmarks.shape[0]
        self._parts = [
            _PARTS[part.name](landmarks, part, self.dtype, self._inner) for part in spec.parts
        ]
        self.width = self._count * len(self._parts)

    @property
    def factor(self) -> Any:
        """What raw values at gamma 1 are multiplied by."""
        factors = [1.0 if part.name == "linear" else part.gamma for part in self.spec.parts]
        return factors[0] if len(factors) == 1 else np.repeat(factors, self._count).astype(self.dtype)

    def __call__(self, X: Block, out: Array) -> Array:
        raw = out if self._inner == out.dtype else self._scratch.array(out.shape, self._inner)
        return self.finish(self.raw(X, raw), out)

    def raw(self, X: Block, out: Array) -> Array:
        """Fill ``out`` with what is linear in gamma: minus distances, or inner products."""
        for i, part in enumerate(self._parts):
            part.raw(X, out[:, i * self._count : (i + 1) * self._count])
        return out

    def finish(self, raw: Array, out: Array) -> Array:
        """Make kernel values of raw ones, which may stand in ``out`` itself."""
        self._parts[0].finish(raw, out)  # both of two kernels are exponentials
        return out

    def gradients(self, X: Array, coef: Array) -> list[Array]:
        """Return the gradient of ``sum_j coef_j k(x, u_j)`` at dense rows, (m, d) per row of coef.

        At a kink of the laplacian it is the mean of both sides.
        """
        X = np.asarray(X, dtype=self.dtype)
        values = self(X, np.empty((len(X), self.width), dtype=self.dtype))
        gradients = []
        for weights in coef:
            out = np.zeros_like(X)
            for i, part in enumerate(self._parts):
                own = slice(i * self._count, (i + 1) * self._count)
                out += part.gradient(X, values[:, own], weights[own].astype(self.dtype))
            gradients.append(out)
        return gradients


class Part(Protocol):
    """One kernel over fixed landmarks; ``radial`` if it falls with a distance, from 1 at distance 0."""

    radial: bool

    def __init__(
        self, landmarks: Array, spec: KernelSpec, dtype: np.dtype[Any], inner: np.dtype[Any]
    ) -> None: ...

    def raw(self, X: Block, out: Array) -> None:
        """Fill ``out`` (m, v) with what is linear in gamma."""

    def finish(self, raw: Array, out: Array) -> None:
        """Fill ``out`` with kernel values made of raw ones, which may stand in ``out`` itself."""

    def gradient(self, X: Array, values: Array, coef: Array) -> Array:
        """Return the gradient of ``values @ coef`` at dense rows X (m, d)."""


class _Rbf:
    radial = True

    def __init__(
        self, landmarks: Array, spec: KernelSpec, dtype: np.dtype[Any], inner: np.dtype[Any]
    ) -> None:
        self._landmarks, self._gamma = np.asarray(landmarks, dtype=dtype), spec.gamma
        self._inner = inner
        points = np.asarray(landmarks, dtype=np.float64)
        # Distances do not change when rows and landmarks move together, but the rounding of
        # ||x||^2 - 2 x.u + ||u||^2 does: far from the origin it would hide the distance.
        centre = points.mean(axis=0)
        shifted = points - centre
        norms = (shifted**2).sum(axis=1)
        # Rows [x, ||x||^2, 1] times this give -gamma ||x - u||^2.
        stacked = np.vstack([2.0 * shifted.T, -np.ones((1, norms.size)), -norms[None]])
        self._right = (spec.gamma * stacked).astype(inner)
        # CSR rows and their landmarks are not centred, unless that loses the distances.
        self._far = spec.gamma * float(np.finfo(inner).eps) * float(centre @ centre) > _FAR
        self._right_raw = (2.0 * spec.gamma * points.T).astype(inner)
        self._norms_raw = (-spec.gamma * (points**2).sum(axis=1)).astype(inner)
        self._centre = centre.astype(inner)

    def raw(self, X: Block, out: Array) -> None:
        if is_sparse(X) and not self._far:
            out[...] = X @ self._right_raw
            out -= (self._gamma * squared_norms(X)).astype(self._inner)[:, None]
            out += self._norms_raw
            return
        X = dense(X)
        wide = np.ones((X.shape[0], X.shape[1] + 2), dtype=self._inner)
        np.subtract(X, self._centre, out=wide[:, :-2])
        wide[:, -2] = np.einsum("ij,ij->i", wide[:, :-2], wide[:, :-2])
        np.matmul(wide, self._right, out=out)

    def finish(self, raw: Array, out: Array) -> None:
        _exponential(raw, out)

    def gradient(self, X: Array, values: Array, coef: Array) -> Array:
        near = values * coef
        out: Array = 2.0 * self._gamma * (near @ self._landmarks - near.sum(axis=1)[:, None] * X)
        return out


class _Laplacian:
    radial = True

    def __init__(
        self, landmarks: Array, spec: KernelSpec, dtype: np.dtype[Any], inner: np.dtype[Any]
    ) -> None:
        self._columns, self._gamma = np.ascontiguousarray(landmarks.T, dtype=dtype), spec.gamma
        # Sums over columns are taken in the dtype of ``out``, which is float64 for scores.
        self._compiled = dtype == np.float32 and landmarks.shape[0] >= _MANY

    def raw(self, X: Block, out: Array) -> None:
        rows = np.ascontiguousarray(dense(X), self._columns.dtype)
        if self._compiled:
            compiled.run("manhattan", rows, self._columns, -self._gamma, out)
        else:
            twins.manhattan(rows, self._columns, -self._gamma, out)

    def finish(self, raw: Array, out: Array) -> None:
        _exponential(raw, out)

    def gradient(self, X: Array, values: Array, coef: Array) -> Array:
        near, out = values * coef, np.empty_like(X)
        for f in range(X.shape[1]):  # signs of all rows, landmarks and columns would not fit
            side = np.sign(self._columns[f] - X[:, f, None])
            out[:, f] = self._gamma * np.einsum("ij,ij->i", near, side)
        return out


class _Polynomial:
    radial = False

    def __init__(
        self, landmarks: Array, spec: KernelSpec, dtype: np.dtype[Any], inner: np.dtype[Any]
    ) -> None:
        self._landmarks, self._spec = np.asarray(landmarks, dtype=dtype), spec
        self._factor = 1.0 if spec.name == "linear" else spec.gamma
        self._right = (self._factor * np.asarray(landmarks, np.float64).T).astype(inner)

    def raw(self, X: Block, out: Array) -> None:
        if is_sparse(X):
            out[...] = X @ self._right
        else:
            np.matmul(X.astype(self._right.dtype, copy=False), self._right, out=out)

    def finish(self, raw: Array, out: Array) -> None:
        if raw is not out:
            out[...] = raw
        if self._spec.name == "polynomial":
            out += self._spec.coef0
            np.power(out, self._spec.degree, out=out)

    def gradient(self, X: Array, values: Array, coef: Array) -> Array:
        if self._spec.name == "linear":
            return np.broadcast_to(coef @ self._landmarks, X.shape)
        base = np.empty(values.shape, values.dtype)
        self.raw(X, base)
        base += self._spec.coef0
        slope = self._spec.degree * self._factor * base ** (self._spec.degree - 1)
        out: Array = (slope * coef) @ self._landmarks
        return out


_PARTS: dict[str, type[Part]] = {
    "rbf": _Rbf,
    "laplacian": _Laplacian,
    "polynomial": _Polynomial,
    "linear": _Polynomial,
}

#: The kernels there are, those of a map from landmarks, and those that fall with a distance.
KERNELS = tuple(_PARTS)
LANDMARK_KERNELS = (*KERNELS, BOTH)
RADIAL = (*(name for name, part in _PARTS.items() if part.radial), BOTH)


def _exponential(raw: Array, out: Array) -> None:
    if loops_pay(out):
        compiled.run("exponential", raw, out)
    else:
        twins.exponential(raw, out)


def loops_pay(values: Array) -> bool:
    """Return whether compiled loops are faster for kernel values of this shape."""
    return bool(values.dtype == np.float32 and values.shape[1] >= _MANY)
