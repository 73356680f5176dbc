"""Fit the exact kernel machine: a coefficient for every training row."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from aucmax.features.bandwidth import resolve_gamma
from aucmax.features.kernel_products import kernel_matrix, kernel_product
from aucmax.features.kernels import RADIAL, KernelSpec, LandmarkKernel
from aucmax.fitting.attributes import intercepts, plain
from aucmax.fitting.context import Context
from aucmax.fitting.machines import SupportMachine
from aucmax.fitting.problem import Problem, positives_of
from aucmax.fitting.recipe import FLOAT64_BYTES
from aucmax.fitting.scaling import Scaling, scaled
from aucmax.operators.in_memory import FeatureOperator
from aucmax.pairs import Floats, PairLoss
from aucmax.rows.interface import dense, is_sparse
from aucmax.runtime.memory import Budget, format_bytes
from aucmax.runtime.parameters import random_generator, warn_user
from aucmax.runtime.progress import LiveLine, describe_product
from aucmax.solvers.kernel_newton import minimize_kernel
from aucmax.solvers.options import Stopping

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RankSVMRecipe:
    """The parameters of :class:`KernelRankSVM` that its fit needs."""

    C: float
    kernel: str
    gamma: str | float
    degree: int
    coef0: float
    subsample: float
    standardize: bool
    tol: float
    max_iter: int


def fit_rank_svm(
    problem: Problem, recipe: RankSVMRecipe, context: Context
) -> tuple[SupportMachine, dict[str, Any]]:
    """Return the machine of a problem, and the learnt attributes that describe the fit."""
    scaling = Scaling(recipe.standardize, None, recipe.kernel in RADIAL, problem.names)
    scaler, rows = scaled(problem, scaling, context)
    gamma = resolve_gamma(recipe.gamma, rows, problem.weight, recipe.kernel)
    spec = KernelSpec(recipe.kernel, gamma, recipe.degree, recipe.coef0)
    chosen = _subsample(problem, recipe.subsample, context.random_state)
    codes, weight = problem.codes[chosen], problem.weight[chosen]
    X = _dense_rows(rows[chosen], context.memory)
    product, held = _make_product(X, LandmarkKernel(X, spec, X.dtype), context.memory)
    solutions = []
    positives = positives_of(codes, problem.classes.size)
    # A solve without the matrix takes so long that its progress is always shown.
    show = context.verbose or not held
    for positive in positives:
        with LiveLine(partial(describe_product, tol=recipe.tol)) as line:
            solutions.append(
                minimize_kernel(
                    product,
                    PairLoss(positive, weight),
                    float(recipe.C),
                    stopping=Stopping(recipe.tol, int(recipe.max_iter)),
                    on_record=line if show else None,
                )
            )
    about = _describe(solutions, recipe, context.name)
    learnt = Problem(problem.rows, codes, weight, problem.classes, chosen, codes.size)
    scores = np.column_stack([solution.scores for solution in solutions])
    intercept = intercepts(scores, learnt, context.name)
    coef = np.column_stack([solution.coef for solution in solutions])
    support = np.flatnonzero(coef.any(axis=1))
    machine = SupportMachine(scaler, X[support], coef[support].T, intercept, spec)
    return machine, {**about, "gamma_": gamma}


def _describe(solutions: list[Any], recipe: RankSVMRecipe, name: str) -> dict[str, Any]:
    converged = all(solution.converged for solution in solutions)
    n_iter = max(len(solution.history) for solution in solutions)
    if not converged:
        worst = max(solution.gap for solution in solutions)
        warn_user(
            f"{name} stopped after {n_iter} Newton steps about {worst:.1e} (relative) from the "
            f"optimum: raise max_iter={recipe.max_iter} or tol={recipe.tol:g}, or lower "
            f"C={recipe.C:g}.",
            ConvergenceWarning,
        )
    records = [[vars(record) for record in solution.history] for solution in solutions]
    return {
        "objective_": plain(np.array([solution.objective for solution in solutions])),
        "converged_": converged,
        "n_iter_": n_iter,
        "history_": records[0] if len(records) == 1 else records,
    }


def _subsample(problem: Problem, share: float, random_state: Any) -> Array:
    """Return the numbers of the rows to learn from: a share of each class, drawn at random."""
    if share >= 1.0:
        return np.arange(problem.codes.size)
    random, chosen = random_generator(random_state), []
    for code in range(problem.classes.size):
        members = np.flatnonzero(problem.codes == code)
        count = max(1, round(share * members.size))
        chosen.append(random.choice(members, count, replace=False))
    return np.sort(np.concatenate(chosen))


def _dense_rows(block: Any, memory: Budget) -> Array:
    """Return rows as the kernel takes them: dense, and in float32 if the matrix is large."""
    n_rows = block.shape[0]
    if is_sparse(block):
        memory.require(  # with what the kernel prepares from them
            f"The {n_rows:,} sparse rows, made dense,",
            5 * 8 * n_rows * block.shape[1],
            "Take a subsample, or use KernelAUCClassifier, which leaves them sparse",
        )
    X = dense(block)
    return X.astype(np.float32, copy=False) if n_rows**2 * 8 > FLOAT64_BYTES else X


def _make_product(
    X: Array, kernel: LandmarkKernel, memory: Budget
) -> tuple[Callable[[Floats], Floats], bool]:
    """Return the product with the kernel matrix, and whether the matrix is held."""
    needed = X.shape[0] ** 2 * X.dtype.itemsize
    if needed <= memory.total:
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
        f"{format_bytes(memory.total)}: it is computed again in each product, about {seconds:.1f} s "
        "each, and a fit takes some hundred. Raise max_memory, take a subsample, or use "
        "KernelAUCClassifier."
    )
    return product, False
