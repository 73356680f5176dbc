"""One live line for a running fit, made from the solver's records."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from aucmax.solvers.epochs import EpochRecord
    from aucmax.solvers.kernel_newton import KernelRecord
    from aucmax.solvers.newton import Record


class LiveLine:
    """Shows each record in place on a terminal, and line by line elsewhere."""

    def __init__(self, describe: Callable[[Any], str], stream: TextIO | None = None) -> None:
        self._describe = describe
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._used = False

    def __enter__(self) -> LiveLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live and self._used:
            self._stream.write("\n")

    def __call__(self, record: Any) -> None:
        text, self._used = self._describe(record), True
        self._stream.write(f"\r\x1b[2K{text}" if self._live else f"{text}\n")
        self._stream.flush()


def describe_step(record: Record, tol: float) -> str:
    """A Newton step in words; of several columns, the one furthest from its minimum."""
    worst = int(record.gap.argmax())
    column = f" [{worst + 1} of {record.gap.size}]" if record.gap.size > 1 else ""
    return (
        f"Newton step {record.iteration}{column}: objective {record.objective[worst]:.6g}, "
        f"about {record.gap[worst]:.1e} from the optimum (until {tol:.0e}), "
        f"training AUC {record.auc[worst]:.5f}, {record.passes} passes, {record.seconds:.1f} s"
    )


def describe_epoch(record: EpochRecord, epochs: int, traced: str = "") -> str:
    """An epoch in words, with the time that is left at this pace."""
    left = record.seconds / record.epoch * (epochs - record.epoch)
    auc = "" if record.auc is None else f", {traced}AUC {record.auc.mean():.5f}"
    return f"epoch {record.epoch} of {epochs}{auc}, {record.seconds:.1f} s, {left:.0f} s left"


def describe_product(record: KernelRecord, tol: float) -> str:
    """A product with the kernel matrix in words."""
    return (
        f"Newton step {record.iteration}, product {record.products}: objective {record.objective:.6g}, "
        f"about {min(record.gap, 1.0):.1e} from the optimum (until {tol:.0e}), "
        f"training AUC {record.auc:.5f}, {record.seconds:.1f} s"
    )
