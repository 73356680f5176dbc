"""One live line for a running fit, made from the solver's records."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from aucmax.solvers.newton import Record


class LiveLine:
    """Shows each record in place on a terminal, and line by line elsewhere."""

    def __init__(self, tol: float, stream: TextIO | None = None) -> None:
        self._tol = tol
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()

    def __call__(self, record: Record) -> None:
        self._write(describe(record, self._tol))

    def close(self) -> None:
        if self._live:
            self._stream.write("\n")

    def _write(self, text: str) -> None:
        self._stream.write(f"\r\x1b[2K{text}" if self._live else f"{text}\n")
        self._stream.flush()


def describe(record: Record, tol: float) -> str:
    """A record in words; of several columns, the one furthest from its minimum."""
    worst = int(record.gap.argmax())
    column = f" [{worst + 1} of {record.gap.size}]" if record.gap.size > 1 else ""
    return (
        f"Newton step {record.iteration}{column}: objective {record.objective[worst]:.6g}, "
        f"about {record.gap[worst]:.1e} from the optimum (until {tol:.0e}), "
        f"training AUC {record.auc[worst]:.5f}, {record.passes} passes, {record.seconds:.1f} s"
    )
