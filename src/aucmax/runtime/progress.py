"""Show the progress of a fit on one line, from the records of its solver."""

from __future__ import annotations

import math
import multiprocessing
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from aucmax.solvers.epochs import EpochRecord
    from aucmax.solvers.kernel_newton import KernelRecord
    from aucmax.solvers.newton import Record

#: Characters of a progress bar.
_WIDTH = 20

#: A fit that takes less shows nothing on a terminal, unless it is verbose.
_SHOWN_AFTER = 3.0


class LiveLine(AbstractContextManager["LiveLine"]):
    """Show each record: over the last one on a terminal, on a line of its own elsewhere."""

    def __init__(self, describe: Callable[[Any], str], stream: TextIO | None = None) -> None:
        self._describe, self._stream, self._used = describe, stream or sys.stderr, False
        self.live = self._stream.isatty()

    def __exit__(self, *_: object) -> None:
        if self.live and self._used:
            self._stream.write("\n")

    def __call__(self, record: Any) -> None:
        text, self._used = self._describe(record), True
        self._stream.write(f"\r\x1b[2K{text}" if self.live else f"{text}\n")
        self._stream.flush()


def describe_step(record: Record, tol: float) -> str:
    """Describe a Newton step, by the problem furthest from its minimum."""
    worst, count = int(record.gap.argmax()), record.gap.size
    problem = f" [{worst + 1} of {count}]" if count > 1 else ""
    reached = _describe(record.objective[worst], record.gap[worst], record.auc[worst], tol)
    spent = f"{record.passes} passes, {record.seconds:.1f} s"
    return f"Newton step {record.iteration}{problem}: {reached}, {spent}"


def describe_product(record: KernelRecord, tol: float) -> str:
    """Describe a product with the kernel matrix."""
    reached = _describe(record.objective, min(record.gap, 1.0), record.auc, tol)
    step = f"Newton step {record.iteration}, product {record.products}"
    return f"{step}: {reached}, {record.seconds:.1f} s"


def _describe(objective: float, gap: float, auc: float, tol: float) -> str:
    distance = f"about {gap:.1e} from the optimum (until {tol:.0e})"
    return f"objective {objective:.6g}, {distance}, training AUC {auc:.5f}"


def describe_epoch(record: EpochRecord, epochs: int, traced: str = "") -> str:
    """Describe an epoch, with the time left if the remaining ones take as long."""
    left = record.seconds / record.epoch * (epochs - record.epoch)
    auc = "" if record.auc is None else f", {traced}AUC {record.auc.mean():.5f}"
    return f"epoch {record.epoch} of {epochs}{auc}, {record.seconds:.1f} s, {left:.0f} s left"


class StatusLine:
    """What a fit is doing: lines if it is verbose, otherwise one line that is removed at the end.

    The one line appears after a few seconds, where a terminal watches the main thread of a program; in
    a worker of a search, or in a file of messages, there is none.
    """

    def __init__(self, verbose: bool = False, stream: TextIO | None = None) -> None:
        self._verbose, self._stream, self._began = verbose, stream or sys.stderr, time.monotonic()
        main = threading.current_thread() is threading.main_thread()
        watched = main and multiprocessing.parent_process() is None and self._stream.isatty()
        self._live, self._used = watched and not verbose, False

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._began

    def say(self, text: object) -> None:
        """Print a line if the fit is verbose."""
        if self._verbose:
            print(text, file=self._stream)

    def show(self, text: str, left: float | None = None) -> None:
        """Show a text in place of the last one, with the time it has taken and the seconds left."""
        if self._live and self.elapsed() >= _SHOWN_AFTER:
            ahead = "" if left is None else f", about {left:.0f} s left"
            line = f"{text}, {self.elapsed():.0f} s{ahead}"
            self._stream.write(f"\r\x1b[2K{line[: shutil.get_terminal_size().columns - 1]}")
            self._stream.flush()
            self._used = True

    def close(self) -> None:
        """Remove the line."""
        if self._used:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()


class ClosingGap:
    """Estimate how long a solver needs to its tolerance, from how fast the gap's logarithm falls."""

    def __init__(self, tol: float) -> None:
        self._tol, self._first = tol, 0.0

    def left(self, gap: float, seconds: float) -> float | None:
        """Return the seconds left after so many, or None while nothing is known."""
        self._first = max(self._first, gap)
        if not self._tol < gap < self._first:
            return None
        done = math.log(self._first / gap)
        return seconds * math.log(gap / self._tol) / done


class GridLine(AbstractContextManager["GridLine"]):
    """A bar over the values of a grid, with an estimate of the time left.

    Each value to come is expected to take as many passes over the data as the mean of the last three,
    at the seconds per pass so far. Where values run together, epochs are counted instead.
    """

    def __init__(self, shown: bool | int, values: int) -> None:
        self._line, self._shown, self._began = LiveLine(str), shown, time.perf_counter()
        self._values, self._done = values, 0
        self._passes: list[int] = []
        self._now = self._epochs = self._all_epochs = 0
        self._best, self._text = -1.0, ""

    def __exit__(self, *error: object) -> None:
        self._line.__exit__(*error)

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self._began

    def step(self, passes: int) -> None:
        """Note how many passes the current value has taken; only a terminal shows them."""
        self._now = passes
        if self._line.live:
            self._show()

    def expect_epochs(self, epochs: int) -> None:
        """Announce that the values run together, for this many epochs in all."""
        self._all_epochs = epochs

    def epoch(self) -> None:
        """Count an epoch."""
        self._epochs += 1
        if self._line.live or self._epochs % 10 == 0:
            self._show()

    def value(self, record: dict[str, Any]) -> None:
        """Count a value as done, and show its record."""
        self._done, self._now, auc = self._done + 1, 0, record["auc"]
        self._passes.append(record.get("passes", 0))
        if auc is not None:
            if auc > self._best:
                self._best, self._text = auc, f"best AUC {auc:.5f} at C={record['C']:.3g}"
            self._show(f"C={record['C']:.3g}: AUC {auc:.5f}, ")

    def skip(self, values: int) -> None:
        """Leave this many values out."""
        self._values -= values

    def seconds_left(self) -> float | None:
        """Estimate the seconds left; None while nothing is known."""
        if self._all_epochs:
            return self.elapsed() * (self._all_epochs / self._epochs - 1.0) if self._epochs else None
        total, recent = sum(self._passes) + self._now, self._passes[-3:]
        if not recent or not total:
            return None
        to_come = sum(recent) / len(recent) * (self._values - self._done) - self._now
        return max(0.0, to_come) * self.elapsed() / total

    def _show(self, news: str = "") -> None:
        if not self._shown:
            return
        share, work = self._done / max(1, self._values), f"{sum(self._passes) + self._now} passes"
        if self._all_epochs:
            share, work = self._epochs / self._all_epochs, f"{self._epochs} epochs"
        bar, left = "#" * round(_WIDTH * min(1.0, share)), self.seconds_left()
        parts = [
            f"[{bar:.<{_WIDTH}}] {self._done} of {self._values} values",
            f"{news}{self._text}",
            work,
        ]
        parts += [f"{self.elapsed():.0f} s", "" if left is None else f"about {left:.0f} s left"]
        self._line(", ".join(part for part in parts if part))
