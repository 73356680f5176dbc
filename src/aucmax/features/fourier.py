"""Random Fourier features (Rahimi & Recht 2008): a kernel map that does not depend on the data."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from aucmax.features.bandwidth import GAMMA, resolve_gamma
from aucmax.features.kernel_products import check_features, product_over_blocks
from aucmax.features.projection import Projection
from aucmax.rows.interface import Block, Fill, as_rows, fill_matrix, is_sparse
from aucmax.rows.validation import all_or_nothing, check_rows, check_weight
from aucmax.runtime.parameters import (
    COUNT,
    RANDOM_STATE,
    OneOf,
    check_parameters,
    declare,
    random_generator,
)

Array = npt.NDArray[Any]

#: Kernels that depend on x - u alone and have a spectrum to draw from.
FOURIER_KERNELS = ("rbf", "laplacian")


@dataclass(frozen=True)
class FourierMap:
    """The map ``sqrt(2/D) cos(x'Z + b)``; see ``FeatureMap`` for what its members are."""

    frequencies: Array
    offsets: Array
    projection: Projection | None = None

    @property
    def width(self) -> int:
        return int(self.offsets.size)

    rank = width

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.frequencies.dtype

    def filler(self, dtype: npt.DTypeLike) -> Fill:
        return self._fill

    def kernel_block(self, X: Any, raw: Array | None = None) -> Array:
        return fill_matrix(self._fill, X, self.width, X.dtype)

    features = kernel_block

    def linear(self, X: Any, coef: Array) -> Array:
        # Inner products in float64: see LandmarkKernel.
        return product_over_blocks(partial(self._fill, inner=np.float64), X, coef, X.dtype)

    def fold(self, coef: Array) -> Array:
        return coef

    def gradients(self, X: Array, coef: Array) -> list[Array]:
        frequencies = np.asarray(self.frequencies, dtype=np.float64)
        slope = -np.sqrt(2.0 / self.width) * np.sin(X @ frequencies + self.offsets)
        return [(slope * each) @ frequencies.T for each in coef]

    def line_gradients(self, start: Array, step: Array, coef: Array) -> Array:
        frequencies = np.asarray(self.frequencies, dtype=np.float64)
        half = 0.5 * (step @ frequencies)
        # On a line the phase is linear, and the mean of its sine is that of the middle times a sinc.
        middle = np.sin(start @ frequencies + self.offsets + half) * np.sinc(half / np.pi)
        out: Array = -np.sqrt(2.0 / self.width) * ((middle * coef) @ frequencies.T)
        return out

    def _fill(self, X: Block, out: Array, inner: npt.DTypeLike | None = None) -> Array:
        inner = X.dtype if inner is None else inner
        frequencies = self.frequencies.astype(inner, copy=False)
        if is_sparse(X) or X.dtype != inner:
            out[...] = X.astype(inner, copy=False) @ frequencies
        else:
            np.matmul(X, frequencies, out=out)
        out += self.offsets.astype(X.dtype, copy=False)
        np.cos(out, out=out)
        out *= float(np.sqrt(2.0 / self.width))
        return out


@declare(n_components=COUNT, kernel=OneOf(*FOURIER_KERNELS), gamma=GAMMA, random_state=RANDOM_STATE)
class FourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Approximate kernel features ``sqrt(2/D) cos(x'Z + b)``.

    Columns of ``Z`` are drawn from the kernel's spectrum (normal for rbf, Cauchy for laplacian), ``b``
    uniformly on the circle.

    Parameters
    ----------
    n_components
        ``D``, the number of features.
    kernel
        The kernel that inner products of features approximate.
    gamma
        As in :class:`NystroemFeatures`.
    random_state
        Seed of the frequencies.

    Attributes
    ----------
    frequencies_ : array of shape (d, D)
    offsets_ : array of shape (D,)
    gamma_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import FourierFeatures
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> F = FourierFeatures(n_components=4000, gamma=0.1, random_state=0).fit_transform(X)
    >>> K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(-1))
    >>> bool(np.abs(F @ F.T - K).max() < 0.05)
    True
    """

    def __init__(
        self,
        n_components: int = 1000,
        *,
        kernel: str = "rbf",
        gamma: str | float = "distance",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FourierFeatures:
        """Draw the frequencies; the data give the bandwidth and the dtype alone."""
        check_parameters(self)
        with all_or_nothing(self):
            rows = as_rows(check_rows(self, X))
            weight = check_weight(sample_weight, rows.shape[0])
            present = np.flatnonzero(weight)
            rows, weight = (rows, weight) if weight.all() else (rows.take(present), weight[present])
            self.gamma_ = resolve_gamma(self.gamma, rows, weight, self.kernel)
            random = random_generator(self.random_state)
            shape = (rows.shape[1], self.n_components)
            try:
                if self.kernel == "rbf":
                    frequencies = np.sqrt(2.0 * self.gamma_) * random.standard_normal(shape)
                else:
                    frequencies = self.gamma_ * random.standard_cauchy(shape)
            except (MemoryError, ValueError):
                raise MemoryError(
                    f"There is no room for the frequencies of n_components={self.n_components} and "
                    f"{rows.shape[1]} columns: choose fewer n_components."
                ) from None
            self.frequencies_ = frequencies.astype(rows.dtype)
            self.offsets_ = random.uniform(0.0, 2.0 * np.pi, self.n_components).astype(rows.dtype)
            self._n_features_out = self.n_components
        return self

    def with_gamma(self, gamma: float) -> FourierFeatures:
        """Return this map at another bandwidth: the same frequencies, rescaled."""
        other = copy(self)
        ratio = gamma / self.gamma_
        scaled = self.frequencies_ * (np.sqrt(ratio) if self.kernel == "rbf" else ratio)
        other.frequencies_ = scaled.astype(self.frequencies_.dtype)
        other.gamma_ = float(gamma)
        return other

    def transform(self, X: Any) -> Array:
        """Return features (n, n_components) in the dtype of X."""
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):  # checked
            return check_features(self.map.features(check_rows(self, X, reset=False)))

    @property
    def map(self) -> FourierMap:
        """The fitted map as a value, whose methods take checked rows."""
        return FourierMap(self.frequencies_, self.offsets_)

    @property
    def kernel_map(self) -> FourierMap:
        """The same map: weights are over its features."""
        return self.map

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
