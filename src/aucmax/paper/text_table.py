"""A table that can be written as Markdown, LaTeX, HTML, or for the terminal."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.table


@dataclass(frozen=True)
class Cell:
    """Our text, what stands beneath it, whether ours is the row's best, and its footnotes."""

    ours: str = ""
    beneath: str = ""
    best: bool = False
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table that can be written as Markdown, LaTeX, HTML, or for the terminal.

    Attributes
    ----------
    name : str
        ``"table1"``: file names and LaTeX labels come of it.
    caption : str
    headings : tuple of str
    rows : tuple of tuple of Cell
    summary : tuple of tuple of Cell
        Rows set off at the bottom.
    remarks : tuple of str
        How to read it.
    footnotes : dict of str to str
        Texts by letter.
    left : int
        How many of the first columns hold text and are set to the left.
    """

    name: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    summary: tuple[tuple[Cell, ...], ...] = ()
    remarks: tuple[str, ...] = ()
    footnotes: Mapping[str, str] | None = None
    left: int = 1

    @property
    def _notes(self) -> list[tuple[str, str]]:
        return list((self.footnotes or {}).items())

    def markdown(self) -> str:
        """For GitHub and the like: two lines a cell, footnotes below."""

        def cell(cell: Cell) -> str:
            ours = _markdown(cell.ours)
            text = (f"**{ours}**" if cell.best else ours) + (
                f"<sup>{','.join(cell.marks)}</sup>" if cell.marks else ""
            )
            return f"{text}<br>{_markdown(cell.beneath)}" if cell.beneath else text

        rules = [":--" if k < self.left else "--:" for k in range(len(self.headings))]
        lines = [[_markdown(text) for text in self.headings], rules]
        lines += [[cell(each) for each in row] for row in (*self.rows, *self.summary)]
        parts = [_markdown(self.caption), "\n".join(f"| {' | '.join(line)} |" for line in lines)]
        parts += [_markdown(remark) for remark in self.remarks]
        parts.append("<br>\n".join(f"<sup>{k}</sup> {_markdown(text)}" for k, text in self._notes))
        return "\n\n".join(part for part in parts if part) + "\n"

    def latex(self) -> str:
        """A ``table`` environment that needs the package booktabs and no other."""

        def lines(row: tuple[Cell, ...]) -> str:
            first, second = [], []
            for cell in row:
                text = _latex(cell.ours)
                text = rf"\textbf{{{text}}}" if cell.best else text
                first.append(
                    text + (rf"\textsuperscript{{{','.join(cell.marks)}}}" if cell.marks else "")
                )
                second.append(rf"{{\scriptsize {_latex(cell.beneath)}}}" if cell.beneath else "")
            text = " & ".join(first) + r" \\"
            return text + ("\n" + " & ".join(second) + r" \\" if any(second) else "")

        columns = "l" * self.left + "r" * (len(self.headings) - self.left)
        body = "\n\\addlinespace\n".join(lines(row) for row in self.rows)
        summary = "".join(f"\n\\midrule\n{lines(row)}" for row in self.summary)
        below = [_latex(remark) for remark in self.remarks]
        below += [rf"\textsuperscript{{{letter}}} {_latex(text)}" for letter, text in self._notes]
        return "\n".join(
            [
                "% needs \\usepackage{booktabs}",
                r"\begin{table}[p]",
                r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
                rf"\caption{{{_latex(re.sub(r'^Table [0-9]+[.] ', '', self.caption))}}}",
                rf"\label{{{self.name}}}",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                " & ".join(_latex(text) for text in self.headings) + r" \\",
                r"\midrule",
                body + summary,
                r"\bottomrule",
                r"\end{tabular}",
                *(
                    [r"\par\medskip", r"\raggedright " + "\\par\n".join(below) + r"\par"]
                    if below
                    else []
                ),
                r"\end{table}",
                "",
            ]
        )

    def html(self) -> str:
        """A fragment that stands by itself; its classes are there for a page's style."""

        def cell(cell: Cell, column: int) -> str:
            marks = f"<sup>{','.join(cell.marks)}</sup>" if cell.marks else ""
            ours = html.escape(cell.ours)
            text = (f"<b>{ours}</b>" if cell.best else ours) + marks
            if cell.beneath:
                text += f'<br><small class="paper">{html.escape(cell.beneath)}</small>'
            return f"<td{_side(column < self.left)}>{text}</td>"

        def body(rows: tuple[tuple[Cell, ...], ...], kind: str) -> str:
            lines = ["".join(cell(each, k) for k, each in enumerate(row)) for row in rows]
            return (
                f'<tbody class="{kind}">\n' + "\n".join(f"<tr>{x}</tr>" for x in lines) + "\n</tbody>"
            )

        heads = "".join(
            f"<th{_side(k < self.left)}>{html.escape(text)}</th>"
            for k, text in enumerate(self.headings)
        )
        below = [f"<p>{html.escape(remark)}</p>" for remark in self.remarks]
        below += [f"<p><sup>{letter}</sup> {html.escape(text)}</p>" for letter, text in self._notes]
        return "\n".join(
            [
                f'<section class="aucmax-table" id="{html.escape(self.name)}">',
                "<table>",
                f"<caption>{html.escape(self.caption)}</caption>",
                f"<thead><tr>{heads}</tr></thead>",
                body(self.rows, "results"),
                *([body(self.summary, "summary")] if self.summary else []),
                "</table>",
                f'<div class="notes">{"".join(below)}</div>',
                "</section>",
                "",
            ]
        )

    def rich(self) -> rich.table.Table:
        """For the terminal."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        below = [*self.remarks, *(f"[{letter}] {text}" for letter, text in self._notes)]
        table = RichTable(
            title=Text(self.caption),
            caption=Text("\n".join(below)) if below else None,
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
        )
        for k, heading in enumerate(self.headings):
            table.add_column(Text(heading), justify="left" if k < self.left else "right")
        for number, row in enumerate((*self.rows, *self.summary)):
            if number == len(self.rows):
                table.add_section()
            table.add_row(
                *(
                    Text.assemble(
                        (cell.ours, "bold" if cell.best else ""),
                        (f"[{','.join(cell.marks)}]" if cell.marks else "", "dim"),
                        (f"\n{cell.beneath}" if cell.beneath else "", "dim"),
                    )
                    for cell in row
                )
            )
        return table


_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; color: #111; }
body { margin: 2rem auto; max-width: 68rem; padding: 0 1rem; }
.aucmax-table { margin: 0 0 3rem; }
.aucmax-table table { border-collapse: collapse; width: 100%; }
.aucmax-table table { border: solid; border-width: 2px 0; }
.aucmax-table caption { text-align: left; font-weight: 600; padding: 0 0 .5rem; }
.aucmax-table thead { border-bottom: 1px solid; }
.aucmax-table th, .aucmax-table td { padding: .25rem .5rem; text-align: right; vertical-align: top; }
.aucmax-table td { font-variant-numeric: tabular-nums; }
.aucmax-table .text { text-align: left; }
.aucmax-table tr + tr { border-top: 1px solid #ddd; }
.aucmax-table .summary { border-top: 1px solid; }
.aucmax-table .paper { color: #555; white-space: nowrap; }
.aucmax-table .notes { font-size: .85em; }
.aucmax-table .notes p { margin: .3rem 0; }
@page { size: A4 landscape; margin: 14mm; }
@media print {
  body { font-size: 9pt; margin: 0; max-width: none; padding: 0; }
  .aucmax-table { break-after: page; margin: 0; }
  .aucmax-table:last-child { break-after: auto; }
  .aucmax-table tr { break-inside: avoid; }
}
"""


def html_page(tables: Iterable[Table], title: str = "Tables") -> str:
    """One stand-alone page of all tables; printed, each begins a sheet."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "".join(table.html() for table in tables)
        + "</body>\n</html>\n"
    )


def _side(text: bool) -> str:
    return ' class="text"' if text else ""


def _markdown(text: str) -> str:
    text = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", text)


_LATEX = {
    **{sign: "\\" + sign for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "–": "--",
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))
