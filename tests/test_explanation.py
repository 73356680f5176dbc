"""Contributions of columns: against a quadrature of gradients, and their sums against scores."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from aucmax import (
    KernelAUCClassifier,
    KernelRankSVM,
    LinearAUCClassifier,
    OAMClassifier,
    SGDAUCClassifier,
    TableModel,
    explain,
)
from aucmax.features.kernels import KernelSpec, LandmarkKernel
from aucmax.features.line_gradients import mean_gradients
from tests.searches import fit_table
from tests.test_importance import MODELS, rows
from tests.test_table_model import FAST, people

NAMES = [name for name in MODELS if name != "linear, not standardised"]


def by_quadrature(model, X, reference, panels=400):
    """The slow twin: gradients at many points of every line, from finite differences of the score."""
    t = (np.arange(panels) + 0.5) / panels
    at = (reference + t[:, None, None] * (X - reference)).reshape(-1, X.shape[1])
    out = np.empty(X.shape)
    for f, unit in enumerate(1e-5 * X.std(axis=0)):
        shift = np.eye(X.shape[1])[f] * unit
        up, down = (model.decision_function(at + s * shift) for s in (1, -1))
        out[:, f] = ((up - down) / (2 * unit)).reshape(panels, len(X)).mean(axis=0)
    return out * (X - reference)


@pytest.mark.parametrize("name", NAMES)
def test_contributions_are_gradients_integrated_along_the_line(name):
    X, y = rows()
    model = clone(MODELS[name]).fit(X, y)
    some, reference = X[:4] + 1e-3, X.mean(axis=0)
    found = explain(model, some, reference=reference)
    slow = by_quadrature(model, some, reference)
    np.testing.assert_allclose(found.contributions, slow, atol=2e-3 * np.ptp(found.scores))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NAMES)
def test_contributions_add_up_to_the_difference_of_scores(name, dtype):
    X, y = (each.astype(dtype) for each in rows())
    model = clone(MODELS[name]).fit(X, y)
    found = explain(model, X)
    np.testing.assert_array_equal(found.scores, model.decision_function(X))
    missed = np.abs(found.contributions.sum(axis=1) - (found.scores - found.reference_score))
    assert missed.max() == found.error
    # Scores of float32 rows are themselves rounded to about 1e-5.
    assert found.error < (1e-11 if dtype == np.float64 else 1e-4) * np.ptp(found.scores)
    assert found.names == ["0", "1", "2", "3"]


@pytest.mark.parametrize("standardize", [True, "quantile", False])
@pytest.mark.parametrize("metric", ["learned", "full", None])
def test_scalers_and_metrics_keep_the_sum(standardize, metric):
    X, y = rows(300)
    X = X / X.std(axis=0)
    machine = KernelAUCClassifier(
        n_landmarks=60, kernel="rbf", metric=metric, standardize=standardize, random_state=0, C=1.0
    )
    found = explain(machine.fit(X, y), X[:50])
    assert found.error < 1e-9 * np.ptp(found.scores)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "rbf+laplacian", "polynomial", "linear"])
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 30.0])
def test_means_on_lines_short_and_long(kernel, scale):
    rng = np.random.default_rng(0)
    U, start = rng.normal(size=(30, 5)), rng.normal(size=5)
    U[3] = start  # a line that starts at a landmark
    step = scale * rng.normal(size=(6, 5))
    step[0], step[1, 2] = 0.0, 0.0
    spec = KernelSpec(kernel, 0.3, gamma_l1=0.2)
    width = 30 * len(spec.parts)
    coef = rng.normal(size=width)
    slope = mean_gradients(U, spec, start, step, coef)
    assert np.isfinite(slope).all()
    values = LandmarkKernel(U, spec)(
        np.vstack([start, start + step]), np.empty((7, width), dtype=np.float64)
    )
    moved = values[1:] @ coef - values[0] @ coef
    largest = np.abs(values @ coef).max()
    np.testing.assert_allclose((slope * step).sum(axis=1), moved, atol=2e-13 * max(largest, 1.0))
    if scale == 1e-9 and "laplacian" not in kernel:
        near = LandmarkKernel(U, spec).gradients(start[None], coef[None])[0]
        np.testing.assert_allclose(slope, np.broadcast_to(near, slope.shape), atol=1e-6)


def test_a_row_like_the_reference_has_no_contributions():
    X, y = rows()
    model = clone(MODELS["rbf"]).fit(X, y)
    found = explain(model, X[:1], reference=X[0])
    assert not found.contributions.any()
    assert found.reference_score == found.scores[0]
    assert found.top()[0] == ([], [])


def test_the_top_columns_of_a_row():
    X, y = rows()
    found = explain(clone(MODELS["linear"]).fit(X, y), X)
    for row, (raises, lowers) in enumerate(found.top(2)):
        parts = found.contributions[row]
        assert [each.by for each in raises] == sorted(parts[parts > 0], reverse=True)[:2]
        assert [each.by for each in lowers] == sorted(parts[parts < 0])[:2]
        for name, value, by in raises + lowers:
            assert (value, by) == (X[row, int(name)], parts[int(name)])
    with pytest.raises(ValueError, match="k must be"):
        found.top(0)


def test_of_several_classes_one_is_explained():
    X, y = rows()
    y = y + 2 * (X[:, 3] > 7)
    for model in (clone(MODELS["rbf"]), KernelRankSVM(), LinearAUCClassifier()):
        model.fit(X, y)
        with pytest.raises(ValueError, match=r"4 classes .* label must name .* The classes are 0, 1"):
            explain(model, X)
        found = explain(model, X, label=2)
        np.testing.assert_array_equal(found.scores, model.decision_function(X)[:, 2])
        assert found.error < 1e-9
    with pytest.raises(ValueError, match="got 9"):
        explain(model, X, label=9)


def test_two_classes_have_one_score():
    X, y = rows()
    model = clone(MODELS["rbf"]).fit(X, y)
    assert explain(model, X[:3], label=1).error < 1e-9
    with pytest.raises(ValueError, match="score of a model of two classes is that of 1"):
        explain(model, X[:3], label=0)


def test_stochastic_models_are_explained():
    X, y = rows()
    machine = KernelAUCClassifier(n_landmarks=30, solver="sgd", kernel="rbf", C=1.0, random_state=0)
    for model in (SGDAUCClassifier(random_state=0), OAMClassifier(random_state=0), machine):
        found = explain(model.fit(X, y), X)
        assert found.error < 1e-9 * np.ptp(found.scores)


def test_sparse_rows():
    X, y = rows()
    X = sparse.csr_matrix(X * (np.quantile(X, 0.6, axis=0) < X))
    for model in (clone(MODELS["rbf"]), clone(MODELS["linear"])):
        found = explain(model.fit(X, y), X)
        assert found.error < 1e-9 * np.ptp(found.scores)


def test_what_cannot_be_explained_is_refused():
    X, y = rows()
    with pytest.raises(NotFittedError):
        explain(KernelAUCClassifier(), X)
    with pytest.raises(ValueError, match="no contributions for DecisionTreeClassifier"):
        explain(DecisionTreeClassifier().fit(X, y), X)
    plain = LinearAUCClassifier(standardize=False, tol=1e-2).fit(X, y)
    with pytest.raises(ValueError, match="pass a row as reference"):
        explain(plain, X)
    assert explain(plain, X, reference=X[0]).error < 1e-9
    with pytest.raises(ValueError, match="reference must be one row; got 2"):
        explain(plain, X, reference=X[:2])


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture(scope="module")
def model(table) -> TableModel:
    return fit_table(table, "rich", **FAST)


def test_a_table_is_explained_by_its_own_columns(model, table):
    found = model.explain(table)
    assert found.names == ["age", "job", "hours", "married", "gain"]
    np.testing.assert_array_equal(found.scores, model.scores(table))
    assert found.error < 1e-4 * np.ptp(found.scores)
    used = found.values[1].to_list()
    assert used == table["job"].to_list()
    again = explain(model, table[:9])
    np.testing.assert_allclose(again.contributions, found.contributions[:9], rtol=1e-9, atol=1e-12)


def test_the_features_of_a_column_are_added_up(model, table):
    """A category is one column with all its levels, and so is a number with the mark of its gaps."""
    features = model.features(table)
    by_feature = explain(model.model_, features).contributions
    columns = {column["name"]: column["features"] for column in model.columns_}
    found = model.explain(table)
    for i, name in enumerate(found.names):
        own = [model.feature_names_.index(each) for each in columns[name]]
        assert len(own) > 1 or name in ("age", "married", "gain")
        np.testing.assert_allclose(found.contributions[:, i], by_feature[:, own].sum(axis=1))


def test_a_table_can_be_compared_with_a_row_of_it(model, table):
    found = model.explain(table[:20], reference=table[3:4])
    assert found.reference_score == found.scores[3]
    assert not found.contributions[3].any()
    same = table[:20]["job"].eq_missing(table["job"][3]).to_numpy()
    assert not found.contributions[same, found.names.index("job")].any()
    with pytest.raises(ValueError, match="label is for models of several classes"):
        explain(model, table, label=">50K")


def test_a_column_that_decides_is_named():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"noise": rng.normal(size=400), "plan": rng.choice(["a", "b", "c"], 400)})
    model = fit_table(table.with_columns(y=table["plan"] == "b"), "y", **FAST)
    for (raises, lowers), plan in zip(model.explain(table).top(1), table["plan"], strict=True):
        reason = (raises if plan == "b" else lowers)[0]
        assert (reason.name, reason.value) == ("plan", plan)
