"""Run ``aucmax predict``: score the rows of a table."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from aucmax.cli import inputs_outputs as io
from aucmax.cli.remarks import DRIFTED
from aucmax.cli.status_line import rows_expected, status_line
from aucmax.cli.table_inputs import STANDARD, table_file
from aucmax.tables.predict_table_file import Wanted, check_ending, write_predictions


@dataclass(frozen=True)
class PredictOptions:
    """The options of ``aucmax predict`` that do not change the scores."""

    batch_rows: int
    force: bool
    as_json: bool
    fail_on_drift: bool


def run_predict(
    model: Path,
    table: Path,
    output: Path | None,
    wanted: Wanted,
    reading: dict[str, str | None],
    options: PredictOptions,
) -> None:
    """Score the rows of a table, and print remarks on new values, drift and identifiers that repeat.

    ``reading`` has the encoding and the sheet.
    """
    output = None if output == STANDARD else output
    if output is not None:
        io.check_output(output, model, table, force=options.force)
        check_ending(output)
    elif options.as_json:
        raise ValueError("--json needs --output, because the scores would be printed among the JSON.")
    loaded = io.table_model(model)
    mixed = output is None and sys.stdout.isatty()  # scores and progress on one terminal
    with (
        table_file(table, **reading) as file,
        io.naming_full_disk(output or "the scores"),
        status_line(quiet=mixed) as line,
    ):
        done = write_predictions(
            loaded,
            file,
            output or sys.stdout.buffer,
            wanted,
            batch_rows=options.batch_rows,
            progress=line,
            expected_rows=rows_expected(file) if line.live else None,
        )
    for sentence in (*done.unseen, *(each.sentence for each in done.drift)):
        io.say(sentence)
    if done.repeated:
        io.say(
            f"{done.repeated:,} rows have the same {' and '.join(wanted.keep)} as another row, so "
            "--id does not tell them apart."
        )
    if options.as_json:
        drift = [each.to_dict() for each in done.drift]
        about = {"rows": done.rows, "unseen_values": done.unseen, "drift": drift}
        io.print_json({"output": output, **about, "repeated_ids": done.repeated})
    elif output is not None:
        io.say(f"{done.rows:,} rows are in {output}.")
    if done.drift and options.fail_on_drift:
        raise SystemExit(DRIFTED)
