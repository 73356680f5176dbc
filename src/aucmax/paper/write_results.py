"""Tables, figure and page of a folder of results, written beside its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aucmax.paper import result_tables as tables
from aucmax.paper.figure import figure1
from aucmax.paper.protocol import DEPARTURES, tabulated
from aucmax.paper.results_page import page
from aucmax.paper.store import Row
from aucmax.paper.text_table import Table, html_page
from aucmax.runtime.output_files import replacing

TABLES = {
    "table1": tables.table1,
    "table2": tables.table2,
    "table3": tables.table3,
    "table4": tables.table4,
}


def write_report(rows: Sequence[Row], folder: Path, what: str = "all") -> list[Table]:
    """Write what was asked for, and give the tables among it."""
    seen = [each for row in rows for each in tabulated(row)]
    folder.mkdir(parents=True, exist_ok=True)
    made = {name: make(seen) for name, make in TABLES.items() if what in (name, "all")}
    for name, table in made.items():
        _write(folder / f"{name}.md", table.markdown())
        _write(folder / f"{name}.tex", table.latex())
        _write(folder / f"{name}.html", table.html())
    if what == "all":
        _write(folder / "tables.html", html_page(list(made.values())))
        _write(folder / "results.md", page(seen, DEPARTURES))
    if what in ("figure1", "all"):  # last: it needs matplotlib, the rest does not
        for suffix in ("png", "pdf"):
            figure1(seen, folder / f"figure1.{suffix}")
    return list(made.values())


def _write(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write((text if text.endswith("\n") else text + "\n").encode())
