"""Fit a kernel machine by a recipe: scale rows, map them, find room for kernel values, solve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.distributed.dask_rows import DaskRows
from aucmax.features.extremes import fits_float32
from aucmax.features.landmark_map import FeatureMap, LandmarkMap
from aucmax.fitting.attributes import EPOCHS, MAX_STEPS, intercepts, most_iterations, plain_record
from aucmax.fitting.blend_fit import others
from aucmax.fitting.context import Context
from aucmax.fitting.machines import Fitted, KernelMachine
from aucmax.fitting.newton_fit import solve_newton
from aucmax.fitting.problem import Problem
from aucmax.fitting.recipe import FLOAT64_BYTES, Features, Recipe
from aucmax.fitting.scaling import scaled
from aucmax.operators.in_memory import FeatureOperator
from aucmax.operators.interface import Operator
from aucmax.operators.placement import (
    EXPECTED_PASSES,
    Plan,
    Sizes,
    open_features,
    open_operator,
    plan_fit,
)
from aucmax.operators.speeds import SPEED_ROWS, row_seconds
from aucmax.rows.interface import ArrayRows, Rows
from aucmax.runtime.memory import Budget
from aucmax.runtime.progress import LiveLine, describe_epoch
from aucmax.solvers.epochs import LabelledRows, run_epochs
from aucmax.solvers.options import Hooks
from aucmax.solvers.stochastic import PairSGD, first_step, mean_square

Array = npt.NDArray[Any]

#: Rows of each class at which the coverage by landmarks is measured.
_COVERED_ROWS = 500

#: Landmarks of the map from which the time of a fit is estimated.
_PLANNED = 256


def fit_machines(problem: Problem, recipes: Sequence[Recipe], context: Context) -> list[Fitted]:
    """Fit each machine; those that a deadline leaves no time for are left out, but for the first."""
    fits = [fit_kernel(problem, recipes[0], context)]
    for recipe, own in others(recipes, context):
        with suppress(TimeoutError):
            fits.append(fit_kernel(problem, recipe, own))
    return fits


def fit_kernel(problem: Problem, recipe: Recipe, context: Context) -> Fitted:
    """Fit the kernel machine of a problem."""
    scaler, rows = scaled_kernel(problem, recipe, context)
    feature_map = fit_map(rows, problem.codes, problem.weight, recipe, context)
    about = measure_coverage(rows, feature_map, problem)
    if about:
        shares = zip(about["coverage_"], problem.classes.tolist(), strict=True)
        listed = ", ".join(f"{share:.2f} of {label!r}" for share, label in shares)
        context.say(f"The landmarks cover {listed}")
    solve = _solve_sgd if recipe.solver == "sgd" else _solve_newton
    coef, scores, more = solve(rows, feature_map.map, problem, recipe, context)
    intercept = intercepts(scores, problem, context.name)
    machine = KernelMachine(scaler, feature_map, feature_map.map.fold(coef).T, intercept)
    return Fitted(machine, scores, {**about, **more})


def scaled_kernel(problem: Problem, recipe: Recipe, context: Context) -> tuple[Any, Rows]:
    """Fit the scaler of a kernel fit; return it with the scaled rows, in the dtype of kernel values."""
    if recipe.solver == "sgd" and problem.rows.remote:
        raise ValueError(
            'solver="sgd" reads rows in random order from memory, which Dask collections do not allow. '
            'Use solver="newton", or SGDAUCClassifier.partial_fit on one partition after the other.'
        )
    scaler, rows = scaled(problem, recipe.scaling(problem.names), context)
    return scaler, narrowed(rows, recipe, context.memory, is_scaled=scaler is not None)


def narrowed(rows: Rows, recipe: Recipe, memory: Budget, is_scaled: bool = True) -> Rows:
    """Return rows in the dtype of kernel values; refuse them if not even the landmarks fit."""
    n_rows, n_columns = rows.shape
    width, count = recipe.width(n_rows), recipe.count(n_rows)
    if n_rows * width * 8 > FLOAT64_BYTES:
        if not is_scaled and rows.in_memory and not fits_float32(rows[:]):
            raise ValueError(
                "X is not scaled, and its entries are so large or small that squared distances "
                "overflow or vanish in float32, in which kernel values of this many rows are held. "
                "Use standardize=True, or divide X by a power of ten."
            )
        rows = rows.astype(np.float32)
    # Landmarks are dense even if rows are not, which counts where there are very many columns.
    memory.require(
        f"{count:,} landmarks of {n_columns:,} columns",
        recipe.landmark_bytes(width, n_columns),
        "Use fewer landmarks (n_landmarks), or fit on a sample of the rows",
    )
    return rows


def fit_map(
    rows: Rows, codes: Array, weight: Array, recipe: Recipe, context: Context, name: str = "map"
) -> Features:
    """Return the fitted map, or the one that the checkpoint has under this name."""
    new = partial(recipe.new_map, int((weight > 0).sum()), context.random_state, context.verbose)
    return context.checkpoint.fitted(name, lambda: new().fit(rows, codes, sample_weight=weight), new)


def measure_coverage(rows: Rows, feature_map: Features, problem: Problem) -> dict[str, Any]:
    """Measure how well the landmarks cover each class, at some of its rows."""
    fitted = feature_map.map
    if not isinstance(fitted, LandmarkMap):
        return {}
    found = []
    for code in range(problem.classes.size):
        members = np.flatnonzero(problem.codes == code)
        some = members[:: -(-members.size // _COVERED_ROWS)]
        found.append(float(fitted.coverage(rows[some]).mean()))
    return {"coverage_": np.array(found)}


def sizes_of(rows: Rows, fitted: FeatureMap, recipe: Recipe, n_problems: int) -> Sizes:
    """Return the sizes of a fit to rows under a fitted map."""
    held = rows.nbytes + recipe.landmark_bytes(fitted.width, rows.shape[1])
    n_rows, itemsize = rows.shape[0], rows.dtype.itemsize
    return Sizes(n_rows, fitted.width, fitted.rank, itemsize, n_problems, held)


def plan_rows(
    rows: Rows,
    fitted: FeatureMap,
    recipe: Recipe,
    memory: Budget,
    n_problems: int = 1,
    passes: int = EXPECTED_PASSES,
    project: bool = False,
    measure: bool = False,
) -> Plan:
    """Plan where the kernel values of rows under a fitted map are kept."""

    def measured() -> float:
        return row_seconds(fitted.filler(rows.dtype), rows[:SPEED_ROWS], fitted.width)

    sizes = sizes_of(rows, fitted, recipe, n_problems)
    return plan_fit(sizes, memory, measured, passes=passes, project=project, measure=measure)


def plan_unfitted(
    rows: Rows, recipe: Recipe, memory: Budget, n_problems: int, passes: int = EXPECTED_PASSES
) -> Plan:
    """Plan a fit before its map is fitted, for which a large one would be too slow.

    Kernel values take time in proportion to the landmarks. Their rank is that of two small maps,
    continued as a power of the number of landmarks.
    """
    some = ArrayRows(rows[:SPEED_ROWS])
    count, width = recipe.count(rows.shape[0]), recipe.width(rows.shape[0])
    small, fitted = (_small_map(some, recipe, min(count, most)) for most in (_PLANNED // 2, _PLANNED))
    growth = np.clip(np.log2(fitted.rank / small.rank), 0.0, 1.0) if count > _PLANNED else 0.0
    rank = min(width, round(fitted.rank * (width / fitted.width) ** growth))
    held = rows.nbytes + recipe.landmark_bytes(width, rows.shape[1])
    sizes = Sizes(rows.shape[0], width, rank, rows.dtype.itemsize, n_problems, held)

    def measured() -> float:
        taken = row_seconds(fitted.filler(rows.dtype), some[:], fitted.width)
        return taken * width / fitted.width

    return plan_fit(sizes, memory, measured, passes=passes, measure=True)


def _small_map(rows: Rows, recipe: Recipe, count: int) -> FeatureMap:
    landmarks = recipe.settings.landmarks
    some = landmarks if isinstance(landmarks, str) else landmarks[:count]
    settings = replace(recipe.settings, landmarks=some, n_landmarks=count)
    return replace(recipe, settings=settings).new_map(rows.shape[0], 0).fit(rows).map


@contextmanager
def kernel_operator(
    rows: Rows,
    fitted: FeatureMap,
    recipe: Recipe,
    context: Context,
    n_problems: int,
    project: bool = False,
    raw: Array | None = None,
) -> Iterator[tuple[Operator, str]]:
    """Open the operator of rows under a fitted map; yield it with where kernel values are kept."""
    if isinstance(rows, DaskRows):
        yield rows.operator(fitted, n_problems, context.max_memory, project)
        return
    how = {"project": project, "measure": context.verbose}
    plan = plan_rows(rows, fitted, recipe, context.memory, n_problems, **how)
    context.say(plan)
    with open_operator(rows, fitted, plan, raw) as operator:
        yield operator, plan.place.name


def _solve_newton(
    rows: Rows, fitted: FeatureMap, problem: Problem, recipe: Recipe, context: Context
) -> tuple[Array, Array, dict[str, Any]]:
    C, steps = float(recipe.settings.C or 0.0), most_iterations(recipe.max_iter, MAX_STEPS)
    with kernel_operator(rows, fitted, recipe, context, problem.count) as (operator, place):
        solution, about = solve_newton(operator, problem, C, recipe.tol, steps, context)
    return solution.coef, solution.scores, {**about, "place_": place}


def _solve_sgd(
    rows: Rows, fitted: FeatureMap, problem: Problem, recipe: Recipe, context: Context
) -> tuple[Array, Array, dict[str, Any]]:
    C, epochs = float(recipe.settings.C or 0.0), most_iterations(recipe.max_iter, EPOCHS)
    with open_features(rows, fitted, context.memory) as (features, place):
        make = partial(
            PairSGD,
            features.shape[1],
            features.dtype,
            alpha=1.0 / (C * problem.weight.sum()),
            eta0=first_step(mean_square(features)),
        )
        with LiveLine(partial(describe_epoch, epochs=epochs)) as line:
            coef, _, history = run_epochs(
                [make() for _ in problem.positives],
                LabelledRows(features, problem.positives, problem.weight),
                np.random.default_rng(context.seed),
                epochs,
                hooks=Hooks(line if context.verbose else None, context.checkpoint.hook("epochs")),
                state=context.checkpoint.recall("epochs"),
                deadline=context.deadline,
            )
        scores = FeatureOperator(features).scores(coef)
    records = [plain_record(record) for record in history]
    return coef, scores, {"history_": records, "n_iter_": len(history), "place_": place}
