"""A fitted map from rows to kernel features: landmarks, kernel and projection, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import linalg

from aucmax.features.kernel_products import kernel_matrix, kernel_product, raw_matrix
from aucmax.features.kernels import KernelSpec, LandmarkKernel
from aucmax.features.line_gradients import mean_gradients
from aucmax.features.projection import Projection
from aucmax.rows.interface import Block, Fill, squared_norms

Array = npt.NDArray[Any]


class FeatureMap(Protocol):
    """A fitted map into features, as fits and operators use it. Rows are checked already.

    ``width`` is the number of kernel values of a row, ``rank`` the number of features, ``projection``
    what kernel values are multiplied by to give features; None if they are the features.
    """

    @property
    def width(self) -> int: ...

    @property
    def rank(self) -> int: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def projection(self) -> Projection | None: ...

    def filler(self, dtype: npt.DTypeLike) -> Fill:
        """Return what puts the kernel values of a block into an array."""

    def kernel_block(self, X: Any, raw: Array | None = None) -> Array:
        """Return kernel values (n, width)."""

    def features(self, X: Any, raw: Array | None = None) -> Array:
        """Return features (n, rank)."""

    def linear(self, X: Any, coef: Array) -> Array:
        """Return ``kernel_block(X) @ coef`` for coef (width, m), block by block."""

    def fold(self, coef: Array) -> Array:
        """Return the coefficients over kernel values that score as ``coef`` does over features."""

    def gradients(self, X: Array, coef: Array) -> list[Array]:
        """Return the gradient of ``linear(X, coef')`` at dense rows, (n, d) for each row of coef."""

    def line_gradients(self, start: Array, step: Array, coef: Array) -> Array:
        """Return the mean gradient (n, d) on lines from ``start`` by ``step``, for coef (width,)."""


@dataclass(frozen=True)
class LandmarkMap:
    """The Nyström map ``k(x, U) P``; see :class:`FeatureMap` for what its members are.

    Without a projection, only :meth:`raw_block` and :meth:`gradients` are of use.
    """

    landmarks: Array
    spec: KernelSpec
    projection: Projection

    @property
    def width(self) -> int:
        return len(self.landmarks) * len(self.spec.parts)

    @property
    def rank(self) -> int:
        return self.projection.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.landmarks.dtype

    def filler(self, dtype: npt.DTypeLike) -> LandmarkKernel:
        return LandmarkKernel(self.landmarks, self.spec, dtype)

    def kernel_block(self, X: Any, raw: Array | None = None) -> Array:
        return kernel_matrix(self.filler(X.dtype), X, raw)

    def features(self, X: Any, raw: Array | None = None) -> Array:
        return self.linear(X, self.projection, raw=raw)

    def linear(
        self, X: Any, coef: Array | Projection, block_rows: int | None = None, raw: Array | None = None
    ) -> Array:
        kernel = LandmarkKernel(self.landmarks, self.spec, X.dtype, wide=True)
        return kernel_product(kernel, X, coef, block_rows, raw)

    def raw_block(self, X: Any) -> Array:
        """Return what kernel values at every gamma follow from: distances or inner products."""
        unit = replace(self.spec, gamma=1.0, gamma_l1=1.0)
        return raw_matrix(LandmarkKernel(self.landmarks, unit, X.dtype), X)

    def gradients(self, X: Array, coef: Array) -> list[Array]:
        return self.filler(X.dtype).gradients(X, coef)

    def line_gradients(self, start: Array, step: Array, coef: Array) -> Array:
        return mean_gradients(self.landmarks, self.spec, start, step, coef)

    def fold(self, coef: Array) -> Array:
        return self.projection.fold(coef)

    def coverage(self, X: Block) -> Array:
        """Return for each row the share of ``k(x, x)`` that its features keep; 1 is all of it."""
        own = np.ones(X.shape[0])
        if not self.spec.radial:
            power = self.spec.name == "polynomial"
            own = squared_norms(X)
            own = (self.spec.gamma * own + self.spec.coef0) ** self.spec.degree if power else own
        captured = (self.features(X).astype(np.float64) ** 2).sum(axis=1)
        return np.asarray(np.minimum(captured / np.maximum(own, np.finfo(float).tiny), 1.0))


def decompose(landmarks: Array, spec: KernelSpec, cut: float) -> tuple[Projection, float]:
    """Return the projection that whitens kernel values, and the share of eigenvalues that it keeps.

    Each kernel is decomposed by itself, in float64. Features of the largest eigenvalues come first.
    """
    found = [_spectrum(landmarks, part, cut) for part in spec.parts]
    values = np.concatenate([own for own, _, _ in found])
    index = np.empty(values.size, dtype=np.intp)
    index[np.argsort(-values, kind="stable")] = np.arange(values.size)
    # The kernel is the mean of its parts.
    blocks = [vectors / np.sqrt(len(found) * own) for own, vectors, _ in found]
    indices = np.split(index, np.cumsum([own.size for own, _, _ in found])[:-1])
    total = sum(trace for _, _, trace in found)
    return Projection(blocks, indices), float(min(1.0, values.sum() / total))


def _spectrum(landmarks: Array, spec: KernelSpec, cut: float) -> tuple[Array, Array, float]:
    """Return the eigenvalues kept of one kernel between landmarks, their vectors, and its trace."""
    gram = np.empty((len(landmarks), len(landmarks)))
    with np.errstate(over="ignore"):  # checked below
        LandmarkKernel(landmarks, spec)(np.asarray(landmarks, dtype=np.float64), gram)
    if not np.isfinite(gram).all():
        raise ValueError(
            f"The {spec.name} kernel of the landmarks overflows at gamma={spec.gamma:g}: "
            "standardize the features, or lower gamma, degree or coef0."
        )
    total = float(np.trace(gram))
    values, vectors = linalg.eigh(gram, overwrite_a=True, check_finite=False, driver="evd")
    keep = values > cut * values[-1]
    if not keep.any():
        raise ValueError(
            f"The {spec.name} kernel of the landmarks is zero: every feature is constant at 0. "
            "Check X and sample_weight, or use another kernel."
        )
    # Largest eigenvalue first, and of each vector's two signs the one whose largest entry is positive:
    # the same landmarks give the same features whatever LAPACK does.
    values, vectors = values[keep][::-1], vectors[:, keep][:, ::-1]
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    return values, vectors * np.sign(largest), total
