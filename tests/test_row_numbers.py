"""A row's number is its position among the rows of the table, from 0; text files add the line."""

import numpy as np
import polars as pl
import pytest

from aucmax import KernelAUCClassifier, LinearAUCClassifier, save_model
from aucmax.cli import commands
from aucmax.reading import byte_streams
from aucmax.reading.read import table_batches
from aucmax.report.cases import shown_cases
from aucmax.tables import TableError, TableModel
from aucmax.tables.evaluation_rows import evaluation_rows
from tests.searches import fit_table, table_model

FAST = {"preset": "paper", "n_landmarks": 10, "Cs": [1.0]}


def table(n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    up = np.arange(n) % 3 == 0
    x = (rng.normal(size=n) + up).round(2)
    return pl.DataFrame({"x": x, "z": rng.normal(size=n).round(2), "y": np.where(up, "yes", "no")})


@pytest.fixture(scope="module")
def model() -> TableModel:
    return fit_table(table(), "y", **FAST)


def with_value(column: str, row: int, value: object, frame: pl.DataFrame | None = None) -> pl.DataFrame:
    frame = table() if frame is None else frame
    values = frame[column].to_list()
    values[row] = value
    return frame.with_columns(pl.Series(column, values, strict=False))


def test_a_frame_has_rows_and_no_lines(model):
    for row in (0, 7):
        with pytest.raises(TableError, match=rf"holds inf in row {row} \(from 0\); numbers"):
            fit_table(with_value("x", row, float("inf")), "y", **FAST)
        with pytest.raises(TableError, match=rf"holds inf in row {row} \(from 0\); numbers"):
            model.scores(with_value("x", row, float("inf")))


def test_a_file_that_is_trained_on_has_the_line_too(tmp_path):
    path = tmp_path / "t.csv"
    with_value("x", 7, float("inf")).write_csv(path)
    with pytest.raises(TableError, match=r"holds inf in row 7 \(from 0; line 9 of .*t\.csv\); numbers"):
        fit_table(path, "y", **FAST)
    text = path.read_text().replace("\n", "\n\n", 1).replace("x,z,y", '"x",z,"y"')
    path.write_text("sep=,\n" + text.replace("\n\n", "\n", 1))
    with pytest.raises(TableError, match=r"holds inf in row 7 \(from 0; line 10 of"):
        fit_table(path, "y", **FAST)
    with_value("x", 7, float("inf")).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"holds inf in row 7 \(from 0\); numbers"):
        fit_table(tmp_path / "t.parquet", "y", **FAST)


def test_rows_without_a_label_or_weight_are_counted(model, tmp_path):
    frame = table().with_columns(w=pl.Series([0.0] * 4 + [1.0] * 56))
    frame = frame.with_columns(y=pl.Series([None] * 3 + frame["y"].to_list()[3:]))
    bad = with_value("x", 30, float("inf"), frame)
    with pytest.raises(TableError, match=r"holds inf in row 30 \(from 0\)"):
        fit_table(bad, "y", weight="w", **FAST)
    with pytest.raises(TableError, match=r"holds inf in row 30 \(from 0\)"):
        table_model(**FAST).fit(bad.drop("y", "w"), bad["y"], sample_weight=bad["w"].to_numpy())
    with pytest.raises(TableError, match=r"holds inf in row 30 \(from 0\)"):
        evaluation_rows(model, bad)
    bad.write_csv(tmp_path / "t.csv")
    with pytest.raises(TableError, match=r"holds inf in row 30 \(from 0; line 32 of"):
        evaluation_rows(model, tmp_path / "t.csv")
    with pytest.raises(TableError, match=r"weight 'w' is -1\.0 in row 2 \(from 0\)"):
        fit_table(with_value("w", 2, -1.0, frame), "y", weight="w", **FAST)


def test_a_label_that_is_not_known_has_its_row_and_line(model, tmp_path):
    bad = with_value("y", 5, "maybe")
    with pytest.raises(
        TableError, match=r"'y' is 'maybe' in row 5 \(from 0\); the labels of the model"
    ):
        evaluation_rows(model, bad)
    bad.write_csv(tmp_path / "t.csv")
    with pytest.raises(TableError, match=r"'y' is 'maybe' in row 5 \(from 0; line 7 of .*t\.csv\)"):
        evaluation_rows(model, tmp_path / "t.csv")


def predict(model, path, folder, rows):
    save_model(model, folder / "m.aucmax")
    out = folder / "out.csv"
    commands.predict(folder / "m.aucmax", path, out, rank=False, rows=rows, force=True)


@pytest.mark.parametrize("piece", [64, 2**24])
@pytest.mark.parametrize("value", [float("inf"), "many"])
def test_predict_counts_over_batches_and_pieces(model, tmp_path, monkeypatch, piece, value):
    monkeypatch.setattr(byte_streams, "PIECE", piece)
    path = tmp_path / "t.csv"
    frame = table().with_columns(note=pl.Series(["two\nlines"] + ["one"] * 59))
    with_value("x", 47, value, frame.with_columns(pl.col("x").cast(pl.String))).write_csv(path)
    with pytest.raises(
        TableError, match=rf"holds '?{value}'? in row 47 \(from 0; line 50 of .*t\.csv\)"
    ):
        predict(model, path, tmp_path, rows=10)


def test_a_score_that_is_not_finite_is_counted_over_batches_and_blocks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] > 0
    fitted = LinearAUCClassifier(C=1e3).fit(X, y)
    X[45] = 1.7e308
    with pytest.raises(ValueError, match=r"The score of row 45 \(from 0\) is not finite"):
        fitted.decision_function(X)
    with pytest.raises(ValueError, match=r"The score of row 45 \(from 0\) is not finite"):
        fitted.decision_function(iter([X[:20], X[20:40], X[40:]]))


def test_rows_of_a_file_for_arrays_have_their_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "1,2,0\n2,1,1\n" * 5 + "1,,0\n")
    with pytest.raises(ValueError, match=r"Column 'b' is nan in row 10 \(from 0; line 12 of .*csv\)"):
        KernelAUCClassifier(preset="paper").fit(path, "y")


def test_libsvm_rows_are_those_that_hold_something(tmp_path):
    path = tmp_path / "t.libsvm"
    path.write_text("# made by hand\n1 1:2\n\n0 1:3\n1 x\n")
    with pytest.raises(TableError, match=r"Row 2 \(from 0; line 5 of .*\) is not in the LIBSVM format"):
        list(table_batches(path))
    rows = "".join(f"{i % 2} 1:{i}.5 2:{i * i % 7}\n" for i in range(30))
    path.write_text("# made by hand\n" + rows + "1 1:1e39\n")
    with pytest.raises(TableError, match=r"holds inf in row 30 \(from 0; line 32 of .*t\.libsvm\)"):
        fit_table(path, "target", **FAST)


def test_a_report_numbers_rows_from_0(model):
    frame = table()
    other = frame.with_columns(
        pl.col("x") + 0.01, pl.Series("y", [None] * 4 + frame["y"].to_list()[4:])
    )
    scored = evaluation_rows(model, other)
    assert scored.number.tolist() == list(range(4, 60))
    alarms = shown_cases(model, scored, ["x"], ("yes", "no"), None)[1]
    shown = alarms["cases"][0]
    worst = int(np.argmax(np.where(scored.positive, -np.inf, scored.score)))
    assert shown["number"] == worst + 4
