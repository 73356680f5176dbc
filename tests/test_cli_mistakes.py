"""Mistakes in the words of a command: one sentence, the nearest right word, exit code 2."""

import os

import pytest

from tests.test_table_commands import run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train t.csv --traget left", "No such option --traget: did you mean --target?"),
        ("train t.csv --traget=left", "No such option --traget: did you mean --target?"),
        ("predict m t --no-rnk", "No such option --no-rnk: did you mean --no-rank?"),
        ("datasets fetch usps --jsn", "No such option --jsn: did you mean --json?"),
        ("demo -x", "No such option -x: see aucmax demo --help."),
        ("--verson", "No such option --verson: did you mean --version?"),
        ("dmeo", "No such command dmeo: did you mean demo?"),
        ("datasets ftech usps", "No such command ftech: did you mean fetch?"),
        ("zzz", "No such command zzz: see aucmax --help."),
        ("train t.csv", "train needs --target: the column with the labels."),
        ("predict m", "predict needs TABLE: a CSV, TSV, JSON lines"),
        ("info", "info needs MODEL: a model file written by aucmax train."),
        ("train t.csv --target", "--target needs a value after it."),
        ("demo --json=yes", "--json takes no value."),
        ("demo extra words", "demo does not take 'extra words': see aucmax demo --help."),
    ],
)
def test_a_wrong_word_is_told_in_one_sentence(tmp_path, capsys, words, said):
    code, told = run(tmp_path, words)
    error = capsys.readouterr().err
    assert (code, told) == (2, "")
    assert error.startswith(f"aucmax: {said}")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "option", "came"),
    [
        ("demo --rows ten", "--rows", "'ten'"),
        ("demo --rows 10", "--rows", "1000"),
        ("train t.csv --target y --time-budget soon", "--time-budget", "'soon'"),
        ("predict m t --rows 0", "--rows", "0"),
    ],
)
def test_a_wrong_value_is_told_with_its_option(tmp_path, capsys, words, option, came):
    code, told = run(tmp_path, words)
    error = capsys.readouterr().err
    assert (code, told) == (2, "")
    assert error.startswith(f"aucmax: {option}")
    assert came in error
    assert len(error.splitlines()) == 1


def test_help_and_version_are_no_mistakes(tmp_path, capsys):
    for words in ("--help", "train --help", "datasets fetch --help", "--version"):
        code, told = run(tmp_path, words)
        assert code == 0, words
        assert told
    assert capsys.readouterr().err == ""
    assert os.listdir(tmp_path) == []


def test_no_words_at_all_show_the_help(tmp_path, capsys):
    code, told = run(tmp_path)
    said = told + capsys.readouterr().err
    assert "Usage" in said
    assert "aucmax: " not in said
    assert code in (0, 2)  # as the version of typer has it
