"""What is missing is named with a command that installs it here, however aucmax was installed."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path

import pytest

import aucmax
from aucmax.runtime import installing
from aucmax.runtime.installing import extra_command, install_command

PACKAGE = Path(aucmax.__file__).parent


@pytest.mark.parametrize("extra", ["plot", "report", "onnx", "excel", "dask"])
def test_the_command_names_what_an_extra_stands_for(extra):
    command = extra_command(extra)
    assert sys.executable in command
    assert "aucmax" not in command.replace(sys.executable, "")  # which no index may have
    assert re.search(r'pip install .*"[\w\[\],]+>=', command)


@pytest.mark.skipif(find_spec("pip") is None, reason="no pip, as in environments of uv")
def test_the_command_is_one_that_pip_understands():
    done = subprocess.run(
        [*extra_command("plot").replace('"', "").split(), "--dry-run", "--no-deps", "--no-index"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr  # all of it is installed here
    assert "matplotlib" in done.stdout


def test_without_pip_the_command_is_for_uv(monkeypatch):
    monkeypatch.setattr(installing, "find_spec", lambda name: None)
    assert install_command("a", "b>=1").startswith("uv pip install --python ")
    assert install_command("a", "b>=1").endswith(' a "b>=1"')


def test_without_metadata_the_extra_is_named(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installing, "requires", missing)
    assert extra_command("onnx").endswith(' "aucmax[onnx]"')


def test_a_path_with_blanks_is_quoted(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/with blanks/python")
    assert '"/with blanks/python"' in install_command("a")


def test_no_message_has_a_command_of_its_own():
    for path in PACKAGE.rglob("*.py"):
        if path.name != "installing.py":
            assert "pip install" not in path.read_text(), path
