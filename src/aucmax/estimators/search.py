"""Searches: classifiers that hold another one and tune its C, and its bandwidth, while they solve."""

from __future__ import annotations

import inspect
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from aucmax.estimators.kernel import KernelAUCClassifier, ask, learnt, plan_kernel
from aucmax.estimators.linear import LinearAUCClassifier
from aucmax.estimators.ranking import RankingClassifier
from aucmax.fitting.attributes import MAX_STEPS, intercepts, most_iterations, plain
from aucmax.fitting.c_path import CPath, PathOptions, choose, recall_path, solve_path, tabulate
from aucmax.fitting.grids import CS, GAMMAS, PAPER_C, VALUES_AROUND, c_around, c_grid, gamma_factors
from aucmax.fitting.kernel_search import Grid, search_machines
from aucmax.fitting.linear_fit import linear_operator
from aucmax.fitting.machines import LinearMachine
from aucmax.fitting.open_fit import open_fit
from aucmax.fitting.scaling import Scaling, scaled
from aucmax.operators.placement import Plan
from aucmax.runtime.parameters import (
    AUTO,
    COUNT,
    CV,
    ESTIMATOR,
    FLAG,
    INTEGER,
    NONE,
    OneOf,
    declare,
    is_auto,
    warn_user,
)
from aucmax.runtime.progress import GridLine
from aucmax.tuning.resolve import Asked, Machine, Resolved, relearn_metric, resolve

__all__ = ["KernelAUCClassifierCV", "LinearAUCClassifierCV"]

Array = npt.NDArray[Any]

#: Up to this many rows a metric is learnt for each fold by itself: with more, held-out rows have too
#: small a part in it to show.
_ROWS_PER_FOLD = 20_000

#: Passes that a value of C is expected to take: 17 on ijcnn1, 58 on covtype (80,000 rows).
_PASSES_PER_VALUE = 40

#: The number of landmarks is tuned with the rest, but is no reason to tune; nor is C, which is
#: searched.
_NEEDED = ("gamma", "standardize", "landmarks")


def _split_metadata(search: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return what ``fit`` hands to the splitter; refuse what it does not know."""
    if get_config()["enable_metadata_routing"]:
        routed: dict[str, Any] = process_routing(search, "fit", **params).splitter.split
        return routed
    if unknown := set(params) - {"groups"}:
        raise TypeError(
            f"{type(search).__name__}.fit got an unexpected argument {sorted(unknown)[0]!r}; it takes "
            "X, y, sample_weight and groups."
        )
    return params


def _with_estimator(kind: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a search; one of version 0.1 had the parameters of its estimator itself."""
    if "estimator" in state:
        return state
    names = [name for name in inspect.signature(kind).parameters if name in state]
    return {**state, "estimator": kind(**{name: state[name] for name in names})}


def _routing(search: Any) -> MetadataRouter:
    mapping = MethodMapping().add(caller="fit", callee="split")
    router = MetadataRouter(owner=search).add_self_request(search)
    return router.add(splitter=check_cv(search.cv), method_mapping=mapping)


def _check_select(select: str, n_folds: int) -> None:
    """Refuse ``select="1se"`` with a single fold."""
    if select == "1se" and n_folds < 2:
        raise ValueError(
            'select="1se" needs at least two folds, as one has no standard error: raise cv, or use '
            'select="best".'
        )


def _results(name: str, paths: list[CPath], best: dict[str, float], grid: dict[str, Any]) -> Any:
    """Return the learnt attributes of a search, and warn of values that did not converge.

    ``best`` are the chosen values and ``grid`` all values, by parameter.
    """
    records = [record for path in paths for record in path.records]
    aucs = np.stack([path.aucs for path in paths], axis=1) if "gamma" in grid else paths[0].aucs
    results = tabulate(aucs, records, grid)
    index = results["params"].index(best)
    rough = [record for record in records if not record["converged"]]
    if rough:
        warn_user(
            f"{name}: {len(rough)} of {len(records)} values of C had not converged when they were left "
            f"(the first is C={rough[0]['C']:g}, about {rough[0]['gap']:.1e} from its optimum), so "
            "their scores are rough. Raise max_iter or tol, allow more time, or leave out the largest "
            "Cs.",
            ConvergenceWarning,
        )
    return {
        "path_": records,
        "n_iter_": sum(record.get("steps", record.get("epochs", 0)) for record in records),
        "scores_": aucs,
        "scores_mean_": aucs.mean(axis=0),
        "scores_std_": aucs.std(axis=0),
        "cv_results_": results,
        "best_params_": best,
        "best_index_": index,
        "best_score_": float(results["mean_test_score"][index]),
        "n_splits_": len(aucs),
    }


@declare(
    estimator=ESTIMATOR,
    Cs=CS,
    gammas=GAMMAS,
    cv=CV,
    patience=(NONE, COUNT),
    select=OneOf("best", "1se"),
    refit=FLAG,
    map_per_fold=(AUTO, FLAG),
    n_jobs=(NONE, INTEGER),
)
class KernelAUCClassifierCV(RankingClassifier):
    """:class:`KernelAUCClassifier` with C, and if wanted gamma, chosen by cross-validated AUC.

    The folds and the fit on all rows are solved together, C by C from the smallest, so that a grid
    of 26 values by 3 folds costs a few fits and not 79.

    Parameters
    ----------
    estimator
        The :class:`KernelAUCClassifier` to search for; None is one with its defaults. Its ``C`` is
        searched, and its ``time_budget``, ``checkpoint``, ``max_memory``, ``random_state`` and
        ``verbose`` hold for the whole search.
    Cs
        The values of C. "auto" is the paper's grid in our units: 26 values ``2^-15 ... 2^10`` times
        ``n_pos n_neg / n`` (for "sgd" four, from its ``lambda = 1e-7 ... 1e-10``); if parameters are
        tuned, five values around the C found, each four times the one before. A number gives as many
        values over the paper's range, evenly by ratio.
    gammas
        Multiples of the estimator's ``gamma`` to search over: of the distance rule by default, or with
        ``gamma=1.0`` the values themselves. A number m gives m of them around 1, each twice the one
        before. None is ``gamma`` alone.
    cv
        As in all of scikit-learn: a number of stratified folds, a splitter, or pairs of training and
        test rows.
    patience
        Stop along C when the mean AUC has fallen this many values in a row. None solves the whole
        grid. With "sgd" all values run together and none is left out.
    select
        "best" is the highest mean AUC, the smaller C of equals; "1se" the smallest C (at the best
        gamma) within one standard error of it.
    refit
        Use the fit on all rows, which is part of the search. False averages the folds' own.
    map_per_fold
        Standardise, choose landmarks and bandwidth and learn the metric again from each fold's
        training rows, so that held-out rows have no part in what scores them. Slower; it matters if
        labels are used before the folds are, by a metric or by ``"class-kmeans"``, and rows are few.
        "auto" does it for a metric of up to 20,000 rows, unless there is a ``time_budget`` or no refit.
    n_jobs
        The number of threads for the folds of "sgd". "newton" uses all cores by itself.

    Attributes
    ----------
    C_, gamma_ : float
        The chosen values.
    Cs_, gammas_ : arrays
        The values searched over.
    scores_ : array of shape (n_folds, n_gammas, n_Cs)
        AUC on each fold's held-out rows, NaN for values that were not reached.
    scores_mean_, scores_std_ : arrays of shape (n_gammas, n_Cs)
    path_ : list of dict
        For each value reached: gamma, C, auc, steps, passes, preconditioners, gap, converged, seconds.
    cv_results_, best_index_, best_params_, best_score_
        As in ``GridSearchCV``; values that were not reached are left out, and the time of a value is
        shared equally among its folds.
    held_out_scores_ : array of shape (n,), or (n, n_classes) for several classes
        Scores of the training rows at the chosen values by folds that did not learn from them, on the
        scale of ``decision_function``: for calibration and thresholds. NaN for rows in no test fold.
    settings_, metric_, trials_, coverage_, feature_importances_, classes_, feature_map_, scaler_
    dual_coef_, intercept_, objective_, parts_, weights_
        As in :class:`KernelAUCClassifier`, for the fit to all rows. Of a blend, the first machine is
        searched, and the others stay as they were tuned; ``scores_`` are of the first.

    Notes
    -----
    Standardisation and kernel map are shared between the folds unless ``map_per_fold``: held-out rows
    then have a part in means, variances, landmarks and bandwidth. Their labels have a part only in
    landmarks of each class and, with more than 20,000 rows, in a learnt metric.

    A ``time_budget`` ends the search after the last value of C that was done in time, unless it is the
    first; with "sgd" it ends epochs. If parameters are tuned, C is then not searched again.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCClassifier, KernelAUCClassifierCV
    >>> X, y = make_moons(600, noise=0.3, random_state=0)
    >>> machine = KernelAUCClassifier(preset="paper", n_landmarks=100, random_state=0)
    >>> search = KernelAUCClassifierCV(machine, gammas=3).fit(X, y)
    >>> search.scores_.shape, search.best_score_ > 0.95
    ((3, 3, 26), True)
    """

    def __init__(
        self,
        estimator: KernelAUCClassifier | None = None,
        *,
        Cs: Any = "auto",
        gammas: Any = None,
        cv: Any = 3,
        patience: int | None = 3,
        select: str = "best",
        refit: bool = True,
        map_per_fold: bool | str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.patience = patience
        self.select = select
        self.refit = refit
        self.map_per_fold = map_per_fold
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> KernelAUCClassifierCV:
        """Search, then fit to all rows at the best values.

        Parameters
        ----------
        X, y, sample_weight
            As in :class:`KernelAUCClassifier`. One C, the best by the mean over classes, is chosen for
            several classes; held-out rows count by their weights, too.
        groups : array of shape (n,), optional
            Handed to the splitter ``cv``, as are other parameters it takes if metadata routing is
            enabled.
        """
        inner, split = self.estimator or KernelAUCClassifier(), _split_metadata(self, params)
        with open_fit(self, X, y, sample_weight, takes=("files", "dask"), search=(inner, split)) as (
            problem,
            context,
        ):
            self._check_together(inner, len(problem.folds))
            asked = ask(inner, _NEEDED)
            resolved = resolve(problem, asked, context)
            Cs = self._grid(problem, resolved, inner)
            searches = []
            for each in resolved.machines:
                relearn = partial(relearn_metric, problem, asked, each, context)
                grid = self._search_grid(Cs, inner, each, problem.rows.shape[0], relearn)
                searches.append((each.recipe, grid))
            fits, paths = search_machines(problem, searches, context)
            about = learnt(fits, resolved, problem, context.name)
            best = {"gamma": about["gamma_"], "C": about["C_"]}
            values = {"gamma": about["gammas_"], "C": Cs}
            results = _results(context.name, paths, best, values)
            self._keep(fits[0].machine, **about, Cs_=Cs, **results)
        return self

    def plan(self, X: Any) -> Plan:
        """Return what a fit to these rows would keep where, and how long it would take."""
        inner = self.estimator or KernelAUCClassifier()
        asked = ask(inner, _NEEDED)
        folds = self.cv if isinstance(self.cv, Integral) else getattr(self.cv, "n_splits", 3)
        passes = _PASSES_PER_VALUE * _count_values(self.Cs, asked) * gamma_factors(self.gammas).size
        return plan_kernel(X, asked, inner.max_memory, int(folds) + 1, passes)

    machine_ = KernelAUCClassifier.machine_
    feature_importances_ = KernelAUCClassifier.feature_importances_

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where metadata goes: weights to the fit, the rest to the splitter."""
        return _routing(self)

    def _check_together(self, inner: KernelAUCClassifier, n_folds: int) -> None:
        """Refuse parameters that contradict each other."""
        _check_select(self.select, n_folds)
        if self.gammas is not None and inner.kernel == "linear":
            raise ValueError("gammas has no meaning for kernel='linear': leave it None.")
        if self.map_per_fold is True and inner.time_budget is not None:
            raise ValueError(
                "time_budget would end some folds sooner than others with map_per_fold=True, which "
                "takes them one after the other: use one of the two."
            )
        if self.map_per_fold is True and not self.refit:
            raise ValueError(
                "refit=False averages the folds' coefficients, which map_per_fold=True makes over "
                "different landmarks: use one of the two."
            )

    def _grid(self, problem: Any, resolved: Resolved, inner: KernelAUCClassifier) -> Array:
        if resolved.trials and is_auto(self.Cs):
            count = VALUES_AROUND if inner.time_budget is None else 1
            return c_around(float(resolved.first.recipe.settings.C or 1.0), count)
        return c_grid(self.Cs, problem, resolved.first.recipe.solver)

    def _search_grid(
        self, Cs: Array, inner: KernelAUCClassifier, machine: Machine, n_rows: int, relearn: Any
    ) -> Grid:
        learnt = machine.recipe.settings.metric is not None
        per_fold = bool(self.map_per_fold)
        if is_auto(self.map_per_fold):
            per_fold = learnt and n_rows <= _ROWS_PER_FOLD
            per_fold = per_fold and bool(self.refit) and inner.time_budget is None
        return Grid(
            Cs,
            gamma_factors(self.gammas),
            self.patience,
            self.select,
            self.n_jobs,
            per_fold,
            relearn if learnt else None,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {("dual_coef_" if name == "coef_" else name): each for name, each in state.items()}
        super().__setstate__(_with_estimator(KernelAUCClassifier, state))


def _count_values(Cs: Any, asked: Asked) -> int:
    """Return the number of values of C, as far as it is known before the fit."""
    if isinstance(Cs, Integral):
        return int(Cs)
    if not isinstance(Cs, str):
        return len(Cs)
    return VALUES_AROUND if asked.tunable else PAPER_C.size


@declare(
    estimator=ESTIMATOR,
    Cs=CS,
    cv=CV,
    patience=(NONE, COUNT),
    select=OneOf("best", "1se"),
    refit=FLAG,
)
class LinearAUCClassifierCV(RankingClassifier):
    """:class:`LinearAUCClassifier` with C chosen by cross-validated AUC, in one solve.

    Parameters
    ----------
    estimator
        The :class:`LinearAUCClassifier` to search for; None is one with its defaults. Its ``C`` is
        searched; its ``time_budget``, ``checkpoint`` and ``verbose`` hold for the whole search. Means
        and variances are those of all rows.
    Cs
        The values of C, as in :class:`KernelAUCClassifierCV`.
    cv
        As in :class:`KernelAUCClassifierCV`, as are the parameters that follow.
    patience
        Stop when the mean AUC has fallen this many values in a row.
    select
        "best", or the smallest C within one standard error of it.
    refit
        Use the fit on all rows, or average the folds' own.

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
        estimator: LinearAUCClassifier | None = None,
        *,
        Cs: Any = "auto",
        cv: Any = 3,
        patience: int | None = 3,
        select: str = "best",
        refit: bool = True,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.cv = cv
        self.patience = patience
        self.select = select
        self.refit = refit

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> LinearAUCClassifierCV:
        """Search, then fit to all rows at the best C; see :class:`KernelAUCClassifierCV`."""
        inner, split = self.estimator or LinearAUCClassifier(), _split_metadata(self, params)
        with open_fit(self, X, y, sample_weight, takes=("files",), search=(inner, split)) as (
            problem,
            context,
        ):
            _check_select(self.select, len(problem.folds))
            scaling = Scaling(inner.standardize, names=problem.names)
            scaler, rows = scaled(problem, scaling, context)
            Cs, operator = c_grid(self.Cs, problem), linear_operator(rows)
            steps = most_iterations(inner.max_iter, MAX_STEPS)
            options = PathOptions(Cs, inner.tol, steps, self.patience)
            with GridLine(context.verbose, Cs.size) as line:
                path = recall_path("C path", context, line) or solve_path(
                    operator, problem, options, context, line, {}, "C path"
                )
            C = choose(path.aucs[:, None], self.select)[1]
            coef = path.final_coef(C, problem)
            scores = operator.scores(coef)
            intercept = intercepts(scores, problem, context.name)
            found = {"C_": float(Cs[C]), "Cs_": Cs, "scaler_": scaler, "classes_": problem.classes}
            if problem.whole:
                found["objective_"] = plain(path.objective[C][: len(problem.positives)])
            found["held_out_scores_"] = problem.pool(path.held_out[C], scores, intercept)
            found |= _results(context.name, [path], {"C": float(Cs[C])}, {"C": Cs})
            self._keep(LinearMachine.of_scaled(coef, intercept, scaler), **found)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where metadata goes: weights to the fit, the rest to the splitter."""
        return _routing(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(_with_estimator(LinearAUCClassifier, state))

    @property
    def machine_(self) -> LinearMachine:
        return LinearMachine(self.coef_, self.intercept_)
