"""The Nyström map as a transformer: kernel values against landmarks, whitened (Algorithm 1)."""

from __future__ import annotations

import sys
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from aucmax.features.bandwidth import GAMMA, resolve_gamma
from aucmax.features.kernel_products import check_features
from aucmax.features.kernels import BOTH, LANDMARK_KERNELS, KernelSpec
from aucmax.features.landmark_map import LandmarkMap, decompose
from aucmax.features.landmarks import OF_CLASSES, STRATEGIES, choose_landmarks
from aucmax.features.projection import Projection
from aucmax.rows.interface import Rows, as_rows
from aucmax.rows.validation import all_or_nothing, check_labels, check_rows, check_weight, refuse_odd
from aucmax.runtime.parameters import (
    AUTO,
    COUNT,
    POINTS,
    RANDOM_STATE,
    VERBOSE,
    Number,
    OneOf,
    check_parameters,
    declare,
    is_auto,
    random_generator,
    warn_user,
)

Array = npt.NDArray[Any]

#: The number of landmarks if it is left open.
AUTO_LANDMARKS = 1000

#: What parameters of the polynomial kernel may be.
DEGREE = Number(low=1, closed=True, high=1000, integer=True)
COEF0 = Number(closed=True)


@declare(
    n_landmarks=(AUTO, COUNT),
    landmarks=(OneOf(*STRATEGIES), POINTS),
    kernel=OneOf(*LANDMARK_KERNELS),
    gamma=GAMMA,
    degree=DEGREE,
    coef0=COEF0,
    cut=Number(closed=True, high=0.5),
    random_state=RANDOM_STATE,
    verbose=VERBOSE,
)
class NystroemFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Approximate kernel features from landmarks.

    With landmarks ``U`` and ``W = k(U, U) = Q diag(l) Q'``, a row becomes
    ``k(x, U) Q_r diag(l_r)^(-1/2)``, so that inner products of features approximate the kernel.
    The decomposition runs in float64. Eigenvalues at or below ``cut`` times the largest are dropped,
    which repeated or crowded landmarks make necessary.

    Parameters
    ----------
    n_landmarks
        How many landmarks. "auto" is 1000, or the number of rows if that is less. A number above the
        number of rows gives a warning and uses every row.
    landmarks
        How landmarks are chosen: "centroids" are the centres of k-means, as in the paper; "kmeans" the
        rows nearest to them; "class-kmeans" and "root-kmeans" rows nearest to the centres of each
        class, in equal shares or in shares as the roots of the class sizes (these need ``y``);
        "uniform" rows at random; or your own points. Equal landmarks are kept once.
    kernel
        "rbf+laplacian" is the mean of the two, with features of each from the same landmarks: twice as
        many, of which some follow distances and others steps in single columns.
    gamma
        Bandwidth: "distance" is ``1 / mean ||x - mean||^2`` over the first 80,000 rows, "paper" half
        of it, "scale" scikit-learn's ``1 / (d var(X))``; or a number. With "rbf+laplacian" it is the
        rbf's; the laplacian's follows the rule.
    degree
        Degree of the polynomial kernel.
    coef0
        Constant of the polynomial kernel.
    cut
        Relative eigenvalue cut. Features of eigenvalues much below 1e-8 are mostly rounding errors if X
        is float32.
    random_state
        Seed of the landmarks.
    verbose
        Print what landmarks were made from.

    Attributes
    ----------
    landmarks_ : array of shape (v, d)
    projection_ : array of shape (v, r), or (2v, r) with "rbf+laplacian"
        What kernel values are multiplied by.
    projections_, places_ : list of arrays
        The same without its zeros: for each kernel an array (v, r_i), and which of the ``r`` features
        these are.
    rank_ : int
        ``r``, the number of features.
    spectrum_kept_ : float
        The share of the landmark kernel's eigenvalue sum that the ``r`` features keep.
    gamma_ : float
    gamma_l1_ : float
        The laplacian's gamma, with "rbf+laplacian".
    landmark_rows_ : int
        The number of rows the landmarks were made from: k-means draws 25 rows per landmark when there
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
        cut: float = 1e-8,
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
            A row of weight 0 is ignored.
        """
        check_parameters(self)
        if self._of_classes and y is None:
            raise ValueError(
                f'landmarks="{self.landmarks!s}" requires y to be passed, but the target y is None.'
            )
        with all_or_nothing(self):
            self.fit_landmarks(X, y, sample_weight)
            self._decompose()
        return self

    def fit_landmarks(self, X: Any, y: Any = None, sample_weight: Any = None) -> NystroemFeatures:
        """Choose landmarks and bandwidth as :meth:`fit` does, without the projection.

        The transformer stays unfitted; :meth:`with_gamma` returns a fitted one.
        """
        self.__dict__.pop("projections_", None)
        self.__dict__.pop("rank_", None)
        rows = as_rows(check_rows(self, X))
        weight = check_weight(sample_weight, rows.shape[0])
        classes = self._checked_classes(y, rows.shape[0])
        if not weight.all():
            present = np.flatnonzero(weight)
            rows, weight = rows.take(present), weight[present]
            classes = None if classes is None else classes[present]
        self.landmarks_, self.landmark_rows_ = self._choose(rows, classes, weight)
        self.gamma_ = resolve_gamma(self.gamma, rows, weight, self.kernel)
        if self.kernel == BOTH:
            self.gamma_l1_ = resolve_gamma("distance", rows, weight, "laplacian")
        return self

    def with_gamma(self, gamma: float) -> NystroemFeatures:
        """Return this map at another bandwidth: the same landmarks, decomposed again."""
        other = copy(self)
        other.gamma_ = float(gamma)
        other._decompose()
        return other

    def transform(self, X: Any) -> Array:
        """Return features ``(n, rank_)`` in the dtype of X; kernel values are held block by block."""
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):  # checked
            return check_features(self.map.features(check_rows(self, X, reset=False)))

    @property
    def map(self) -> LandmarkMap:
        """The fitted map as a value, whose methods take checked rows."""
        if not hasattr(self, "projections_"):  # of a model file, which leaves them out
            self._decompose()
        return LandmarkMap(self.landmarks_, self.spec, Projection(self.projections_, self.places_))

    @property
    def kernel_map(self) -> LandmarkMap:
        """The map for weights over kernel values, which need no projection."""
        return LandmarkMap(self.landmarks_, self.spec, Projection([], []))

    @property
    def spec(self) -> KernelSpec:
        """The kernel with its learnt bandwidth."""
        gamma_l1 = getattr(self, "gamma_l1_", 1.0)
        return KernelSpec(self.kernel, self.gamma_, self.degree, self.coef0, gamma_l1)

    @property
    def projection_(self) -> Array:
        """What kernel values are multiplied by, as one array."""
        return self.map.projection.dense()

    @property
    def _of_classes(self) -> bool:
        return isinstance(self.landmarks, str) and self.landmarks in OF_CLASSES

    def _checked_classes(self, y: Any, n_rows: int) -> Array | None:
        if y is None or not self._of_classes:
            return None
        check_labels(y)
        classes = np.asarray(y).ravel()
        if classes.size != n_rows:
            raise ValueError(f"y has {classes.size} entries for {n_rows} rows of X.")
        return classes

    def _choose(self, rows: Rows, y: Array | None, weight: Array) -> tuple[Array, int]:
        if not isinstance(self.landmarks, str):
            return _own_points(self.landmarks, rows), 0
        n_rows, auto = rows.shape[0], is_auto(self.n_landmarks)
        wanted = AUTO_LANDMARKS if auto else int(self.n_landmarks)
        if wanted > n_rows and not auto:
            warn_user(
                f"n_landmarks={wanted} is more than the {n_rows} rows of X: every row is a landmark."
            )
        random = random_generator(self.random_state)
        points, seen = choose_landmarks(rows, wanted, self.landmarks, random, weight, y)
        if self.verbose:
            source = f"{seen:,} of {n_rows:,} rows" if seen < n_rows else f"{n_rows:,} rows"
            print(f"{len(points)} landmarks by {self.landmarks} on {source}", file=sys.stderr)
        return points.astype(rows.dtype, copy=False), seen

    def _decompose(self) -> None:
        projection, self.spectrum_kept_ = decompose(self.landmarks_, self.spec, self.cut)
        self.projections_, self.places_ = list(projection.blocks), list(projection.indices)
        self.rank_ = self._n_features_out = projection.shape[1]
        alike = self.rank_ == len(self.projections_) and len(self.landmarks_) > 1
        if alike and np.ptp(self.landmarks_, axis=0).any():
            warn_user(
                f"The {self.kernel} kernel at gamma={self.gamma_:g} cannot tell the landmarks apart "
                "(rank 1): raise gamma or lower cut."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rank_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self._of_classes
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def without_projections(features: Any) -> Any:
    """Return a copy of a map without its projections, which ``map`` computes again when it is used."""
    other = copy(features)
    for name in ("projections_", "places_"):
        other.__dict__.pop(name, None)
    return other


def _own_points(landmarks: Any, rows: Rows) -> Array:
    """Return landmarks that the user gives, checked."""
    refuse_odd("landmarks", landmarks)
    try:
        points = check_array(landmarks, dtype=rows.dtype, copy=True, input_name="landmarks")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"landmarks must be one of {STRATEGIES} or a dense array of shape (v, d): {error}"
        ) from None
    if points.shape[1] != rows.shape[1]:
        raise ValueError(
            f"landmarks has {points.shape[1]} columns, X has {rows.shape[1]}: they must agree."
        )
    return np.asarray(points)
