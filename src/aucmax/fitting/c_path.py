"""Solve for rising values of C, each from the solution before, with folds solved together.

A fold is a problem with weight 0 on the rows it holds out, so that all folds, and the fit to all rows,
share every pass over the data, and the scores of held-out rows come at no cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucmax.fitting.context import Context, check_begun
from aucmax.fitting.folds import HeldOut, Problems
from aucmax.operators import Operator
from aucmax.pairs import PairLoss
from aucmax.runtime.progress import GridLine
from aucmax.solvers.newton import Newton, Record
from aucmax.solvers.options import Hooks, Stopping

__all__ = ["Path", "PathOptions", "choose", "has_fallen", "recall_path", "solve_path", "tabulate"]


@dataclass
class Path:
    """The solutions along rising values of C: the AUC of each fold, coefficients, objectives."""

    scores: np.ndarray  # (folds, C), NaN where C was not reached
    coef: list[np.ndarray]
    objective: list[np.ndarray]
    records: list[dict[str, Any]]
    held_out: list[list[HeldOut]]  # by C, then fold

    @classmethod
    def empty(cls, problems: Problems, n_values: int) -> Path:
        return cls(np.full((len(problems.folds), n_values), np.nan), [], [], [], [])

    def state(self) -> dict[str, Any]:
        """As a checkpoint holds it; it does not change when further values of C are added."""
        kept = [[dict(vars(part)) for part in parts] for parts in self.held_out]
        lists = {name: list(getattr(self, name)) for name in ("coef", "objective", "records")}
        return {"scores": self.scores.copy(), **lists, "held_out": kept}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Path:
        held_out = [[HeldOut(**part) for part in parts] for parts in state["held_out"]]
        coef, objective, records = (list(state[name]) for name in ("coef", "objective", "records"))
        return cls(state["scores"].copy(), coef, objective, records, held_out)

    def add(
        self, C: float, coef: np.ndarray, scores: np.ndarray, problems: Problems, **more: Any
    ) -> dict[str, Any]:
        """Add the solution at the next value of C, and return its record."""
        record: dict[str, Any] = {"C": float(C), "auc": None, "auc_std": None, **more}
        if problems.folds:
            aucs = self.scores[:, len(self.records)]
            aucs[:] = problems.aucs(scores)
            record |= {"auc": float(aucs.mean()), "auc_std": float(aucs.std())}
            self.held_out.append(problems.held_out(scores))
        self.coef.append(coef)
        self.records.append(record)
        return record

    def final_coef(self, C: int, n_classes: int, refit: bool) -> np.ndarray:
        """Coefficients (r, n_classes) at the C of this index: of all rows, or the folds' mean."""
        coef = self.coef[C]
        if refit:
            return coef[:, :n_classes]
        return coef.reshape(len(coef), -1, n_classes).mean(axis=1)


@dataclass(frozen=True)
class PathOptions:
    """Which values of C to solve for, how closely, and when to stop."""

    Cs: np.ndarray
    tol: float
    max_steps: int
    patience: int | None


def solve_path(
    operator: Operator,
    problems: Problems,
    options: PathOptions,
    context: Context,
    line: GridLine,
    about: dict[str, Any],
    name: str,
) -> Path:
    """Solve all problems together, C by C.

    ``name`` is the path's name in the checkpoint, and ``about`` is part of every record.
    """
    Cs, kept = options.Cs, context.checkpoint
    losses = [PairLoss(up, part) for part in problems.weights for up in problems.positives]
    stopping = Stopping(options.tol, options.max_steps, context.deadline)
    newton = Newton(operator, losses, stopping=stopping)
    path, passes, seconds = Path.empty(problems, Cs.size), 0, line.elapsed()
    before = kept.recall(name)
    if before is not None:
        path, seconds = _recalled(before, line), seconds - before["seconds"]
        passes = sum(record["passes"] for record in path.records)
        newton.resume(before["newton"])
    finished = path.state()

    def show(step: Record) -> None:
        line.step(step.passes - passes)

    def keep(state: dict[str, Any]) -> None:
        spent = line.elapsed() - seconds
        kept.note(name, {"path": finished, "over": False, "seconds": spent, "newton": state})

    for i in range(len(path.records), Cs.size):
        C = Cs[i]
        found = newton.run(np.full(len(losses), C), Hooks(show, keep if kept.on else None))
        if context.deadline.over() and not found.converged.all():
            if path.records:  # those before it are better than one that was broken off
                break
            check_begun(found.n_iter, context.deadline)
        path.objective.append(found.objective)
        record = path.add(
            C,
            found.coef.copy(),
            found.scores,
            problems,
            **about,
            steps=found.n_iter,
            passes=found.passes - passes,
            preconditioners=sum(step.preconditioners for step in found.history),
            gap=float(found.gap.max()),
            converged=bool(found.converged.all()),
            seconds=line.elapsed() - seconds,
        )
        passes, seconds = found.passes, line.elapsed()
        line.value(record)
        if problems.folds and (
            context.deadline.over()
            or has_fallen(path.scores[:, : i + 1].mean(axis=0), options.patience)
        ):
            break
        if kept.on:
            finished = path.state()
            keep(newton.state())
    line.skip(Cs.size - len(path.records))
    kept.note(name, {"path": path.state(), "over": True})
    return path


def recall_path(name: str, context: Context, line: GridLine) -> Path | None:
    """The path of this name, if an earlier run of this fit has solved it to its end."""
    before = context.checkpoint.recall(name)
    return _recalled(before, line) if before is not None and before["over"] else None


def _recalled(before: dict[str, Any], line: GridLine) -> Path:
    path = Path.of_state(before["path"])
    for record in path.records:
        line.value(record)
    if before["over"]:
        line.skip(path.scores.shape[1] - len(path.records))
    return path


def has_fallen(means: np.ndarray, patience: int | None) -> bool:
    """Whether the mean AUC has fallen ``patience`` values in a row.

    >>> has_fallen(np.array([0.7, 0.9, 0.8, 0.6]), 2), has_fallen(np.array([0.9, 0.8, 0.8]), 2)
    (True, False)
    """
    if patience is None or means.size <= patience:
        return False
    return bool((np.diff(means[-patience - 1 :]) < 0).all())


def choose(scores: np.ndarray, select: str) -> tuple[int, int]:
    """The indices of gamma and C with the best mean AUC, from scores (folds, gammas, Cs).

    Of equally good ones the smaller C is taken, then the earlier gamma. With ``select="1se"`` it is the
    smallest C within one standard error of the best.
    """
    means = scores.mean(axis=0)
    at_best = np.nanmax(means)
    C, gamma = min((c, g) for g, c in np.argwhere(means == at_best).tolist())
    if select == "1se":
        error = scores[:, gamma, C].std(ddof=1) / np.sqrt(len(scores))
        C = int(np.flatnonzero(means[gamma] >= at_best - error)[0])
    return int(gamma), int(C)


def tabulate(
    scores: np.ndarray, records: Sequence[dict[str, Any]], grid: dict[str, Any]
) -> dict[str, Any]:
    """``cv_results_`` as scikit-learn has it; ``grid`` has the values of each axis after the folds."""
    done = np.argwhere(~np.isnan(scores.mean(axis=0)))
    names = list(grid)
    params = [
        {name: float(grid[name][i]) for name, i in zip(names, where, strict=True)}
        for where in done.tolist()
    ]
    seconds: dict[tuple[float, ...], float] = {}
    for record in records:
        key = tuple(record[name] for name in names)
        seconds[key] = seconds.get(key, 0.0) + record["seconds"] / len(scores)
    found = scores[(slice(None), *done.T)]
    mean = found.mean(axis=0)
    return {
        "mean_fit_time": np.array([seconds[tuple(each.values())] for each in params]),
        "std_fit_time": np.zeros(len(params)),
        "mean_score_time": np.zeros(len(params)),
        "std_score_time": np.zeros(len(params)),
        **{f"param_{name}": np.ma.array([each[name] for each in params]) for name in names},
        "params": params,
        **{f"split{i}_test_score": found[i] for i in range(len(scores))},
        "mean_test_score": mean,
        "std_test_score": found.std(axis=0),
        "rank_test_score": (1 + (mean[:, None] < mean[None]).sum(axis=1)).astype(np.int32),
    }
