"""What both searches share: parameters, the grid of C, and the attributes that describe a search."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from aucmax.estimators.classifiers import MAX_STEPS
from aucmax.estimators.ranking import RankingClassifier, plain
from aucmax.fitting.c_path import Path, PathOptions, tabulate
from aucmax.fitting.folds import HeldOut, Problems, make_folds
from aucmax.runtime.parameters import (
    check_choice,
    check_flag,
    check_increasing,
    check_number,
    is_auto,
    warn_user,
)

#: The paper's grid of C, in its units, with how many values.
PAPER_C = (2.0**-15, 2.0**10, 26)

#: Beyond these, products with weights overflow or vanish.
_C_BOUNDS = (1e-100, 1e100)

#: More values of C in one search are a mistake.
_MOST_CS = 10_000


class SearchCV(RankingClassifier):
    """Shared by both searches: the grid of C, the folds, and the attributes of a search."""

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

    def _options(self, Cs: np.ndarray) -> PathOptions:
        max_steps = MAX_STEPS if is_auto(self.max_iter) else int(self.max_iter)
        return PathOptions(Cs, self.tol, max_steps, self.patience)

    def _set_results(self, scores: np.ndarray, paths: Sequence[Path], grid: dict[str, Any]) -> None:
        """Set the attributes of a search; ``grid`` has the values of each axis of scores."""
        self.path_ = [record for path in paths for record in path.records]
        self.n_iter_ = sum(record.get("steps", record.get("epochs", 0)) for record in self.path_)
        self.scores_ = scores
        self.scores_mean_, self.scores_std_ = scores.mean(axis=0), scores.std(axis=0)
        self.cv_results_ = tabulate(scores, self.path_, grid)
        best = {name: getattr(self, f"{name}_") for name in grid}
        self.best_params_, self.best_index_ = best, self.cv_results_["params"].index(best)
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
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
        self, problems: Problems, parts: Sequence[HeldOut], scores: np.ndarray, extra: dict[str, Any]
    ) -> None:
        """``held_out_scores_`` of all rows as they came, from scores (n, k) of those fitted."""
        pooled = np.full((extra["n_given"], scores.shape[1]), np.nan)
        pooled[extra["fitted"]] = problems.pool(parts, scores) + self.intercept_
        self.held_out_scores_ = pooled[:, 0] if self.classes_.size == 2 else pooled

    def _final(self, path: Path, C: int, n_classes: int) -> np.ndarray:
        """Coefficients (r, n_classes) at the chosen C; ``objective_`` is set where all rows had one."""
        if self.refit and path.objective:
            self.objective_ = plain(path.objective[C][:n_classes])
        return path.final_coef(C, n_classes, bool(self.refit))
