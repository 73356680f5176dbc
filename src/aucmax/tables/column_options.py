"""What the user says about columns: which to leave out, and what the others hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aucmax.reading.frames import TableError, check_names

#: The parameters that name columns. All but "drop" say what a column holds.
OPTIONS = ("drop", "category", "number", "date", "id")


@dataclass(frozen=True)
class ColumnOptions:
    """The columns that each option names, as in :class:`TableFeatures`."""

    drop: Sequence[str] = ()
    category: Sequence[str] = ()
    number: Sequence[str] = ()
    date: Sequence[str] = ()
    id: Sequence[str] = ()

    @classmethod
    def of(cls, estimator: Any) -> ColumnOptions:
        """Take the options from the parameters of an estimator."""
        return cls(**{option: getattr(estimator, option) for option in OPTIONS})

    def check(self, present: Sequence[str]) -> None:
        """Refuse columns that the table lacks, and columns that two options name."""
        by_name: dict[str, str] = {}
        for option in OPTIONS:
            names = getattr(self, option)
            check_names(present, names, f"{option} names")
            for name in dict.fromkeys(names):
                if name in by_name:
                    raise TableError(
                        f"Column {name!r} is named by both {by_name[name]} and {option}; name it in "
                        "one of them."
                    )
                by_name[name] = option

    def refuse_special(self, special: dict[str, str | None]) -> None:
        """Refuse options that name the target, or say what a column of weights or groups holds."""
        for what, column in special.items():
            # The weight and the group are no features, so leaving them out contradicts nothing.
            options = OPTIONS if what == "target" else ("category", "number", "date")
            for option in options:
                if column is not None and column in getattr(self, option):
                    words = "dropped" if option == "drop" else f"named by {option}"
                    raise TableError(f"Column {column!r} cannot be both the {what} and {words}.")

    def kinds(self) -> dict[str, str]:
        """Return "category", "number", "date" or "id" for each column that such an option names."""
        return {name: option for option in OPTIONS[1:] for name in getattr(self, option)}
