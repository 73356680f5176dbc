"""``aucmax predict``: scores for the rows of a table of any length."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aucmax.cli.model_arguments import check_output, naming, print_json, table_model, told
from aucmax.cli.status_line import rows_expected, shown
from aucmax.tables.predict_table import ENDINGS, predict_table


def run_predict(
    path: Path,
    table: Path,
    output: Path | None,
    *,
    keep: Sequence[str],
    rank: bool,
    rows: int,
    force: bool,
    as_json: bool,
) -> None:
    """Check where scores go, score, and report."""
    if output is not None:
        check_output(output, path, table, force=force)
        if output.suffix.lower() not in ENDINGS:
            raise ValueError(f"{output} must end in one of {', '.join(ENDINGS)}, to say what to write.")
    elif as_json:
        raise ValueError("--json describes the run, and the scores need a file then: add --output.")
    model = table_model(path)
    room = "the scores" if output is None else output
    mixed = output is None and sys.stdout.isatty()  # scores and progress on one terminal
    with naming(room), shown(quiet=mixed) as line:
        done = predict_table(
            model,
            table,
            sys.stdout.buffer if output is None else output,
            keep=keep,
            rank=rank,
            batch_rows=rows,
            progress=line,
            expected_rows=rows_expected(table) if line.live else None,
        )
    for sentence in done.unseen:
        told().print(sentence)
    if as_json:
        print_json({"output": output, "rows": done.rows, "surprises": done.unseen})
    elif output is not None:
        told().print(f"{done.rows:,} rows are in {output}.")
