"""The reliability checks: the harness notices what goes wrong, and a slice of the checks holds."""

import json
import warnings

import pytest

from reliability import __main__ as command
from reliability import harness, inputs, invariants
from reliability.page import table, write_page
from reliability.worker import run_case

MADE = "tests.made_check"


@pytest.fixture(scope="module")
def made():
    results = {}
    summary = harness.run_check(
        MADE, range(6), jobs=2, on_result=lambda _, result: results.update({result.number: result})
    )
    return summary, results


def test_the_harness_counts_promises_kept_and_broken(made):
    summary, _ = made
    assert summary.cases == 6
    assert dict(summary.outcomes) == {"kept": 2, "violated": 2, "hung": 1, "died": 1}
    assert sorted(result.number for result in summary.violations) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("number", "outcome", "text"),
    [
        (1, "violated", "expected 1, got 2"),
        (2, "hung", "no end after 0.5 s"),
        (2, "hung", "_hangs"),
        (3, "died", "exit code 7"),
        (4, "violated", "KeyError: 'unexpected'"),
    ],
)
def test_the_harness_notices(made, number, outcome, text):
    result = made[1][number]
    assert result.outcome == outcome
    assert text in result.violation


def test_a_violation_comes_with_the_command_that_repeats_it(made):
    summary, _ = made
    assert "python -m reliability made_check --only 3 --seed 0" in summary.text()
    assert summary.text().endswith("4 violations")
    row = json.loads(json.dumps(summary.row()))
    assert (row["check"], row["cases"], row["violations"]) == ("made_check", 6, 4)
    assert row["versions"]["numpy"]


def test_the_command_fails_and_records_if_anything_was_violated(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(command.CHECKS, "made", "for this test")
    monkeypatch.setattr(command, "_module", lambda name: MADE)
    runs, results = tmp_path / "runs.jsonl", ["--out", str(tmp_path), "--jobs", "1"]
    assert command.main(["made", "--only", "0", "--record", str(runs), *results]) == 0
    assert command.main(["made", "--only", "1", "--record", str(runs), *results]) == 1
    assert "expected 1, got 2" in capsys.readouterr().out
    rows = [json.loads(line) for line in runs.read_text().splitlines()]
    assert [row["violations"] for row in rows] == [0, 1]
    kept = [json.loads(line) for line in (tmp_path / "made.jsonl").read_text().splitlines()]
    assert [row["number"] for row in kept if "number" in row] == [1]


def test_what_cases_leave_behind_is_removed_with_their_process(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert harness.run_check(MADE, [5, 3]).outcomes == {"kept": 1, "died": 1}
    assert not list(tmp_path.iterdir())


def test_time_may_be_limited():
    assert harness.run_check(MADE, harness.all_numbers(None), minutes=0.0).cases == 0


def test_the_page_shows_the_latest_run_of_each_check_first(tmp_path, made):
    row = made[0].row()
    later = {**row, "cases": 7, "check": "files"}
    shown = table([row, later, {**row, "cases": 9}])
    assert [line.split("|")[1:3] for line in shown.splitlines()[2:]] == [
        [" made_check ", " 9 "],
        [" made_check ", " 6 "],
        [" files ", " 7 "],
    ]
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- runs -->\nold\n<!-- /runs -->\nafter\n")
    write_page(page, [])
    assert page.read_text() == (
        "before\n<!-- runs -->\nNo runs are recorded yet.\n<!-- /runs -->\nafter\n"
    )


def test_cases_follow_from_number_and_seed():
    for check in (inputs, invariants):
        assert check.case(5, 0).name == check.case(5, 0).name
        assert len({check.case(number, seed).name for number in range(10) for seed in (0, 1)}) == 20


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("check", [inputs, invariants], ids=["inputs", "invariants"])
def test_a_slice_of_the_checks_holds(check, part):
    size = 30 if check is inputs else 8
    for number in range(part * size, (part + 1) * size):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = check.case(number, 7)
            if "auto" in case.name:  # takes seconds
                continue
            result = run_case(check, number, 7)
        assert not result["violation"], f"{case.name}\n{result['violation']}"
