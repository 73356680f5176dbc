import numpy as np
import polars as pl
import pytest
from sklearn.datasets import make_classification

from aucmax import (
    KernelAUCClassifier,
    LinearAUCClassifier,
    SGDAUCClassifier,
    row_blocks,
)
from aucmax.metrics import roc_auc
from aucmax.rows import sources
from tests.searches import kernel_search, linear_search


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(3000, 6, n_informative=4, weights=[0.85], random_state=0)
    return X * 10.0 + 5.0, np.where(y == 1, "yes", "no")


@pytest.fixture(scope="module")
def places(problem, tmp_path_factory):
    """The same rows in every place a fit takes them from: what to hand to it."""
    X, y = problem
    folder = tmp_path_factory.mktemp("rows")
    names = [f"x{i}" for i in range(X.shape[1])]
    frame = pl.DataFrame(X, schema=names).with_columns(pl.Series("y", y))
    frame.write_parquet(folder / "all.parquet")
    frame.write_csv(folder / "all.csv")
    (folder / "parts").mkdir()
    for number, part in enumerate(frame.iter_slices(1100)):
        part.write_parquet(folder / "parts" / f"{number}.parquet")
    np.save(folder / "X.npy", X)
    mapped = np.lib.format.open_memmap(folder / "X.npy", mode="r")
    return {
        "mapped": (mapped, y),
        "slice of a mapped array": (mapped[:], y),
        "parquet": (folder / "all.parquet", "y"),
        "csv": (str(folder / "all.csv"), "y"),
        "folder": (folder / "parts", "y"),
        "blocks": (Blocks(X, y), None),
    }


class Blocks:
    def __init__(self, X, y, size=700):
        self.X, self.y, self.size = X, y, size

    def __iter__(self):
        for start in range(0, len(self.X), self.size):
            yield self.X[start : start + self.size], self.y[start : start + self.size]


def named(model, X):
    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pl.DataFrame(X, schema=names.tolist())


KINDS = ["mapped", "slice of a mapped array", "parquet", "csv", "folder", "blocks"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_that_of_the_rows_in_memory(places, problem, kind, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_ROWS", 512)
    X, y = problem
    expected = KernelAUCClassifier(preset="paper", n_landmarks=60, tol=1e-8, random_state=0).fit(X, y)
    source, target = places[kind]
    model = KernelAUCClassifier(preset="paper", n_landmarks=60, tol=1e-8, random_state=0).fit(
        source, target
    )
    np.testing.assert_allclose(
        model.feature_map_.landmarks_, expected.feature_map_.landmarks_, rtol=1e-9
    )
    scores = expected.decision_function(X)
    # The landmarks are the same. The solver meets rows in the order of the file, and comes to the same
    # minimum on a slightly different way.
    np.testing.assert_allclose(model.decision_function(named(model, X)), scores, atol=1e-3)
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=1e-7)
    np.testing.assert_array_equal(
        model.decision_function(source), model.decision_function(named(model, X))
    )
    assert model.n_features_in_ == 6
    if kind in ("parquet", "csv", "folder"):
        assert model.feature_names_in_.tolist() == [f"x{i}" for i in range(6)]


@pytest.mark.parametrize("kind", ["mapped", "folder", "blocks"])
@pytest.mark.parametrize(
    "model",
    [
        kernel_search([0.1, 1.0], n_landmarks=40, tol=1e-7, random_state=0),
        KernelAUCClassifier(
            preset="paper",
            n_landmarks=40,
            landmarks="class-kmeans",
            gamma="scale",
            tol=1e-8,
            random_state=0,
        ),
        KernelAUCClassifier(
            preset="paper", n_landmarks=40, feature_map="fourier", tol=1e-8, random_state=0
        ),
        KernelAUCClassifier(preset="paper", n_landmarks=40, max_memory="4MB", tol=1e-8, random_state=0),
        LinearAUCClassifier(tol=1e-8),
        linear_search([0.1, 1.0], tol=1e-8),
    ],
    ids=["search", "class-kmeans", "fourier", "little memory", "linear", "linear search"],
)
def test_every_model_takes_them(places, problem, kind, model):
    X, y = problem
    expected = model.fit(X, y).decision_function(X)
    scores = model.fit(*places[kind]).decision_function(named(model, X))
    np.testing.assert_allclose(scores, expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["mapped", "folder", "blocks"])
def test_pairs_drawn_from_a_file_serve_as_well_as_those_from_memory(places, problem, kind):
    X, y = problem
    model = KernelAUCClassifier(
        preset="paper", n_landmarks=40, max_iter=3, solver="sgd", random_state=0
    )
    inside = roc_auc(y == "yes", model.fit(X, y).decision_function(X))
    outside = roc_auc(y == "yes", model.fit(*places[kind]).decision_function(named(model, X)))
    assert inside > 0.9
    assert abs(inside - outside) < 0.01


def test_weights_come_with_the_rows_and_zero_means_absent(problem, tmp_path):
    X, y = problem
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    expected = KernelAUCClassifier(preset="paper", n_landmarks=50, tol=1e-8, random_state=0).fit(
        X, y, weight
    )
    frame = pl.DataFrame(X).with_columns(y=pl.Series(y), w=pl.Series(weight))
    frame.write_parquet(tmp_path / "w.parquet")
    model = KernelAUCClassifier(preset="paper", n_landmarks=50, tol=1e-8, random_state=0)
    model.fit(tmp_path / "w.parquet", "y", sample_weight="w")
    np.testing.assert_allclose(
        model.decision_function(named(model, X)), expected.decision_function(X), atol=1e-3
    )
    blocks = iter([(X[:900], y[:900], weight[:900]), (X[900:], y[900:], weight[900:])])
    model.fit(blocks, None)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-3)


def test_blocks_of_a_file_feed_a_stream(places, problem):
    X, y = problem
    model = SGDAUCClassifier(random_state=0)
    for block, labels in row_blocks(places["parquet"][0], "y", rows=500):
        model.partial_fit(block, labels, classes=["no", "yes"])
    again = SGDAUCClassifier(random_state=0)
    for start in range(0, 3000, 500):
        again.partial_fit(X[start : start + 500], y[start : start + 500], classes=["no", "yes"])
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-6)


def test_blocks_that_do_not_fit_together_are_refused(problem):
    X, y = problem
    model = KernelAUCClassifier(preset="paper", n_landmarks=20)
    with pytest.raises(ValueError, match=r"Block 1 \(from row 5\) has 5 columns, but .* have 6"):
        model.fit(iter([(X[:5], y[:5]), (X[5:9, :5], y[5:9])]), None)
    with pytest.raises(ValueError, match=r"Block 0 .* has 5 rows and 4 labels"):
        model.fit(iter([(X[:5], y[:4])]), None)
    with pytest.raises(ValueError, match="no block of rows"):
        model.fit(iter([]), None)
    with pytest.raises(ValueError, match="Blocks bring their own labels"):
        model.fit(iter([(X, y)]), y)
    with pytest.raises(ValueError, match=r"must be \(X, y\)"):
        model.fit(iter([X]), None)
    first, second = (pl.DataFrame(X[:5], schema=list(names)) for names in ("abcdef", "abcdeg"))
    with pytest.raises(ValueError, match=r"Block 1 .* has the columns"):
        model.fit(iter([(first, y[:5]), (second, y[:5])]), None)
    bad = X[:20].copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="Column 2 is nan in row 13"):
        model.fit(iter([(X[:10], y[:10]), (bad, y[:20])]), None)


def test_a_folder_of_files_with_other_columns_is_refused(problem, tmp_path):
    X, y = problem
    model = KernelAUCClassifier(preset="paper", n_landmarks=20)
    with pytest.raises(FileNotFoundError, match="no Parquet file in the folder"):
        model.fit(tmp_path, "y")
    frame = pl.DataFrame(X).with_columns(y=pl.Series(y))
    frame.write_parquet(tmp_path / "a.parquet")
    frame.drop("column_3").write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet lacks the column 'column_3'"):
        model.fit(tmp_path, "y")
    frame.with_columns(more=1.0).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has a column 'more', which the files before"):
        model.fit(tmp_path, "y")
    frame.with_columns(pl.col("column_3").cast(pl.String)).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"Column 'column_3' of .* must hold numbers"):
        model.fit(tmp_path, "y")
    with pytest.raises(ValueError, match="name of the column of labels"):
        model.fit(tmp_path, y)
    with pytest.raises(ValueError, match="Did you mean 'y'"):
        model.fit(tmp_path, "Y")


def test_a_mapped_array_with_a_hole_is_refused(problem, tmp_path):
    X, y = problem
    holed = X.copy()
    holed[1234, 1] = np.inf
    np.save(tmp_path / "X.npy", holed)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="Column 1 is inf in row 1234"):
        KernelAUCClassifier(preset="paper", n_landmarks=20).fit(mapped, y)


def test_nothing_is_left_on_disk_after_a_fit_or_a_failure(places, problem, tmp_path, monkeypatch):
    X, y = problem
    monkeypatch.setattr(sources.tempfile, "tempdir", str(tmp_path))
    KernelAUCClassifier(preset="paper", n_landmarks=20).fit(*places["blocks"])
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="Block 1"):
        KernelAUCClassifier(preset="paper", n_landmarks=20).fit(iter([(X, y), (X[:, :2], y)]), None)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_named(places, monkeypatch):
    class Full:
        def write(self, _):
            raise OSError(28, "No space left on device")

        def tell(self):
            return 12_000_000

        def close(self):
            pass

    monkeypatch.setattr("pathlib.Path.open", lambda *_, **__: Full())
    with pytest.raises(OSError, match=r"is full after 12 MB. Free some space, or set TMPDIR"):
        KernelAUCClassifier(preset="paper", n_landmarks=20).fit(*places["blocks"])
