"""Search C and gamma of a kernel machine while it is solved.

The folds of cross-validation and the fit to all rows are problems of one solve over the same features.
Scaling and kernel map are shared between the folds, unless they are made again from each fold's own
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from aucmax.features.landmark_map import LandmarkMap
from aucmax.fitting.attributes import EPOCHS, MAX_STEPS, intercepts, most_iterations, plain
from aucmax.fitting.blend_fit import others
from aucmax.fitting.c_path import CPath, PathOptions, choose, recall_path, solve_path
from aucmax.fitting.context import Context
from aucmax.fitting.kernel_fit import (
    fit_map,
    kernel_operator,
    measure_coverage,
    narrowed,
    scaled_kernel,
    sizes_of,
)
from aucmax.fitting.machines import Fitted, KernelMachine
from aucmax.fitting.problem import Fold, Problem
from aucmax.fitting.recipe import Features, Recipe
from aucmax.fitting.scaling import fit_scaler, scale_rows
from aucmax.operators.in_memory import FeatureOperator
from aucmax.operators.placement import open_features
from aucmax.rows.interface import Rows
from aucmax.runtime.progress import GridLine
from aucmax.runtime.threads import one_blas_thread
from aucmax.solvers.preconditioner import leading, sample_size
from aucmax.solvers.stochastic import PairSGDGrid, finite_mean, first_step, row_squares

Array = npt.NDArray[Any]

#: A grid projects all rows if they are at most this many times those that a preconditioner samples: it
#: builds at least one for each of four problems, and several along the way.
_PROJECTED_SAMPLES = 5


@dataclass(frozen=True)
class Grid:
    """The values that a search goes over, and how it chooses among them.

    Parameters
    ----------
    Cs : rising values of C
    factors : rising multiples of gamma
    patience, select, n_jobs
        As in :class:`KernelAUCClassifierCV`.
    per_fold : bool
        Whether scaler, metric and map are made again from each fold's training rows.
    fold_metric : callable, optional
        Learns the metric of a fold, if one is used.
    """

    Cs: Array
    factors: Array
    patience: int | None = 3
    select: str = "best"
    n_jobs: int | None = None
    per_fold: bool = False
    fold_metric: Callable[[Fold], Array | None] | None = None


@dataclass(frozen=True)
class Search:
    """What all steps of a running search share."""

    problem: Problem
    recipe: Recipe
    grid: Grid
    context: Context
    line: GridLine
    gammas: Array
    n_parts: int  #: separate searches: one per fold, or one for all


def search_machines(
    problem: Problem, searches: Sequence[tuple[Recipe, Grid]], context: Context
) -> tuple[list[Fitted], list[CPath]]:
    """Search the grid of the first machine; return the machines, and the paths of the first.

    C and gamma of the others stay as they were tuned. Those that there is no time for are left out.
    """
    first, paths = search_kernel(problem, *searches[0], context)
    fits = [first]
    for (recipe, grid), own in others(searches, context):
        settled = np.array([float(recipe.settings.C or 0.0)])
        with suppress(TimeoutError):
            alone = replace(grid, Cs=settled, factors=np.ones(1))
            fits.append(search_kernel(problem, recipe, alone, own)[0])
    return fits, paths


def search_kernel(
    problem: Problem, recipe: Recipe, grid: Grid, context: Context
) -> tuple[Fitted, list[CPath]]:
    """Return the machine at the best C and gamma, and the C path of each gamma."""
    scaler, rows = scaled_kernel(problem, recipe, context)
    first = fit_map(rows, problem.codes, problem.weight, recipe, context)
    gammas = first.gamma_ * grid.factors
    n_parts = len(problem.folds) if grid.per_fold else 1
    with GridLine(context.verbose, grid.Cs.size * gammas.size * n_parts) as line:
        search = Search(problem, recipe, grid, context, line, gammas, n_parts)
        paths = _paths_per_fold(search) if grid.per_fold else _paths(search, rows, first, "map")
        gamma, C = choose(np.stack([path.aucs for path in paths], axis=1), grid.select)
        best = _at_gamma(first, float(gammas[gamma]), context, "map")
        path, at = paths[gamma], C
        if grid.per_fold:  # no path has seen all rows: solve at the chosen C alone
            whole = replace(search, problem=replace(problem, folds=()))
            path, at = _solve(whole, rows, best, grid.Cs[[C]], {}, "best"), 0
    about = measure_coverage(rows, best, problem)
    coef = best.map.fold(path.final_coef(at, problem)).T
    if problem.whole and path.objective:
        about["objective_"] = plain(path.objective[at][: len(problem.positives)])
    scores = score_rows(rows, best, coef)
    intercept = intercepts(scores, problem, context.name)
    about["held_out_scores_"] = problem.pool(paths[gamma].held_out[C], scores, intercept)
    about |= {"C_": float(grid.Cs[C]), "gamma_": float(gammas[gamma]), "gammas_": gammas}
    return Fitted(KernelMachine(scaler, best, coef, intercept), scores, about), paths


def score_rows(rows: Rows, feature_map: Features, coef: Array) -> Array:
    """Return the scores of scaled rows, computed where the rows are."""
    fitted = feature_map.map
    if rows.remote:
        return np.concatenate(rows.map(lambda block: fitted.linear(block, coef.T)))
    return fitted.linear(rows, coef.T)


def _at_gamma(first: Features, gamma: float, context: Context, name: str) -> Features:
    """Return a map at another bandwidth, the same to the bit when a fit is resumed."""
    if gamma == first.gamma_:
        return first
    name = f"{name} at {gamma!r}"
    return context.checkpoint.fitted(name, lambda: first.with_gamma(gamma), lambda: copy(first))


def _paths(search: Search, rows: Rows, first: Features, name: str) -> list[CPath]:
    """Solve the C path at each gamma, reusing one map, which has this name in the checkpoint."""
    context, factors, Cs = search.context, search.grid.factors, search.grid.Cs
    raw, fitted = None, first.map
    if isinstance(fitted, LandmarkMap) and factors.size > 1 and _two_blocks_fit(search, rows, fitted):
        raw = fitted.raw_block(rows)  # distances once for every gamma
    paths: dict[int, CPath] = {}
    for i in np.argsort(np.abs(np.log(factors)), kind="stable").tolist():  # the likeliest first
        own = f"{name}, C path {i}"
        if paths and context.deadline.over() and context.checkpoint.recall(own) is None:
            paths[i] = CPath.empty(search.problem, Cs.size)
            search.line.skip(Cs.size)
            continue
        mapped = _at_gamma(first, float(first.gamma_ * factors[i]), context, name)
        about = {"gamma": float(search.gammas[i])}
        paths[i] = _solve(search, rows, mapped, Cs, about, own, raw)
    return [paths[i] for i in range(factors.size)]


def _two_blocks_fit(search: Search, rows: Rows, fitted: LandmarkMap) -> bool:
    """Return whether there is room for distances and for the kernel values made of them."""
    if rows.remote:
        return False
    sizes = sizes_of(rows, fitted, search.recipe, search.problem.count)
    return 2 * sizes.values + sizes.least <= search.context.memory.total


def _solve(
    search: Search,
    rows: Rows,
    mapped: Features,
    Cs: Array,
    about: dict[str, Any],
    name: str,
    raw: Array | None = None,
) -> CPath:
    """Solve for all these C over one map, by the recipe's solver."""
    recipe, context, problem, fitted = search.recipe, search.context, search.problem, mapped.map
    solved = recall_path(name, context, search.line)
    if solved is not None:
        return solved
    if recipe.solver == "sgd":
        with open_features(rows, fitted, context.memory, raw) as (features, _):
            return _run_epochs(search, features, Cs, about, name)
    # Every preconditioner projects the rows it samples: if all are not many more, do it once.
    sampled = sample_size(fitted.rank) * leading(fitted.rank) / fitted.rank
    project = rows.shape[0] <= _PROJECTED_SAMPLES * sampled
    options = PathOptions(
        Cs, recipe.tol, most_iterations(recipe.max_iter, MAX_STEPS), search.grid.patience
    )
    with kernel_operator(rows, fitted, recipe, context, problem.count, project, raw) as (operator, _):
        return solve_path(operator, problem, options, context, search.line, about, name)


def _paths_per_fold(search: Search) -> list[CPath]:
    """Solve each fold with its own scaler, metric and map, and its own patience."""
    problem, recipe, context = search.problem, search.recipe, search.context
    by_fold = []
    for number, fold in enumerate(problem.folds):
        own = recipe
        if search.grid.fold_metric is not None:
            learn = partial(search.grid.fold_metric, fold)
            metric = context.checkpoint.once(f"metric of fold {number}", learn)
            own = replace(recipe, settings=replace(recipe.settings, metric=metric))
        scaler = fit_scaler(problem.rows, fold.weight, own.scaling(problem.names))
        rows = narrowed(scale_rows(scaler, problem.rows), own, context.memory, scaler is not None)
        name = f"map of fold {number}"
        mapped = fit_map(rows, problem.codes, fold.weight, own, context, name)
        alone = replace(search, problem=replace(problem, folds=(fold,), whole=False), recipe=own)
        by_fold.append(_paths(alone, rows, mapped, name))
    paths = []
    for same_gamma in zip(*by_fold, strict=True):
        records = [record for path in same_gamma for record in path.records]
        aucs = np.vstack([path.aucs for path in same_gamma])
        shortest = zip(*(path.held_out for path in same_gamma), strict=False)
        held_out = [[part for (part,) in parts] for parts in shortest]
        paths.append(CPath(aucs, [], [], records, held_out))
    return paths


def _run_epochs(search: Search, features: Array, Cs: Array, about: dict[str, Any], name: str) -> CPath:
    """Run Algorithm 3 at all C together, over the same pairs; problems are independent."""
    problem, context, line = search.problem, search.context, search.line
    checkpoint, began, squares = context.checkpoint, line.elapsed(), row_squares(features)
    epochs = most_iterations(search.recipe.max_iter, EPOCHS)
    tasks = [(part, up) for part in problem.weights for up in problem.positives]

    def learn(number: int, part: Array, positive: Array) -> Array:
        deadline = context.deadline.part(1.0 / (len(tasks) - number))  # an equal share for each
        eta0 = first_step(finite_mean(squares[part > 0]))
        learner = PairSGDGrid(
            features.shape[1], features.dtype, alpha=1.0 / (Cs * part.sum()), eta0=eta0
        )
        rng, own = np.random.default_rng(context.seed), f"{name}, problem {number}"
        before = checkpoint.recall(own)
        if before is not None:
            learner.resume(before["learner"])
            rng.bit_generator.state = before["rng"]
        for epoch in range(epochs):
            if epoch and deadline.over():
                break
            if before is None or epoch >= before["epochs"]:
                with one_blas_thread():
                    learner.epoch(features, positive, part, rng)
                if checkpoint.on:
                    state = {"learner": learner.state(), "rng": rng.bit_generator.state}
                    checkpoint.note(own, {"epochs": epoch + 1, **state})
            line.epoch()
        return learner.coef

    if problem.folds:
        line.expect_epochs(epochs * len(tasks) * search.gammas.size * search.n_parts)
    with one_blas_thread():
        work = [delayed(learn)(number, *each) for number, each in enumerate(tasks)]
        learnt = Parallel(n_jobs=search.grid.n_jobs, prefer="threads")(work)
    path, operator = CPath.empty(problem, Cs.size), FeatureOperator(features)
    seconds = (line.elapsed() - began) / Cs.size
    for i, C in enumerate(Cs):
        coef = np.column_stack([each[:, i] for each in learnt])
        more = {**about, "epochs": epochs, "converged": True, "seconds": seconds}
        line.value(path.add(C, coef, operator.scores(coef), problem, **more))
    checkpoint.note(name, {"path": path.state(), "over": True})
    return path
