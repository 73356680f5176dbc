"""The methods that the paper compares its own with, on any features; see :mod:`aucmax.paper`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from aucmax.estimators.kernel_scores import gradient_shares
from aucmax.estimators.ranking import FLOAT64_BYTES, WeightedClassifier, check_linear, plain
from aucmax.estimators.streaming import MOST, StreamingClassifier
from aucmax.features.kernels import (
    KERNELS,
    LandmarkKernel,
    kernel_matrix,
    kernel_product,
    resolve_gamma,
)
from aucmax.fitting.context import Context
from aucmax.operators import FeatureOperator
from aucmax.pairs import Floats, PairLoss
from aucmax.rows.validation import is_sparse
from aucmax.runtime.memory import NoMemoryError, available_bytes, format_bytes, parse_bytes
from aucmax.runtime.parameters import (
    check_choice,
    check_gamma,
    check_number,
    random_generator,
    warn_user,
)
from aucmax.runtime.progress import LiveLine, describe_product
from aucmax.solvers.kernel_newton import minimize_kernel
from aucmax.solvers.options import Stopping
from aucmax.solvers.stochastic import OAM, SOLAM

__all__ = ["KernelRankSVM", "OAMClassifier", "SOLAMClassifier"]

#: Rows of each class that SOLAM keeps from a stream, for the threshold of ``predict`` alone.
_THRESHOLD_ROWS = 1000


class OAMClassifier(StreamingClassifier):
    """Online AUC maximisation, sequential variant (Zhao, Hoi, Jin and Yang, ICML 2011).

    Each row that arrives takes a passive-aggressive step, for the pairwise hinge loss, against every
    row in a small buffer of the other class; buffers are kept by reservoir sampling. On Nyström
    features this is the paper's NOAM.

    Parameters
    ----------
    C : float, default=0.01
        Bounds a step: at most ``C/2``, times the number of rows that a buffered row stands for.
    buffer_size : int, default=100
        Rows of each class that are kept.
    epochs : int, default=1
        Times ``fit`` goes over the rows, each time in a new random order.
    standardize, trace, early_stopping, validation_fraction, n_iter_no_change, tol
    random_state, verbose
        As in :class:`SGDAUCClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, history_, n_iter_, rows_seen_
        As in :class:`SGDAUCClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucmax import OAMClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OAMClassifier(random_state=0).fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.98
    True
    """

    def __init__(
        self,
        C: float = 0.01,
        *,
        buffer_size: int = 100,
        epochs: int = 1,
        standardize: bool = True,
        trace: str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.buffer_size = buffer_size
        self.epochs = epochs
        self.standardize = standardize
        self.trace = trace
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_number("C", self.C)
        check_number("buffer_size", self.buffer_size, low=1, closed=True, high=MOST, integer=True)

    def _make_learner(self, X: Any, total: float) -> OAM:
        return OAM(X.shape[1], X.dtype, C=self.C, buffer_size=int(self.buffer_size))


class SOLAMClassifier(StreamingClassifier):
    """Stochastic online AUC maximisation (Ying, Wen and Lyu, NIPS 2016).

    The squared loss over all pairs, written as a saddle point so that each row alone gives a gradient:
    no buffer is needed. The share of positives is estimated along the way; the result is the average
    of the iterates by their step sizes. On Nyström features this is the paper's NSOLAM.

    Parameters
    ----------
    zeta : float, default=1.0
        The t-th step is ``zeta / sqrt(t)``.
    radius : float, default=100.0
        Bound of the norm of the coefficients.
    epochs : int, default=15
        Times ``fit`` goes over the rows, each time in a new random order.
    standardize, trace, early_stopping, validation_fraction, n_iter_no_change, tol
    random_state, verbose
        As in :class:`SGDAUCClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, history_, n_iter_, rows_seen_
        As in :class:`SGDAUCClassifier`.

    Notes
    -----
    With a step that is long for the rows (``zeta`` far above 1 over their mean squared norm) the
    iterates bounce off the bound. Kernel features have norms of at most 1.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucmax import SOLAMClassifier
    >>> from aucmax.metrics import roc_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SOLAMClassifier(zeta=0.05, random_state=0).fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.98
    True
    """

    def __init__(
        self,
        zeta: float = 1.0,
        radius: float = 100.0,
        *,
        epochs: int = 15,
        standardize: bool = True,
        trace: str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.zeta = zeta
        self.radius = radius
        self.epochs = epochs
        self.standardize = standardize
        self.trace = trace
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_number("zeta", self.zeta)
        check_number("radius", self.radius)

    def _make_learner(self, X: Any, total: float) -> SOLAM:
        return SOLAM(
            X.shape[1], X.dtype, zeta=self.zeta, radius=self.radius, buffer_size=_THRESHOLD_ROWS
        )


class KernelRankSVM(WeightedClassifier):
    """The exact kernel machine: squared hinge over all pairs, a coefficient for every training row.

    The objective is that of :class:`KernelAUCClassifier` with no landmarks in between, so that the two
    agree when every row is a landmark. Cost grows with the square of the rows: this is the yardstick
    (RBF-RankSVM of Kuo, Lee and Lin, 2014, in the paper), not the everyday tool.

    Parameters
    ----------
    C : float, default=10.0
        Weight of the loss against the penalty, per average row.
    kernel : {"rbf", "laplacian", "polynomial", "linear"}, default="rbf"
    gamma : {"distance", "scale"} or float, default="distance"
    degree, coef0 : int, float, default=3, 1.0
    subsample : float, default=1.0
        Share of the rows of each class to learn from, drawn at random; the paper's variant takes 0.2.
    standardize : bool, default=True
        Scale features to unit variance and, unless ``X`` is sparse, to zero mean.
    tol : float, default=1e-4
        Relative distance to the minimum, estimated by the Newton decrement, at which to stop.
    max_iter : int, default=100
        Most Newton steps.
    max_memory : int, str or None, default=None
        Budget for the kernel matrix, in bytes or as "4GB"; None is half of what is free. A larger
        matrix is not held: each product computes it anew, block by block, and a warning says before
        the start what a product will take.
    random_state : int, RandomState or None, default=None
        For ``subsample``.
    verbose : int, default=0
        1 shows a live line, after each product with the kernel matrix.

    Attributes
    ----------
    dual_coef_ : array of shape (n_columns, n_support)
    feature_importances_ : array of shape (n_features,)
        Each feature's share of the mean squared gradient of the score, at the support rows.
    support_rows_ : array of shape (n_support, n_features)
        Standardised training rows with a coefficient other than 0 in some column.
    gamma_ : float
    classes_, scaler_, intercept_, objective_, history_, n_iter_, converged_
        As in :class:`KernelAUCClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelRankSVM
    >>> from aucmax.metrics import roc_auc
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> model = KernelRankSVM(gamma=2.0).fit(X, y)
    >>> roc_auc(y, model.decision_function(X)) > 0.98
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
        subsample: float = 1.0,
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
        self.subsample = subsample
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        check_number("C", self.C)
        check_choice("kernel", self.kernel, KERNELS)
        check_gamma(self.gamma)
        check_number("degree", self.degree, low=1, closed=True, high=1000, integer=True)
        check_number("coef0", self.coef0, closed=True)
        check_linear(self.standardize)
        check_number("subsample", self.subsample, high=1.0)
        check_number("tol", self.tol, high=1.0)
        check_number("max_iter", self.max_iter, low=1, closed=True, integer=True)
        if self.max_memory is not None:
            parse_bytes(self.max_memory)

    def _fit_columns(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context, **_: Any
    ) -> None:
        self.gamma_ = resolve_gamma(self.gamma, X, weight, self.kernel)
        if self.subsample < 1.0:
            rows = self._draw(codes)
            X, codes, weight = X[rows], codes[rows], weight[rows]
        if is_sparse(X):
            # Dense rows, and what the kernel prepares from them
            needed = 5 * 8 * X.shape[0] * X.shape[1]
            limit = self._budget()
            if needed > limit:
                raise NoMemoryError(
                    f"The {X.shape[0]:,} sparse rows, made dense, need {format_bytes(needed)}, more "
                    f"than {format_bytes(limit)}. Take a subsample, raise max_memory, or use "
                    "KernelAUCClassifier, which leaves them sparse."
                )
            X = X.toarray()
        n_rows = X.shape[0]
        if n_rows**2 * 8 > FLOAT64_BYTES:
            X = X.astype(np.float32, copy=False)
        positives = self._positives(codes)
        product, held = self._make_product(X)
        solutions = []
        # A solve without the matrix takes so long that its progress is shown unasked.
        show = self.verbose or not held
        for positive in positives:
            with LiveLine(partial(describe_product, tol=self.tol)) as line:
                solutions.append(
                    minimize_kernel(
                        product,
                        PairLoss(positive, weight),
                        float(self.C),
                        stopping=Stopping(self.tol, int(self.max_iter)),
                        on_record=line if show else None,
                    )
                )
        coef = np.column_stack([solution.coef for solution in solutions])
        self._set_thresholds(np.column_stack([s.scores for s in solutions]), positives, weight)
        support = np.flatnonzero(coef.any(axis=1))
        self.support_rows_, self.dual_coef_ = X[support], coef[support].T
        self.objective_ = plain(np.array([solution.objective for solution in solutions]))
        self.converged_ = all(solution.converged for solution in solutions)
        self.n_iter_ = max(len(solution.history) for solution in solutions)
        records = [[vars(record) for record in solution.history] for solution in solutions]
        self.history_ = records[0] if len(records) == 1 else records
        if not self.converged_:
            worst = max(solution.gap for solution in solutions)
            warn_user(
                f"KernelRankSVM stopped after {self.n_iter_} Newton steps about {worst:.1e} (relative) "
                f"from the optimum: raise max_iter={self.max_iter} or tol={self.tol:g}, or lower "
                f"C={self.C:g}.",
                ConvergenceWarning,
            )

    def _draw(self, codes: np.ndarray) -> np.ndarray:
        random = random_generator(self.random_state)
        chosen = []
        for code in range(self.classes_.size):
            members = np.flatnonzero(codes == code)
            count = max(1, round(self.subsample * members.size))
            chosen.append(random.choice(members, count, replace=False))
        return np.sort(np.concatenate(chosen))

    def _make_product(self, X: np.ndarray) -> tuple[Callable[[Floats], Floats], bool]:
        """How to multiply with the kernel matrix, and whether that is held."""
        kernel = self._kernel(X)
        needed, limit = X.shape[0] ** 2 * X.dtype.itemsize, self._budget()
        if needed <= limit:
            matrix = FeatureOperator(kernel_matrix(kernel, X))
            return lambda vector: matrix.scores(vector[:, None])[:, 0], True

        def product(vector: Floats) -> Floats:
            out: Floats = kernel_product(kernel, X, vector[:, None])[:, 0].astype(np.float64)
            return out

        some = X[: max(1, min(X.shape[0], 2**26 // X.shape[0]))]
        began = time.perf_counter()
        kernel_product(kernel, some, np.zeros((X.shape[0], 1)))
        seconds = (time.perf_counter() - began) * X.shape[0] / some.shape[0]
        warn_user(
            f"The kernel matrix of {X.shape[0]:,} rows takes {format_bytes(needed)}, more than "
            f"{format_bytes(limit)}: it will be computed anew in each product, about {seconds:.1f} s "
            "each, of which a fit takes some hundred. Raise max_memory, take a subsample, or use "
            "KernelAUCClassifier."
        )
        return product, False

    def _budget(self) -> int:
        if self.max_memory is not None:
            return parse_bytes(self.max_memory)
        free = available_bytes()
        return free // 2 if free else 2**62

    def _kernel(self, rows: np.ndarray, wide: bool = False) -> LandmarkKernel:
        shape = (self.kernel, self.gamma_, self.degree, self.coef0)
        return LandmarkKernel(rows, *shape, rows.dtype, wide)

    @property
    def feature_importances_(self) -> np.ndarray:
        """How steeply the score changes with each column: shares of the mean squared gradient."""
        if not hasattr(self, "support_rows_"):
            raise AttributeError("KernelRankSVM has feature_importances_ once it is fitted.")
        points = self.support_rows_.astype(np.float64)
        if not len(points):
            return np.zeros(self.n_features_in_)
        gradients = self._kernel(points).gradients(points, self.dual_coef_)
        return gradient_shares(gradients, points, self.scaler_)

    def _scores(self, X: Any) -> np.ndarray:
        if not len(self.support_rows_):  # nothing told the classes apart
            return np.zeros((X.shape[0], len(self.dual_coef_)))
        X = self._scaled(X).astype(self.support_rows_.dtype, copy=False)
        return kernel_product(self._kernel(self.support_rows_, wide=True), X, self.dual_coef_.T)
