"""Classifiers that choose C, and the kernel's bandwidth, while they solve.

The folds of cross-validation and the fit on all rows are columns of one solve over the same features:
they share every pass over the data, and C is walked upward, each value starting from the one before.
A fold is its column with weight 0 on the rows held out; their scores come along at no cost.

Two things are shared between the folds: the standardisation and the kernel map. Neither sees a label,
unless landmarks are of each class, or a metric is learnt. ``map_per_fold=True`` makes both anew from
each fold's own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from aucmax.estimators.classifiers import EPOCHS, linear_operator
from aucmax.estimators.kernel_scores import KernelScores
from aucmax.estimators.ranking import LinearScores, check_linear
from aucmax.estimators.search_base import PAPER_C, SearchCV
from aucmax.features.nystroem import NystroemFeatures
from aucmax.fitting.c_path import Path, choose, recall_path, solve_path
from aucmax.fitting.context import Context
from aucmax.fitting.folds import Fold, Problems, check_folds
from aucmax.fitting.scaling import fit_scaler, scale_rows
from aucmax.operators import FeatureOperator
from aucmax.operators.placement import solver_bytes
from aucmax.rows.blocked import held_bytes
from aucmax.rows.validation import drop_absent, is_remote
from aucmax.runtime.memory import fits
from aucmax.runtime.parameters import check_choice, check_increasing, check_number, is_auto, is_flag
from aucmax.runtime.progress import GridLine
from aucmax.runtime.threads import one_blas_thread
from aucmax.solvers.preconditioner import leading, sample_size
from aucmax.solvers.stochastic import PairSGDGrid, finite_mean, first_step, row_squares
from aucmax.tuning.resolve import learn_metric_again

__all__ = ["KernelAUCClassifierCV", "LinearAUCClassifierCV"]

#: The paper's grid of lambda, of its stochastic method, with how many values.
_PAPER_LAMBDA = (1e-10, 1e-7, 4)

#: A grid projects all rows if they are at most so many times those a preconditioner samples: it makes
#: at least one for each of four columns, and several along the way.
_PROJECTED_SAMPLES = 5

#: Up to so many rows a metric is learnt for each fold by itself: of more, held-out rows have too small
#: a part in it to show.
_ROWS_APART = 20_000

#: Passes that a value of C is reckoned to take: 17 on ijcnn1, 58 on covtype (80,000 rows).
_PASSES_A_VALUE = 40


#: Values of C that are searched around the one that tuning gave, each four times the one before.
_VALUES_AROUND = 5


class KernelAUCClassifierCV(KernelScores, SearchCV):
    """:class:`KernelAUCClassifier` with C, and if wanted gamma, chosen by cross-validated AUC.

    The folds and the fit on all rows are solved together, C by C from the smallest, so that a grid
    of 26 values by 3 folds costs a few fits and not 79.

    Parameters
    ----------
    Cs : int, "auto" or array of rising values, default="auto"
        "auto" is the paper's grid in our units: 26 values ``2^-15 ... 2^10`` times ``n_pos n_neg /
        n`` (for "sgd" four, from its ``lambda = 1e-7 ... 1e-10``); where things are tried out, five
        values around the C found best by that, each four times the one before. A number gives so many
        values over the paper's range, evenly by ratio.
    gammas : None, int or array of rising values, default=None
        Multiples of ``gamma`` to search over: of the distance rule by default, or with
        ``gamma=1.0`` the values themselves. A number m gives m of them around 1, each twice the one
        before. None is ``gamma`` alone.
    cv : int, splitter or iterable, default=3
        As everywhere in scikit-learn: a number of stratified folds, a splitter, or pairs of
        training and test rows.
    patience : int or None, default=3
        Go no further along C when the mean AUC has fallen so many values in a row. None walks the whole
        grid. With "sgd", where all values run together, nothing is left out.
    time_budget : float or None, default=None
        Seconds after which the fit takes the best it has, tuning included. A value that is not done by
        then is left out, unless it is the first; with "sgd", where all C run together, epochs are. A
        fit without any result by then raises ``TimeoutError``. Where things are tuned, C is not
        searched again around the value found.
    select : {"best", "1se"}, default="best"
        "best" is the highest mean AUC, the smaller C of equals; "1se" the smallest C (at the best
        gamma) within one standard error of that.
    refit : bool, default=True
        Use the fit on all rows, which the search has made already. False averages the folds' own.
    map_per_fold : bool or "auto", default="auto"
        Standardise, choose landmarks and bandwidth and learn the metric anew from each fold's training
        rows, so that held-out rows have no part at all in what scores them. Slower; it matters where
        labels are seen before the folds are, by a metric or by ``"class-kmeans"``, and rows are few.
        "auto" does it for a metric of up to 20,000 rows, unless there is a ``time_budget`` or no refit.
    kernel, gamma, landmarks, standardize : default="rbf", "distance", "kmeans", True
        As in :class:`KernelAUCClassifier`; "auto" tries things out, as there, and a second kernel only
        where any of the others is tried.
    metric : {"auto", "learned", "full"} or None, default=None
        As in :class:`KernelAUCClassifier`.
    preset, effort, degree, coef0, n_landmarks, feature_map, solver
        As in :class:`KernelAUCClassifier`. Where nothing else is tried out, "auto" landmarks are 1000.
    tol, max_iter, max_memory, random_state
        As in :class:`KernelAUCClassifier`.
    checkpoint : path or None, default=None
        As in :class:`KernelAUCClassifier`; values of C that are done are not solved again, and
        ``time_budget`` counts from when the fit was first begun.
    n_jobs : int or None, default=None
        Folds of "sgd" that run side by side, in threads. "newton" keeps all cores busy by itself.
    verbose : int, default=0
        1 shows a bar over the grid, with the time left.

    Attributes
    ----------
    C_, gamma_ : float
        The chosen ones.
    settings_, metric_, trials_, coverage_, feature_importances_
        As in :class:`KernelAUCClassifier`, of the fit to all rows.
    Cs_, gammas_ : arrays
        The values searched over.
    scores_ : array of shape (n_folds, n_gammas, n_Cs)
        AUC on each fold's held-out rows, NaN where the walk did not come.
    scores_mean_, scores_std_ : arrays of shape (n_gammas, n_Cs)
    path_ : list of dict
        For each value of the walk: gamma, C, auc, steps, passes, preconditioners, gap, converged,
        seconds.
    cv_results_, best_index_, best_params_, best_score_
        As in ``GridSearchCV``; values the walk did not reach are left out, and the time of a value is
        shared equally among its folds.
    held_out_scores_ : array of shape (n,), or (n, n_classes) for several classes
        Scores of the training rows at the chosen values by folds that did not learn from them, on the
        scale of ``decision_function``: for calibration and thresholds. NaN for rows in no test fold.
    classes_, feature_map_, scaler_, dual_coef_, intercept_, objective_
        As in :class:`KernelAUCClassifier`.

    Notes
    -----
    Standardisation and kernel map are shared between the folds unless ``map_per_fold``: the held-out
    rows have then taken part in means, variances, landmarks and bandwidth; with their labels only in
    landmarks of each class and, of more than 20,000 rows, in a learnt metric.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCClassifierCV
    >>> X, y = make_moons(600, noise=0.3, random_state=0)
    >>> model = KernelAUCClassifierCV(gammas=3, n_landmarks=100, random_state=0).fit(X, y)
    >>> model.scores_.shape, model.best_score_ > 0.95
    ((3, 3, 26), True)
    """

    def __init__(
        self,
        Cs: Any = "auto",
        *,
        gammas: Any = None,
        cv: Any = 3,
        patience: int | None = 3,
        time_budget: float | None = None,
        select: str = "best",
        refit: bool = True,
        map_per_fold: bool | str = "auto",
        preset: str | None = None,
        effort: float = 1.0,
        kernel: str = "rbf",
        gamma: str | float = "distance",
        degree: int = 3,
        coef0: float = 1.0,
        n_landmarks: int | str = "auto",
        landmarks: Any = "kmeans",
        metric: str | None = None,
        feature_map: str = "nystroem",
        solver: str = "newton",
        standardize: bool | str = True,
        tol: float = 1e-4,
        max_iter: int | str = "auto",
        max_memory: int | str | None = None,
        checkpoint: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.patience = patience
        self.time_budget = time_budget
        self.select = select
        self.refit = refit
        self.map_per_fold = map_per_fold
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
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # The number of landmarks is tuned with the rest, but is no reason to tune.
    _needed = ("gamma", "standardize", "landmarks")

    def _check_params(self) -> None:
        super()._check_params()
        self._check_map()
        check_choice("solver", self.solver, ("newton", "sgd"))
        if isinstance(self.gammas, Integral):
            check_number("gammas", self.gammas, low=1, closed=True, high=1000, integer=True)
        elif self.gammas is not None:
            check_increasing("gammas", self.gammas)
        if self.gammas is not None and self.kernel == "linear":
            raise ValueError("gammas has no meaning for kernel='linear': leave it None.")
        if not is_flag(self.map_per_fold):
            check_choice("map_per_fold", self.map_per_fold, ("auto",))
        if self.map_per_fold is True and self.time_budget is not None:
            raise ValueError(
                "time_budget would end some folds sooner than others with map_per_fold=True, which "
                "takes them one after the other: use one of the two."
            )
        if self.map_per_fold is True and not self.refit:
            raise ValueError(
                "refit=False averages the folds' coefficients, which map_per_fold=True makes over "
                "different landmarks: use one of the two."
            )

    def _paper_range(
        self, positives: Sequence[np.ndarray], weight: np.ndarray
    ) -> tuple[float, float, int]:
        if self.solver == "newton":
            return super()._paper_range(positives, weight)
        low, high, count = _PAPER_LAMBDA
        return 1.0 / (high * weight.sum()), 1.0 / (low * weight.sum()), count

    def _columns_together(self) -> int:
        folds = self.cv if isinstance(self.cv, Integral) else getattr(self.cv, "n_splits", 3)
        return int(folds) + 1

    def _expected_passes(self) -> int:
        if isinstance(self.Cs, Integral):
            values = int(self.Cs)
        else:
            values = len(self.Cs) if not isinstance(self.Cs, str) else PAPER_C[2]
            if isinstance(self.Cs, str) and self._asked().tunable:
                values = _VALUES_AROUND
        return _PASSES_A_VALUE * values * self._factors().size

    def _factors(self) -> np.ndarray:
        """The multiples of gamma."""
        if self.gammas is None:
            return np.ones(1)
        if isinstance(self.gammas, Integral):
            count = int(self.gammas)
            return 2.0 ** (np.arange(count) - count // 2)
        return np.asarray(self.gammas, dtype=np.float64)

    def _fit_columns(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context, **extra: Any
    ) -> None:
        folds: list[Fold] = extra["folds"]
        check_folds(folds, codes, self.classes_)
        self.n_splits_ = len(folds)
        X = self._block_rows(X)
        positives = self._positives(codes)
        problems = Problems(positives, weight, folds, bool(self.refit))
        self.Cs_ = self._grid(positives, weight)
        apart = self._maps_apart(X.shape[0])
        first = self._fit_map(X, codes, weight, context, "map")
        self.gammas_ = first.gamma_ * self._factors()
        values = self.Cs_.size * self.gammas_.size * (len(folds) if apart else 1)
        with GridLine(self.verbose, values) as line:
            if apart:
                paths = self._search_apart(extra, codes, problems, context, line)
            else:
                paths = self._search(X, first, problems, context, line)
            scores = np.stack([path.scores for path in paths], axis=1)
            gamma, C = choose(scores, self.select)
            self.gamma_, self.C_ = float(self.gammas_[gamma]), float(self.Cs_[C])
            self.feature_map_ = self._at_gamma(first, self.gamma_, context, "map")
            if apart:
                coef = self._fit_best(X, replace(problems, folds=[]), context, line)
            else:
                coef = self._final(paths[gamma], C, len(positives))
        self._measure_coverage(X, codes)
        self._set_results(scores, paths, {"gamma": self.gammas_, "C": self.Cs_})
        self.dual_coef_ = self.feature_map_.fold(coef).T
        if is_remote(X):
            final = X.linear(self.feature_map_, self.dual_coef_.T)
        else:
            final = self.feature_map_.linear(X, self.dual_coef_.T)
        self._set_thresholds(final, positives, weight)
        self._set_held_out(problems, paths[gamma].held_out[C], final, extra)

    def _maps_apart(self, n_rows: int) -> bool:
        if not is_auto(self.map_per_fold):
            return bool(self.map_per_fold)
        few = n_rows <= _ROWS_APART and self.metric_ is not None
        return few and self.refit and self.time_budget is None

    def _grid(self, positives: Sequence[np.ndarray], weight: np.ndarray) -> np.ndarray:
        if self.trials_ and isinstance(self.Cs, str):
            count = _VALUES_AROUND if self.time_budget is None else 1
            return self.settings_["C"] * 4.0 ** (np.arange(count) - count // 2)
        return super()._grid(positives, weight)

    def _fit_map(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context, name: str
    ) -> Any:
        """The map fitted, or as it is under its name in the checkpoint."""
        return context.checkpoint.fitted(
            name,
            lambda: self._make_map(int((weight > 0).sum())).fit(X, codes, sample_weight=weight),
            self._make_map,
        )

    def _at_gamma(self, first: Any, gamma: float, context: Context, name: str) -> Any:
        """A map at another bandwidth: to the bit the same one whenever a fit goes on."""
        if gamma == first.gamma_:
            return first
        name = f"{name} at {float(gamma)!r}"
        return context.checkpoint.fitted(name, lambda: first.with_gamma(gamma), lambda: copy(first))

    def _search(
        self,
        X: Any,
        first: Any,
        problems: Problems,
        context: Context,
        line: GridLine,
        name: str = "map",
    ) -> list[Path]:
        """Solve the C path at each gamma, reusing one map, which has this name in the checkpoint."""
        raw, factors = None, self._factors()
        if factors.size > 1 and self._two_blocks_fit(X, first, problems.count):
            raw = first.raw_block(X)  # distances once for every gamma
        paths: dict[int, Path] = {}
        for i in np.argsort(np.abs(np.log(factors)), kind="stable").tolist():  # the likeliest first
            walk = f"{name}, walk {i}"
            if paths and context.deadline.over() and context.checkpoint.recall(walk) is None:
                paths[i] = Path.empty(problems, self.Cs_.size)
                line.skip(self.Cs_.size)
                continue
            mapped = self._at_gamma(first, first.gamma_ * factors[i], context, name)
            about = {"gamma": float(self.gammas_[i])}
            paths[i] = self._learn(
                X, mapped, problems, self.Cs_, context, line, about, raw=raw, name=walk
            )
        return [paths[i] for i in range(factors.size)]

    def _two_blocks_fit(self, X: Any, mapped: Any, n_columns: int) -> bool:
        """Whether there is room for distances, and the kernel values made of them."""
        if not isinstance(mapped, NystroemFeatures) or is_remote(X):
            return False
        n_rows, width = X.shape[0], mapped.width
        blocks = 2 * n_rows * width * X.dtype.itemsize
        beside = solver_bytes(n_rows, mapped.rank, n_columns) + held_bytes(X)
        return fits(blocks + beside + self._landmark_bytes(width, X.shape[1]), self.max_memory)

    def _learn(
        self,
        X: Any,
        mapped: Any,
        problems: Problems,
        Cs: np.ndarray,
        context: Context,
        line: GridLine,
        about: dict[str, Any],
        raw: np.ndarray | None = None,
        name: str = "walk",
    ) -> Path:
        """Solve for all these C over one map, by the solver asked for."""
        solved = recall_path(name, context, line)
        if solved is not None:
            return solved
        if self.solver == "sgd":
            with self._features(X, mapped, raw) as features:
                return self._descend(features, problems, Cs, context, line, about, name)
        # Every preconditioner projects the rows it samples: where all are not many more, do it once.
        sampled = sample_size(mapped.rank) * leading(mapped.rank) / mapped.rank
        project = X.shape[0] <= _PROJECTED_SAMPLES * sampled
        with self._operator(X, mapped, problems.count, raw, project) as operator:
            return solve_path(operator, problems, self._options(Cs), context, line, about, name)

    def _search_apart(
        self,
        extra: dict[str, Any],
        codes: np.ndarray,
        problems: Problems,
        context: Context,
        line: GridLine,
    ) -> list[Path]:
        """The same with scaling, metric and map of each fold's own rows, and its own patience."""
        X, shared, asked = extra["unscaled"], self._scaling(), self._asked()
        by_fold = []
        for number, fold in enumerate(problems.folds):
            name = f"map of fold {number}"
            scaling = shared
            if shared.metric is not None:
                own = drop_absent(X, codes, fold.weight)
                learn = partial(learn_metric_again, *own, asked, extra["resolved"], context.seed)
                metric = context.checkpoint.once(f"metric of fold {number}", learn)
                scaling = replace(shared, metric=metric)
            rows = self._block_rows(scale_rows(fit_scaler(X, fold.weight, scaling), X))
            mapped = self._fit_map(rows, codes, fold.weight, context, name)
            alone = replace(problems, folds=[fold], whole=False)
            by_fold.append(self._search(rows, mapped, alone, context, line, name))
        paths = []
        for same_gamma in zip(*by_fold, strict=True):
            records = [record for path in same_gamma for record in path.records]
            scores = np.vstack([path.scores for path in same_gamma])
            shortest = zip(*(path.held_out for path in same_gamma), strict=False)
            held_out = [[part for (part,) in parts] for parts in shortest]
            paths.append(Path(scores, [], [], records, held_out))
        return paths

    def _fit_best(self, X: Any, problems: Problems, context: Context, line: GridLine) -> np.ndarray:
        """Fit to all rows at the chosen C alone."""
        best = np.array([self.C_])
        path = self._learn(X, self.feature_map_, problems, best, context, line, {}, name="best")
        return self._final(path, 0, len(problems.positives))

    def _descend(
        self,
        features: np.ndarray,
        problems: Problems,
        Cs: np.ndarray,
        context: Context,
        line: GridLine,
        about: dict[str, Any],
        name: str,
    ) -> Path:
        """Algorithm 3 at all C together, over the same pairs; folds are independent of each other."""
        kept = context.checkpoint
        began, squares = line.elapsed(), row_squares(features)
        epochs = EPOCHS if is_auto(self.max_iter) else int(self.max_iter)

        def learn(number: int, part: np.ndarray, positive: np.ndarray) -> np.ndarray:
            with one_blas_thread():
                return learn_alone(number, part, positive)

        def learn_alone(number: int, part: np.ndarray, positive: np.ndarray) -> np.ndarray:
            deadline = context.deadline.part(1.0 / (len(tasks) - number))  # an equal share for each
            learner = PairSGDGrid(
                features.shape[1],
                features.dtype,
                alpha=1.0 / (Cs * part.sum()),
                eta0=first_step(finite_mean(squares[part > 0])),
            )
            rng, own = np.random.default_rng(context.seed), f"{name}, column {number}"
            before = kept.recall(own)
            if before is not None:
                learner.resume(before["learner"])
                rng.bit_generator.state = before["rng"]
            for epoch in range(epochs):
                if epoch and deadline.over():
                    break
                if before is None or epoch >= before["epochs"]:
                    learner.epoch(features, positive, part, rng)
                    if kept.on:
                        state = {"learner": learner.state(), "rng": rng.bit_generator.state}
                        kept.note(own, {"epochs": epoch + 1, **state})
                line.epoch()
            return learner.coef

        tasks = [(part, up) for part in problems.weights for up in problems.positives]
        work = [delayed(learn)(number, *each) for number, each in enumerate(tasks)]
        if problems.folds:
            walks = self.gammas_.size * (self.n_splits_ if self._maps_apart(len(features)) else 1)
            line.expect_epochs(epochs * len(work) * walks)
        with one_blas_thread():
            learnt = Parallel(n_jobs=self.n_jobs, prefer="threads")(work)
        path, operator = Path.empty(problems, Cs.size), FeatureOperator(features)
        for i, C in enumerate(Cs):
            coef = np.column_stack([each[:, i] for each in learnt])
            seconds = (line.elapsed() - began) / Cs.size
            more = {**about, "epochs": epochs, "converged": True, "seconds": seconds}
            line.value(path.add(C, coef, operator.scores(coef), problems, **more))
        kept.note(name, {"path": path.state(), "over": True})
        return path


class LinearAUCClassifierCV(LinearScores, SearchCV):
    """:class:`LinearAUCClassifier` with C chosen by cross-validated AUC, in one solve.

    Parameters
    ----------
    Cs, cv, patience, time_budget, select, refit
        As in :class:`KernelAUCClassifierCV`.
    standardize, tol, max_iter
        As in :class:`LinearAUCClassifier`. Means and variances are those of all rows.
    checkpoint : path or None, default=None
        As in :class:`KernelAUCClassifierCV`.
    verbose : int, default=0
        1 shows a bar over the grid, with the time left.

    Attributes
    ----------
    C_, Cs_, path_, cv_results_, best_index_, best_params_, best_score_
        As in :class:`KernelAUCClassifierCV`.
    scores_ : array of shape (n_folds, n_Cs)
    scores_mean_, scores_std_ : arrays of shape (n_Cs,)
    held_out_scores_ : array of shape (n,), or (n, n_classes) for several classes
    classes_, scaler_, coef_, intercept_, objective_
        As in :class:`LinearAUCClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucmax import LinearAUCClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearAUCClassifierCV().fit(X, y)
    >>> model.scores_.shape, model.best_score_ > 0.99
    ((3, 26), True)
    """

    def __init__(
        self,
        Cs: Any = "auto",
        *,
        cv: Any = 3,
        patience: int | None = 3,
        time_budget: float | None = None,
        select: str = "best",
        refit: bool = True,
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int | str = "auto",
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.patience = patience
        self.time_budget = time_budget
        self.select = select
        self.refit = refit
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        check_linear(self.standardize)

    def _fit_columns(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, context: Context, **extra: Any
    ) -> None:
        folds: list[Fold] = extra["folds"]
        check_folds(folds, codes, self.classes_)
        self.n_splits_ = len(folds)
        positives = self._positives(codes)
        self.Cs_ = self._grid(positives, weight)
        operator, problems = linear_operator(X), Problems(positives, weight, folds, bool(self.refit))
        with GridLine(self.verbose, self.Cs_.size) as line:
            path = recall_path("walk", context, line) or solve_path(
                operator, problems, self._options(self.Cs_), context, line, {}, "walk"
            )
        C = choose(path.scores[:, None], self.select)[1]
        self.C_ = float(self.Cs_[C])
        coef = self._final(path, C, len(positives))
        self._set_results(path.scores, [path], {"C": self.Cs_})
        final = operator.scores(coef)
        self._set_thresholds(final, positives, weight)
        self._set_held_out(problems, path.held_out[C], final, extra)
        self._set_coef(coef)
