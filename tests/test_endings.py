"""Fits that rounding makes hopeless still end: with finite scores, or with an error that names why."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from aucmax import (
    KernelAUCClassifier,
    KernelRankSVM,
    LinearAUCClassifier,
)
from aucmax.solvers import preconditioner, starts
from aucmax.solvers.preconditioner import Factor
from tests.searches import kernel_search, linear_search

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)
RAW = {"preset": "paper", "standardize": False, "random_state": 0}


def outcome(model, rows):
    """Finite scores, or the text of a ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converging is what is to be expected
        try:
            scores = model.fit(rows, y).decision_function(rows)
        except ValueError as error:
            return str(error)
    assert np.isfinite(scores).all()
    return scores


@pytest.mark.parametrize("offset", [1e9, 1e15])
@pytest.mark.parametrize(
    ("model", "as_rows"),
    [
        (LinearAUCClassifier(), sparse.csr_matrix),
        (LinearAUCClassifier(standardize=False), np.asarray),
        (linear_search([1.0], cv=2), sparse.csr_matrix),
        (linear_search([1.0], cv=2, standardize=False), np.asarray),
        (KernelAUCClassifier(**RAW, kernel="polynomial"), np.asarray),
        (KernelAUCClassifier(**RAW, kernel="polynomial", gamma=1.0, degree=30), np.asarray),
        (KernelRankSVM(kernel="polynomial", standardize=False), np.asarray),
    ],
    ids=str,
)
def test_rows_far_from_zero(model, as_rows, offset):
    found = outcome(model, as_rows(X + offset))
    assert isinstance(found, np.ndarray) or "overflow" in found


def test_a_search_at_a_large_offset_still_ranks():
    found = outcome(linear_search([1.0], cv=2), sparse.csr_matrix(X + 1e9))
    assert isinstance(found, np.ndarray)
    assert found[y == 1].mean() > found[y == 0].mean()


@pytest.mark.parametrize("C", [1e20, 1e150, 1e300])
@pytest.mark.parametrize("kind", [LinearAUCClassifier, KernelAUCClassifier, KernelRankSVM])
def test_extreme_c(kind, C):
    model = kind(C, preset="paper", random_state=0) if kind is KernelAUCClassifier else kind(C)
    found = outcome(model, X)
    assert isinstance(found, np.ndarray) or "overflow" in found


def test_extreme_values_of_c_in_a_search():
    for model in (linear_search([1e300]), kernel_search([1e300], preset="paper")):
        found = outcome(model, X)
        assert isinstance(found, np.ndarray) or "overflow" in found


def test_the_way_to_a_large_c_has_few_stages(monkeypatch):
    stages = []
    begin = starts.begin_at
    monkeypatch.setattr(
        "aucmax.solvers.stages.begin_at", lambda *where: (stages.append(where[-1]), begin(*where))
    )
    outcome(LinearAUCClassifier(1e300), X)
    assert 0 < len(stages) <= 25


@pytest.mark.parametrize("size", [1.0, 1e150])
def test_a_matrix_that_no_ridge_mends_falls_back_to_its_diagonal(size):
    gram = size * np.array([[1.0, 5.0], [5.0, 1.0]])
    found = preconditioner._factor_with_ridge(gram, 1.0)
    inverse = Factor(found, np.zeros(0))
    assert (inverse(np.array([1.0, 1.0])) > 0).all()


def test_a_diagonal_that_overflows_is_named():
    with pytest.raises(FloatingPointError, match="overflow"):
        preconditioner._factor_with_ridge(np.full((2, 2), 1e300), 1e300)
