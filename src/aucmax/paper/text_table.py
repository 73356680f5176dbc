"""A table that renders as Markdown, LaTeX, HTML, or for the terminal."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import rich.markup
import rich.table
from rich import box
from rich.text import Text


class Entry(NamedTuple):
    """An entry of a table: our text, the text beneath it, whether it is bold, and its footnotes."""

    ours: str = ""
    beneath: str = ""
    best: bool = False
    notes: tuple[str, ...] = ()


Line = tuple[Entry, ...]


class _Markup(NamedTuple):
    """How a format escapes text, and its templates."""

    escape: Callable[[str], str]
    bold: str
    raised: str
    beneath: str


def escape_markdown(text: str) -> str:
    """Return one line that Markdown shows as plain text."""
    text = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", text)


_LATEX_SIGNS = str.maketrans({
    **{sign: "\\" + sign for sign in "&%$#_{}"}, "\\": r"\textbackslash{}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$", "−": "$-$",
    "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "–": "--",
})  # fmt: skip


def _escape_latex(text: str) -> str:
    return " ".join(text.split()).translate(_LATEX_SIGNS)


_MARKDOWN = _Markup(escape_markdown, "**%s**", "<sup>%s</sup>", "<br>%s")
_LATEX = _Markup(_escape_latex, r"\textbf{%s}", r"\textsuperscript{%s}", r"{\scriptsize %s}")
_RICH = _Markup(rich.markup.escape, "[bold]%s[/]", r"[dim]\[%s][/]", "\n[dim]%s[/]")
_HTML = _Markup(html.escape, "<b>%s</b>", "<sup>%s</sup>", '<br><small class="paper">%s</small>')


def _letter(number: int) -> str:
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)


@dataclass(frozen=True)
class Table:
    """A table; ``name`` is its LaTeX label and HTML id.

    ``summary`` is set off at the bottom, and ``remarks`` say how to read the table. The first ``left``
    columns are text, and aligned left.
    """

    name: str
    caption: str
    headings: tuple[str, ...]
    body: tuple[Line, ...]
    summary: tuple[Line, ...] = ()
    remarks: tuple[str, ...] = ()
    left: int = 1

    @property
    def footnotes(self) -> dict[str, str]:
        """The letter of each footnote, in reading order; equal footnotes share a letter."""
        entries = [entry for line in (*self.body, *self.summary) for entry in line]
        texts = dict.fromkeys(note for entry in entries for note in entry.notes)
        return {text: _letter(number) for number, text in enumerate(texts)}

    def _marked(self, markup: _Markup) -> Table:
        """Return a table of escaped and marked-up texts, with the footnotes among the remarks."""
        escape, letters = markup.escape, self.footnotes

        def marked(entry: Entry) -> Entry:
            ours, marks = escape(entry.ours), ",".join(letters[note] for note in entry.notes)
            ours = markup.bold % ours if entry.best else ours
            beneath = markup.beneath % escape(entry.beneath) if entry.beneath else ""
            return Entry(ours + (markup.raised % marks if marks else ""), beneath)

        body, summary = (
            tuple(tuple(map(marked, line)) for line in part) for part in (self.body, self.summary)
        )
        notes = [f"{markup.raised % letter} {escape(text)}" for text, letter in letters.items()]
        headings, remarks = tuple(map(escape, self.headings)), (*map(escape, self.remarks), *notes)
        return Table(self.name, escape(self.caption), headings, body, summary, remarks, self.left)

    def markdown(self) -> str:
        """Return Markdown as GitHub reads it."""
        marked, count = self._marked(_MARKDOWN), len(self.remarks)
        rules = [":--" if k < self.left else "--:" for k in range(len(self.headings))]
        lines = [[e.ours + e.beneath for e in line] for line in marked.body + marked.summary]
        table = "\n".join(f"| {' | '.join(line)} |" for line in (marked.headings, rules, *lines))
        remarks, notes = marked.remarks[:count], "<br>\n".join(marked.remarks[count:])
        return "\n\n".join(filter(None, (marked.caption, table, *remarks, notes))) + "\n"

    def latex(self) -> str:
        """Return a ``table`` environment that needs the package booktabs and no other."""
        # LaTeX numbers its own tables.
        marked = replace(self, caption=re.sub(r"^Table [0-9]+[.] ", "", self.caption))._marked(_LATEX)

        def rows(line: Line) -> str:
            texts = [[e.ours for e in line], [e.beneath for e in line]]
            return "\n".join(" & ".join(row) + r" \\" for row in texts[: 1 + any(texts[1])])

        lines = [
            "% needs \\usepackage{booktabs}\n\\begin{table}[p]",
            r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
            f"\\caption{{{marked.caption}}}\n\\label{{{self.name}}}",
            rf"\begin{{tabular}}{{{'l' * self.left + 'r' * (len(self.headings) - self.left)}}}",
            "\\toprule\n" + " & ".join(marked.headings) + " \\\\\n\\midrule",
            "\n\\addlinespace\n".join(map(rows, marked.body)),
            *(f"\\midrule\n{rows(line)}" for line in marked.summary),
            "\\bottomrule\n\\end{tabular}",
        ]
        if marked.remarks:
            lines += [r"\par\medskip", r"\raggedright " + "\\par\n".join(marked.remarks) + r"\par"]
        return "\n".join([*lines, r"\end{table}", ""])

    def html(self) -> str:
        """Return a ``section`` element; its classes are for the style of a page."""
        marked = self._marked(_HTML)

        def row(tag: str, texts: Iterable[str]) -> str:
            sides = (' class="text"' if k < self.left else "" for k in range(len(self.headings)))
            pairs = zip(sides, texts, strict=True)
            return "<tr>" + "".join(f"<{tag}{side}>{text}</{tag}>" for side, text in pairs) + "</tr>"

        lines = [
            f'<section class="aucmax-table" id="{html.escape(self.name)}">',
            f"<table>\n<caption>{marked.caption}</caption>",
            f"<thead>{row('th', marked.headings)}</thead>",
        ]
        for kind, part in (("results", marked.body), ("summary", marked.summary)):
            if part or kind == "results":
                rows = [row("td", (e.ours + e.beneath for e in line)) for line in part]
                lines += [f'<tbody class="{kind}">', *rows, "</tbody>"]
        notes = "".join(f"<p>{text}</p>" for text in marked.remarks)
        return "\n".join([*lines, "</table>", f'<div class="notes">{notes}</div>', "</section>", ""])

    def rich(self) -> rich.table.Table:
        """Return a table for the terminal."""
        marked, show = self._marked(_RICH), partial(Text.from_markup, emoji=False)
        below = show("\n".join(marked.remarks)) if marked.remarks else None
        table = rich.table.Table(
            title=show(marked.caption), caption=below, caption_justify="left", box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
        )  # fmt: skip
        for k, heading in enumerate(marked.headings):
            table.add_column(show(heading), justify="left" if k < self.left else "right")
        for part in (marked.body, marked.summary):
            for line in part:
                table.add_row(*(show(e.ours + e.beneath) for e in line))
            table.add_section()
        return table


_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 68rem; padding: 0 1rem; }
section { break-after: page; font-variant-numeric: tabular-nums; margin: 0 0 3rem; }
section:last-child { break-after: auto; }
table { border: solid; border-width: 2px 0; border-collapse: collapse; width: 100%; }
caption { font-weight: 600; padding: 0 0 .5rem; text-align: left; }
th, td { padding: .25rem .5rem; text-align: right; vertical-align: top; }
.text { text-align: left; }
tr { break-inside: avoid; }
tr + tr { border-top: 1px solid #ddd; }
tbody { border-top: 1px solid; }
.paper { color: #555; white-space: nowrap; }
.notes { font-size: .85em; }
.notes p { margin: .3rem 0; }
@page { size: A4 landscape; margin: 14mm; }
@media print { body { font-size: 9pt; margin: 0; max-width: none; padding: 0; } }
"""


def html_page(tables: Iterable[Table], title: str = "Tables") -> str:
    """Return a page of tables; printed, each starts on a new sheet."""
    body = "".join(table.html() for table in tables)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}</body>\n</html>\n"
    )
