"""The examples run: the notebook, the scripts and the gallery."""

import os
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
GALLERY = sorted((EXAMPLES / "gallery").glob("plot_*.py"))


@pytest.fixture
def no_display():
    """Draw without a display, and close what was drawn."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield matplotlib
    import matplotlib.pyplot as plt

    plt.close("all")


def test_the_gallery_has_an_example_for_each_topic():
    assert len(GALLERY) >= 10


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_begins_with_its_title_and_draws(path):
    text = path.read_text()
    assert text.startswith('"""\n')
    assert set(text.splitlines()[2]) == {"="}
    assert "figure" in text or "display" in text


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_runs(path, no_display, monkeypatch):
    monkeypatch.delenv("AUCMAX_DATA", raising=False)  # they need no data
    runpy.run_path(str(path))
    assert no_display.pyplot.get_fignums()


@pytest.mark.slow
def test_the_quick_start_runs(capsys):
    runpy.run_path(str(EXAMPLES / "quickstart.py"))
    assert "p = " in capsys.readouterr().out


@pytest.mark.slow
def test_the_notebook_runs(monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(EXAMPLES / "first_look.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # which no one would keep up to date
    monkeypatch.setitem(os.environ, "MPLBACKEND", "module://matplotlib_inline.backend_inline")
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}}
    )
    client.execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert not any(output.get("name") == "stderr" for output in shown), shown
    assert notebook.cells[-2].outputs[0]["data"]["text/plain"] == "True"
