"""Solve for rising values of C, each from the solution before, with folds solved together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.fitting.context import Context, check_begun
from aucmax.fitting.problem import HeldOut, Problem
from aucmax.operators.interface import Operator
from aucmax.runtime.progress import GridLine
from aucmax.solvers.newton import Newton, Record, Solution
from aucmax.solvers.options import Hooks, Stopping

__all__ = ["CPath", "PathOptions", "choose", "has_fallen", "recall_path", "solve_path", "tabulate"]

Array = npt.NDArray[Any]


@dataclass
class CPath:
    """The solutions along rising values of C: the AUC of each fold, coefficients, objectives."""

    aucs: Array  # (folds, C), NaN where C was not reached
    coef: list[Array]
    objective: list[Array]
    records: list[dict[str, Any]]
    held_out: list[list[HeldOut]]  # by C, then fold

    @classmethod
    def empty(cls, problem: Problem, n_values: int) -> CPath:
        """Return a path along ``n_values`` values of C that has not begun."""
        return cls(np.full((len(problem.folds), n_values), np.nan), [], [], [], [])

    def state(self) -> dict[str, Any]:
        """Return plain data for a checkpoint, which does not change when values of C are added."""
        held_out = [[dict(vars(part)) for part in parts] for parts in self.held_out]
        lists = {name: list(getattr(self, name)) for name in ("coef", "objective", "records")}
        return {"scores": self.aucs.copy(), **lists, "held_out": held_out}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> CPath:
        """Return the path that :meth:`state` was called on."""
        held_out = [[HeldOut(**part) for part in parts] for parts in state["held_out"]]
        coef, objective, records = (list(state[name]) for name in ("coef", "objective", "records"))
        return cls(state["scores"].copy(), coef, objective, records, held_out)

    def add(
        self, C: float, coef: Array, scores: Array, problem: Problem, **more: Any
    ) -> dict[str, Any]:
        """Add the solution at the next value of C, and return its record."""
        record: dict[str, Any] = {"C": float(C), "auc": None, "auc_std": None, **more}
        if problem.folds:
            aucs = self.aucs[:, len(self.records)]
            aucs[:] = problem.aucs(scores)
            record |= {"auc": float(aucs.mean()), "auc_std": float(aucs.std())}
            self.held_out.append(problem.held_out(scores))
        self.coef.append(coef)
        self.records.append(record)
        return record

    def final_coef(self, C: int, problem: Problem) -> Array:
        """Return coefficients (r, k) at the C of this index: those of all rows, or the folds' mean."""
        coef, k = self.coef[C], len(problem.positives)
        return coef[:, :k] if problem.whole else coef.reshape(len(coef), -1, k).mean(axis=1)


@dataclass(frozen=True)
class PathOptions:
    """Which values of C to solve for, how closely, and when to stop."""

    Cs: Array
    tol: float
    max_steps: int
    patience: int | None


def solve_path(
    operator: Operator,
    problem: Problem,
    options: PathOptions,
    context: Context,
    line: GridLine,
    about: dict[str, Any],
    name: str,
) -> CPath:
    """Solve all problems together, C by C, or continue the path that the checkpoint has.

    ``name`` is the path's name in the checkpoint; ``about`` is part of every record.
    """
    Cs, checkpoint = options.Cs, context.checkpoint
    stopping = Stopping(options.tol, options.max_steps, context.deadline)
    newton = Newton(operator, problem.losses(), stopping=stopping)
    path, passes, seconds = CPath.empty(problem, Cs.size), 0, line.elapsed()
    before = checkpoint.recall(name)
    if before is not None:
        path, seconds = _restored(before, line), seconds - before["seconds"]
        passes = sum(record["passes"] for record in path.records)
        newton.resume(before["newton"])
    finished = path.state()

    def show(step: Record) -> None:
        line.step(step.passes - passes)

    def keep(state: dict[str, Any]) -> None:
        spent = line.elapsed() - seconds
        checkpoint.note(name, {"path": finished, "over": False, "seconds": spent, "newton": state})

    for i in range(len(path.records), Cs.size):
        found = newton.run(np.full(problem.count, Cs[i]), Hooks(show, keep if checkpoint.on else None))
        if context.deadline.over() and not found.converged.all():
            if path.records:  # values before this one are better than one that was cut short
                break
            check_begun(found.n_iter, context.deadline)
        path.objective.append(found.objective)
        more = _describe(found, passes, line.elapsed() - seconds)
        line.value(path.add(Cs[i], found.coef.copy(), found.scores, problem, **about, **more))
        passes, seconds = found.passes, line.elapsed()
        if problem.folds and (
            context.deadline.over() or has_fallen(path.aucs[:, : i + 1].mean(axis=0), options.patience)
        ):
            break
        if checkpoint.on:
            finished = path.state()
            keep(newton.state())
    line.skip(Cs.size - len(path.records))
    checkpoint.note(name, {"path": path.state(), "over": True})
    return path


def _describe(found: Solution, passes: int, seconds: float) -> dict[str, Any]:
    """Return the part of a record that describes the solve at one value of C."""
    return {
        "steps": found.n_iter,
        "passes": found.passes - passes,
        "preconditioners": sum(step.preconditioners for step in found.history),
        "gap": float(found.gap.max()),
        "converged": bool(found.converged.all()),
        "seconds": seconds,
    }


def recall_path(name: str, context: Context, line: GridLine) -> CPath | None:
    """Return the path of this name if an earlier run of this fit has solved it to its end."""
    before = context.checkpoint.recall(name)
    return _restored(before, line) if before is not None and before["over"] else None


def _restored(before: dict[str, Any], line: GridLine) -> CPath:
    """Return the path in a checkpoint's entry, and show its records as progress."""
    path = CPath.of_state(before["path"])
    for record in path.records:
        line.value(record)
    if before["over"]:
        line.skip(path.aucs.shape[1] - len(path.records))
    return path


def has_fallen(means: Array, patience: int | None) -> bool:
    """Return whether the mean AUC has fallen ``patience`` values in a row.

    >>> has_fallen(np.array([0.7, 0.9, 0.8, 0.6]), 2), has_fallen(np.array([0.9, 0.8, 0.8]), 2)
    (True, False)
    """
    if patience is None or means.size <= patience:
        return False
    return bool((np.diff(means[-patience - 1 :]) < 0).all())


def choose(aucs: Array, select: str) -> tuple[int, int]:
    """Return the indices of gamma and C with the best mean AUC, from AUCs (folds, gammas, Cs).

    Of equally good ones the smaller C is taken, then the earlier gamma. With ``select="1se"`` it is the
    smallest C within one standard error of the best.
    """
    means = aucs.mean(axis=0)
    best = np.nanmax(means)
    C, gamma = min((c, g) for g, c in np.argwhere(means == best).tolist())
    if select == "1se":
        error = aucs[:, gamma, C].std(ddof=1) / np.sqrt(len(aucs))
        C = int(np.flatnonzero(means[gamma] >= best - error)[0])
    return int(gamma), int(C)


def tabulate(aucs: Array, records: Sequence[dict[str, Any]], grid: dict[str, Any]) -> dict[str, Any]:
    """Return ``cv_results_`` as scikit-learn has it.

    ``grid`` has the values along each axis of ``aucs`` but the first, which is that of the folds.
    """
    reached = np.argwhere(~np.isnan(aucs.mean(axis=0)))
    names = list(grid)
    params = [
        {name: float(grid[name][i]) for name, i in zip(names, where, strict=True)}
        for where in reached.tolist()
    ]
    seconds: dict[tuple[float, ...], float] = {}
    for record in records:
        key = tuple(record[name] for name in names)
        seconds[key] = seconds.get(key, 0.0) + record["seconds"] / len(aucs)
    found = aucs[(slice(None), *reached.T)]
    mean, zeros = found.mean(axis=0), np.zeros(len(params))
    return {
        "mean_fit_time": np.array([seconds[tuple(each.values())] for each in params]),
        **{name: zeros.copy() for name in ("std_fit_time", "mean_score_time", "std_score_time")},
        **{f"param_{name}": np.ma.array([each[name] for each in params]) for name in names},
        "params": params,
        **{f"split{i}_test_score": found[i] for i in range(len(aucs))},
        "mean_test_score": mean,
        "std_test_score": found.std(axis=0),
        "rank_test_score": (1 + (mean[:, None] < mean[None]).sum(axis=1)).astype(np.int32),
    }
