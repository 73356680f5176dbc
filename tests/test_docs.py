"""The pages name all there is, their links lead somewhere, and their shell lines run."""

import gzip
import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl
import pytest
from typer.main import get_command

import aucmax
import aucmax.distributed
import aucmax.tables
from aucmax.cli import app
from benchmarks import readme
from tests.test_table_commands import run

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *(path for path in ROOT.glob("*.md")),
    *(path for path in DOCS.glob("*.md")),
    *(path for path in (DOCS / "paper").glob("*.md")),
]


def command_reference():
    spec = importlib.util.spec_from_file_location(
        "command_reference", DOCS / "_ext" / "command_reference.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Names


def names_of_the_api_page():
    """Return the full names in the tables of the API page."""
    module, found = "", []
    for line in (DOCS / "api.rst").read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split(":: ")[1]
        elif re.fullmatch(r" {3}[\w.]+", line):
            found.append(f"{module}.{line.strip()}")
    return found


def test_every_public_name_is_on_the_api_page():
    listed = set(names_of_the_api_page())
    assert {f"aucmax.{name}" for name in aucmax.__all__} <= listed
    assert {f"aucmax.metrics.{name}" for name in aucmax.metrics.__all__} <= listed
    tables = set(aucmax.tables.__all__) - set(aucmax.__all__)
    assert {f"aucmax.tables.{name}" for name in tables} <= listed


def test_every_name_of_the_api_page_exists_and_is_described():
    names = names_of_the_api_page()
    assert len(names) == len(set(names)) > 40
    for name in names:
        module, _, last = name.rpartition(".")
        found = getattr(importlib.import_module(module), last)
        if not isinstance(found, dict):  # METHODS, which its module describes
            assert found.__doc__, name


# Commands


def every_command(group, path=()):
    for name, command in group.commands.items():
        yield (*path, name), command
        if hasattr(command, "commands"):
            yield from every_command(command, (*path, name))


def test_every_command_and_option_is_in_the_reference():
    assert "<!-- commands -->" in (DOCS / "commands.md").read_text()
    page = command_reference().markdown()
    sections = dict(re.findall(r"^## aucmax ([\w ]+)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    commands = list(every_command(get_command(app)))
    assert len(commands) > 10
    for path, command in commands:
        text = sections[" ".join(path)]
        assert command.help.strip() in text
        for param in command.params:
            for name in (*param.opts, *param.secondary_opts):
                assert name in text or not name.startswith("-"), f"{path}: {name}"


def test_every_command_is_explained_on_a_page_that_people_wrote():
    text = "".join(path.read_text() for path in PAGES if path.name != "commands.md")
    for path, _ in every_command(get_command(app)):
        assert re.search(rf"aucmax\s+{' '.join(path)}\b", text), path


def test_options_on_the_pages_exist():
    known = {
        name
        for _, command in every_command(get_command(app))
        for param in command.params
        for name in (*param.opts, *param.secondary_opts)
    }
    for path in PAGES:
        for line in re.findall(r"`aucmax ([^`]+)`", path.read_text()):
            for name in re.findall(r"(?<![\w-])--[a-z][\w-]*", line):
                assert name in known | {"--version", "--help", "--install-completion"}, path.name


# Extras


def test_every_extra_is_described():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (DOCS / "install.md").read_text()
    for extra in project["optional-dependencies"]:
        assert f"| `{extra}` |" in page, extra


def test_the_classifiers_say_which_pythons_the_workflow_tests():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    said = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    assert said == re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", workflow)[1])
    assert project["requires-python"] == f">={said[0]}"


# Links and numbers


def anchors(path):
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    found = set()
    for title in re.findall(r"^#+ (.+)$", text, re.M):
        slug = re.sub(r"[^\w\- ]", "", title.lower().replace("`", "")).strip().replace(" ", "-")
        found.add(slug)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name) if name else page
        made = path.parent == DOCS / "gallery"  # by the site, from the examples
        if made:
            name = "README.rst" if path.stem == "index" else f"{path.stem}.py"
            path = ROOT / "examples" / "gallery" / name
        assert path.exists(), f"{page.name}: {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page.name}: {target}"


def test_every_table_of_the_pages_is_what_its_rows_say(monkeypatch, tmp_path):
    for name in readme.PAGES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    rows = readme.rows
    (tmp_path / "docs" / "benchmarks").symlink_to(DOCS / "benchmarks")
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    assert rows("pairs")
    readme.main()
    for name in readme.PAGES:
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), name


def test_the_readme_is_short():
    words = (ROOT / "README.md").read_text().split()
    assert len(words) < 750
    assert len((ROOT / "README.md").read_text().splitlines()) < 110


# Shell lines

#: Lines that are not run here, by how they begin, with the reason.
NOT_RUN = {
    "python3 -m venv": ".ci/run runs it",
    ".venv/bin/": "test_project.py runs the README's; the others are of CONTRIBUTING, as in .ci/run",
    "bash .ci/": "it runs the tests",
    "python -m reliability": "test_reliability.py",
    "aucmax paper": "hours; test_paper_run.py",
    "aucmax datasets fetch": "downloads; test_cli_json.py",
}
#: What makes a command quick. Later options win.
QUICK = {
    "train": "--preset paper --landmarks 30",
    "demo": "--rows 2000 --landmarks 20",
}
WRITES = ("train", "predict", "threshold", "report", "export")


def shell_lines():
    texts = {path.name: path.read_text() for path in PAGES}
    texts["commands.md"] = command_reference().markdown()
    for name, text in sorted(texts.items()):
        for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.M | re.S):
            for line in block.splitlines():
                command = re.sub(r"\s+#.*", "", line).removeprefix("$ ").strip()
                if command:
                    yield pytest.param(command, id=f"{name}: {command}")


def unique(params):
    return list({param.values[0]: param for param in params}.values())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the files that the pages name."""
    folder = tmp_path_factory.mktemp("pages")
    table = pl.read_csv(ROOT / "examples" / "customers.csv")
    later = pl.read_csv(ROOT / "examples" / "later.csv")
    more = {
        "value": pl.int_range(pl.len()) % 7 + 1.0,
        "region": pl.when(pl.col("age").fill_null(0) > 50)
        .then(pl.lit("east"))
        .otherwise(pl.lit("west")),
    }
    table.with_columns(**more).write_csv(folder / "customers.csv")
    later.with_columns(**more).write_csv(folder / "later.csv")
    later.drop("churned").with_columns(**more).write_csv(folder / "new.csv")
    with gzip.open(folder / "events.csv.gz", "wb") as file:
        file.write((folder / "new.csv").read_bytes())
    for month in (1, 2):
        dated = table.with_columns(
            date=pl.date(2024, month, 1) + pl.duration(days=pl.int_range(pl.len()) % 28)
        )
        dated.write_csv(folder / f"2024-0{month}.csv")
    drop = "--drop value --drop region"
    for name in ("churn", "keen"):
        command = f"train customers.csv --target churned {drop} -o {name}.aucmax {QUICK['train']}"
        assert run(folder, command)[0] == 0
    return folder


@pytest.mark.parametrize("command", unique(shell_lines()))
def test_a_shell_line_of_the_pages_runs(command, place, monkeypatch):
    if any(command.startswith(each) for each in NOT_RUN):
        assert not command.startswith("aucmax train")
        return
    if importlib.util.find_spec("lightgbm") is None:
        command = command.replace(" lightgbm ", " logistic ")
    if "|" in command:
        monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
        done = subprocess.run(["bash", "-c", f"set -e; {command}"], cwd=place, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout
        return
    program, name, *words = command.split()
    assert program == "aucmax"
    keeps = "-o" in words or "--onnx" in words or name in ("train", "report")
    if name in WRITES and keeps and "--force" not in words:
        words.append("--force")
    words = [word.strip('"') for word in words]
    redirect = words.index(">") if ">" in words else len(words)
    code, _ = run(place, name, *words[:redirect], QUICK.get(name, ""))
    assert code == 0, command
