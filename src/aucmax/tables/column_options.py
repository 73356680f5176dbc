"""What the user says about columns: which to leave out, and what the others hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aucmax.reading.frames import TableError, check_names
from aucmax.runtime.spelling import nearest

#: The parameters that name columns. All but "drop" say what a column holds.
OPTIONS = ("drop", "category", "number", "date", "id")


@dataclass(frozen=True)
class Fault:
    """A column that an option names wrongly, and the option with the name that was meant, if known."""

    sentence: str
    column: str
    option: str | None = None
    meant: str | None = None


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

    def faults(
        self, present: Sequence[str], special: Mapping[str, str | None] | None = None
    ) -> Iterator[Fault]:
        """Yield what is wrong with the columns that are named, here or in ``special``.

        ``special`` has the columns of the target, the weight, the group and the time. A column may be
        absent, be named by two options, or be the target or a weight and something else too.
        """
        named = {what: name for what, name in (special or {}).items() if name is not None}
        for what, name in named.items():
            yield from _absent(present, name, f"is named as the {what}", what)
        for option in OPTIONS:
            for name in dict.fromkeys(getattr(self, option)):
                yield from _absent(present, name, f"{option} names", option)
        by_name: dict[str, str] = {}
        for option in OPTIONS:
            for name in dict.fromkeys(getattr(self, option)):
                other = by_name.setdefault(name, option)
                if other != option:
                    sentence = f"Column {name!r} is named by both {other} and {option}; name it in one."
                    yield Fault(sentence, name)
        for what, name in named.items():
            if what != "target" and name == named.get("target"):
                yield Fault(f"Column {name!r} cannot be both the target and the {what}.", name)
            # The weight and the group are no features, so leaving them out contradicts nothing.
            for option in OPTIONS if what == "target" else ("category", "number", "date"):
                if name in getattr(self, option):
                    words = "dropped" if option == "drop" else f"named by {option}"
                    yield Fault(f"Column {name!r} cannot be both the {what} and {words}.", name)

    def check(self, present: Sequence[str], special: Mapping[str, str | None] | None = None) -> None:
        """Raise an error for the first of the :meth:`faults`."""
        for fault in self.faults(present, special):
            raise TableError(fault.sentence)

    def kinds(self) -> dict[str, str]:
        """Return "category", "number", "date" or "id" for each column that such an option names."""
        return {name: option for option in OPTIONS[1:] for name in getattr(self, option)}


def _absent(present: Sequence[str], name: str, what: str, option: str) -> Iterator[Fault]:
    try:
        check_names(present, [name], what)
    except TableError as error:
        yield Fault(str(error), name, option, nearest(name, present))
