"""Classifiers that rank: the exact minimiser of the all-pairs AUC loss behind scikit-learn's API."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from aucmax._checks import (
    all_or_nothing,
    check_choice,
    check_labels,
    check_number,
    check_rows,
    check_weight,
    drop_absent,
    is_sparse,
    warn_user,
)
from aucmax._memory import check_fits, parse_bytes
from aucmax._progress import LiveLine
from aucmax.features.fourier import FOURIER_KERNELS, FourierFeatures
from aucmax.features.kernels import KERNELS
from aucmax.features.landmarks import STRATEGIES
from aucmax.features.nystroem import NystroemFeatures, landmark_count
from aucmax.operators import FeatureOperator, Operator, map_operator
from aucmax.pairs import PairLoss
from aucmax.solvers.newton import Solution, minimize

__all__ = ["KernelAUCClassifier", "LinearAUCClassifier"]

#: Kernel values up to this size are kept in float64 when the data is; larger ones in float32. Small
#: problems so agree with any float64 optimiser; large ones take half the memory and time.
FLOAT64_BYTES = 2**26


class _PairwiseClassifier(ClassifierMixin, BaseEstimator):
    """What the classifiers share: labels, one column per ranked class, threshold, decision."""

    C: float
    standardize: bool
    tol: float
    max_iter: int
    verbose: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to rows ``X`` (n, d) and their classes ``y``.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, d)
        y : array of shape (n,)
            Any two labels, or more: then each class is ranked against the rest.
        sample_weight : array of shape (n,), optional
            A pair weighs the product of its rows' weights. A row of weight 0 is absent, from the
            standardisation, landmarks and bandwidth as well.
        """
        self._check_params()
        with all_or_nothing(self):
            check_labels(y)
            X, y = check_rows(self, X, y)
            check_classification_targets(y)
            weight = check_weight(sample_weight, X.shape[0])
            X, y, weight = drop_absent(X, y, weight)
            self.classes_, codes = np.unique(y, return_inverse=True)
            if self.classes_.size < 2:
                raise ValueError(
                    "Ranking needs rows of at least two classes; those of non-zero weight are all of "
                    f"one class, {self.classes_.tolist()[0]!r}."
                )
            try:
                with np.errstate(over="ignore", invalid="ignore"):  # found and named
                    self.scaler_ = self._fit_scaler(X, weight)
                    self._fit_columns(self._scaled(X), codes, weight)
            except FloatingPointError as error:
                raise ValueError(
                    f"The fit cannot go on: {error}. Check for extreme values in X and sample_weight, "
                    "and standardize the features."
                ) from None
        return self

    def _fit_scaler(self, X: Any, weight: np.ndarray) -> StandardScaler | None:
        if not self.standardize:
            return None
        # Centring would turn a CSR matrix into a dense one, so that is only scaled.
        scaler = StandardScaler(with_mean=not is_sparse(X)).set_output(transform="default")
        # Only ratios of weights matter to it; tiny or huge ones would underflow or overflow.
        scaler.fit(X, sample_weight=weight / weight.max())
        bad = np.flatnonzero(~np.isfinite(scaler.scale_))
        if bad.size:
            names = getattr(self, "feature_names_in_", None)
            column = bad[0] if names is None else repr(names[bad[0]])
            raise FloatingPointError(f"the variance of column {column} overflows")
        return scaler

    def _scaled(self, X: Any) -> Any:
        return X if self.scaler_ is None else self.scaler_.transform(X)

    def _check_params(self) -> None:
        check_number("C", self.C)
        check_number("tol", self.tol, high=1.0)
        check_number("max_iter", self.max_iter, low=1, closed=True, integer=True)

    def _fit_columns(self, X: Any, codes: np.ndarray, weight: np.ndarray) -> None:
        """Learn from standardised rows; sets ``coef_`` and, by ``_solve``, the rest."""
        raise NotImplementedError

    def _solve(self, operator: Operator, codes: np.ndarray, weight: np.ndarray) -> Solution:
        two = self.classes_.size == 2
        losses = [PairLoss(codes == c, weight) for c in ([1] if two else range(self.classes_.size))]
        line = LiveLine(self.tol) if self.verbose else None
        try:
            solution = minimize(
                operator,
                losses,
                np.full(len(losses), float(self.C)),
                tol=self.tol,
                max_iter=self.max_iter,
                on_record=line,
            )
        finally:
            if line:
                line.close()
        self.intercept_ = -np.array(
            [
                balanced_threshold(solution.scores[:, c], loss.positive, weight)
                for c, loss in enumerate(losses)
            ]
        )
        self.objective_ = _plain(solution.objective)
        self.n_iter_ = solution.n_iter
        self.converged_ = bool(solution.converged.all())
        self.history_ = [
            {name: _plain(value) for name, value in vars(record).items()} for record in solution.history
        ]
        if not self.converged_:
            self._warn_early(solution)
        return solution

    def _warn_early(self, solution: Solution) -> None:
        worst = int(np.where(solution.converged, -np.inf, solution.gap).argmax())
        done = f"after {solution.n_iter} Newton steps about {solution.gap[worst]:.1e} (relative) from"
        if solution.n_iter >= self.max_iter:
            advice = f"raise max_iter={self.max_iter} or tol={self.tol:g}"
        else:
            advice = (
                f"rounding allows no further progress, so raise tol={self.tol:g} or lower C={self.C:g}"
            )
        warn_user(f"{type(self).__name__} stopped {done} the optimum: {advice}.", ConvergenceWarning)

    def _scores(self, X: Any) -> np.ndarray:
        """Scores (n, k) of checked rows, before the threshold."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> np.ndarray:
        """Score of each row, less the learnt threshold: the higher, the more positive.

        Shape (n,) for two classes, where positive means ``classes_[1]``; otherwise (n, n_classes).
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):  # found and named below
            scores = self._scores(X).astype(np.float64) + self.intercept_
        finite = np.isfinite(scores).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"The score of row {int(finite.argmin())} is not finite ({int((~finite).sum())} such "
                "rows): its features are too extreme for this model."
            )
        return scores[:, 0] if self.classes_.size == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row: above the threshold, or of the highest score among several classes.

        The threshold is where sensitivity plus specificity on the training scores is largest
        (Youden's), so it does not follow the majority when one class is rare. For another aim use
        scikit-learn's ``TunedThresholdClassifierCV`` around this classifier.
        """
        decision = self.decision_function(X)
        if self.classes_.size == 2:
            return self.classes_[(decision > 0).astype(np.intp)]
        return self.classes_[decision.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class KernelAUCClassifier(_PairwiseClassifier):
    """Nonlinear classifier that minimises the exact AUC loss over all positive-negative pairs.

    Rows are standardised and mapped to kernel features ``phi``; the solver finds the minimiser of ::

        1/2 ||w||^2 + C n/(n_pos n_neg) sum_{i in +, j in -} max(0, 1 - w.(phi_i - phi_j))^2

    in time that does not depend on the number of pairs. With ``n_landmarks=1600`` this is NBAUC of
    Khalid, Ray and Chitsaz (2018); with ``feature_map="fourier"`` it is their RFAUC.

    Parameters
    ----------
    C : float, default=10.0
        Weight of the loss against the penalty, per average row, so that one value carries across
        data sizes. The best was 1 to 130 on the paper's data.
    kernel : {"rbf", "laplacian", "polynomial", "linear"}, default="rbf"
    gamma : {"distance", "scale"} or float, default="distance"
        Bandwidth of the kernel on the standardised rows; see :class:`NystroemFeatures`.
    degree, coef0 : int, float, default=3, 1.0
        Of the polynomial kernel.
    n_landmarks : int or "auto", default="auto"
        Landmarks (or Fourier features). "auto" is 1000, or every row if there are fewer.
    landmarks : {"kmeans", "class-kmeans", "uniform"} or array, default="kmeans"
        How they are chosen; an array is in units of standardised rows.
    feature_map : {"nystroem", "fourier"}, default="nystroem"
    solver : {"newton"}, default="newton"
    standardize : bool, default=True
        Scale features to unit variance and, unless ``X`` is sparse, to zero mean.
    tol : float, default=1e-4
        Relative distance to the minimum, estimated by the Newton decrement, at which to stop.
    max_iter : int, default=100
        Most Newton steps.
    max_memory : int, str or None, default=None
        Limit for the kernel values, in bytes or as "4GB"; None is what is free. A fit that needs more
        is refused before it starts.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows a live line: objective, estimated distance to the optimum, training AUC.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Sorted; of two, the second is the positive one.
    feature_map_ : NystroemFeatures or FourierFeatures
    scaler_ : StandardScaler or None
    coef_ : array of shape (n_columns, n_landmarks)
        Weights over landmarks (or Fourier features); one column for two classes, else one per class.
    intercept_ : array of shape (n_columns,)
        Less the learnt threshold.
    objective_ : float, or one per class
    history_ : list of dict
        One per Newton step: objective, gap, auc, step, products, passes, seconds and so on.
    n_iter_ : int
    converged_ : bool

    Notes
    -----
    Kernel values are held in float32 (n x n_landmarks x 4 bytes) unless the problem is small and the
    data float64. ``score`` is accuracy, as in all of scikit-learn; to search or validate by ranking
    pass ``scoring="roc_auc"``.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = make_circles(400, noise=0.1, factor=0.6, random_state=0)
    >>> model = KernelAUCClassifier(random_state=0).fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.99
    True
    """

    def __init__(
        self,
        C: float = 10.0,
        *,
        kernel: str = "rbf",
        gamma: str | float = "distance",
        degree: int = 3,
        coef0: float = 1.0,
        n_landmarks: int | str = "auto",
        landmarks: Any = "kmeans",
        feature_map: str = "nystroem",
        solver: str = "newton",
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        max_memory: int | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.feature_map = feature_map
        self.solver = solver
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_choice("feature_map", self.feature_map, ("nystroem", "fourier"))
        check_choice("solver", self.solver, ("newton",))
        check_choice("kernel", self.kernel, KERNELS)
        if self.feature_map == "fourier" and self.kernel not in FOURIER_KERNELS:
            raise ValueError(
                f'feature_map="fourier" knows the kernels {FOURIER_KERNELS}; got kernel='
                f'{self.kernel!r}. Use feature_map="nystroem" for it.'
            )
        if self.n_landmarks != "auto":
            check_number("n_landmarks", self.n_landmarks, low=1, closed=True, integer=True)
        if self.max_memory is not None:
            parse_bytes(self.max_memory)
        if isinstance(self.landmarks, str):
            check_choice("landmarks", self.landmarks, STRATEGIES)
        elif np.ndim(self.landmarks) != 2:
            raise ValueError(
                f"landmarks must be one of {STRATEGIES} or a dense array of shape (v, d); "
                f"got {self.landmarks!r}."
            )

    def _make_map(self) -> NystroemFeatures | FourierFeatures:
        if self.feature_map == "fourier":
            return FourierFeatures(
                landmark_count(self.n_landmarks),
                kernel=self.kernel,
                gamma=self.gamma,
                random_state=self.random_state,
            )
        return NystroemFeatures(
            self.n_landmarks,
            landmarks=self.landmarks,
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            random_state=self.random_state,
            verbose=self.verbose,
        )

    def _fit_columns(self, X: Any, codes: np.ndarray, weight: np.ndarray) -> None:
        n_rows = X.shape[0]
        width = self._width(n_rows)
        if n_rows * width * 8 > FLOAT64_BYTES:
            X = X.astype(np.float32, copy=False)
        what = f"The block of {n_rows:,} rows x {width:,} kernel features in {X.dtype}"
        # Landmarks (dense, with their copies in float64) count where there are very many columns.
        needed = n_rows * width * X.dtype.itemsize + 24 * width * X.shape[1]
        check_fits(what, needed, self.max_memory)
        self.feature_map_ = self._make_map().set_output(transform="default")
        self.feature_map_.fit(X, codes, sample_weight=weight)
        if isinstance(self.feature_map_, NystroemFeatures):
            operator = map_operator(X, self.feature_map_)
        else:
            operator = FeatureOperator(self.feature_map_.transform(X))
        solution = self._solve(operator, codes, weight)
        self.coef_ = self.feature_map_.fold(solution.coef).T

    def _width(self, n_rows: int) -> int:
        wanted = landmark_count(self.n_landmarks)
        if self.feature_map == "fourier":
            return wanted
        return min(wanted, n_rows) if isinstance(self.landmarks, str) else len(self.landmarks)

    def _scores(self, X: Any) -> np.ndarray:
        X = self._scaled(X).astype(self.feature_map_.dtype, copy=False)
        return self.feature_map_.linear(X, self.coef_.T)


class LinearAUCClassifier(_PairwiseClassifier):
    """Linear classifier that minimises the exact AUC loss: a ranking head for any features.

    The objective is that of :class:`KernelAUCClassifier` on the (standardised) features themselves;
    in the paper this is Linear RankSVM.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, per average row.
    standardize : bool, default=True
        Scale features to unit variance and, unless ``X`` is sparse, to zero mean.
    tol, max_iter, verbose
        As in :class:`KernelAUCClassifier`.

    Attributes
    ----------
    coef_ : array of shape (n_columns, n_features)
        In the units of ``X``: ``decision_function`` is ``X @ coef_.T + intercept_``.
    intercept_ : array of shape (n_columns,)
    classes_, scaler_, objective_, history_, n_iter_, converged_
        As in :class:`KernelAUCClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucmax import LinearAUCClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearAUCClassifier().fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.995
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def _fit_columns(self, X: Any, codes: np.ndarray, weight: np.ndarray) -> None:
        coef = self._solve(FeatureOperator(X), codes, weight).coef
        if self.scaler_ is not None:
            coef = coef / self.scaler_.scale_[:, None]
            if self.scaler_.with_mean:
                self.intercept_ = self.intercept_ - self.scaler_.mean_ @ coef
        self.coef_ = coef.T

    def _scores(self, X: Any) -> np.ndarray:
        return X @ self.coef_.T


def balanced_threshold(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> float:
    """Cut with the largest sensitivity + specificity, midway between two neighbouring scores.

    >>> import numpy as np
    >>> balanced_threshold(np.array([0.0, 1.0, 2.0]), np.array([False, False, True]), np.ones(3))
    1.5
    """
    order = np.argsort(-scores, kind="stable")
    scores, positive, weight = scores[order], positive[order], weight[order]
    gain = np.where(positive, weight, 0.0) / weight[positive].sum()
    gain -= np.where(positive, 0.0, weight) / weight[~positive].sum()
    last = np.append(scores[1:] < scores[:-1], False)  # a cut cannot part equal scores
    if not last.any():
        return float(scores[0])
    best = int(np.where(last, np.cumsum(gain), -np.inf).argmax())
    return float(0.5 * (scores[best] + scores[best + 1]))


def _plain(value: Any) -> Any:
    """Numbers for one column, lists for several: what JSON and data frames take."""
    if isinstance(value, np.ndarray):
        return value.item() if value.size == 1 else value.tolist()
    return value
