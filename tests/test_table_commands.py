"""The commands for people with a table, end to end on files."""

import contextlib
import errno
import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from jsonschema import Draft202012Validator
from sklearn.metrics import roc_auc_score

from aucmax import load_model, predict_table
from aucmax.cli import main
from aucmax.metrics.evaluation import evaluate

SCHEMAS = Path(__file__).parent.parent / "docs" / "schemas"


def people(rows=900, seed=0):
    """A table as people have them: numbers with holes, categories, yes and no, a name for each row."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows).astype(float)
    plan = rng.choice(["basic", "plus", "gold"], rows, p=[0.6, 0.3, 0.1])
    since = rng.exponential(3.0, rows).round(2)
    member = rng.random(rows) < 0.4
    score = 0.08 * (age - 50) * (plan == "basic") + 1.5 * member - 0.3 * since
    leaves = score + rng.logistic(size=rows) > 2.2
    return pl.DataFrame(
        {
            "customer": [f"c{seed}-{i:05d}" for i in range(rows)],
            "age": pl.Series(age).set(pl.Series(rng.random(rows) < 0.05), None),
            "plan": plan,
            "years": since,
            "member": member,
            "left": np.where(leaves, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with tables and a model trained by the command."""
    folder = tmp_path_factory.mktemp("tables")
    people().write_csv(folder / "train.csv")
    people(400, seed=1).write_csv(folder / "new.csv")
    code, told = run(
        folder,
        *[
            "train",
            "train.csv",
            "--target",
            "left",
            "--landmarks",
            "60",
            "--gammas",
            "3",
            "--preset",
            "paper",
            "--json",
        ],
    )
    assert code == 0
    (folder / "train.json").write_text(told)
    return folder


def run(folder, *arguments):
    """Run a command in a folder; its exit code, and what it printed as results."""
    before, out = Path.cwd(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    argv, sys.argv = sys.argv, ["aucmax", *" ".join(map(str, arguments)).split()]
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out):
            main()
    except SystemExit as end:
        code = end.code or 0
    else:
        code = 0
    finally:
        os.chdir(before)
        sys.argv = argv
    return code, out.buffer.getvalue().decode()


def check_schema(name, told):
    found = json.loads(told)
    Draft202012Validator(json.loads((SCHEMAS / f"{name}.json").read_text())).validate(found)
    return found


def test_train_saves_a_model_and_tells_all(place, capsys):
    told = check_schema("train", (place / "train.json").read_text())
    assert (told["rows"], told["positive"], told["target"]) == (900, "yes", "left")
    assert told["auc_low"] < told["auc"] < told["auc_high"]
    assert {column["name"]: column["kind"] for column in told["columns"]} == {
        "customer": "dropped",
        "age": "number",
        "plan": "category",
        "years": "number",
        "member": "boolean",
    }
    model = load_model(place / "model.aucmax")
    assert model.training_["auc"] == told["auc"]
    assert len({record["gamma"] for record in told["path"]}) == 3  # gamma is chosen, too


def test_train_says_aloud_what_it_took_for_positive(place, capsys):
    code, told = run(
        place,
        "train train.csv --target left --landmarks 30 --gammas 1 --drop years --aim recall=0.9",
        "--calibration isotonic --time-budget 30 -o b.aucmax",
    )
    assert code == 0
    said = capsys.readouterr().err
    assert "of them with 'yes' in 'left', which is ranked high (the rarer label)" in said
    assert "cross-validated AUC" in told
    assert "threshold (recall=0.9)" in told
    assert "years" not in told
    assert load_model(place / "b.aucmax").threshold_.recall >= 0.9


def test_weights_and_groups_are_columns(place, tmp_path):
    table = people().with_columns(
        pl.Series("w", np.where(np.arange(900) % 2, 2.0, 1.0)), pl.Series("home", np.arange(900) // 3)
    )
    table.write_parquet(tmp_path / "t.parquet")
    code, told = run(
        tmp_path,
        "train t.parquet --target left --weight w --group home --landmarks 30 --gammas 1 --json",
    )
    assert code == 0
    found = check_schema("train", told)
    assert (found["weight"], found["group"], found["auc_low"]) == ("w", "home", None)
    assert "w" not in {column["name"] for column in found["columns"]}


def test_predict_gives_the_models_scores_in_batches_of_any_size(place):
    model, table = load_model(place / "model.aucmax"), people(400, seed=1)
    scores = model.scores(table)
    parts = {}
    for rows in (7, 100, 1000):
        code, _ = run(
            place, f"predict model.aucmax new.csv --id customer --rows {rows} -o s.csv --force"
        )
        assert code == 0
        parts[rows] = pl.read_csv(place / "s.csv")
        assert parts[rows].columns == ["customer", "score", "probability", "label", "rank"]
    for found in parts.values():
        np.testing.assert_allclose(found["score"], scores, atol=2e-5)  # float32 products
        assert found["customer"].to_list() == table["customer"].to_list()
        np.testing.assert_allclose(found["probability"], model.predict_proba(table)[:, 1], atol=2e-5)
        assert found["label"].to_list() == model.predict(table).tolist()
    ranks = parts[1000]["rank"].to_numpy()
    np.testing.assert_array_equal(np.argsort(ranks, kind="stable"), np.argsort(-scores, kind="stable"))
    assert ranks.min() == 1


@pytest.mark.parametrize("ending", ["tsv", "parquet", "arrow"])
def test_predict_writes_what_the_name_asks_for(place, ending):
    code, told = run(place, f"predict model.aucmax new.csv --no-rank --rows 150 -o s.{ending} --json")
    assert code == 0
    assert check_schema("predict", told)["rows"] == 400
    read = {"tsv": lambda p: pl.read_csv(p, separator="\t"), "parquet": pl.read_parquet}
    found = read.get(ending, pl.read_ipc)(place / f"s.{ending}")
    assert found.columns == ["score", "probability", "label"]
    assert found.height == 400
    assert not [path.name for path in place.iterdir() if path.name.startswith(".")]


def test_predict_table_writes_from_python_what_the_command_writes(place, tmp_path):
    model, paths = load_model(place / "model.aucmax"), (place / "new.csv", tmp_path / "a.csv")
    done = predict_table(model, *map(str, paths), keep=["customer"])
    assert run(place, "predict model.aucmax new.csv --id customer -o", tmp_path / "b.csv")[0] == 0
    assert done.rows == 400
    assert paths[1].read_text() == (tmp_path / "b.csv").read_text()
    with pytest.raises(ValueError, match=r"a\.txt must end in one of \.csv, "):
        predict_table(model, paths[0], tmp_path / "a.txt")
    assert not (tmp_path / "a.txt").exists()


def test_predict_prints_csv_where_no_file_is_named(place):
    code, told = run(place, "predict", "model.aucmax", "new.csv", "--id", "customer")
    assert code == 0
    lines = told.splitlines()
    assert lines[0] == "customer,score,probability,label,rank"
    assert len(lines) == 401


def test_predict_into_a_pipe_that_closes_says_nothing(place):
    command = [sys.executable, "-m", "aucmax", "predict", "model.aucmax", "new.csv"]
    pipe = subprocess.Popen(
        command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    pipe.stdout.close()  # as head does
    assert pipe.stderr.read() == ""
    pipe.stderr.close()
    assert pipe.wait() == 1


def test_a_column_kept_is_as_it_was_written_though_the_model_takes_it_for_a_number(tmp_path):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"account": rng.integers(10**17, 10**18, 200), "x": rng.normal(size=200)})
    table = table.with_columns(y=(pl.col("x") > 0.5).cast(pl.Int8))
    table.write_csv(tmp_path / "t.csv")
    run(tmp_path, "train t.csv --target y --landmarks 20 --preset paper --number account")
    assert "account" in load_model(tmp_path / "model.aucmax").reading_schema
    assert run(tmp_path, "predict model.aucmax t.csv --id account -o s.csv")[0] == 0
    found = pl.read_csv(tmp_path / "s.csv")
    assert found["account"].to_list() == table["account"].to_list()
    model = load_model(tmp_path / "model.aucmax")
    np.testing.assert_allclose(found["score"], model.scores(table), atol=2e-5)


def test_a_column_is_kept_once_and_endings_are_read_in_any_case(place):
    code, _ = run(place, "predict model.aucmax new.csv --id plan --id plan --no-rank -o S.CSV")
    assert code == 0
    assert pl.read_csv(place / "S.CSV").columns == ["plan", "score", "probability", "label"]


def test_a_warning_is_one_sentence(place, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _ = run(place, "train train.csv --target left --landmarks 2000 --gammas 1 -o w.aucmax")
    assert code == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("aucmax: ")]
    assert said[0].startswith("aucmax: n_landmarks=2000 is more than")


def test_predict_takes_columns_in_any_order_with_others_between(place, tmp_path):
    table = people(400, seed=1)
    mixed = table.select("member", "left", "years", "plan", "age").with_columns(pl.lit(3).alias("new"))
    mixed.write_csv(tmp_path / "mixed.csv")
    for name, file in (("a.csv", place / "new.csv"), ("b.csv", tmp_path / "mixed.csv")):
        assert run(tmp_path, "predict", place / "model.aucmax", file, "-o", name)[0] == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_evaluate_measures_what_python_measures(place):
    code, told = run(place, "evaluate", "model.aucmax", "new.csv", "--json")
    assert code == 0
    found = check_schema("evaluate", told)
    model, table = load_model(place / "model.aucmax"), people(400, seed=1)
    positive = (table["left"] == "yes").to_numpy()
    scores = model.scores(table)
    assert found["auc"] == pytest.approx(roc_auc_score(positive, scores))
    assert found["source"] == "table"
    expected = evaluate(positive, scores, model.predict_proba(table)[:, 1])
    assert found["brier"] == pytest.approx(expected.brier)
    cut = found["threshold"]
    assert cut["tp"] + cut["fn"] == positive.sum()
    assert cut["tp"] == ((scores >= cut["threshold"]) & positive).sum()


def test_evaluate_on_the_training_table_uses_held_out_scores(place, capsys):
    code, told = run(place, "evaluate", "model.aucmax", "train.csv")
    assert code == 0
    assert "the scores of held-out folds" in capsys.readouterr().err
    trained = json.loads((place / "train.json").read_text())
    assert f"{trained['auc']:.4f}" in told


def test_evaluate_reads_categories_as_predict_does(tmp_path):
    rng = np.random.default_rng(0)
    code = rng.choice(["0123", "0456", "B7"], 600)
    table = pl.DataFrame({"code": code, "x": rng.normal(size=600)}).with_columns(
        y=pl.Series(np.where((code == "0123") ^ (rng.random(600) < 0.2), "yes", "no"))
    )
    table.write_csv(tmp_path / "t.csv")
    table.filter(pl.col("code") != "B7").write_csv(tmp_path / "new.csv")  # numbers, by their looks
    run(tmp_path, "train t.csv --target y --landmarks 20 --preset paper")
    assert run(tmp_path, "predict model.aucmax new.csv -o s.csv")[0] == 0
    code, told = run(tmp_path, "evaluate model.aucmax new.csv --json")
    assert code == 0
    labels = pl.read_csv(tmp_path / "new.csv")["y"] == "yes"
    expected = roc_auc_score(labels, pl.read_csv(tmp_path / "s.csv")["score"])
    assert json.loads(told)["auc"] == pytest.approx(expected, abs=1e-6)
    assert expected > 0.7


def test_a_libsvm_file_may_end_before_the_last_feature(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 3))
    lines = [f"{int(v[0] > 0)} 1:{v[0]:.3f} 2:{v[1]:.3f} 3:{v[2]:.3f}\n" for v in values]
    (tmp_path / "t.libsvm").write_text("".join(lines))
    (tmp_path / "new.libsvm").write_text("".join(line.rsplit(" ", 1)[0] + "\n" for line in lines))
    run(tmp_path, "train t.libsvm --target target --landmarks 20 --preset paper")
    for command in ("predict", "evaluate"):
        assert run(tmp_path, command, "model.aucmax", "new.libsvm")[0] == 0


def test_compare_two_models_and_a_rival(place, capsys):
    run(place, "train", "train.csv", "--target", "left", "--kernel", "linear", "-o", "line.aucmax")
    code, told = run(place, "compare", "model.aucmax", "line.aucmax", "new.csv", "--json")
    assert code == 0
    found = check_schema("compare", told)
    assert found["difference"] == pytest.approx(found["auc_a"] - found["auc_b"])
    assert 0 <= found["p_value"] <= 1
    code, told = run(place, "compare", "logistic", "model.aucmax", "new.csv", "--train", "train.csv")
    assert code == 0
    assert "logistic" in told


def test_report_info_and_export_write_what_they_say(place):
    code, told = run(place, "report", "model.aucmax", "new.csv", "-o", "r.html", "--json")
    assert code == 0
    assert check_schema("report", told)["bytes"] == (place / "r.html").stat().st_size
    assert "<html" in (place / "r.html").read_text()[:300]
    code, told = run(place, "info", "model.aucmax", "--json")
    assert code == 0
    assert check_schema("info", told)["kind"] == "TableModel"
    assert "left" in run(place, "info", "model.aucmax")[1]
    pytest.importorskip("onnx")
    code, told = run(place, "export", "model.aucmax", "--onnx", "m.onnx", "--json")
    assert code == 0
    assert check_schema("export", told)["bytes"] > 1000


def write_bad(folder):
    good = people(60)
    files = {
        "empty.csv": b"",
        "header.csv": b"age,left\n",
        "ragged.csv": b"age,left\n1,yes\n2,no,3\n",
        "latin.csv": "name,left\nM\u00fcller,yes\n".encode("latin-1"),
        "twice.csv": b"age,age,left\n1,2,yes\n3,4,no\n",
        "constant.csv": good.with_columns(pl.lit("yes").alias("left")).write_csv().encode(),
        "three.csv": b"age,left\n1,yes\n2,no\n3,perhaps\n",
        "none.csv": b"age,left\n1,\n2,\n3,\n",
        "dates.csv": b"day,left\n" + b"2024-01-01,yes\n2024-02-01,no\n" * 9 + b"2024-02-31,no\n",
        "model.aucmax": b"not a model",
        "table.xlsx": b"PK\x03\x04 something",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "folder").mkdir(exist_ok=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.csv", "--target", "left"], "missing.csv"),
        (["folder", "--target", "left"], "folder"),
        (["empty.csv", "--target", "left"], "empty"),
        (["header.csv", "--target", "left"], "no rows"),
        (["ragged.csv", "--target", "left"], "line 3"),
        (["latin.csv", "--target", "left"], "UTF-8"),
        (["twice.csv", "--target", "left"], "'age'"),
        (["table.xlsx", "--target", "left"], "xlsx"),
        (["constant.csv", "--target", "left"], "'yes'"),
        (["three.csv", "--target", "left"], "perhaps"),
        (["none.csv", "--target", "left"], "left"),
        (["dates.csv", "--target", "left"], "'2024-02-31' in row 18 (from 0; line 20 of "),
        (["train.csv", "--target", "left", "--number", "agee"], "Did you mean 'age'"),
        (["train.csv", "--target", "left", "--id", "age", "--date", "age"], "both date and id"),
        (["train.csv", "--target", "left", "--drop", "age", "--number", "age"], "both drop and number"),
        (["train.csv", "--target", "left", "--category", "left"], "both the target and named by"),
        (["train.csv", "--target", "lfet"], "'left'"),
        (["train.csv", "--target", "left", "--positive", "ja"], "ja"),
        (["train.csv", "--target", "left", "--drop", "agee"], "'age'"),
        (["train.csv", "--target", "left", "--weight", "plan"], "plan"),
        (["train.csv", "--target", "left", "--aim", "recal=0.9"], "recall=0.9"),
        (["train.csv", "--target", "left", "--solver", "newtn"], "newton"),
        (["train.csv", "--target", "left", "--calibration", "platt"], "sigmoid"),
        (["train.csv", "--target", "left", "-o", "no/such/m.aucmax"], "no/such"),
        (["train.csv", "--target", "left", "-o", "folder"], "folder"),
    ],
)
def test_mistakes_in_training_are_one_sentence_each(place, tmp_path, capsys, arguments, said):
    write_bad(tmp_path)
    people(200).write_csv(tmp_path / "train.csv")
    before = (tmp_path / "model.aucmax").read_bytes()
    code, told = run(tmp_path, "train", *arguments, "--force")
    error = capsys.readouterr().err
    assert code == 2
    assert told == ""
    assert said in error.replace("\n", " ")
    *first, last = error.strip().splitlines()
    assert last.startswith("aucmax: ")
    assert len(first) <= 1  # on the table, as soon as it is read
    assert (tmp_path / "model.aucmax").read_bytes() == before  # nothing is overwritten


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop("plan").rename({"years": "year"}), "'plan'"),
        (lambda t: t.with_columns(pl.Series("age", ["old"] * t.height)), "'age'"),
        (lambda t: t.head(0), "no rows"),
    ],
)
def test_tables_that_do_not_fit_the_model_are_told_apart(place, tmp_path, capsys, change, said):
    change(people(50, seed=1)).write_csv(tmp_path / "bad.csv")
    (tmp_path / "out.csv").write_text("kept")
    code, _ = run(tmp_path, "predict", place / "model.aucmax", "bad.csv", "-o", "out.csv", "--force")
    error = capsys.readouterr().err
    assert code == 2
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert (tmp_path / "out.csv").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "out.csv"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["predict", "nothing.aucmax", "new.csv"], "nothing.aucmax"),
        (["predict", "new.csv", "new.csv"], "new.csv"),
        (["predict", "model.aucmax", "new.csv", "--id", "custmer"], "'customer'"),
        (["predict", "model.aucmax", "new.csv", "-o", "scores.xlsx"], ".parquet"),
        (["predict", "model.aucmax", "new.csv", "--json"], "--output"),
        (["evaluate", "model.aucmax", "new.csv", "--target", "lef"], "'left'"),
        (["evaluate", "model.aucmax", "new.csv", "--target", "plan"], "plan"),
        (["compare", "model.aucmax", "logistc", "new.csv", "--train", "train.csv"], "logistc"),
        (["compare", "model.aucmax", "logistic", "new.csv"], "--train"),
        (["compare", "model.aucmax", "logistic", "new.csv", "--train", "new.csv"], "is fitted to"),
        (["compare", "forest", "logistic", "new.csv", "--train", "train.csv"], "model file"),
        (["report", "model.aucmax", "new.csv", "-o", "no/such/r.html"], "no/such"),
        (["info", "new.csv"], "new.csv"),
        (["train", "train.csv", "--target", "left", "-o", "train.csv"], "overwritten"),
        (["predict", "model.aucmax", "new.csv", "-o", "./new.csv"], "overwritten"),
        (["report", "model.aucmax", "new.csv", "-o", "model.aucmax"], "overwritten"),
        (["export", "model.aucmax", "--onnx", "model.aucmax"], "overwritten"),
    ],
)
def test_mistakes_with_a_model_are_one_sentence_each(place, capsys, arguments, said):
    code, told = run(place, *arguments)
    error = capsys.readouterr().err
    assert code == 2
    assert told == ""
    assert said in error.replace("\n", " ")
    assert len(error.strip().splitlines()) == 1


def test_a_folder_that_is_not_ours_to_write_is_refused_before_the_work(place, capsys, monkeypatch):
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    code, _ = run(place, "train", "train.csv", "--target", "left", "-o", "m.aucmax")
    assert code == 2
    assert "is write-protected" in capsys.readouterr().err


def test_a_full_disk_leaves_what_was_there(place, tmp_path, capsys, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "out.csv").write_text("kept")
    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    words = f"predict {place / 'model.aucmax'} {place / 'new.csv'} -o out.csv --force"
    code, _ = run(tmp_path, words)
    assert code == 2
    assert "No space left" in capsys.readouterr().err
    assert (tmp_path / "out.csv").read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_predict_says_what_the_training_never_had(place, tmp_path, capsys):
    table = people(100, seed=1).with_columns(
        pl.Series("plan", ["platinum"] * 30 + ["basic"] * 70),
        pl.Series("years", [None] * 10 + [1.5] * 90),
    )
    table.write_csv(tmp_path / "odd.csv")
    for batch in (7, 1000):
        code, told = run(
            tmp_path, f"predict {place / 'model.aucmax'} odd.csv -o s.csv --force --rows {batch} --json"
        )
        assert code == 0
        found = check_schema("predict", told)["unseen_values"]
        assert len(found) == 2
        assert found[0].startswith("Column 'plan': 30 of 100 rows have a value that does not occur")
        assert found[1].startswith("Column 'years': 10 of 100 rows have no value")
    assert found == load_model(place / "model.aucmax").unseen_values(table)
    capsys.readouterr()
    assert run(place, "predict model.aucmax new.csv -o s.csv --force")[0] == 0
    assert "training" not in capsys.readouterr().err


def test_copies_of_rows_are_remarked_on(tmp_path, capsys):
    table = people(300).drop("customer")
    pl.concat([table] * 3).write_csv(tmp_path / "copies.csv")
    assert run(tmp_path, "train copies.csv --target left --landmarks 30 --gammas 1")[0] == 0
    assert "900 rows are copies of others" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_an_aim_out_of_reach_costs_no_training(tmp_path, capsys):
    x = np.arange(300) % 2  # two scores, of which the higher has two yeses in three
    left = np.where((x == 1) & (np.arange(300) % 3 > 0), "yes", "no")
    pl.DataFrame({"x": x, "left": left}).write_csv(tmp_path / "t.csv")
    code, _ = run(tmp_path, "train t.csv --target left --landmarks 2 --gammas 1 --aim precision=0.9")
    assert code == 0
    assert "precision=0.9 cannot be met" in capsys.readouterr().err
    assert load_model(tmp_path / "model.aucmax").threshold_.aim == "youden"


def test_train_takes_what_columns_hold_and_says_which_label_is_ranked_high(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x, rows = rng.normal(size=120), 120
    table = pl.DataFrame(
        {
            "x": x,
            "grade": rng.integers(1, 4, rows),
            "account": rng.choice(10**8, rows, replace=False),
            "day": [20240101 + int(day) for day in rng.integers(0, 28, rows)],
            "person": rng.choice(["Ada", "Bob"], rows),
            "y": (x > -0.8).astype(int),  # 1 is the more frequent label
        }
    )
    table.write_csv(tmp_path / "t.csv")
    options = "--category grade --number account --date day --id person --max-levels 9"
    code, _ = run(tmp_path, f"train t.csv --target y {options} --landmarks 20 --preset paper")
    assert code == 0
    assert "which is ranked high (1, not 0)" in capsys.readouterr().err
    model = load_model(tmp_path / "model.aucmax")
    kinds = {column["name"]: column["kind"] for column in model.columns_}
    assert kinds == {
        "x": "number",
        "grade": "category",
        "account": "number",
        "day": "date",
        "person": "dropped",
    }
    assert model.max_levels == 9
    run(tmp_path, "train t.csv --target y --positive 0 --landmarks 20 --preset paper --force")
    assert "which is ranked high (as requested)" in capsys.readouterr().err
    assert load_model(tmp_path / "model.aucmax").positive_label_ == 0
