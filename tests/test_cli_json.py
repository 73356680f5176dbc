"""What the commands print for programs is as their schemas say."""

from dataclasses import replace

import pytest
from typer.main import get_command

from aucmax.cli import app
from aucmax.paper.data import DATASETS
from aucmax.paper.data.registry import DataFile
from aucmax.paper.protocol import Cell, Settings
from aucmax.paper.store import Store
from tests.test_table_commands import SCHEMAS, check_schema, run


def names_of(command, name):
    """Those of a command and of what is below it that take --json."""
    if any("--json" in param.opts for param in command.params):
        yield name
    for below, each in getattr(command, "commands", {}).items():
        yield from names_of(each, f"{name}-{below}".lstrip("-"))


def test_every_command_that_speaks_json_has_a_schema_and_no_other_has():
    assert {path.stem for path in SCHEMAS.iterdir()} == set(names_of(get_command(app), ""))


def test_every_command_speaks_json():
    assert set(get_command(app).commands) <= set(names_of(get_command(app), ""))


def test_the_demo_tells_how_well_each_model_ranks(tmp_path):
    code, told = run(tmp_path, "demo --rows 2000 --landmarks 20 --picture roc.png --json")
    assert code == 0
    found = check_schema("demo", told)
    assert [("p_value" in row) for row in found["results"]] == [True, True, False]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Folders without data, but for a file of spambase."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("AUCMAX_CACHE", str(folder))
    monkeypatch.delenv("AUCMAX_DATA", raising=False)
    (folder / DATASETS["spambase"].files[0].name).write_bytes(b"0" * 1500)
    return folder


def test_data_sets_are_listed(cache, tmp_path):
    code, told = run(tmp_path, "datasets --json")
    assert code == 0
    found = {row["name"]: row for row in check_schema("datasets", told)}
    assert list(found) == list(DATASETS)
    assert (found["spambase"]["state"], found["spambase"]["bytes"]) == ("present", 1500)
    assert found["usps"]["state"] == "missing"


def test_fetching_tells_of_files_and_of_what_did_not_come(cache, tmp_path, monkeypatch, capsys):
    file = cache / DATASETS["spambase"].files[0].name
    fetched = {"name": "spambase", "path": str(file), "bytes": 1500}
    code, told = run(tmp_path, "datasets fetch spambase --json")
    assert code == 0
    assert check_schema("datasets-fetch", told) == {"files": [fetched], "failed": []}
    unreachable = DataFile("gone.data", "http://127.0.0.1:9/gone.data", 4, (2, 2))
    gone = replace(DATASETS["spambase"], name="gone", train=(unreachable,), test=())
    monkeypatch.setitem(DATASETS, "gone", gone)
    code, told = run(tmp_path, "datasets fetch gone spambase --json")
    assert code == 2
    found = check_schema("datasets-fetch", told)
    assert found["files"] == [fetched]
    assert [each["name"] for each in found["failed"]] == ["gone"]
    assert found["failed"][0]["reason"] in capsys.readouterr().err
    assert run(tmp_path, "datasets fetch spambase")[1] == f"spambase: {file} (1.5 kB)\n"


def test_the_paper_tells_of_files_and_cells(cache, tmp_path):
    cells = [Cell("spambase", method, 0) for method in ("NBAUC", "RFAUC", "RBF-RankSVM")]
    with Store(tmp_path / "out").open() as store:
        for cell, status in zip(cells, ("done", "failed", "stopped"), strict=True):
            row = {**cell.identity(Settings()), "status": status, "reason": "", "note": ""}
            store.append(
                row | ({"auc": 0.9, "seconds": 1.0} if status == "done" else {"time_limit": 9})
            )
    code, told = run(tmp_path, "paper table2 --no-run --seeds 1 --data spambase --out out --json")
    assert code == 0
    found = check_schema("paper", told)
    counts = found["cells"]
    assert {name: counts[name] for name in ("done", "failed", "stopped")} == {
        "done": 1,
        "failed": 1,
        "stopped": 1,
    }
    assert sum(counts.values()) == 5  # the methods of Table 2
    assert [row["method"] for row in found["rows"]] == [cell.method for cell in cells]
    assert found["files"] == [
        f"out/{name}" for name in sorted(["rows.jsonl", "table2.html", "table2.md", "table2.tex"])
    ]
