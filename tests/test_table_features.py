"""TableFeatures as a step of scikit-learn's tools, and the level means of large categories."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucmax import KernelAUCClassifier, TableFeatures, TableModel, load_model, save_model, to_onnx
from aucmax.metrics import roc_auc
from aucmax.tables.columns import normal_frame
from aucmax.tables.target_encoding import TargetRows, learn_means, out_of_fold_means

FAST = KernelAUCClassifier(preset="paper", n_landmarks=30)


def shops(rows: int = 400, seed: int = 0, n_shops: int = 120) -> tuple[pl.DataFrame, np.ndarray]:
    """Return a table with missing values, in which the shop, one of many, matters."""
    rng = np.random.default_rng(seed)
    shop, size = rng.integers(0, n_shops, rows), rng.normal(size=rows)
    effect = np.random.default_rng(99).normal(size=n_shops)
    table = pl.DataFrame(
        {
            "shop": [f"s{each:03d}" for each in shop],
            "size": np.where(rng.random(rows) < 0.1, None, size).astype(float),
            "plan": rng.choice(["a", "b", "c"], rows),
            "price": [f"${value:,.2f}" for value in rng.uniform(1, 5000, rows)],
        }
    ).with_columns(pl.col("size").fill_nan(None))
    return table, effect[shop] + 0.3 * size + 0.4 * rng.normal(size=rows) > 0.4


def as_pandas(table: pl.DataFrame) -> pd.DataFrame:
    frame = pd.DataFrame(table.to_dict(as_series=False))
    return frame.assign(plan=frame["plan"].astype("category"))


# --- scikit-learn's tools


@parametrize_with_checks([TableFeatures()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [as_pandas, lambda table: table], ids=["pandas", "polars"])
def test_pipelines_are_searched_scored_and_calibrated(kind):
    table, y = shops()
    X = kind(table)
    model = make_pipeline(TableFeatures(), FAST)
    assert cross_val_score(model, X, y, scoring="roc_auc", cv=3).min() > 0.65
    grid = {"tablefeatures__max_levels": [3, 20], "kernelaucclassifier__C": [0.1, 1.0]}
    found = GridSearchCV(model, grid, scoring="roc_auc", cv=2).fit(X, y)
    assert found.best_score_ > 0.65
    calibrated = CalibratedClassifierCV(model, cv=2).fit(X, np.where(y, "yes", "no"))
    assert calibrated.predict_proba(X).shape == (400, 2)


def test_output_names_and_copies():
    table, y = shops()
    made = TableFeatures(max_levels=4)
    before = made.get_params()
    rows = made.fit_transform(table, y)
    assert made.get_params() == before
    names = made.get_feature_names_out()
    assert names.tolist() == made.feature_names_
    assert rows.shape == (400, len(names))
    assert rows.dtype == np.float32
    for kind, frame in (("pandas", as_pandas(table)), ("polars", table)):
        shown = clone(made).set_output(transform=kind).fit(frame, y).transform(frame)
        assert list(shown.columns) == names.tolist()
        np.testing.assert_array_equal(np.asarray(shown), made.transform(frame))
    copy = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(copy.transform(table), made.transform(table))
    np.testing.assert_array_equal(
        made.transform(table), made.preprocessor_.transform(normal_frame(table, made.columns_))
    )
    double = pl.DataFrame({"x": [1.5, None] * 20, "x is missing": [0.5, 1.5] * 20})
    assert TableFeatures().fit(double).get_feature_names_out().tolist() == [
        "x",
        "x is missing",
        "x is missing (2)",
    ]


def test_a_table_model_holds_the_same_features(tmp_path):
    table, y = shops()
    model = TableModel(FAST, random_state=3).fit(table, y)
    own = TableFeatures(random_state=3).fit(table, y)
    assert model.table_features_.columns_ == own.columns_
    np.testing.assert_array_equal(model.features(table), own.transform(table))
    pipeline = make_pipeline(TableFeatures(), FAST).fit(table, y)
    loaded = load_model(save_model(pipeline, tmp_path / "p.aucmax"))
    np.testing.assert_array_equal(loaded.decision_function(table), pipeline.decision_function(table))


def test_raw_frames_given_to_a_classifier_are_refused_with_the_line_to_write():
    table, y = shops()
    line = r"make_pipeline\(TableFeatures\(\), KernelAUCClassifier\(\)\)"
    for raw in (table, as_pandas(table), table.select("size"), as_pandas(table)[["size"]]):
        with pytest.raises(ValueError, match=line):
            KernelAUCClassifier().fit(raw, y)


# --- level means


def test_means_are_shrunk_towards_that_of_all_rows():
    rng = np.random.default_rng(0)
    levels = pl.Series([f"l{each}" for each in rng.integers(0, 50, 2000)])
    positive = rng.random(2000) < 0.3
    noise = learn_means(levels, TargetRows(positive, np.ones(2000)))
    assert np.ptp(noise["means"]) < 0.1  # 40 rows of a level have means that differ by 0.3
    clear = learn_means(levels, TargetRows((levels < "l3").to_numpy(), np.ones(2000)))
    assert {round(mean) for mean in clear["means"]} == {0, 1}
    doubled = learn_means(levels, TargetRows(positive, np.full(2000, 7.0)))
    np.testing.assert_allclose(doubled["means"], noise["means"], rtol=1e-6)


def test_means_agree_with_scikit_learns_encoder_in_order():
    table, y = shops(3000)
    ours = learn_means(table["shop"], TargetRows(y, np.ones(3000)))
    theirs = TargetEncoder(target_type="binary").fit(table.select("shop"), y)
    assert ours["levels"] == theirs.categories_[0].tolist()
    assert np.corrcoef(ours["means"], theirs.encodings_[0])[0, 1] > 0.98


def test_the_label_of_a_row_has_no_part_in_its_own_feature():
    positive, weight = np.arange(400) % 2 == 0, np.ones(400)
    alone = pl.Series([f"l{i}" for i in range(400)])  # no other row has the level
    assert np.ptp(out_of_fold_means(alone, TargetRows(positive, weight))) < 1e-6
    pairs, groups = pl.Series([f"l{i // 2}" for i in range(400)]), np.arange(400) // 2
    assert np.ptp(out_of_fold_means(pairs, TargetRows(positive, weight, groups))) < 1e-6
    few = np.arange(400) == 0  # too few to be cut into folds
    assert np.ptp(out_of_fold_means(pairs, TargetRows(few, weight))) == 0.0


@pytest.mark.filterwarnings("ignore:These scores rank worse than chance")
def test_random_levels_do_not_flatter_the_held_out_auc():
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table = pl.DataFrame({"level": [f"l{each}" for each in rng.integers(0, 200, 600)]})
        model = TableModel(FAST, random_state=seed).fit(table, rng.integers(0, 2, 600))
        assert model.feature_names_[-1] == "level (mean of the label)"
        found.append(model.training_["auc"])
    # One AUC has a standard error of 0.024; features of all rows at once give 0.55 on average.
    assert np.mean(found) == pytest.approx(0.5, abs=0.025)


def test_the_held_out_auc_is_that_of_new_rows():
    table, y = shops(900)
    new, truth = shops(4000, seed=1)
    model = TableModel(FAST).fit(table, y)
    pooled = TableModel(FAST, drop=["shop"]).fit(table, y)
    ours = roc_auc(truth, model.scores(new))
    assert ours > roc_auc(truth, pooled.scores(new)) + 0.1
    assert model.training_["auc"] == pytest.approx(ours, abs=0.04)
    sentence = "the smoothed mean of the label at each of 120 levels"
    assert sentence in model.columns_[0]["treatment"]


def test_splits_by_group_weights_and_a_time_budget_go_with_level_means():
    table, y = shops(600)
    rng = np.random.default_rng(5)
    group, weight = rng.integers(0, 60, 600), rng.integers(1, 3, 600)
    splits = ((np.flatnonzero(group % 3 != k), np.flatnonzero(group % 3 == k)) for k in range(3))
    for cv, groups in ((3, group), (splits, None)):
        model = TableModel(FAST, cv=cv).fit(table, y, sample_weight=weight, groups=groups)
        assert model.training_["auc"] > 0.65
        assert not np.isnan(model.held_out_["score"]).any()
    hurried = clone(FAST).set_params(time_budget=20)
    assert TableModel(hurried).fit(table, y).training_["auc"] > 0.65


def test_level_means_survive_files_and_graphs(tmp_path):
    table, y = shops()
    model = TableModel(FAST, max_levels=10).fit(table, y)
    loaded = load_model(save_model(model, tmp_path / "m.aucmax"))
    np.testing.assert_array_equal(loaded.scores(table), model.scores(table))
    new = table[:2].with_columns(shop=pl.Series(["s000", "never seen"]))
    place = model.feature_names_.index("shop (mean of the label)")
    prior = model.table_features_.encodings_["shop"]["prior"]
    assert model.features(new)[1, place] == pytest.approx(prior)
    pytest.importorskip("onnxruntime")
    pipeline = make_pipeline(TableFeatures(), FAST).fit(table, y)
    for each in (model, pipeline):
        for given in (None, new, table):
            graph = to_onnx(each, X=given)
            assert [one.name for one in graph.graph.input] == ["shop", "size", "plan", "price"]


def test_without_two_labels_rare_levels_are_only_pooled():
    table, _ = shops()
    for y in (None, np.arange(400) % 3):
        made = TableFeatures(max_levels=10, rare_level=1).fit(table, y)
        assert made.encodings_ == {}
        assert len(made.columns_[0]["features"]) == 10
