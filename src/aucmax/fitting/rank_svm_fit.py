"""Fit the exact kernel machine: a coefficient for every training row."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from aucmax.features.bandwidth import resolve_gamma
from aucmax.features.kernels import RADIAL, KernelSpec
from aucmax.features.landmark_map import LandmarkMap, decompose
from aucmax.features.landmarks import equal_shares
from aucmax.fitting.attributes import intercepts, plain
from aucmax.fitting.context import Context
from aucmax.fitting.machines import SupportMachine
from aucmax.fitting.problem import Problem, positives_of
from aucmax.fitting.recipe import FLOAT64_BYTES
from aucmax.fitting.scaling import Scaling, scaled
from aucmax.operators.in_memory import KernelOperator
from aucmax.operators.kernel_tiles import KernelTiles, least_bytes
from aucmax.pairs import Floats, Indices, PairLoss
from aucmax.rows.interface import dense, is_sparse
from aucmax.runtime.memory import Budget, format_bytes
from aucmax.runtime.parameters import random_generator, warn_user
from aucmax.runtime.progress import LiveLine, describe_product
from aucmax.solvers.kernel_newton import KernelState, LandmarkFeatures, minimize_kernel
from aucmax.solvers.newton import minimize
from aucmax.solvers.options import Hooks, Stopping

Array = npt.NDArray[Any]

#: Up to this many rows, a product is so quick that landmarks do not pay.
FEW_ROWS = 4000

#: Landmarks for the start and the preconditioner: one for so many rows, and at most so many; and the
#: relative eigenvalues that they keep.
_ROWS_PER_LANDMARK, _LANDMARKS = 16, 1600
_CUT = 1e-6

#: The start need not be exact.
START = Stopping(tol=1e-3)

#: Landmarks are a start and a preconditioner if their machine ranks the training rows so well. If not,
#: they do not span the solution, and the solve goes along a path of C instead: from C over the first
#: number to the power of the second, rising by the first, each value to the relative gap of the third.
#: connect-4, 6,000 rows, gamma 2^-6 (landmarks rank them at 0.917): 704 products, not 2,057. ijcnn1,
#: 10,000 rows (0.998): 82 from landmarks, 552 along a path.
_SPANNED_AUC = 0.99
_PATH_STEP, _PATH_LENGTH, _PATH_TOL = 8.0, 4, 3e-2


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
    losses = [PairLoss(up, weight) for up in positives_of(codes, problem.classes.size)]
    solutions = _solve(X, spec, losses, recipe, context)
    about = _describe(solutions, recipe, context.name)
    learnt = Problem(problem.rows, codes, weight, problem.classes, chosen, codes.size)
    scores = np.column_stack([solution.scores for solution in solutions])
    intercept = intercepts(scores, learnt, context.name)
    coef = np.column_stack([solution.coef for solution in solutions])
    support = np.flatnonzero(coef.any(axis=1))
    machine = SupportMachine(scaler, X[support], coef[support].T, intercept, spec)
    return machine, {**about, "gamma_": gamma}


def _solve(
    X: Array, spec: KernelSpec, losses: list[PairLoss], recipe: RankSVMRecipe, context: Context
) -> list[KernelState]:
    """Solve each problem over the rows X; many rows start from landmarks, which precondition, too."""
    context.memory.require(
        f"The kernel matrix of {len(X):,} rows, of which two blocks are held at least,",
        least_bytes(len(X), X.dtype),
        "Take a subsample, or use KernelAUCClassifier",
    )
    C, stopping = float(recipe.C), Stopping(recipe.tol, int(recipe.max_iter))
    starts: list[Floats | None] = [None for _ in losses]
    landmarks, room, path = None, context.memory.total, [C]
    if len(X) > FEW_ROWS:
        landmarks = landmark_features(X, landmark_rows(losses[0], context.seed), spec)
        solved = minimize(landmarks.operator, losses, np.full(len(losses), C), stopping=START)
        points = [loss.at(own) for loss, own in zip(losses, solved.scores.T, strict=True)]
        if min(point.auc() for point in points) >= _SPANNED_AUC:
            starts = [landmarks.as_rows(own) for own in solved.coef.T]
            room -= landmarks.operator.nbytes
        else:
            landmarks = None
            path = [C / _PATH_STEP**k for k in range(_PATH_LENGTH, -1, -1)]
    kernel, solutions = KernelTiles(X, spec, room), []
    _warn_of_recomputing(kernel, X, context.memory)
    for number, loss in enumerate(losses):
        name, start = f"problem {number}", starts[number]
        reached = context.checkpoint.recall(name)
        with LiveLine(partial(describe_product, tol=recipe.tol)) as line:
            # A solve that computes tiles again takes so long that its progress is always shown.
            show = line if context.verbose or kernel.share_held < 1.0 else None
            save = context.checkpoint.hook(name)
            if reached is not None:
                start = reached["coef"]
            for value in path if reached is None else [C]:
                solution = minimize_kernel(
                    kernel,
                    loss,
                    value,
                    start=start,
                    landmarks=landmarks,
                    restrict=len(X) > FEW_ROWS,
                    stopping=stopping if value == C else replace(stopping, tol=_PATH_TOL),
                    hooks=Hooks(show, save),
                )
                start = solution.coef
            solutions.append(solution)
    return solutions


def landmark_rows(loss: PairLoss, seed: int) -> Indices:
    """Draw rows as landmarks, half of them from each class as far as it has so many."""
    counts = equal_shares(
        [loss.pos.size, loss.neg.size], min(_LANDMARKS, loss.n_rows // _ROWS_PER_LANDMARK)
    )
    rng, sides = np.random.default_rng(seed), zip((loss.pos, loss.neg), counts, strict=True)
    drawn = [rng.choice(side, count, replace=False) for side, count in sides]
    return np.sort(np.concatenate(drawn))


def landmark_features(X: Array, rows: Indices, spec: KernelSpec) -> LandmarkFeatures:
    projection, _ = decompose(X[rows], spec, _CUT)
    block = LandmarkMap(X[rows], spec, projection).kernel_block(X)
    return LandmarkFeatures(KernelOperator(block, projection), rows, projection.fold)


def _warn_of_recomputing(kernel: KernelTiles, X: Array, memory: Budget) -> None:
    if kernel.share_held == 1.0:
        return
    began = time.perf_counter()
    kernel.product(np.zeros(len(X)))
    seconds = time.perf_counter() - began
    needed = len(X) * (len(X) + 1) // 2 * X.dtype.itemsize
    warn_user(
        f"The kernel matrix of {len(X):,} rows takes {format_bytes(needed)}, and "
        f"{format_bytes(memory.total)} may be used: {1.0 - kernel.share_held:.0%} of it is computed "
        f"again in each product, {seconds:.1f} s each, and a fit takes some dozens. Raise max_memory, "
        "take a subsample, or use KernelAUCClassifier."
    )


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
