"""One live line for a running fit, made from the solver's records."""

from __future__ import annotations

import sys
import time
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
        self.live = self._stream.isatty()
        self._used = False

    def __enter__(self) -> LiveLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self.live and self._used:
            self._stream.write("\n")

    def __call__(self, record: Any) -> None:
        text, self._used = self._describe(record), True
        self._stream.write(f"\r\x1b[2K{text}" if self.live else f"{text}\n")
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


class GridLine:
    """A bar over the values of a grid, with the time left at the present pace.

    Time is reckoned in passes over the data: what the last three values took is what each of those to
    come is expected to take, at the seconds per pass so far. Where values run together, in epochs.
    """

    _WIDTH = 20

    def __init__(self, shown: bool | int, values: int) -> None:
        self._line = LiveLine(str) if shown else None
        self._values, self._done, self._began = values, 0, time.perf_counter()
        self._passes: list[int] = []
        self._now = self._epochs = self._all_epochs = 0
        self._best, self._text = -1.0, ""

    def __enter__(self) -> GridLine:
        return self

    def __exit__(self, *error: object) -> None:
        if self._line is not None:
            self._line.__exit__(*error)

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._began

    def step(self, passes: int) -> None:
        """So many passes have been made for the value at hand."""
        self._now = passes
        if self._line is not None and self._line.live:  # elsewhere a line for each value is enough
            self._show()

    def expect_epochs(self, epochs: int) -> None:
        """Values run together, for so many epochs in all."""
        self._all_epochs = epochs

    def epoch(self) -> None:
        """One of them is over."""
        self._epochs += 1
        if self._line is not None and (self._line.live or self._epochs % 10 == 0):
            self._show()

    def value(self, record: dict[str, Any]) -> None:
        """A value is done."""
        self._done, self._now = self._done + 1, 0
        self._passes.append(record.get("passes", 0))
        if record["auc"] is not None:
            if record["auc"] > self._best:
                self._best, self._text = (
                    record["auc"],
                    f"best AUC {record['auc']:.5f} at C={record['C']:.3g}",
                )
            self._show(f"C={record['C']:.3g}: AUC {record['auc']:.5f}, ")

    def skip(self, values: int) -> None:
        """So many values will not be visited."""
        self._values -= values

    def seconds_left(self) -> float | None:
        """None while nothing is known."""
        if self._all_epochs:
            return self.elapsed() * (self._all_epochs / self._epochs - 1.0) if self._epochs else None
        total = sum(self._passes) + self._now
        if not self._passes or not total:
            return None
        recent = self._passes[-3:]
        to_come = sum(recent) / len(recent) * (self._values - self._done) - self._now
        return max(0.0, to_come) * self.elapsed() / total

    def _show(self, news: str = "") -> None:
        if self._line is None:
            return
        share = (
            self._epochs / self._all_epochs if self._all_epochs else self._done / max(1, self._values)
        )
        full = round(self._WIDTH * min(1.0, share))
        left = self.seconds_left()
        parts = [
            f"[{'#' * full}{'.' * (self._WIDTH - full)}] {self._done} of {self._values} values",
            f"{news}{self._text}",
            f"{sum(self._passes) + self._now} passes"
            if not self._all_epochs
            else f"{self._epochs} epochs",
            f"{self.elapsed():.0f} s",
            "" if left is None else f"about {left:.0f} s left",
        ]
        self._line(", ".join(part for part in parts if part))
