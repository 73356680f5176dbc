"""Cross-validation folds as problems that one solve shares, and how each ranks its held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from aucmax.pairs import ordered_share


@dataclass(frozen=True)
class Fold:
    """Training weights of all rows, 0 on those held out, and the rows to be scored."""

    weight: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class HeldOut:
    """Scores (m, k) of the rows a fold holds out, and its mean score (k,) of those it learnt from."""

    scores: np.ndarray
    level: np.ndarray


@dataclass(frozen=True)
class Problems:
    """The problems solved together: every class of all rows, if ``whole``, then of each fold."""

    positives: Sequence[np.ndarray]
    weight: np.ndarray
    folds: Sequence[Fold]
    whole: bool

    @property
    def weights(self) -> list[np.ndarray]:
        """Row weights of each part; a part has one problem for each of ``positives``."""
        return [self.weight] * self.whole + [fold.weight for fold in self.folds]

    @property
    def count(self) -> int:
        """How many problems there are."""
        return len(self.weights) * len(self.positives)

    def aucs(self, scores: np.ndarray) -> list[float]:
        """Each fold's AUC on the rows it holds out, a mean over classes; scores (n, problems)."""
        k, out = len(self.positives), []
        for number, fold in enumerate(self.folds, start=int(self.whole)):
            u, own = self.weight[fold.test], []
            for problem, positive in enumerate(self.positives, start=number * k):
                s, up = scores[fold.test, problem], positive[fold.test]
                own.append(ordered_share(s[up], s[~up], u[up], u[~up]))
            out.append(float(np.mean(own)))
        return out

    def held_out(self, scores: np.ndarray) -> list[HeldOut]:
        """What each fold gives the rows it holds out; scores (n, problems)."""
        k, out = len(self.positives), []
        for number, fold in enumerate(self.folds, start=int(self.whole)):
            own = scores[:, number * k : (number + 1) * k]
            level = np.average(own, weights=fold.weight, axis=0)
            out.append(HeldOut(own[fold.test].astype(np.float32), level))
        return out

    def pool(self, parts: Sequence[HeldOut], scores: np.ndarray) -> np.ndarray:
        """Scores (n, k) of all rows by folds that did not learn from them, NaN where there is none.

        Pairs do not fix the level of scores: each fold's is set so that the rows it learnt from have
        the mean that ``scores`` (n, k), those of the final model, give them. A row held out more than
        once has the mean.
        """
        total, times = np.zeros_like(scores, dtype=np.float64), np.zeros(len(scores))
        for fold, part in zip(self.folds, parts, strict=True):
            shift = np.average(scores, weights=fold.weight, axis=0) - part.level
            np.add.at(total, fold.test, part.scores + shift)
            np.add.at(times, fold.test, 1.0)
        total[times == 0] = np.nan
        return total / np.maximum(times, 1.0)[:, None]


def make_folds(
    cv: Any, X: Any, y: Any, weight: np.ndarray, fitted: np.ndarray, split: dict[str, Any]
) -> list[Fold]:
    """The folds over the rows ``fitted``, in that order; ``split`` goes to the splitter."""
    n_rows = X.shape[0]
    groups = split.get("groups")
    if groups is not None and len(groups) != n_rows:
        raise ValueError(f"groups has {len(groups)} entries for {n_rows} rows of X.")
    rows, place = np.arange(n_rows), np.full(n_rows, -1)
    place[fitted] = np.arange(fitted.size)
    folds = []
    try:
        for train, test in check_cv(cv, y, classifier=True).split(X, y, **split):
            times = np.bincount(rows[train], minlength=n_rows)
            inside = place[rows[test]]
            folds.append(Fold((weight * times)[fitted], inside[inside >= 0]))
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"cv={cv!r} does not split these rows into folds: {error}") from error
    if not folds:
        raise ValueError(f"cv={cv!r} yields no fold: there is nothing to choose C by.")
    return folds


def check_folds(folds: Sequence[Fold], codes: np.ndarray, classes: np.ndarray) -> None:
    """Refuse a fold that lacks a class, naming both."""
    for number, fold in enumerate(folds):
        for part, present in (("training", codes[fold.weight > 0]), ("test", codes[fold.test])):
            missing = np.setdiff1d(np.arange(classes.size), present)
            if missing.size:
                raise ValueError(
                    f"Fold {number} of {len(folds)} has no row of class "
                    f"{classes.tolist()[missing[0]]!r} of non-zero weight in its {part} part, so that "
                    "there is no pair to rank. Use fewer folds, or a splitter that keeps classes "
                    "together (StratifiedKFold, StratifiedGroupKFold)."
                )


def positives_of(codes: np.ndarray, n_classes: int) -> list[np.ndarray]:
    """The positive rows of each problem: the second of two classes, or each against the rest.

    >>> [each.tolist() for each in positives_of(np.array([0, 1, 1]), 2)]
    [[False, True, True]]
    """
    return [codes == c for c in ([1] if n_classes == 2 else range(n_classes))]
