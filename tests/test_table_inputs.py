"""Tables as people have them: standard input, JSON lines, Excel, other encodings, several files."""

import io
import json
import re
import subprocess
import sys

import polars as pl
import pytest

from aucmax import fit_table, load_model
from aucmax.reading.frames import TableError
from aucmax.reading.opened import open_table
from aucmax.tables import read_table, table_batches
from tests.test_drift import QUICK
from tests.test_table_commands import people, run

FORCE = " --force"
FIT = "--target left --landmarks 20 --gammas 1 --preset paper --force"


@pytest.fixture
def place(tmp_path):
    people(300).write_csv(tmp_path / "t.csv")
    return tmp_path


class Pipe(io.TextIOWrapper):
    """Standard input that is not a terminal."""


@pytest.fixture
def piped(monkeypatch):
    def pipe(content):
        monkeypatch.setattr(sys, "stdin", Pipe(io.BytesIO(content)))

    return pipe


def test_standard_input_is_a_table_for_every_command(place, piped, capsys):
    content = (place / "t.csv").read_bytes()
    piped(content)
    assert run(place, f"train - {FIT}")[0] == 0
    piped(content)
    assert run(place, "check - --target left --json")[0] == 0
    piped(content)
    code, told = run(place, "predict model.aucmax - -o -")
    assert code == 0
    assert pl.read_csv(io.StringIO(told)).height == 300
    people(200, seed=1).write_parquet(place / "new.parquet")
    piped((place / "new.parquet").read_bytes())
    code, told = run(place, "evaluate model.aucmax - --json")
    assert code == 0
    assert '"rows": 200' in told
    # The model of standard input knows its training table by its content.
    code, told = run(place, "evaluate model.aucmax t.csv --json")
    assert '"source": "training table"' in told


MEASURES = (
    "report model.aucmax {} -o r.html",
    "threshold model.aucmax {} --aim recall=0.9 -o k.aucmax",
)
RIVAL = "compare model.aucmax logistic {} --train"


def test_all_commands_that_measure_read_standard_input_encodings_and_sheets(place, piped, capsys):
    pytest.importorskip("fastexcel")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    rows = people(200, seed=1).with_columns(plan=pl.col("plan").str.replace("plus", "plüs"))
    assert run(place, f"train t.csv {FIT}")[0] == 0
    content = rows.write_csv().encode("latin-1")
    (place / "l.csv").write_bytes(content)
    (place / "train.csv").write_bytes(people(300).write_csv().encode("latin-1"))
    with xlsxwriter.Workbook(place / "two.xlsx") as book:
        rows.write_excel(book, worksheet="customers")
        people(10).write_excel(book, worksheet="notes")
    for command in (*MEASURES, f"{RIVAL} train.csv"):
        piped(rows.write_csv().encode())
        assert run(place, command.format("-") + FORCE * ("compare" not in command))[0] == 0
        words = f"{command.format('l.csv')} --encoding latin-1" + FORCE * ("compare" not in command)
        assert run(place, words)[0] == 0, capsys.readouterr().err
    for command in MEASURES:
        assert run(place, f"{command.format('two.xlsx')} --sheet customers --force")[0] == 0
        if "report" in command:
            page = (place / "r.html").read_text()
            assert "plüs" in page
            assert "two" in page
        capsys.readouterr()
        assert run(place, f"{command.format('')} --sheet customers --force")[0] == 2
        assert "--sheet needs a table: name it after the model" in capsys.readouterr().err
    (place / "copy.csv").write_bytes(content)
    assert run(place, f"{RIVAL.format('copy.csv')} copy.csv --encoding latin-1")[0] == 2
    assert "name another --train" in capsys.readouterr().err


@pytest.mark.parametrize("command", [f"train - {FIT}", "check - --target left"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Standard input is empty"),
        (b"a,left\n1,yes\n2\n", "line 3 of standard input"),
        (b"a,left\n", "standard input has a header and no rows"),
    ],
)
def test_a_fault_of_standard_input_is_one_sentence(place, piped, capsys, command, content, said):
    piped(content)
    code, told = run(place, command)
    error = capsys.readouterr().err
    assert (code, told) == (2, "")
    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_a_pipe_of_commands_works(place):
    assert run(place, f"train t.csv {FIT}")[0] == 0
    command = [sys.executable, "-m", "aucmax", "predict", "model.aucmax", "-", "-o", "-", "--no-rank"]
    with (place / "t.csv").open("rb") as table:
        done = subprocess.run(command, stdin=table, capture_output=True, cwd=place, check=True)
    assert len(done.stdout.splitlines()) == 301


def test_json_lines_are_read_whole_and_in_parts(place, tmp_path, capsys):
    table = people(300)
    for name in ("t.jsonl", "t.ndjson"):
        table.write_ndjson(tmp_path / name)
        assert read_table(tmp_path / name).equals(table)
    parts = list(table_batches(tmp_path / "t.jsonl", rows=128))
    assert [part.height for part in parts] == [128, 128, 44]
    assert pl.concat(parts).equals(table)
    assert run(place, f"train t.jsonl {FIT}")[0] == 0
    code, told = run(place, "predict model.aucmax t.jsonl --id customer")
    assert code == 0
    from_csv = run(place, "predict model.aucmax t.csv --id customer")[1]
    assert told == from_csv


def test_predictions_are_written_as_json_lines(place):
    assert run(place, f"train t.csv {FIT}")[0] == 0
    for name in ("s.jsonl", "s.csv"):
        assert run(place, f"predict model.aucmax t.csv --id customer --explain 1 -o {name}")[0] == 0
    written = pl.read_ndjson(place / "s.jsonl")
    assert written.columns == pl.read_csv(place / "s.csv").columns
    assert written["customer"].to_list() == people(300)["customer"].to_list()
    assert written["rank"].to_list() == pl.read_csv(place / "s.csv")["rank"].to_list()


def test_copied_columns_that_do_not_identify_rows_are_told(place, capsys):
    assert run(place, f"train t.csv {FIT}")[0] == 0
    command = "predict model.aucmax t.csv -o s.csv --force --json --id"
    capsys.readouterr()
    told = json.loads(run(place, f"{command} plan")[1])
    assert told["repeated_ids"] == 300
    said = "300 rows have the same plan as another row, so --id does not tell them apart."
    assert said in capsys.readouterr().err
    told = json.loads(run(place, f"{command} plan --id customer")[1])
    assert told["repeated_ids"] == 0
    assert "tell them apart" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1}\n{"a": \n', "line 2 is no JSON"),
        ('{"a": 1}\n[1, 2]\n', "line 2 is a JSON list"),
        ("\n\n", "is empty"),
    ],
)
def test_a_fault_in_json_lines_is_named_with_its_line(tmp_path, text, said):
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(TableError, match=said):
        read_table(tmp_path / "t.jsonl")


def test_keys_that_are_absent_are_missing_values(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1, "b": "NA"}\n\n{"a": 2.5, "c": true}\n')
    assert read_table(tmp_path / "t.jsonl").to_dict(as_series=False) == {
        "a": [1.0, 2.5],
        "b": [None, None],
        "c": [None, True],
    }


def test_other_encodings_are_named(place, capsys):
    text = "name,x,left\n" + "".join(
        f"Zoë{i % 3},{i / 2},{'yes' if i > 50 else 'no'}\n" for i in range(80)
    )
    (place / "l.csv").write_bytes(text.encode("latin-1"))
    assert run(place, f"train l.csv {FIT}")[0] == 2
    assert "--encoding latin-1" in capsys.readouterr().err
    assert run(place, f"train l.csv {FIT} --encoding latin-1")[0] == 0
    levels = next(
        each for each in load_model(place / "model.aucmax").columns_ if each["name"] == "name"
    )
    assert levels["levels"][0] == "Zoë0"
    assert run(place, "predict model.aucmax l.csv -o s.csv --encoding latin-1")[0] == 0
    assert read_table(place / "l.csv", encoding="latin-1")["name"][0] == "Zoë0"
    (place / "u.csv").write_bytes(text.encode("utf-16"))
    assert read_table(place / "u.csv", encoding="utf-16").height == 80
    capsys.readouterr()
    assert run(place, f"train l.csv {FIT} --encoding latin-99")[0] == 2
    assert "no encoding 'latin-99'" in capsys.readouterr().err
    assert run(place, f"train l.csv {FIT} --encoding utf-16")[0] == 2
    assert "l.csv is not utf-16 text" in capsys.readouterr().err


def test_a_fault_in_another_encoding_names_the_file_and_the_line(place, capsys):
    (place / "l.csv").write_bytes("a,left\nZoë,yes\n1\n".encode("latin-1"))
    assert run(place, "check l.csv --target left --encoding latin-1")[0] == 2
    assert "line 3 of l.csv" in capsys.readouterr().err


def test_several_files_and_patterns_are_one_table(place, capsys):
    table = people(300)
    for i in range(3):
        table[100 * i : 100 * (i + 1)].write_csv(place / f"part-{i}.csv")
    whole = fit_table(place / "t.csv", "left", estimator=QUICK)
    parts = fit_table([place / f"part-{i}.csv" for i in range(3)], "left", estimator=QUICK)
    assert (whole.scores(table) == parts.scores(table)).all()
    assert run(place, f"train part-*.csv {FIT} --json")[0] == 0
    assert load_model(place / "model.aucmax").training_["rows"] == 300
    assert run(place, "check part-0.csv part-1.csv --target left")[0] == 0
    capsys.readouterr()
    assert run(place, f"train nothing-*.csv {FIT}")[0] == 2
    assert "no file matches nothing-*.csv" in capsys.readouterr().err


def test_files_with_other_columns_are_refused_with_the_differences(place, capsys):
    people(50).rename({"age": "Age"}).write_csv(place / "u.csv")
    assert run(place, f"train t.csv u.csv {FIT}")[0] == 2
    error = capsys.readouterr().err
    assert "u.csv lacks 'age', and it has 'Age' in addition. Is 'Age' another name for 'age'?" in error


def test_a_row_of_several_files_is_named_in_its_file(place, capsys):
    people(50).with_columns(age=pl.lit("1e300")).write_csv(place / "u.csv")
    assert run(place, f"train t.csv u.csv {FIT}")[0] == 2
    assert "row 0 (from 0; line 2 of u.csv)" in capsys.readouterr().err


def test_columns_of_numbers_in_one_file_and_text_in_another_stay_as_written(tmp_path):
    (tmp_path / "a.csv").write_text("code,n\n01,1\n02,2\n")
    (tmp_path / "b.csv").write_text("n,code\n2.5,x1\n")
    frame = open_table([tmp_path / "a.csv", tmp_path / "b.csv"]).frame
    assert frame.to_dict(as_series=False) == {"code": ["01", "02", "x1"], "n": [1.0, 2.0, 2.5]}


def test_a_sheet_of_an_excel_file_is_a_table(place, capsys):
    pytest.importorskip("fastexcel")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    people(300).write_excel(place / "one.xlsx", worksheet="data")
    with xlsxwriter.Workbook(place / "two.xlsx") as book:
        people(300).write_excel(book, worksheet="customers")
        people(10).write_excel(book, worksheet="notes")
    assert read_table(place / "one.xlsx").height == 300
    assert run(place, f"train one.xlsx {FIT}")[0] == 0
    assert run(place, "predict model.aucmax one.xlsx -o s.csv")[0] == 0
    capsys.readouterr()
    assert run(place, f"train two.xlsx {FIT}")[0] == 2
    error = capsys.readouterr().err
    assert "has 2 sheets: 'customers', 'notes'. Name one with --sheet" in error
    assert len(error.strip().splitlines()) == 1
    assert run(place, f"train two.xlsx {FIT} --sheet customers")[0] == 0
    assert run(place, "evaluate model.aucmax two.xlsx --sheet customers")[0] == 0
    capsys.readouterr()
    assert run(place, f"train two.xlsx {FIT} --sheet customer")[0] == 2
    assert "Did you mean 'customers'?" in capsys.readouterr().err
    assert run(place, f"train t.csv {FIT} --sheet customers")[0] == 2
    assert "t.csv is no Excel file" in capsys.readouterr().err


def test_excel_without_its_package_says_what_to_install(place, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    (place / "t.xlsx").write_bytes(b"PK\x03\x04")
    assert run(place, f"train t.xlsx {FIT}")[0] == 2
    assert re.search(r'pip install .*"fastexcel>=', capsys.readouterr().err)


def test_completion_of_the_shell_can_be_installed(place):
    code, told = run(place, "--help")
    assert code == 0
    assert "--install-completion" in told


def test_a_model_card_names_data_columns_auc_threshold_and_limits(place, capsys):
    assert run(place, f"train t.csv {FIT}")[0] == 0
    code, card = run(place, "info model.aucmax --card")
    assert code == 0
    for words in ("# Model card: model.aucmax", "| rows | 300 |", "| plan | category |", "## Limits"):
        assert words in card
    about = load_model(place / "model.aucmax").training_
    assert f"| AUC | {about['auc']:.4f} (95 % interval {about['auc_low']:.4f} to" in card
    assert "split at random" in card
    assert run(place, "info model.aucmax --card --json")[0] == 2
