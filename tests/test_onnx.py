"""ONNX graphs: the scores and probabilities of Python, from a graph that another runtime runs."""

import json
import os
import sys

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_blobs, make_moons
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import aucmax
from aucmax.metrics.calibration import IsotonicCalibrator, SigmoidCalibrator
from aucmax.persistence import onnx_export
from aucmax.persistence.onnx_export import OnnxError, to_onnx
from tests.searches import kernel_search, linear_search, table_model

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

X, y = make_moons(150, noise=0.3, random_state=0)
X = X * [1.0, 30.0] + [2.0, 100.0]


def kernel(**params):
    """A classifier with the paper's settings, which takes no time to tune itself."""
    return aucmax.KernelAUCClassifier(preset="paper", n_landmarks=30, random_state=0, **params)


CLASSIFIERS = {
    "tuned": kernel().set_params(preset=None),
    "rbf": kernel(),
    "rbf of raw rows": kernel(standardize=False, gamma=1e-3),
    "laplacian": kernel(kernel="laplacian"),
    "two kernels": kernel(kernel="rbf+laplacian"),
    "polynomial": kernel(kernel="polynomial", degree=2, coef0=0.5),
    "linear kernel": kernel(kernel="linear"),
    "fourier": kernel(feature_map="fourier"),
    "fourier laplacian": kernel(feature_map="fourier", kernel="laplacian"),
    "sgd": kernel(solver="sgd"),
    "search": kernel_search(Cs=2, n_landmarks=30, random_state=0),
    "linear": aucmax.LinearAUCClassifier(),
    "linear search": linear_search(Cs=2),
    "SGD": aucmax.SGDAUCClassifier(epochs=2, random_state=0),
    "OAM": aucmax.OAMClassifier(random_state=0),
    "SOLAM": aucmax.SOLAMClassifier(epochs=2, random_state=0),
    "exact": aucmax.KernelRankSVM(),
    "scaled before": make_pipeline(StandardScaler(), kernel(standardize=False)),
    "on features": make_pipeline(
        StandardScaler(),
        aucmax.NystroemFeatures(20, random_state=0),
        aucmax.OAMClassifier(random_state=0),
    ),
    "on waves": make_pipeline(
        StandardScaler(), aucmax.FourierFeatures(20, random_state=0), aucmax.LinearAUCClassifier()
    ),
    "by column number": make_pipeline(
        ColumnTransformer([("b", StandardScaler(), [1]), ("a", "passthrough", slice(0, 1))]), kernel()
    ),
}


def run(graph, **inputs):
    """Outputs by name, from the bytes alone."""
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_graph_scores_as_python_does(name):
    rows = X.astype(np.float32).astype(np.float64)
    model = CLASSIFIERS[name].fit(rows, y)
    graph = to_onnx(model, X=rows)
    scores = run(graph, X=rows.astype(np.float32))["score"]
    assert scores.shape == (150,)
    close(scores, model.decision_function(rows))
    np.testing.assert_allclose(run(graph, X=rows[:1].astype(np.float32))["score"], scores[:1])


def test_rows_are_made_up_where_none_are_given(monkeypatch):
    compared = []
    monkeypatch.setattr(onnx_export, "_refuse_difference", lambda *given: compared.append(given))
    for model in CLASSIFIERS.values():
        to_onnx(model.fit(X, y))
    assert len(compared) == len(CLASSIFIERS)
    for _, found, expected, scale, *_ in compared:
        assert np.ptp(expected) > 0.1 * scale
        np.testing.assert_allclose(found, expected, atol=1e-5 * scale)


def test_many_rows_are_compared_in_batches(monkeypatch):
    monkeypatch.setattr(onnx_export, "_BATCH", 7)
    right, model = onnx_export._expected, kernel().fit(X, y)
    to_onnx(model, X=X)

    def wrong(*given):
        expected, fed = right(*given)
        expected["score"][140] += 1e-3
        return expected, fed

    monkeypatch.setattr(onnx_export, "_expected", wrong)
    with pytest.raises(OnnxError, match="of row 140 differs"):
        to_onnx(model, X=X)


def test_several_classes_have_a_score_each():
    rows, classes = make_blobs(120, centers=3, random_state=0)
    model = kernel().fit(rows, np.array(["a", "b", "c"])[classes])
    graph = to_onnx(model, X=rows, input_type="float64")
    close(run(graph, X=rows)["score"], model.decision_function(rows))
    assert {each.key: each.value for each in graph.metadata_props}["classes"] == '["a", "b", "c"]'


def test_a_model_in_float32_is_compared_in_double():
    """Its weights over landmarks are large and opposite: float32 scores have fewer than five digits."""
    rows = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
    labels = np.sin(2 * rows[:, 0]) * rows[:, 1] + rows[:, 2] ** 2 > 1
    model = aucmax.KernelAUCClassifier(C=1e4, kernel="rbf", gamma=0.01, n_landmarks=200, random_state=0)
    model.fit(rows, labels)
    score = run(to_onnx(model, X=rows), X=rows)["score"]
    twin = onnx_export._in_double(model)
    close(score, twin.decision_function(rows.astype(np.float64)))
    python = model.decision_function(rows)
    assert 1e-5 < np.abs(score - python).max() / np.abs(python).max() < 1e-2


def test_an_exact_machine_without_support_scores_zero():
    model = aucmax.KernelRankSVM().fit(X, y)
    model.support_rows_, model.dual_coef_ = model.support_rows_[:0], model.dual_coef_[:, :0]
    score = run(to_onnx(model, X=X), X=X.astype(np.float32))["score"]
    np.testing.assert_allclose(score, model.decision_function(X))


def test_columns_that_float32_cannot_hold_need_float64():
    rows = X + np.array([1.7e9, 0.0])
    model = kernel().fit(rows, y)
    for given in (rows, None):
        with pytest.raises(OnnxError, match=r"does not agree .* need input_type=\"float64\""):
            to_onnx(model, X=given)
    close(
        run(to_onnx(model, X=rows, input_type="float64"), X=rows)["score"],
        model.decision_function(rows),
    )
    with pytest.raises(ValueError, match="input_type must be one of"):
        to_onnx(model, input_type="float16")


# Tables


def frame(rows=300):
    pl = pytest.importorskip("polars")
    random = np.random.default_rng(0)
    towns = ["Bath", "Hull", "Älvdalen", "rare 1", "rare 2"]
    return pl.DataFrame(
        {
            "age": holes(random, random.integers(18, 90, rows).astype(float)),
            "year": random.integers(1990, 2020, rows),
            "town": holes(random, random.choice(towns, rows, p=[0.5, 0.3, 0.18, 0.01, 0.01])),
            "member": holes(random, random.random(rows) < 0.5),
            "score": random.normal(size=rows),
            "same": ["x"] * rows,
        }
    )


def holes(random, values):
    return [None if random.random() < 0.1 else each for each in values.tolist()]


def target(table):
    age = table["age"].fill_null(50).to_numpy()
    return np.where(age / 20 + 2 * (table["town"].to_numpy() == "Hull") > 3.5, "yes", "no")


def strange(table):
    """The same table with levels that training has not seen."""
    pl = pytest.importorskip("polars")
    town = ["never seen" if i % 7 == 0 else each for i, each in enumerate(table["town"].to_list())]
    return table.with_columns(pl.Series("town", town))


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("kind", ["rbf", "laplacian"])
def test_a_table_of_all_kinds_of_columns_goes_in_whole(kind, calibration, tmp_path):
    table = frame()
    model = table_model(preset="paper", Cs=2, n_landmarks=40, kernel=kind, calibration=calibration)
    model.fit(table, target(table))
    asked = strange(table)
    to_onnx(model, tmp_path / "made.onnx")
    graph = to_onnx(model, tmp_path / "m.onnx", asked)
    assert (tmp_path / "m.onnx").read_bytes() == graph.SerializeToString()
    assert [each.name for each in graph.graph.input] == ["age", "year", "town", "member", "score"]
    inputs = {
        name: asked[name].cast(float).to_numpy().astype(np.float32)[:, None]
        for name in ("age", "year", "member", "score")
    }
    inputs["town"] = np.array([each or "" for each in asked["town"]], dtype=object)[:, None]
    found = run(graph, **inputs)
    assert list(found) == ["score_", "probability"]  # the table has a column named score
    close(found["score_"], model.scores(asked))
    exact = model.calibrator_.predict(found["score_"])
    np.testing.assert_allclose(found["probability"], exact, rtol=0, atol=1e-9)
    told = {each.key: each.value for each in graph.metadata_props}
    assert told["classes"] == '["no", "yes"]'
    assert json.loads(told["positive"]) == model.positive_label_
    assert float(told["threshold"]) == model.threshold_.threshold


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_pipeline_over_a_frame_takes_its_columns_by_name(library):
    table = frame().drop("score", "member").fill_null(strategy="forward").fill_null("Bath")
    if library == "pandas":
        pd = pytest.importorskip("pandas")
        table = pd.DataFrame({name: table[name].to_list() for name in table.columns})
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age"]),
            ("town", OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist"), ["town"]),
            ("decade", OneHotEncoder(drop="first", handle_unknown="ignore"), ["year"]),
        ]
    )
    model = make_pipeline(columns, kernel()).fit(table, np.asarray(table["year"]) % 2)
    graph = to_onnx(model, X=table)
    assert [each.name for each in graph.graph.input] == ["age", "year", "town"]
    to_onnx(model)


@pytest.mark.parametrize("calibrator", [SigmoidCalibrator(), IsotonicCalibrator()])
def test_probabilities_agree_over_all_scores(calibrator):
    random = np.random.default_rng(0)
    positive = random.random(500) < 0.3
    calibrator.fit(random.normal(size=500) + positive, positive)
    graph = onnx_export.Graph("float64")
    score = graph.add("Squeeze", graph.input("s", 1), graph.constant([1], np.int64))
    graph.output("p", onnx_export.probability(graph, calibrator, score), ["n"])
    asked = np.concatenate([np.linspace(-5, 5, 2001), [-1e6, -100, -20, 20, 100, 1e6]])
    found = run(graph.model({}), s=asked[:, None])["p"]
    np.testing.assert_allclose(found, calibrator.predict(asked), rtol=0, atol=1e-12)


# What goes wrong


def test_a_graph_that_does_not_agree_is_not_written(tmp_path, monkeypatch):
    right = onnx_export.score_of
    monkeypatch.setattr(
        onnx_export, "score_of", lambda graph, *rest: graph.add("Neg", right(graph, *rest))
    )
    with pytest.raises(OnnxError, match=r"the score of row [0-9]+ differs by"):
        to_onnx(kernel().fit(X, y), tmp_path / "m.onnx", X)
    assert not list(tmp_path.iterdir())


def test_a_step_that_is_not_known_is_named():
    with pytest.raises(OnnxError, match="to_onnx does not support PCA"):
        to_onnx(make_pipeline(PCA(2), kernel()).fit(X, y))
    with pytest.raises(OnnxError, match=r"takes a classifier of aucmax.* got LogisticRegression"):
        to_onnx(LogisticRegression().fit(X, y))
    with pytest.raises(NotFittedError):
        to_onnx(kernel())


def test_without_onnx_the_sentence_has_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install .*"onnx>=[\d.]+" "onnxruntime>='):
        to_onnx(kernel().fit(X, y))


def test_without_a_runtime_a_warning_says_that_nothing_was_compared(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.warns(UserWarning, match="was not compared with the model"):
        to_onnx(kernel().fit(X, y))


def test_where_a_graph_cannot_be_written_is_named(tmp_path):
    model = aucmax.LinearAUCClassifier().fit(X, y)
    with pytest.raises(OSError, match=r"cannot write .*m\.onnx"):
        to_onnx(model, tmp_path / "nowhere" / "m.onnx")
    with pytest.raises(OSError, match="is a folder: name a file in it"):
        to_onnx(model, tmp_path)
    assert os.listdir(tmp_path) == []
