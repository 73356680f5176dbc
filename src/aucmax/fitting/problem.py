"""What is to be learnt: rows, classes and weights, and the problems that one solve shares.

A problem ranks one class above the rest, on all rows or on those of a cross-validation fold. A fold is
a problem with weight 0 on the rows it holds out, so that all folds, and the fit to all rows, share
every pass over the data, and the scores of held-out rows cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv

from aucmax.pairs import PairLoss, ordered_share
from aucmax.rows.interface import Rows

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Fold:
    """A fold of cross-validation.

    Parameters
    ----------
    weight : array of shape (n,)
        Training weights of all rows, 0 on those held out.
    test : array of int
        The rows held out, of non-zero weight.
    """

    weight: Array
    test: Array


@dataclass(frozen=True)
class HeldOut:
    """Scores (m, k) of the rows a fold holds out, and the mean score (k,) of its training rows."""

    scores: Array
    level: Array


@dataclass(frozen=True)
class Problem:
    """Rows with their classes and weights, and the problems solved together.

    Parameters
    ----------
    rows : Rows
        Rows of non-zero weight. Rows in memory are ordered by content.
    codes : int array of shape (n,)
        The class of each row, as an index into ``classes``.
    weight : array of shape (n,)
    classes : array of labels, sorted
    position : int array of shape (n,)
        Where each row was among the ``n_passed`` rows passed.
    names : array of str, optional
        The names of the columns.
    folds : sequence of Fold
    whole : bool
        Whether all rows together are solved for, too.
    """

    rows: Rows
    codes: Array
    weight: Array
    classes: Array
    position: Array
    n_passed: int
    names: Array | None = None
    folds: Sequence[Fold] = ()
    whole: bool = True

    @cached_property
    def positives(self) -> list[Array]:
        """The positive rows of each ranking: the second of two classes, or each class in turn."""
        return positives_of(self.codes, self.classes.size)

    @property
    def weights(self) -> list[Array]:
        """Row weights of each part: all rows, if ``whole``, then each fold."""
        return [self.weight] * self.whole + [fold.weight for fold in self.folds]

    @property
    def count(self) -> int:
        """The number of problems: parts times rankings."""
        return len(self.weights) * len(self.positives)

    def arrays(self) -> dict[str, Sequence[Any]]:
        """Return the arrays that a fit depends on, by name, to recognise it by."""
        folds = [each for fold in self.folds for each in (fold.weight, fold.test)]
        labels, weight = (self.codes, self.classes), (self.weight,)
        found = {"X": (self.rows,), "y": labels, "sample_weight": weight, "cv": folds}
        return {name: parts for name, parts in found.items() if parts}

    def losses(self) -> list[PairLoss]:
        """Return the pair loss of each problem."""
        return [PairLoss(up, part) for part in self.weights for up in self.positives]

    def aucs(self, scores: Array) -> list[float]:
        """Return each fold's AUC on its held-out rows, a mean over classes; scores (n, problems)."""
        k, out = len(self.positives), []
        for number, fold in enumerate(self.folds, start=int(self.whole)):
            u, own = self.weight[fold.test], []
            for problem, positive in enumerate(self.positives, start=number * k):
                s, up = scores[fold.test, problem], positive[fold.test]
                own.append(ordered_share(s[up], s[~up], u[up], u[~up]))
            out.append(float(np.mean(own)))
        return out

    def held_out(self, scores: Array) -> list[HeldOut]:
        """Return each fold's scores of its held-out rows; scores (n, problems)."""
        k, out = len(self.positives), []
        for number, fold in enumerate(self.folds, start=int(self.whole)):
            own = scores[:, number * k : (number + 1) * k]
            level = np.average(own, weights=fold.weight, axis=0)
            out.append(HeldOut(own[fold.test].astype(np.float32), level))
        return out

    def pool(self, parts: Sequence[HeldOut], scores: Array, intercept: Array) -> Array:
        """Return scores of all rows passed by folds that did not learn from them; NaN without one.

        Pairs do not fix the level of scores: each fold's is shifted so that its training rows have the
        mean that ``scores`` (n, k), those of the final model, give them. A row held out more than once
        has the mean.
        """
        total, times = np.zeros_like(scores, dtype=np.float64), np.zeros(len(scores))
        for fold, part in zip(self.folds, parts, strict=True):
            shift = np.average(scores, weights=fold.weight, axis=0) - part.level
            np.add.at(total, fold.test, part.scores + shift)
            np.add.at(times, fold.test, 1.0)
        total[times == 0] = np.nan
        pooled = np.full((self.n_passed, scores.shape[1]), np.nan)
        pooled[self.position] = total / np.maximum(times, 1.0)[:, None] + intercept
        return pooled[:, 0] if self.classes.size == 2 else pooled


def positives_of(codes: Array, n_classes: int) -> list[Array]:
    """Return the positive rows of each ranking: the second of two classes, or each class in turn.

    >>> [each.tolist() for each in positives_of(np.array([0, 1, 1]), 2)]
    [[False, True, True]]
    """
    return [codes == c for c in ([1] if n_classes == 2 else range(n_classes))]


def make_folds(
    cv: Any, X: Any, y: Any, weight: Array, position: Array, split: dict[str, Any]
) -> list[Fold]:
    """Split all rows passed, and return the folds of those at ``position``.

    ``split`` is handed to the splitter.
    """
    n_rows = X.shape[0]
    groups = split.get("groups")
    if groups is not None and len(groups) != n_rows:
        raise ValueError(f"groups has {len(groups)} entries for {n_rows} rows of X: pass one for each.")
    numbers, inside = np.arange(n_rows), np.full(n_rows, -1)
    inside[position] = np.arange(position.size)
    folds = []
    try:
        for train, test in check_cv(cv, y, classifier=True).split(X, y, **split):
            times = np.bincount(numbers[train], minlength=n_rows)
            rows = inside[numbers[test]]
            folds.append(Fold((weight * times)[position], rows[rows >= 0]))
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"cv={cv!r} does not split these rows into folds: {error}") from error
    if not folds:
        raise ValueError(
            f"cv={cv!r} yields no fold to choose C by: pass a number of folds, or another splitter."
        )
    return folds


def check_folds(problem: Problem) -> None:
    """Refuse a fold without a class in its training or test part, and name both."""
    for number, fold in enumerate(problem.folds):
        parts = {"training": problem.codes[fold.weight > 0], "test": problem.codes[fold.test]}
        for part, present in parts.items():
            missing = np.setdiff1d(np.arange(problem.classes.size), present)
            if missing.size:
                raise ValueError(
                    f"Fold {number} of {len(problem.folds)} has no row of class "
                    f"{problem.classes.tolist()[missing[0]]!r} of non-zero weight in its {part} part, "
                    "so there is no pair to rank. Use fewer folds, or a splitter that keeps classes "
                    "together (StratifiedKFold, StratifiedGroupKFold)."
                )
