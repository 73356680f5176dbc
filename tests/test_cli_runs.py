"""Commands on models while they run: progress, Ctrl-C, a full disk; and rivals."""

import contextlib
import errno
import gzip
import io
import os
import re
import subprocess
import sys

import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from aucmax import load_model
from aucmax.cli.rivals import RIVALS
from aucmax.cli.status_line import rows_expected
from aucmax.report import write_report
from aucmax.tables import read_table
from tests.test_table_commands import check_schema, people, run


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with two tables and a small model."""
    folder = tmp_path_factory.mktemp("runs")
    people(400).write_csv(folder / "train.csv")
    people(300, seed=1).write_csv(folder / "new.csv")
    assert run(folder, "train train.csv --target left --landmarks 20 --preset paper")[0] == 0
    return folder


# --- progress


class TerminalOut(io.TextIOWrapper):
    def isatty(self):
        return True


class Terminal(io.StringIO):
    def isatty(self):
        return True

    @property
    def lines(self):
        """All that was shown, each line as it was overwritten."""
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())
        return [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]


@pytest.fixture
def on_terminal(place, monkeypatch):
    """Runs a command whose remarks go to a terminal, and gives that and what was printed."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")

    def go(words):
        with contextlib.redirect_stderr(Terminal()) as terminal:
            code, told = run(place, words)
        assert code == 0
        return terminal, told

    return go


def parts(terminal):
    """Names of what was done, in order."""
    names = [re.split(r" +[━╸╺]", line)[0] for line in terminal.lines if "━" in line]
    return list(dict.fromkeys(names))


def test_predict_shows_rows_and_their_pace(on_terminal):
    terminal, _ = on_terminal("predict model.aucmax new.csv --rows 70 --no-rank -o s.csv")
    assert parts(terminal) == ["scoring"]
    assert any(re.search(r"300 rows, [\d,]+ a second, about 0 s left", line) for line in terminal.lines)
    assert terminal.lines[-1] == "300 rows are in s.csv."


@pytest.mark.parametrize("output", ["s.csv", "s.parquet"])
def test_predict_shows_that_it_writes_after_ranking(on_terminal, output):
    terminal, _ = on_terminal(f"predict model.aucmax new.csv -o {output} --force")
    assert parts(terminal) == ["scoring", "writing"]


def test_scores_on_the_same_terminal_are_left_alone(on_terminal, monkeypatch):
    monkeypatch.setattr("tests.test_table_commands.io.TextIOWrapper", TerminalOut)
    terminal, told = on_terminal("predict model.aucmax new.csv")
    assert len(told.splitlines()) == 301
    assert terminal.lines == []


def test_evaluate_names_its_parts(on_terminal):
    terminal, told = on_terminal("evaluate model.aucmax new.csv")
    assert "average precision" in told
    assert parts(terminal) == ["reading new.csv", "scoring 300 rows", "measuring"]


def test_a_report_counts_the_columns_it_shuffles(place, on_terminal):
    pytest.importorskip("jinja2")
    terminal, _ = on_terminal("report model.aucmax new.csv -o r.html --permutation")
    used = sum(bool(column["features"]) for column in load_model(place / "model.aucmax").columns_)
    assert parts(terminal) == [
        "reading new.csv",
        "scoring 300 rows",
        "measuring",
        "permutation importance",
        *(f"permutation importance {i + 1} of {used}" for i in range(used)),
        "drawing",
    ]


def test_a_report_is_as_python_writes_it(place):
    pytest.importorskip("jinja2")
    assert run(place, "report model.aucmax new.csv -o command.html --permutation")[0] == 0
    model = load_model(place / "model.aucmax")
    write_report(model, place / "new.csv", place / "python.html", permutation=True)
    assert (place / "command.html").read_bytes() == (place / "python.html").read_bytes()


def test_compare_shows_when_the_rival_is_fitted(on_terminal):
    terminal, _ = on_terminal("compare model.aucmax logistic new.csv --train train.csv")
    found = parts(terminal)
    assert found.index("fitting logistic to 400 rows") + 1 == found.index(
        "scoring 300 rows with logistic"
    )


@pytest.mark.parametrize(
    "words",
    [
        "predict model.aucmax new.csv -o s.csv --force --json",
        "evaluate model.aucmax new.csv",
        "compare model.aucmax model.aucmax new.csv --json",
    ],
)
def test_nothing_is_shown_where_there_is_no_terminal(place, capsys, words):
    assert run(place, words)[0] == 0
    assert capsys.readouterr().err == ""


def test_rows_are_reckoned_without_reading_the_file(tmp_path):
    table = people(40_000)
    table.write_csv(tmp_path / "t.csv")
    table.write_parquet(tmp_path / "t.parquet")
    people(50).write_csv(tmp_path / "small.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    assert (tmp_path / "t.csv").stat().st_size > 2**20
    assert rows_expected(tmp_path / "t.csv") == pytest.approx(40_001, rel=0.02)
    assert rows_expected(tmp_path / "small.csv") == 51  # with the header
    assert rows_expected(tmp_path / "t.parquet") == 40_000
    assert rows_expected(tmp_path / "broken.parquet") is None
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(people(50).write_csv().encode()))
    assert rows_expected(tmp_path / "t.csv.gz") is None


# --- a full disk, and Ctrl-C


def full(*_args, **_kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_by_polars(*_args, **_kwargs):
    raise pl.exceptions.ComputeError("parquet: underlying IO error: No space left (os error 28)")


def interrupt(*_args, **_kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("words", "output", "patched", "replacement"),
    [
        ("predict {m} {t} -o", "out.csv", (pl.DataFrame, "write_csv"), full),
        ("predict {m} {t} -o", "out.csv", (pl.DataFrame, "write_ipc"), full),
        ("predict {m} {t} -o", "out.parquet", (pl.LazyFrame, "sink_parquet"), full_by_polars),
        ("report {m} {t} -o", "out.html", (os, "fsync"), full),
        ("export {m} --onnx", "out.onnx", (os, "fsync"), full),
        ("train {t} --target left --landmarks 5 --gammas 1 -o", "out.aucmax", (os, "fsync"), full),
    ],
)
def test_a_full_disk_is_told_with_the_file_and_leaves_what_was_there(
    place, tmp_path, capsys, monkeypatch, words, output, patched, replacement
):
    pytest.importorskip({"report": "jinja2", "export": "onnx"}.get(words.split()[0], "polars"))
    (tmp_path / output).write_text("kept")
    monkeypatch.setattr(*patched, replacement)
    words = words.format(m=place / "model.aucmax", t=place / "new.csv")
    code, told = run(tmp_path, words, output, "--force")
    error = capsys.readouterr().err.replace("\n", " ")
    assert code == 2
    if not words.startswith("train"):  # which first prints what it found in the table
        assert told == ""
        assert error.startswith("aucmax: cannot write")
    assert "aucmax: cannot write" in error
    assert output in error
    assert "No space left on device" in error
    assert (tmp_path / output).read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == [output]


def test_a_file_that_may_not_grow_is_named(place, tmp_path):
    """The real thing, as far as a test may go: the system refuses more than a kilobyte."""
    pytest.importorskip("resource")
    code = (
        "import resource, sys\n"
        "from aucmax.cli import main\n"
        "import aucmax.cli.status_line, aucmax.tables.predict_table_file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "main()\n"
    )
    words = ["predict", place / "model.aucmax", place / "new.csv", "--no-rank", "-o", "out.parquet"]
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"aucmax: cannot write out.parquet: {os.strerror(errno.EFBIG)}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "output", "patched", "replacement"),
    [
        ("predict {m} {t} -o", "out.csv", (pl.DataFrame, "write_csv"), interrupt),
        ("predict {m} {t} --no-rank -o", "out.csv", (pl.DataFrame, "write_csv"), interrupt),
        ("predict {m} {t} -o", "out.parquet", (pl.LazyFrame, "sink_parquet"), interrupt),
        ("report {m} {t} -o", "out.html", (os, "fsync"), interrupt),
    ],
)
def test_ctrl_c_is_one_word_and_leaves_what_was_there(
    place, tmp_path, capsys, monkeypatch, words, output, patched, replacement
):
    (tmp_path / output).write_text("kept")
    monkeypatch.setattr(*patched, replacement)
    words = words.format(m=place / "model.aucmax", t=place / "new.csv")
    assert run(tmp_path, words, output, "--force") == (130, "")
    assert capsys.readouterr().err == "Stopped.\n"
    assert (tmp_path / output).read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == [output]


def test_ctrl_c_from_the_system_ends_a_process_in_order(place, tmp_path):
    code = (
        "import signal\n"
        "from aucmax.cli import main\n"
        "import aucmax.tables.predict_table_file as command\n"
        "command._ranks = lambda scores: signal.raise_signal(signal.SIGINT)\n"
        "main()\n"
    )
    words = ["predict", place / "model.aucmax", place / "new.csv", "-o", "out.csv"]
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")
    assert list(tmp_path.iterdir()) == []


# --- rivals, and the size of an export


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_is_tested_as_its_users_would(place, name):
    if name in ("lightgbm", "xgboost"):
        pytest.importorskip(name)
    words = f"compare model.aucmax {name} new.csv --train train.csv --seed 3 --json"
    code, told = run(place, words)
    assert code == 0
    found = check_schema("compare", told)
    assert (found["second"], found["rows"]) == (name, 300)
    model = load_model(place / "model.aucmax")
    learnt, new = (read_table(place / file) for file in ("train.csv", "new.csv"))
    rival = RIVALS[name](3).fit(
        model.features(learnt), (learnt["left"] == "yes").to_numpy().astype(int)
    )
    scores = rival.predict_proba(model.features(new))[:, 1]
    assert found["auc_b"] == pytest.approx(roc_auc_score(new["left"] == "yes", scores), abs=1e-6)
    assert found["auc_a"] == pytest.approx(
        roc_auc_score(new["left"] == "yes", model.decision_function(new)), abs=1e-6
    )
    assert found["low"] <= found["difference"] <= found["high"]


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_a_rival_that_is_not_installed_is_told_with_how_to_get_it(place, capsys, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    code, _ = run(place, f"compare {name} model.aucmax new.csv --train train.csv")
    assert code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"aucmax: {name} is not installed. Install it: ")
    assert "pip install" in told
    assert told.endswith(f" {name}\n")


def test_the_size_of_an_export_is_told_in_units_that_fit(place, capsys):
    pytest.importorskip("onnx")
    assert run(place, "export model.aucmax --onnx m.onnx")[0] == 0
    size = (place / "m.onnx").stat().st_size
    assert 1000 < size < 100_000
    assert f"m.onnx: {size / 1000:.3g} kB" in capsys.readouterr().err
