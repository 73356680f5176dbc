"""Random Fourier features (Rahimi & Recht 2008): a kernel map that does not look at the data."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from aucmax.features.kernels import check_features, product_over_blocks, resolve_gamma
from aucmax.rows.validation import all_or_nothing, check_rows, check_weight, drop_absent, is_sparse
from aucmax.runtime.parameters import check_choice, check_gamma, check_number, random_generator
from aucmax.runtime.threads import over_blocks

Array = npt.NDArray[Any]

#: Kernels that depend on x - u alone and whose spectrum can be drawn from.
FOURIER_KERNELS = ("rbf", "laplacian")


class FourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Approximate kernel features ``sqrt(2/D) cos(x'Z + b)``.

    Columns of ``Z`` are drawn from the kernel's spectrum (normal for rbf, Cauchy for laplacian), ``b``
    uniformly on the circle.

    Parameters
    ----------
    n_components : int, default=1000
        ``D``, the number of features.
    kernel : {"rbf", "laplacian"}, default="rbf"
    gamma : {"distance", "scale"} or float, default="distance"
        As in :class:`NystroemFeatures`.
    random_state : int, RandomState or None, default=None

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
        """Draw the frequencies; from the data only the bandwidth and the dtype are taken."""
        check_number("n_components", self.n_components, low=1, closed=True, integer=True)
        check_choice("kernel", self.kernel, FOURIER_KERNELS)
        check_gamma(self.gamma)
        with all_or_nothing(self):
            X = check_rows(self, X)
            weight = check_weight(sample_weight, X.shape[0])
            X, _, weight = drop_absent(X, None, weight)
            self.gamma_ = resolve_gamma(self.gamma, X, weight, self.kernel)
            random = random_generator(self.random_state)
            shape = (X.shape[1], self.n_components)
            try:
                if self.kernel == "rbf":
                    frequencies = np.sqrt(2.0 * self.gamma_) * random.standard_normal(shape)
                else:
                    frequencies = self.gamma_ * random.standard_cauchy(shape)
            except (MemoryError, ValueError):
                raise MemoryError(
                    f"There is no room for the frequencies of n_components={self.n_components} and "
                    f"{X.shape[1]} columns: choose fewer n_components."
                ) from None
            self.frequencies_ = frequencies.astype(X.dtype)
            self.offsets_ = random.uniform(0.0, 2.0 * np.pi, self.n_components).astype(X.dtype)
            self._n_features_out = self.n_components
        return self

    def with_gamma(self, gamma: float) -> FourierFeatures:
        """This fitted map at another bandwidth: the same frequencies, rescaled."""
        other = copy(self)
        ratio = gamma / self.gamma_
        other.frequencies_ = self.frequencies_ * (np.sqrt(ratio) if self.kernel == "rbf" else ratio)
        other.frequencies_ = other.frequencies_.astype(self.dtype)
        other.gamma_ = float(gamma)
        return other

    def transform(self, X: Any) -> Array:
        """Features of shape (n, n_components), in the dtype of X; beside them only blocks are held."""
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):  # found and named below
            out = self.features(check_rows(self, X, reset=False))
        return check_features(out)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.offsets_.size)

    @property
    def rank(self) -> int:
        """The number of features."""
        return self.width

    @property
    def projection(self) -> Array | None:
        """None: features are used as they are."""
        return None

    def filler(self, dtype: npt.DTypeLike) -> Callable[[Any, Array], Array]:
        """What puts features of some rows into an array."""
        return self._block

    def kernel_block(self, X: Any, raw: Array | None = None) -> Array:
        """The features: they take the place of kernel values."""
        return self.features(X)

    def features(self, X: Any, raw: Array | None = None) -> Array:
        """As :meth:`transform`, of rows that have been checked already."""
        out = np.empty((X.shape[0], self.offsets_.size), dtype=X.dtype)

        def work(rows: slice) -> None:
            self._block(X[rows], out[rows])

        over_blocks(work, X.shape[0], (self.offsets_.size + X.shape[1]) * X.dtype.itemsize)
        return out

    def linear(self, X: Any, coef: Array) -> Array:
        """``transform(X) @ coef`` for coef (D, m), blockwise; X has been checked already."""
        return product_over_blocks(self._wide_block, X, coef, X.dtype)

    def gradients(self, X: Array, coef: Array) -> list[Array]:
        """Of ``sum_j coef_j sqrt(2/D) cos(x.f_j + b_j)`` at dense rows, (n, d) for each row of coef."""
        frequencies = np.asarray(self.frequencies_, dtype=np.float64)
        slope = -np.sqrt(2.0 / self.offsets_.size) * np.sin(X @ frequencies + self.offsets_)
        return [(slope * each) @ frequencies.T for each in coef]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype the map was fitted in."""
        dtype: np.dtype[Any] = self.frequencies_.dtype
        return dtype

    def fold(self, coef: Array) -> Array:
        """Fourier features are used as they are: the coefficients themselves."""
        return coef

    def _wide_block(self, X: Any, out: Array) -> Array:
        """With inner products in float64: see ``LandmarkKernel``."""
        return self._block(X, out, np.float64)

    def _block(self, X: Any, out: Array, inner: npt.DTypeLike | None = None) -> Array:
        inner = X.dtype if inner is None else inner
        frequencies = self.frequencies_.astype(inner, copy=False)
        if is_sparse(X) or X.dtype != inner:
            out[...] = X.astype(inner, copy=False) @ frequencies
        else:
            np.matmul(X, frequencies, out=out)
        out += self.offsets_.astype(X.dtype, copy=False)
        np.cos(out, out=out)
        out *= float(np.sqrt(2.0 / self.offsets_.size))
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
