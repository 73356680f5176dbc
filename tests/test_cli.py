import json
import re
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import aucmax
from aucmax.cli import app


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def commands():
    return get_command(app).commands


@pytest.mark.parametrize("name", sorted(commands()))
def test_each_command_has_help_with_an_example(name):
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"aucmax {name}" in result.output.replace("\n", " ")
    assert "Example" in result.output
    assert commands()[name].help


def test_version():
    assert run("--version").output.strip() == f"aucmax {aucmax.__version__}"


def test_demo_ranks_and_saves_a_picture(tmp_path):
    picture = tmp_path / "roc.png"
    result = run("demo", "--rows", "3000", "--landmarks", "60", "--picture", str(picture))
    assert result.exit_code == 0, result.output
    for word in ("aucmax", "logistic regression", "Nystroem + logistic", "p vs aucmax"):
        assert word in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["roc.png"]


def test_demo_speaks_json(tmp_path):
    picture = str(tmp_path / "roc.png")
    result = run("demo", "--rows", "3000", "--landmarks", "60", "--picture", picture, "--json")
    told = json.loads(result.stdout)
    assert [row["model"] for row in told["results"]][-1] == "aucmax"
    for row in told["results"]:
        assert 0 <= row["low"] <= row["auc"] <= row["high"] <= 1
        assert row["seconds"] > 0
    assert {"p_value"} <= set(told["results"][0])
    assert (told["rows"], told["landmarks"], told["seed"]) == (3000, 60, 0)


def test_demo_without_matplotlib_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    picture = tmp_path / "roc.png"
    result = run("demo", "--rows", "2000", "--landmarks", "20", "--picture", str(picture))
    assert result.exit_code == 0
    assert re.search(r'pip install .*"matplotlib>=', result.stderr.replace("\n", " "))
    assert not picture.exists()


def test_mistakes_are_one_sentence_and_exit_code_two(tmp_path):
    missing = tmp_path / "no" / "such" / "roc.png"
    command = [sys.executable, "-m", "aucmax", "demo", "--rows", "1000", "--landmarks", "10"]
    done = subprocess.run([*command, "--picture", str(missing)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "aucmax: " in done.stderr
    assert str(missing.parent) in done.stderr.replace("\n", "")


@pytest.mark.parametrize("arguments", [["-c", "import aucmax"], ["-m", "aucmax", "--help"]])
def test_starting_loads_nothing_heavy(arguments):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True
    )
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "aucmax" in loaded
    assert not loaded & {"sklearn", "numba", "matplotlib", "numpy", "scipy", "polars", "skops"}


def test_public_names():
    for name in aucmax.__all__:
        assert getattr(aucmax, name).__doc__
    assert set(aucmax.__all__) <= set(dir(aucmax))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = aucmax.nothing
