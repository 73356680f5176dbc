"""Run ``aucmax threshold``, and read the costs of mistakes from the options of a command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aucmax.cli import inputs_outputs as io
from aucmax.cli.status_line import status_line, watched
from aucmax.cli.table_inputs import optional_table
from aucmax.metrics.costs import ExpectedCost
from aucmax.metrics.thresholds import Aim
from aucmax.persistence.model_file import save_model
from aucmax.reading.read import located
from aucmax.tables.decisions import choose_for_rows, cost_at_threshold, miss_costs_of
from aucmax.tables.evaluation_rows import EvaluationRows, evaluation_rows

if TYPE_CHECKING:
    from aucmax.tables.model import TableModel


@dataclass(frozen=True)
class CostOptions:
    """What mistakes cost: that of missing any row, or a column with it, and that of a false alarm."""

    miss: float | None = None
    alarm: float | None = None
    column: str | None = None

    def aim(self) -> Aim | None:
        """Return the costs as an aim; None if no option was given."""
        if self.miss is not None and self.column is not None:
            raise ValueError(
                "--cost-miss is for all rows and --cost-column for each: give one of them."
            )
        if self.miss is None and self.column is None:
            if self.alarm is not None:
                raise ValueError(
                    "--cost-alarm needs the cost of a missed positive as well: add --cost-miss or "
                    "--cost-column."
                )
            return None
        return Aim("cost", self.miss, 1.0 if self.alarm is None else self.alarm)

    def by_row(self, rows: EvaluationRows, table: Path | None) -> np.ndarray | None:
        """Return the cost of missing each row; None if it is the same for all."""
        if self.column is None:
            return None
        with located(table):
            return miss_costs_of(rows, self.column)


@dataclass(frozen=True)
class ThresholdOptions:
    """The options of ``aucmax threshold`` that are not files."""

    aim: Aim
    costs: CostOptions
    force: bool
    as_json: bool


def choose_aim(aim: str | None, costs: CostOptions) -> Aim:
    """Return the aim of the options of a command; exactly one must be given."""
    by_cost = costs.aim()
    if (aim is None) == (by_cost is None):
        raise ValueError(
            "name one aim: --aim, such as recall=0.9, or the costs of mistakes by --cost-miss or "
            "--cost-column."
        )
    wanted = Aim.parse(aim) if aim is not None else by_cost
    assert wanted is not None
    if wanted.by_row and costs.column is None:
        raise ValueError(f"the aim {wanted} needs a column with the costs: use --cost-column.")
    return wanted


def cost_lines(found: ExpectedCost) -> list[tuple[str, str]]:
    """Return the lines of a printed table with the cost of mistakes."""
    cost = vars(found)
    return [
        ("expected cost of mistakes per row", io.interval(cost, "per_row")),
        ("  in total on these rows", f"{found.total:,.2f}"),
        ("  of missed positives, of false alarms", f"{found.missed:,.2f}, {found.alarms:,.2f}"),
        ("  if no row or all were labelled positive", f"{found.if_none:,.2f}, {found.if_all:,.2f}"),
    ]


def run_threshold(
    path: Path,
    table: Path | None,
    output: Path | None,
    target: str | None,
    reading: dict[str, str | None],
    options: ThresholdOptions,
) -> None:
    """Choose another threshold for a saved model, and write the model."""
    aim, costs, force = options.aim, options.costs, options.force
    if output is None and not force:
        raise ValueError(f"name a new file with --output, or add --force to change {path} itself.")
    if output is None or (output.exists() and path.exists() and output.samefile(path)):
        output = path
        io.check_output(output, table, force=force)
    else:
        io.check_output(output, path, table, force=force)
    if costs.column is not None and table is None:
        raise ValueError(f"--cost-column {costs.column} needs a table: name it after the model.")
    model = io.table_model(path)
    with optional_table(table, **reading) as file, status_line() as line:
        line.part("measuring" if table is None else f"reading {table.name}")
        rows = evaluation_rows(watched(model, line), file, target)
        by_row = costs.by_row(rows, file)
        changed = choose_for_rows(model, aim, rows, by_row)
        cost = cost_at_threshold(changed, aim, rows, by_row) if aim.kind == "cost" else None
    with io.naming_full_disk(output):
        save_model(changed, output)
    before, after = model.threshold_, changed.threshold_
    if options.as_json:
        results = {"model": output, "source": rows.source, "before": before.threshold}
        more = {"threshold": after.to_dict(), "cost": None if cost is None else cost.to_dict()}
        io.print_json(results | more)
        return
    _print_threshold(model, changed, rows, cost)
    io.say(f"The model with the new threshold is in {output}.")


def _print_threshold(
    model: TableModel, changed: TableModel, rows: EvaluationRows, cost: ExpectedCost | None
) -> None:
    before, after = model.threshold_, changed.threshold_
    where = "the rows of the table" if rows.source == "table" else "the held-out training rows"
    lines = [
        ("chosen on", f"{rows.positive.size:,} rows: {where}"),
        (f"threshold ({io.aim_words(after.aim)})", f"{after.threshold:.4g}"),
        (f"threshold before ({io.aim_words(before.aim)})", f"{before.threshold:.4g}"),
        ("precision", io.interval(vars(after), "precision")),
        ("recall", io.interval(vars(after), "recall")),
        ("false-positive rate", io.interval(vars(after), "fpr")),
        ("positives found, missed", f"{after.tp:,.0f}, {after.fn:,.0f}"),
        ("false alarms, true negatives", f"{after.fp:,.0f}, {after.tn:,.0f}"),
        *([] if cost is None else cost_lines(cost)),
    ]
    io.print_table(("result", ""), lines, left=1)
