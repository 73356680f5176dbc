"""The search that a table model fits: its estimator, with the folds and the time that is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from aucmax.estimators.kernel import KernelAUCClassifier
from aucmax.estimators.search import KernelAUCClassifierCV
from aucmax.runtime.parameters import check_parameters

if TYPE_CHECKING:
    from aucmax.tables.model import TableModel


def make_search(
    model: TableModel, folds: Any, spent: float = 0.0, share: float = 1.0
) -> KernelAUCClassifierCV:
    """Return the search that a table model fits, with a share of what is left of the time."""
    held = KernelAUCClassifier() if model.estimator is None else model.estimator
    if not isinstance(held, KernelAUCClassifier | KernelAUCClassifierCV):
        raise TypeError(
            "estimator must be a KernelAUCClassifier, a KernelAUCClassifierCV or None; got a "
            f"{type(held).__name__}."
        )
    search = clone(held if isinstance(held, KernelAUCClassifierCV) else KernelAUCClassifierCV(held))
    inner = search.estimator or KernelAUCClassifier()
    check_parameters(inner)
    seed = model.random_state if inner.random_state is None else inner.random_state
    left = _left(inner, spent)
    inner.set_params(time_budget=None if left is None else share * left, random_state=seed)
    return search.set_params(cv=folds, estimator=inner)


def _left(estimator: KernelAUCClassifier, spent: float) -> float | None:
    """Return what is left of an estimator's time budget."""
    budget = estimator.time_budget
    if budget is None or spent < budget:
        return None if budget is None else budget - spent
    raise TimeoutError(
        f"time_budget={budget:g} s was over when the table had been read and prepared, after "
        f"{spent:.1f} s, so there is no model. Allow more time."
    )
