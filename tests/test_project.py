"""What the project says of itself is true."""

import re
from importlib.metadata import metadata
from pathlib import Path

import aucmax

ROOT = Path(__file__).parent.parent


def test_versions_agree():
    assert f"## {aucmax.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {aucmax.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert metadata("aucmax")["Version"] == aucmax.__version__


def test_links_and_pictures_exist():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_ci_runs_the_readmes_test_command():
    command = re.search(r"<!-- test -->\n```\w*\n(.+?)\n```", (ROOT / "README.md").read_text(), re.S)
    assert command
    assert "pytest" in command[1]
    assert "<!-- test -->" in (ROOT / ".ci" / "run").read_text()
