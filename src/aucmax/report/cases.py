"""Rows that a report shows one by one, with the columns that raise and lower their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aucmax.reading.frames import check_names
from aucmax.report.words import cell, percent
from aucmax.tables.evaluation_rows import EvaluationRows

_CASES, _REASONS, _VALUES = 6, 3, 10  #: Rows of each kind; reasons and values of each row.
_LEAST = 0.0005  #: A smaller contribution would be shown as 0.000.


def id_column(model: Any, rows: EvaluationRows, named: str | None) -> str | None:
    """Return the column that identifies rows: the one named, or one dropped as an identifier."""
    if rows.frame is None:
        if named is not None:
            raise ValueError(f"id={named!r} is a column of a table: make the report with a table.")
        return None
    if named is not None:
        check_names(rows.frame.columns, [named], "is named as the id")
        return named
    for column in model.columns_:
        dropped = column["kind"] == "dropped" and "as an identifier" in column["treatment"]
        if dropped and column["name"] in rows.frame.columns:
            return str(column["name"])
    return None


def shown_cases(
    model: Any,
    rows: EvaluationRows,
    columns: Sequence[str],
    names: tuple[str, str],
    id_name: str | None,
) -> list[dict[str, Any]]:
    """Return the first rows of the ranking, the highest negatives and the lowest positives.

    ``columns`` are in order of importance, and ``names`` are those of the positive and negative label.
    """
    if rows.frame is None or rows.number is None:
        return []
    positive, negative = names
    everything = np.ones(rows.score.size, bool)
    groups = []
    for key, heading, members, sign in (
        ("first", "Rows with the highest scores", everything, -1.0),
        ("false alarms", f"Rows of {negative} with the highest scores", ~rows.positive, -1.0),
        ("missed", f"Rows of {positive} with the lowest scores", rows.positive, 1.0),
    ):
        indices = np.flatnonzero(members)
        chosen = indices[np.argsort(sign * rows.score[indices], kind="stable")[:_CASES]]
        cases = _cases(model, rows, chosen, columns, names, id_name)
        groups.append({"key": key, "heading": heading, "cases": cases})
    return groups


def _cases(
    model: Any,
    rows: EvaluationRows,
    chosen: np.ndarray,
    columns: Sequence[str],
    names: tuple[str, str],
    id_name: str | None,
) -> list[dict[str, Any]]:
    assert rows.frame is not None
    assert rows.number is not None
    frame = rows.frame[chosen]
    shown = [name for name in columns if name in frame.columns][:_VALUES]
    cases = []
    for i, reasons, values in zip(
        chosen, model.explain(frame).top(_REASONS), frame.select(shown).iter_rows(), strict=True
    ):
        cases.append(
            {
                "number": int(rows.number[i]),
                "id": None if id_name is None else cell(rows.frame[id_name][int(i)]),
                "score": f"{rows.score[i]:.3f}",
                "probability": percent(float(rows.probability[i])),
                "label": names[0] if rows.positive[i] else names[1],
                "raises": [each for each in reasons.raises if each.by >= _LEAST],
                "lowers": [each for each in reasons.lowers if -each.by >= _LEAST],
                "values": list(zip(shown, map(cell, values), strict=True)),
            }
        )
    return cases
