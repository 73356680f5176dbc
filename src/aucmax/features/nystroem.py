"""The Nyström map: kernel values against landmarks, whitened (the paper's Algorithm 1)."""

from __future__ import annotations

import sys
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from aucmax.features.kernels import (
    BOTH,
    LANDMARK_KERNELS,
    RADIAL,
    LandmarkKernel,
    check_features,
    kernel_matrix,
    kernel_product,
    raw_matrix,
    resolve_gamma,
)
from aucmax.features.landmarks import OF_CLASSES, STRATEGIES, choose_landmarks
from aucmax.features.projection import Projection
from aucmax.rows.validation import (
    all_or_nothing,
    check_labels,
    check_rows,
    check_weight,
    drop_absent,
    is_sparse,
    refuse_odd,
)
from aucmax.runtime.parameters import (
    check_choice,
    check_gamma,
    check_number,
    check_verbose,
    is_auto,
    random_generator,
    warn_user,
)

Array = npt.NDArray[Any]

#: Landmarks when their number is left open.
AUTO_LANDMARKS = 1000


def landmark_count(n_landmarks: int | str) -> int:
    """The number that the parameter stands for."""
    return AUTO_LANDMARKS if is_auto(n_landmarks) else int(n_landmarks)


class NystroemFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Approximate kernel features from landmarks.

    With landmarks ``U`` and ``W = k(U, U) = Q diag(l) Q'``, a row becomes
    ``k(x, U) Q_r diag(l_r)^(-1/2)``, so that inner products of features approximate the kernel.
    The decomposition runs in float64 whatever the data; eigenvalues at or below ``cut`` times the
    largest are dropped, which repeated or crowded landmarks make necessary.

    Parameters
    ----------
    n_landmarks : int or "auto", default="auto"
        How many landmarks. "auto" is 1000, or the number of rows if that is less. A number above the
        number of rows gives a warning and uses every row.
    landmarks : {"kmeans", "class-kmeans", "root-kmeans", "uniform"} or array, default="kmeans"
        How they are chosen: rows nearest to k-means centres, of all rows, or of each class in equal
        shares or as the roots of their sizes (which need ``y``); rows at random; or your own points, of
        shape (v, d).
    kernel : {"rbf", "laplacian", "rbf+laplacian", "polynomial", "linear"}, default="rbf"
        "rbf+laplacian" is the mean of the two, with features of each from the same landmarks: twice as
        many, of which some follow distances and others steps in single columns.
    gamma : {"distance", "scale"} or float, default="distance"
        Bandwidth: ``1 / mean ||x - mean||^2`` over the first 80,000 rows (the paper's rule),
        scikit-learn's ``1 / (d var(X))``, or a number. Of "rbf+laplacian" it is the rbf's; the
        laplacian's follows the rule.
    degree, coef0 : int, float, default=3, 1.0
        Of the polynomial kernel.
    cut : float, default=1e-6
        Relative eigenvalue cut. Much less than 1e-6 amplifies float32 rounding in the features.
    random_state : int, RandomState or None, default=None
    verbose : bool, default=False
        Say on standard error what landmarks were made from.

    Attributes
    ----------
    landmarks_ : array of shape (v, d)
    projection_ : array of shape (v, r), or (2v, r) of "rbf+laplacian"
        What kernel values are multiplied with.
    projections_, places_ : list of arrays
        The same without its zeros: of each kernel an array (v, r_i), and which of the ``r`` features
        these are.
    rank_ : int
        ``r``, the number of features given.
    spectrum_kept_ : float
        Share of the landmark kernel's eigenvalue sum that the ``r`` features keep.
    gamma_ : float
    gamma_l1_ : float
        The laplacian's, of "rbf+laplacian".
    landmark_rows_ : int
        Rows the landmarks were made from: k-means draws a sample of 25 rows per landmark when there
        are more.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from aucmax import NystroemFeatures
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> features = NystroemFeatures(n_landmarks=50, gamma=2.0, random_state=0)
    >>> make_pipeline(features, LogisticRegression()).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        n_landmarks: int | str = "auto",
        *,
        landmarks: str | npt.ArrayLike = "kmeans",
        kernel: str = "rbf",
        gamma: str | float = "distance",
        degree: int = 3,
        coef0: float = 1.0,
        cut: float = 1e-6,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cut = cut
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NystroemFeatures:
        """Choose landmarks, bandwidth and projection.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, d)
        y : array of shape (n,), optional
            Classes; used by ``landmarks="class-kmeans"`` and ``"root-kmeans"`` alone.
        sample_weight : array of shape (n,), optional
            A row of weight 0 is absent.
        """
        self._check_params(y)
        with all_or_nothing(self):
            self.place(X, y, sample_weight)
            self._decompose()
        return self

    def place(self, X: Any, y: Any = None, sample_weight: Any = None) -> NystroemFeatures:
        """Choose landmarks and bandwidth as :meth:`fit` does, and no projection: it stays unfitted.

        That is enough for :meth:`raw_block`, :meth:`gradients` and :meth:`with_gamma`.
        """
        self.__dict__.pop("projections_", None)
        X = check_rows(self, X)
        weight = check_weight(sample_weight, X.shape[0])
        y = self._check_classes(y, X.shape[0])
        X, y, weight = drop_absent(X, y, weight)
        self.landmarks_, self.landmark_rows_ = self._choose(X, y, weight)
        self.gamma_ = resolve_gamma(self.gamma, X, weight, self.kernel)
        if self.kernel == BOTH:
            self.gamma_l1_ = resolve_gamma("distance", X, weight, "laplacian")
        return self

    def _check_params(self, y: Any) -> None:
        check_verbose(self.verbose)
        check_choice("kernel", self.kernel, LANDMARK_KERNELS)
        check_gamma(self.gamma)
        check_number("degree", self.degree, low=1, closed=True, high=1000, integer=True)
        check_number("coef0", self.coef0, closed=True)
        check_number("cut", self.cut, closed=True, high=0.5)
        if not is_auto(self.n_landmarks):
            check_number("n_landmarks", self.n_landmarks, low=1, closed=True, integer=True)
        if isinstance(self.landmarks, str):
            check_choice("landmarks", self.landmarks, STRATEGIES)
            if self.landmarks in OF_CLASSES and y is None:
                raise ValueError(
                    f'landmarks="{self.landmarks}" requires y to be passed, but the target y is None.'
                )

    def _check_classes(self, y: Any, n_rows: int) -> Array | None:
        if y is None or not isinstance(self.landmarks, str) or self.landmarks not in OF_CLASSES:
            return None
        check_labels(y)
        classes = np.asarray(y).ravel()
        if classes.size != n_rows:
            raise ValueError(f"y has {classes.size} entries for {n_rows} rows of X.")
        return classes

    def _choose(self, X: Any, y: Array | None, weight: Array) -> tuple[Array, int]:
        if not isinstance(self.landmarks, str):
            refuse_odd("landmarks", self.landmarks)
            try:
                points = check_array(self.landmarks, dtype=X.dtype, copy=True, input_name="landmarks")
            except (TypeError, ValueError, OverflowError) as error:
                raise ValueError(
                    f"landmarks must be one of {STRATEGIES} or a dense array of shape (v, d): {error}"
                ) from None
            if points.shape[1] != X.shape[1]:
                raise ValueError(
                    f"landmarks has {points.shape[1]} columns, X has {X.shape[1]}: they must agree."
                )
            return points, 0
        n_rows = X.shape[0]
        wanted = landmark_count(self.n_landmarks)
        if wanted > n_rows and not is_auto(self.n_landmarks):
            warn_user(
                f"n_landmarks={wanted} is more than the {n_rows} rows of X: every row is a landmark."
            )
        points, seen = choose_landmarks(
            X, wanted, self.landmarks, random_generator(self.random_state), weight, y
        )
        if self.verbose:
            source = f"{seen:,} of {n_rows:,} rows" if seen < n_rows else f"{n_rows:,} rows"
            print(f"{len(points)} landmarks by {self.landmarks} on {source}", file=sys.stderr)
        return points.astype(X.dtype, copy=False), seen

    def _decompose(self) -> None:
        """The projection, of each kernel on its own; features of the largest eigenvalues come first."""
        parts = [(self.kernel, self.gamma_)]
        if self.kernel == BOTH:
            parts = [("rbf", self.gamma_), ("laplacian", self.gamma_l1_)]
        found = [self._spectrum(name, gamma) for name, gamma in parts]
        values = np.concatenate([each for each, _, _ in found])
        place = np.empty(values.size, dtype=np.intp)
        place[np.argsort(-values, kind="stable")] = np.arange(values.size)
        # The kernel is the mean of its parts.
        self.projections_ = [vectors / np.sqrt(len(parts) * own) for own, vectors, _ in found]
        self.places_ = np.split(place, np.cumsum([own.size for own, _, _ in found])[:-1])
        self.rank_ = int(values.size)
        total = sum(trace for _, _, trace in found)
        self.spectrum_kept_ = float(min(1.0, values.sum() / total))
        self._n_features_out = self.rank_
        alike = self.rank_ == len(parts) and len(self.landmarks_) > 1
        if alike and np.ptp(self.landmarks_, axis=0).any():
            warn_user(
                f"The {self.kernel} kernel at gamma={self.gamma_:g} cannot tell the landmarks apart "
                "(rank 1): raise gamma or lower cut."
            )

    def _spectrum(self, name: str, gamma: float) -> tuple[Array, Array, float]:
        """Of one kernel between the landmarks: eigenvalues kept and their vectors, and its trace."""
        points = np.asarray(self.landmarks_, dtype=np.float64)
        kernel = LandmarkKernel(self.landmarks_, name, gamma, self.degree, self.coef0)
        gram = np.empty((len(points), len(points)))
        with np.errstate(over="ignore"):  # found and named below
            kernel(points, gram)
        if not np.isfinite(gram).all():
            raise ValueError(
                f"The {name} kernel of the landmarks overflows at gamma={gamma:g}: "
                "standardize the features, or lower gamma, degree or coef0."
            )
        total = float(np.trace(gram))
        values, vectors = linalg.eigh(gram, overwrite_a=True, check_finite=False, driver="evd")
        keep = values > self.cut * values[-1]
        if not keep.any():
            raise ValueError(
                f"The {name} kernel of the landmarks is zero: every feature is constant at 0. "
                "Check X and sample_weight, or use another kernel."
            )
        # Largest eigenvalue first, and of each vector's two signs the one whose largest entry is
        # positive: the same landmarks give the same features whatever LAPACK does.
        values, vectors = values[keep][::-1], vectors[:, keep][:, ::-1]
        largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
        return values, vectors * np.sign(largest), total

    def _kernel(
        self,
        dtype: npt.DTypeLike,
        gamma: float | None = None,
        wide: bool = False,
        gamma_l1: float | None = None,
    ) -> LandmarkKernel:
        return LandmarkKernel(
            self.landmarks_,
            self.kernel,
            self.gamma_ if gamma is None else gamma,
            self.degree,
            self.coef0,
            dtype,
            wide,
            getattr(self, "gamma_l1_", 1.0) if gamma_l1 is None else gamma_l1,
        )

    def transform(self, X: Any) -> Array:
        """Features of shape (n, rank_), in the dtype of X; beside them only blocks are held."""
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):  # found and named below
            return check_features(self.features(check_rows(self, X, reset=False)))

    @property
    def width(self) -> int:
        """Kernel values of a row: one for each landmark, or two."""
        return len(self.landmarks_) * (2 if self.kernel == BOTH else 1)

    @property
    def rank(self) -> int:
        """``r``, the number of features."""
        return self.rank_

    @property
    def projection(self) -> Projection:
        """What kernel values are multiplied with to give features."""
        return Projection(self.projections_, self.places_)

    @property
    def projection_(self) -> Array:
        """The same as one array; of "rbf+laplacian" it is made anew, and half of it is zeros."""
        return self.projection.dense()

    def filler(self, dtype: npt.DTypeLike) -> LandmarkKernel:
        """What puts kernel values of some rows into an array."""
        return self._kernel(dtype)

    def features(self, X: Any, raw: Array | None = None) -> Array:
        """As :meth:`transform`, of rows that have been checked already."""
        return self.linear(X, self.projection, raw=raw)

    def kernel_block(self, X: Any, raw: Array | None = None) -> Array:
        """Kernel values against all landmarks, shape (n, v), in the dtype of X (checked already)."""
        return kernel_matrix(self._kernel(X.dtype), X, raw)

    def linear(
        self, X: Any, coef: Array | Projection, block_rows: int | None = None, raw: Array | None = None
    ) -> Array:
        """``k(X, U) @ coef`` for coef (v, m), blockwise; X has been checked already."""
        return kernel_product(self._kernel(X.dtype, wide=True), X, coef, block_rows, raw)

    def raw_block(self, X: Any) -> Array:
        """What kernel values of every gamma follow from: distances or inner products, (n, v)."""
        return raw_matrix(self._kernel(X.dtype, gamma=1.0, gamma_l1=1.0), X)

    def with_gamma(self, gamma: float) -> NystroemFeatures:
        """This fitted map at another bandwidth: the same landmarks, decomposed anew."""
        other = copy(self)
        other.gamma_ = float(gamma)
        other._decompose()
        return other

    def coverage(self, X: Any) -> Array:
        """Of each row, the share of ``k(x, x)`` that its features keep: 1 is all there is to know."""
        own = np.ones(X.shape[0])
        if self.kernel not in RADIAL:
            squares = np.asarray((X.multiply(X) if is_sparse(X) else X * X).sum(axis=1)).ravel()
            power = self.kernel == "polynomial"
            own = (self.gamma_ * squares + self.coef0) ** self.degree if power else squares
        kept = (self.features(X).astype(np.float64) ** 2).sum(axis=1)
        return np.asarray(np.minimum(kept / np.maximum(own, np.finfo(float).tiny), 1.0))

    def gradients(self, X: Array, coef: Array, gamma: float | None = None) -> list[Array]:
        """Of ``sum_j coef_j k(x, u_j)`` at dense rows, (n, d) for each row of coef.

        ``gamma`` is instead of the map's own.
        """
        return self._kernel(X.dtype, gamma).gradients(X, coef)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype the map was fitted in."""
        return self.landmarks_.dtype

    def fold(self, coef: Array) -> Array:
        """Coefficients over landmarks (v, m) that score as ``coef`` (r, m) does over features."""
        return self.projection.fold(coef)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "projections_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = isinstance(self.landmarks, str) and self.landmarks in OF_CLASSES
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
