"""What both searches share: folds as columns of one solve, the walk along C, and what is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from aucmax.estimators.classifiers import MAX_STEPS, check_begun
from aucmax.estimators.ranking import RankingClassifier, plain
from aucmax.fitting.folds import Columns, HeldOut, make_folds
from aucmax.operators import Operator
from aucmax.pairs import PairLoss
from aucmax.runtime.parameters import (
    check_choice,
    check_flag,
    check_increasing,
    check_number,
    is_auto,
    warn_user,
)
from aucmax.runtime.progress import GridLine
from aucmax.solvers.newton import Newton, Record

#: The paper's grid of C, in its units, with how many values.
PAPER_C = (2.0**-15, 2.0**10, 26)

#: Beyond these, products with weights overflow or vanish.
_C_BOUNDS = (1e-100, 1e100)

#: More values of C in one search are a mistake.
_MOST_CS = 10_000


@dataclass
class Path:
    """What a walk along C gave: AUC of each fold, and coefficients and objectives by C."""

    scores: np.ndarray  # (folds, C), NaN where it did not come
    coef: list[np.ndarray]
    objective: list[np.ndarray]
    records: list[dict[str, Any]]
    held_out: list[list[HeldOut]]  # by C, then fold

    @classmethod
    def empty(cls, columns: Columns, n_values: int) -> Path:
        return cls(np.full((len(columns.folds), n_values), np.nan), [], [], [], [])

    def state(self) -> dict[str, Any]:
        """As a checkpoint holds it; values to come do not change what is told."""
        kept = [[dict(vars(part)) for part in parts] for parts in self.held_out]
        lists = {name: list(getattr(self, name)) for name in ("coef", "objective", "records")}
        return {"scores": self.scores.copy(), **lists, "held_out": kept}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Path:
        held_out = [[HeldOut(**part) for part in parts] for parts in state["held_out"]]
        coef, objective, records = (list(state[name]) for name in ("coef", "objective", "records"))
        return cls(state["scores"].copy(), coef, objective, records, held_out)

    def add(
        self, C: float, coef: np.ndarray, scores: np.ndarray, columns: Columns, **more: Any
    ) -> dict[str, Any]:
        """Note the next value of C; its record."""
        record: dict[str, Any] = {"C": float(C), "auc": None, "auc_std": None, **more}
        if columns.folds:
            aucs = self.scores[:, len(self.records)]
            aucs[:] = columns.aucs(scores)
            record |= {"auc": float(aucs.mean()), "auc_std": float(aucs.std())}
            self.held_out.append(columns.held_out(scores))
        self.coef.append(coef)
        self.records.append(record)
        return record


class SearchCV(RankingClassifier):
    """What both searches share: the grid of C, the folds, the walk and the choice."""

    Cs: Any
    cv: Any
    patience: int | None
    time_budget: float | None
    select: str
    refit: bool
    tol: float
    max_iter: int | str
    verbose: int
    _takes_blocks = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Search, then fit to all rows at what was found best.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, d)
            The kernel classifier takes Dask arrays and data frames, too: see :mod:`aucmax.distributed`.
        y : array of shape (n,)
            Any two labels, or more: then each class is ranked against the rest, and one C, the best by
            the mean of their AUCs, is chosen for all.
        sample_weight : array of shape (n,), optional
            As in :class:`KernelAUCClassifier`; held-out rows count by their weights, too.
        groups : array of shape (n,), optional
            Handed to the splitter ``cv``, as are other parameters it takes where metadata routing is
            enabled.
        """
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "fit", **params).splitter.split
        elif unknown := set(params) - {"groups"}:
            raise TypeError(
                f"{type(self).__name__}.fit got an unexpected argument {sorted(unknown)[0]!r}; it "
                "takes X, y, sample_weight and groups."
            )
        return self._fit(X, y, sample_weight, split=params)

    def get_metadata_routing(self) -> MetadataRouter:
        """Where metadata goes: weights to the fit, the rest to the splitter."""
        mapping = MethodMapping().add(caller="fit", callee="split")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=check_cv(self.cv), method_mapping=mapping)
        )

    def _check_params(self) -> None:
        if isinstance(self.Cs, str):
            check_choice("Cs", self.Cs, ("auto",))
        elif isinstance(self.Cs, Integral):
            check_number("Cs", self.Cs, low=1, closed=True, high=_MOST_CS, integer=True)
        else:
            check_increasing("Cs", self.Cs)
        check_choice("select", self.select, ("best", "1se"))
        check_flag("refit", self.refit)
        check_number("tol", self.tol, high=1.0)
        if self.patience is not None:
            check_number("patience", self.patience, low=1, closed=True, integer=True)
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget)
        if not is_auto(self.max_iter):
            check_number("max_iter", self.max_iter, low=1, closed=True, integer=True)

    def _prepare(
        self, X: Any, y: Any, weight: np.ndarray, fitted: np.ndarray, **extra: Any
    ) -> dict[str, Any]:
        split = {name: value for name, value in extra["split"].items() if value is not None}
        folds = make_folds(self.cv, X, y, weight, fitted, split)
        if self.select == "1se" and len(folds) < 2:
            raise ValueError('select="1se" needs at least two folds: one has no standard error.')
        return {"folds": folds, "fitted": fitted, "n_given": weight.size}

    def _more_data(self, **extra: Any) -> dict[str, Any]:
        return {"cv": [each for fold in extra["folds"] for each in (fold.weight, fold.test)]}

    def _grid(self, positives: Sequence[np.ndarray], weight: np.ndarray) -> np.ndarray:
        """The values of C, rising."""
        if not isinstance(self.Cs, str | Integral):
            return np.asarray(self.Cs, dtype=np.float64)
        low, high, count = self._paper_range(positives, weight)
        if not (_C_BOUNDS[0] < low and high < _C_BOUNDS[1]):
            raise ValueError(
                f"Cs={self.Cs!r} gives values from {low:.3g} to {high:.3g}, since sample_weight sums "
                f"to {weight.sum():.3g}: divide the weights by their mean, or give Cs as a list."
            )
        return np.geomspace(low, high, count if isinstance(self.Cs, str) else int(self.Cs))

    def _paper_range(
        self, positives: Sequence[np.ndarray], weight: np.ndarray
    ) -> tuple[float, float, int]:
        """The paper's C times n_pos n_neg / n, which is its unit in ours."""
        others = [~up for up in positives]
        pos, neg = (np.array([weight[each].sum() for each in side]) for side in (positives, others))
        unit = float(np.mean(1.0 / (1.0 / pos + 1.0 / neg)))
        return PAPER_C[0] * unit, PAPER_C[1] * unit, PAPER_C[2]

    def _walk(
        self,
        operator: Operator,
        columns: Columns,
        line: GridLine,
        about: dict[str, Any],
        Cs: np.ndarray | None = None,
        name: str = "walk",
    ) -> Path:
        """Solve for all columns together, C by C; ``name`` is the walk's in the checkpoint."""
        Cs = self.Cs_ if Cs is None else Cs
        losses = [PairLoss(up, part) for part in columns.weights for up in columns.positives]
        newton = Newton(operator, losses, tol=self.tol, deadline=self._deadline)
        max_iter = MAX_STEPS if is_auto(self.max_iter) else int(self.max_iter)
        path, passes, seconds = Path.empty(columns, Cs.size), 0, line.elapsed()
        kept = self._kept.recall(name)
        if kept is not None:
            path, seconds = self._recalled(kept, line), seconds - kept["seconds"]
            passes = sum(record["passes"] for record in path.records)
            newton.resume(kept["newton"])
        told = path.state()

        def show(step: Record) -> None:
            line.step(step.passes - passes)

        def keep(state: dict[str, Any]) -> None:
            spent = line.elapsed() - seconds
            self._kept.note(name, {"path": told, "over": False, "seconds": spent, "newton": state})

        for i in range(len(path.records), Cs.size):
            C = Cs[i]
            steps = newton.run(np.full(len(losses), C), max_iter, show, keep if self._kept.on else None)
            if self._deadline.over() and not newton.converged.all():
                if path.records:  # those before it are better than one that was broken off
                    break
                check_begun(len(steps), self.time_budget)
            path.objective.append(newton.objective())
            record = path.add(
                C,
                newton.coef.copy(),
                newton.scores,
                columns,
                **about,
                steps=len(steps),
                passes=newton.passes - passes,
                preconditioners=sum(step.preconditioners for step in steps),
                gap=float(newton.gap.max()),
                converged=bool(newton.converged.all()),
                seconds=line.elapsed() - seconds,
            )
            passes, seconds = newton.passes, line.elapsed()
            line.value(record)
            if columns.folds and (
                self._deadline.over() or self._has_fallen(path.scores[:, : i + 1].mean(axis=0))
            ):
                break
            if self._kept.on:
                told = path.state()
                keep(newton.state())
        line.skip(Cs.size - len(path.records))
        self._kept.note(name, {"path": path.state(), "over": True})
        return path

    def _walked(self, name: str, line: GridLine) -> Path | None:
        """A walk that has come to its end before this fit went on, if this one has."""
        kept = self._kept.recall(name)
        return self._recalled(kept, line) if kept is not None and kept["over"] else None

    def _recalled(self, kept: dict[str, Any], line: GridLine) -> Path:
        path = Path.of_state(kept["path"])
        for record in path.records:
            line.value(record)
        if kept["over"]:
            line.skip(path.scores.shape[1] - len(path.records))
        return path

    def _has_fallen(self, means: np.ndarray) -> bool:
        """Whether the mean AUC has fallen ``patience`` values in a row."""
        if self.patience is None or means.size <= self.patience:
            return False
        return bool((np.diff(means[-self.patience - 1 :]) < 0).all())

    def _choose(self, scores: np.ndarray) -> tuple[int, int]:
        """Which gamma and C; of equally good ones the smaller C, then the earlier gamma."""
        means = scores.mean(axis=0)
        at_best = np.nanmax(means)
        C, gamma = min((c, g) for g, c in np.argwhere(means == at_best).tolist())
        if self.select == "1se":
            error = scores[:, gamma, C].std(ddof=1) / np.sqrt(len(scores))
            C = int(np.flatnonzero(means[gamma] >= at_best - error)[0])
        return int(gamma), int(C)

    def _set_results(self, scores: np.ndarray, paths: Sequence[Path], grid: dict[str, Any]) -> None:
        """All attributes that tell of the search; ``grid`` has the values of each axis of scores."""
        self.path_ = [record for path in paths for record in path.records]
        self.n_iter_ = sum(record.get("steps", record.get("epochs", 0)) for record in self.path_)
        self.scores_ = scores
        self.scores_mean_, self.scores_std_ = scores.mean(axis=0), scores.std(axis=0)
        done = np.argwhere(~np.isnan(self.scores_mean_))
        names = list(grid)
        params = [
            {name: float(grid[name][i]) for name, i in zip(names, where, strict=True)}
            for where in done.tolist()
        ]
        seconds: dict[tuple[float, ...], float] = {}
        for record in self.path_:
            key = tuple(record[name] for name in names)
            seconds[key] = seconds.get(key, 0.0) + record["seconds"] / len(scores)
        found = scores[(slice(None), *done.T)]
        times = np.array([seconds[tuple(each.values())] for each in params])
        mean = found.mean(axis=0)
        self.cv_results_ = {
            "mean_fit_time": times,
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
        best = {name: getattr(self, f"{name}_") for name in names}
        self.best_params_, self.best_index_ = best, params.index(best)
        self.best_score_ = float(mean[self.best_index_])
        rough = [record for record in self.path_ if not record["converged"]]
        if rough:
            warn_user(
                f"{type(self).__name__}: {len(rough)} of {len(self.path_)} values of C were left "
                f"before they had converged (the first is C={rough[0]['C']:g}, about "
                f"{rough[0]['gap']:.1e} from its optimum), so their scores are rough. Raise max_iter "
                "or tol, allow more time, or leave out the largest Cs.",
                ConvergenceWarning,
            )

    def _set_held_out(
        self, columns: Columns, parts: Sequence[HeldOut], scores: np.ndarray, extra: dict[str, Any]
    ) -> None:
        """``held_out_scores_`` of all rows as they came, from scores (n, k) of those fitted."""
        pooled = np.full((extra["n_given"], scores.shape[1]), np.nan)
        pooled[extra["fitted"]] = columns.pool(parts, scores) + self.intercept_
        self.held_out_scores_ = pooled[:, 0] if self.classes_.size == 2 else pooled

    def _final(self, path: Path, C: int, n_columns: int) -> np.ndarray:
        """Coefficients (r, columns) at the chosen C: of all rows, or the mean of the folds'."""
        coef = path.coef[C]
        if self.refit:
            if path.objective:
                self.objective_ = plain(path.objective[C][:n_columns])
            return coef[:, :n_columns]
        return coef.reshape(len(coef), -1, n_columns).mean(axis=1)
