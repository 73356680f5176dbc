"""Classifiers that rank: the exact minimiser of the all-pairs AUC loss behind scikit-learn's API."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from aucmax.estimators.kernel_scores import KernelScores
from aucmax.estimators.ranking import (
    LinearScores,
    WeightedClassifier,
    check_linear,
    plain,
    plain_records,
)
from aucmax.fitting.context import Context, check_begun
from aucmax.operators import BlockOperator, FeatureOperator, Operator
from aucmax.pairs import PairLoss
from aucmax.rows.blocked import BlockedRows
from aucmax.runtime.deadline import Deadline
from aucmax.runtime.parameters import check_choice, check_number, is_auto, warn_user
from aucmax.runtime.progress import LiveLine, describe_epoch, describe_step
from aucmax.solvers.epochs import LabelledRows, run_epochs
from aucmax.solvers.newton import Solution, minimize
from aucmax.solvers.options import Hooks, Stopping
from aucmax.solvers.stochastic import PairSGD, first_step, mean_square

__all__ = ["KernelAUCClassifier", "LinearAUCClassifier"]

#: What ``max_iter="auto"`` stands for: Newton steps, epochs.
MAX_STEPS = 100
EPOCHS = 20


class _NewtonClassifier(WeightedClassifier):
    """Classifiers whose columns truncated Newton solves together."""

    C: Any
    tol: float
    max_iter: int | str
    verbose: int
    _takes_blocks = True

    def _check_params(self) -> None:
        check_number("tol", self.tol, high=1.0)
        if not is_auto(self.max_iter):
            check_number("max_iter", self.max_iter, low=1, closed=True, integer=True)
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget)

    def _cost(self) -> float:
        """C, once it is settled."""
        return float(self.C)

    def _solve(
        self, operator: Operator, codes: np.ndarray, weight: np.ndarray, context: Context
    ) -> Solution:
        positives = self._positives(codes)
        losses = [PairLoss(positive, weight) for positive in positives]
        max_iter = MAX_STEPS if is_auto(self.max_iter) else int(self.max_iter)
        with LiveLine(partial(describe_step, tol=self.tol)) as line:
            solution = minimize(
                operator,
                losses,
                np.full(len(losses), self._cost()),
                stopping=Stopping(self.tol, max_iter, context.deadline),
                state=context.checkpoint.recall("newton"),
                hooks=Hooks(line if self.verbose else None, context.checkpoint.hook("newton")),
            )
        check_begun(solution.n_iter, context.deadline)
        self._set_thresholds(solution.scores, positives, weight)
        self.objective_ = plain(solution.objective)
        self.n_iter_ = solution.n_iter
        self.converged_ = bool(solution.converged.all())
        self.history_ = plain_records(solution.history)
        if not self.converged_:
            self._warn_early(solution, max_iter, context.deadline)
        return solution

    def _warn_early(self, solution: Solution, max_iter: int, deadline: Deadline) -> None:
        worst = int(np.where(solution.converged, -np.inf, solution.gap).argmax())
        done = f"after {solution.n_iter} Newton steps about {solution.gap[worst]:.1e} (relative) from"
        if deadline.over():
            advice = f"time_budget={self.time_budget:g} s was over, so allow more time"
        elif solution.n_iter >= max_iter:
            advice = f"raise max_iter={max_iter} or tol={self.tol:g}"
        else:
            advice = (
                f"rounding allows no further progress, so raise tol={self.tol:g} or lower "
                f"C={self._cost():g}"
            )
        warn_user(f"{type(self).__name__} stopped {done} the optimum: {advice}.", ConvergenceWarning)


def linear_operator(X: Any) -> Operator:
    """Rows as features."""
    return BlockOperator(X, X.shape[1], cost=2.0) if isinstance(X, BlockedRows) else FeatureOperator(X)


class KernelAUCClassifier(KernelScores, _NewtonClassifier):
    """Nonlinear classifier that minimises the exact AUC loss over all positive-negative pairs.

    Rows are standardised and mapped to kernel features ``phi``; the solver finds the minimiser of ::

        1/2 ||w||^2 + C n/(n_pos n_neg) sum_{i in +, j in -} max(0, 1 - w.(phi_i - phi_j))^2

    in time that does not depend on the number of pairs. With ``n_landmarks=1600`` this is NBAUC of
    Khalid, Ray and Chitsaz (2018); with ``feature_map="fourier"`` it is their RFAUC.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Weight of the loss against the penalty, per average row, so that one value carries across
        data sizes. The best was 1 to 130 on the paper's data.
    preset : {"paper"} or None, default=None
        What "auto" stands for. None tries things out on a sample of the rows, part of them held out
        (see Notes). "paper" takes the settings of Khalid, Ray and Chitsaz: 1600 landmarks by k-means,
        the distance rule, standardised columns, no metric; and C=10, which they search for.
    effort : float, default=1.0
        How much work "auto" may cost: 1 allows landmarks for about a minute on two cores, 4 for four.
        Below 1 trials see fewer rows and landmarks, and below 0.5 fewer things are tried. It is
        computed from the size of the data, not timed; see Notes on what is reproducible.
    kernel : {"auto", "rbf", "laplacian", "rbf+laplacian", "polynomial", "linear"}, default="auto"
        "auto" is "rbf", or the mean of it and the laplacian ("rbf+laplacian") where that ranks held-out
        rows no worse and twice the work is within the effort; it is "rbf" where nothing else is tried
        out, and beside ``metric="full"``. With "polynomial" and "linear" nothing is tried out: what is
        left at "auto" is then as in the paper, but for 1000 landmarks.
    gamma : {"auto", "distance", "scale"} or float, default="auto"
        Bandwidth of the kernel on the standardised rows; see :class:`NystroemFeatures`.
    degree, coef0 : int, float, default=3, 1.0
        Of the polynomial kernel.
    n_landmarks : int or "auto", default="auto"
        Landmarks (or Fourier features). "auto" is 1000, or more where that ranks held-out rows better;
        or every row if there are fewer.
    landmarks : {"auto", "kmeans", "class-kmeans", "root-kmeans", "uniform"} or array, default="auto"
        How they are chosen; an array is in units of standardised rows. "auto" is "class-kmeans" unless
        another is better.
    metric : {"auto", "learned", "full"} or None, default="auto"
        Whether columns are stretched by how steeply the learnt score changes with them, and the
        machine fitted anew, for up to three rounds; each is kept only if it ranks held-out rows better
        beyond noise. "auto" and "learned" stretch columns ("learned" warns where it cannot), "full"
        stretches in any direction, None does not.
    feature_map : {"nystroem", "fourier"}, default="nystroem"
        With "fourier" "auto" is as with other kernels.
    solver : {"newton", "sgd"}, default="newton"
        "newton" finds the minimum. "sgd" is the paper's Algorithm 3 with its hinge loss, as in
        :class:`SGDAUCClassifier` with its defaults: less exact, and faster where rows are many and C
        is large. It projects the features, block by block; "auto" is as with other kernels.
    standardize : {"auto", "quantile"} or bool, default="auto"
        True scales columns to unit variance and, unless ``X`` is sparse, to zero mean; "quantile"
        brings them to normal scores by rank, which helps where they have long tails; False leaves them
        as they are, which may help where they are all of one kind. "auto" is the best of the three.
    tol : float, default=1e-4
        Relative distance to the minimum, estimated by the Newton decrement, at which to stop.
    max_iter : int or "auto", default="auto"
        Most Newton steps, or epochs of "sgd". "auto" is 100 steps, or 20 epochs.
    time_budget : float or None, default=None
        Seconds after which the fit takes the best it has, tuning included: about half of them go into
        tuning, which tries less the fewer they are, and the solver stops where it is, with a warning.
        A fit without any result by then raises ``TimeoutError``.
    max_memory : int, str or None, default=None
        Memory that a fit may use, in bytes or as "4GB"; None is four fifths of what is free. Kernel
        values that do not fit are made anew in every pass or kept on disk, whichever is faster by
        measurement; the minimum is the same. Of Dask collections it bounds what all workers hold.
    checkpoint : path or None, default=None
        A file that keeps what the fit has reached, written after each Newton step or epoch, though
        for no more than a twentieth of the time. A fit of the same data and parameters goes on from
        it; one of others refuses it. It is removed when the fit is done.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 shows a live line: objective, estimated distance to the optimum, training AUC.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Sorted; of two, the second is the positive one.
    settings_ : dict
        What was used for C, gamma, n_landmarks, landmarks, standardize and kernel.
    metric_ : array of shape (d,) or (d, d), or None
        What standardised columns, or rows, are multiplied with; part of ``scaler_``.
    trials_ : list of dict
        What was tried: the AUC on held-out rows, with which C and multiple of the distance rule, and
        whether it was kept.
    feature_importances_ : array of shape (d,)
    coverage_ : array of shape (n_classes,)
        How well the landmarks cover each class: the mean share of ``k(x, x)`` that features keep, of
        which 1 is all. A class far below the other wants ``landmarks="class-kmeans"`` or more of them;
        :class:`LandmarkCoverageDisplay` shows distances.
    feature_map_ : NystroemFeatures or FourierFeatures
    scaler_ : StandardScaler, or one of this package's, or None
    dual_coef_ : array of shape (n_columns, n_landmarks)
        Weights over landmarks (or Fourier features), of "rbf+laplacian" twice as many, those of the rbf
        first; one column for two classes, else one per class.
    intercept_ : array of shape (n_columns,)
        Less the learnt threshold.
    place_ : {"memory", "projected", "disk", "recomputed"}
        Where kernel values were kept: all of them, or features made of them, in memory; in a temporary
        file; or nowhere, made anew in every pass. Of Dask collections, on the workers.
    objective_ : float, or one per class
        With "newton".
    history_ : list of dict
        One per Newton step: objective, gap, auc, step, products, passes, seconds and so on; or one
        per epoch.
    n_iter_ : int
    converged_ : bool
        With "newton".

    Notes
    -----
    Kernel values are held in float32 (n x n_landmarks x 4 bytes) unless the problem is small and the
    data float64. ``score`` is accuracy, as in all of scikit-learn; to search or validate by ranking
    pass ``scoring="roc_auc"``.

    What is left at "auto" is tried out on up to 20,000 rows, of which a third is held out, or each
    third in its turn where rows or a class are few; C, gamma and the number of landmarks once more on
    up to 80,000 rows where there are many, of each class. :mod:`aucmax.tuning` tells what, in which
    order, and when it is kept. With fewer than 100 rows, or 10 of a class, nothing is: C is 10, gamma
    the distance rule, with landmarks of each class.

    With a fixed ``random_state`` a fit is reproducible. Rows in memory may come in any order: the model
    is the same to the last bit. The number of threads, and another processor, change rounding only: the
    same settings and landmarks, and scores that agree to about six digits. Rows in files, mappings or
    Dask collections give the same settings and landmarks, and the same minimum to within ``tol``. Two
    things make a difference: less free memory than trials need, and a ``time_budget`` that ends them.

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
        C: float | str = "auto",
        *,
        preset: str | None = None,
        effort: float = 1.0,
        kernel: str = "auto",
        gamma: str | float = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_landmarks: int | str = "auto",
        landmarks: Any = "auto",
        metric: str | None = "auto",
        feature_map: str = "nystroem",
        solver: str = "newton",
        standardize: bool | str = "auto",
        tol: float = 1e-4,
        max_iter: int | str = "auto",
        time_budget: float | None = None,
        max_memory: int | str | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.preset = preset
        self.effort = effort
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.metric = metric
        self.feature_map = feature_map
        self.solver = solver
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.time_budget = time_budget
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        if not is_auto(self.C):
            check_number("C", self.C)
        check_choice("solver", self.solver, ("newton", "sgd"))
        self._check_map()

    def _fit_columns(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context, **_: Any
    ) -> None:
        X = self._block_rows(X)
        self.feature_map_ = context.checkpoint.fitted(
            "map",
            lambda: self._make_map(X.shape[0]).fit(X, codes, sample_weight=weight),
            self._make_map,
        )
        self._measure_coverage(X, codes)
        if hasattr(self, "coverage_"):
            shares = zip(self.coverage_, self.classes_.tolist(), strict=True)
            kept = ", ".join(f"{share:.2f} of {label!r}" for share, label in shares)
            context.say(f"The landmarks keep {kept}")
        if self.solver == "sgd":
            with self._features(X, self.feature_map_) as features:
                coef = self._descend(features, codes, weight, context)
        else:
            n_columns = len(self._positives(codes))
            with self._operator(X, self.feature_map_, n_columns) as operator:
                coef = self._solve(operator, codes, weight, context).coef
        self.dual_coef_ = self.feature_map_.fold(coef).T

    def _cost(self) -> float:
        return float(self.settings_["C"])

    def _descend(
        self, features: np.ndarray, codes: np.ndarray, weight: np.ndarray, context: Context
    ) -> np.ndarray:
        positives = self._positives(codes)
        make = partial(
            PairSGD,
            features.shape[1],
            features.dtype,
            alpha=1.0 / (self._cost() * weight.sum()),
            eta0=first_step(mean_square(features)),
        )
        epochs = EPOCHS if is_auto(self.max_iter) else int(self.max_iter)
        with LiveLine(partial(describe_epoch, epochs=epochs)) as line:
            coef, _, history = run_epochs(
                [make() for _ in positives],
                LabelledRows(features, positives, weight),
                np.random.default_rng(context.seed),
                epochs,
                state=context.checkpoint.recall("epochs"),
                hooks=Hooks(line if self.verbose else None, context.checkpoint.hook("epochs")),
                deadline=context.deadline,
            )
        self._set_thresholds(FeatureOperator(features).scores(coef), positives, weight)
        self.history_, self.n_iter_ = plain_records(history), len(history)
        return coef


class LinearAUCClassifier(LinearScores, _NewtonClassifier):
    """Linear classifier that minimises the exact AUC loss: a ranking head for any features.

    The objective is that of :class:`KernelAUCClassifier` on the (standardised) features themselves;
    in the paper this is Linear RankSVM.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, per average row.
    standardize : bool, default=True
        Scale features to unit variance and, unless ``X`` is sparse, to zero mean.
    tol, max_iter, checkpoint, verbose
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
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_number("C", self.C)
        check_linear(self.standardize)

    def _fit_columns(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context, **_: Any
    ) -> None:
        self._set_coef(self._solve(linear_operator(X), codes, weight, context).coef)
