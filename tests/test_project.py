"""What the project says of itself is true."""

import ast
import re
import runpy
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aucmax
from aucmax.cli import app

ROOT = Path(__file__).parent.parent


def test_versions_agree():
    assert f"## [{aucmax.__version__}] - " in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {aucmax.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert metadata("aucmax")["Version"] == aucmax.__version__


def test_ci_runs_the_readmes_test_command():
    command = re.search(r"<!-- test -->\n```\w*\n(.+?)\n```", (ROOT / "README.md").read_text(), re.S)
    assert command
    assert "pytest" in command[1]
    assert "<!-- test -->" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize(
    "quick",
    [("--preset", "paper", "--landmarks", "30"), pytest.param((), marks=pytest.mark.slow)],
    ids=["quick", "as it stands"],
)
def test_three_commands_of_the_readme_lead_to_a_report(quick, tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text()
    block = re.search(r"<!-- table -->\n```\w*\n(.+?)\n```", text, re.S)
    assert block
    install, *commands = block[1].splitlines()
    assert install.endswith('pip install --quiet ".[report]"')
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for command in commands:
        program, *arguments = command.split()
        assert program == ".venv/bin/aucmax"
        done = CliRunner().invoke(app, [*arguments, *(quick if arguments[0] == "train" else ())])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "churn.html").read_text().startswith("<!doctype html>")


def test_the_examples_tables_are_what_their_script_makes():
    made = runpy.run_path(str(ROOT / "examples" / "make_customers.py"))["make_customers"]
    assert made().write_csv() == (ROOT / "examples" / "customers.csv").read_text()
    assert made(1500, seed=1).write_csv() == (ROOT / "examples" / "later.csv").read_text()


#: Calls that fail a test: by the last part of their name, or by how it begins.
CHECKS = {"raises", "warns", "fail", "check"}


def checks_something(test, helpers, seen=()):
    """Whether a test has an assertion, or calls a function of its file that has one."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in CHECKS or name.startswith("assert_"):
                return True
            known = name in helpers and name not in seen
            if known and checks_something(helpers[name], helpers, (*seen, name)):
                return True
    return False


def test_every_test_can_fail():
    assert not checks_something(ast.parse("def test_x():\n    fit(X)").body[0], {})
    for file in sorted((ROOT / "tests").glob("test_*.py")):
        found = ast.walk(ast.parse(file.read_text()))
        functions = {node.name: node for node in found if isinstance(node, ast.FunctionDef)}
        for name, function in functions.items():
            if name.startswith("test_"):
                assert checks_something(function, functions), f"{file.name}: {name} checks nothing"


PACKAGE = Path(aucmax.__file__).parent


def rooms():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    contract = next(each for each in tools["importlinter"]["contracts"] if each.get("exhaustive"))
    return {room.strip() for layer in contract["layers"] for room in layer.split("|")}


def test_no_module_lies_loose_and_every_room_is_in_the_contract_and_on_the_map():
    loose = {path.name for path in PACKAGE.glob("*.py")}
    assert loose == {"__init__.py", "__main__.py"}
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == rooms()
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert set(re.findall(r"^\| `(\w+)/` \|", page, re.M)) == folders


@pytest.mark.parametrize("name", [each for each in aucmax.__all__ if each != "metrics"])
def test_a_public_name_has_a_docstring_with_an_example(name):
    text = getattr(aucmax, name).__doc__
    assert text
    assert ">>> " in text


def test_modules_named_on_the_architecture_page_exist():
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`(\w+/(?:\w+/)*\w+\.py)`", page)
    assert len(named) > 10
    assert [each for each in named if not (PACKAGE / each).is_file()] == []
