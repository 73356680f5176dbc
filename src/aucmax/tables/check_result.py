"""What a check of a table found, as values and as text."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from aucmax.reading.frames import TableError
from aucmax.tables.data_warnings import Finding


@dataclass(frozen=True)
class TableCheck:
    """What :func:`check_table` found; ``print`` shows it as text.

    Attributes
    ----------
    target, positive, negative : str and labels
        The labels are None if the target has a problem.
    why_positive : str
        Why this label is ranked high.
    rows, positives, rows_without_label : int
    columns : list of dict
        Name, type, kind, missing, levels (the number of different values), example and treatment.
    problems : list of Finding
        What prevents training, each with the option of ``aucmax train`` that mends it.
    warnings : list of Finding
        What makes the AUC wrong or doubtful.
    seconds : float or None
        How long training will take, about; None if there are problems.
    plan : str or None
        The memory and time that training will take, in sentences.
    """

    target: str
    rows: int
    positive: Any = None
    negative: Any = None
    why_positive: str = ""
    positives: int | None = None
    rows_without_label: int = 0
    columns: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    seconds: float | None = None
    plan: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        return asdict(self)

    def refuse_problems(self) -> None:
        """Raise one error that names all problems, if there are any."""
        if not self.problems:
            return
        if len(self.problems) == 1:
            raise TableError(str(self.problems[0]))
        listed = "".join(f"\n  {i}. {each}" for i, each in enumerate(self.problems, 1))
        raise TableError(f"the table has {len(self.problems)} problems:{listed}")

    @property
    def summary(self) -> str:
        """Return rows, positives and the positive label in a sentence."""
        if self.positives is None:
            return f"{self.rows:,} rows."
        return (
            f"{self.rows:,} rows, {self.positives:,} of them with {self.positive!r} in "
            f"{self.target!r}, which is ranked high ({self.why_positive})."
        )

    def __str__(self) -> str:
        lines = [self.summary]
        if self.rows_without_label:
            lines.append(f"{self.rows_without_label:,} rows without a label are left out.")
        lines += [f"{each['name']}: {each['kind']}, {each['treatment']}" for each in self.columns]
        lines += [f"Problem: {each}" for each in self.problems]
        lines += [f"Warning: {each}" for each in self.warnings]
        return "\n".join(lines)
