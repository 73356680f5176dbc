"""Result rows on disk: one JSON line per cell, appended when the cell ends.

One run at a time may write to a folder; it removes a last line that a crash has cut short.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aucmax.runtime.output_files import hold, open_own

Row = dict[str, Any]
Key = tuple[Any, ...]

#: The version of the protocol, and that of the methods on k-means landmarks. A row of an earlier one is
#: used until its cell is run again. Version 1 had rows nearest to the k-means centres as landmarks, and
#: smaller samples to tune on. Up to version 2, features of eigenvalues below 1e-6 of the largest were
#: dropped; it is 1e-8 now.
PROTOCOL, LANDMARK_PROTOCOL = 2, 3
_ON_LANDMARKS = ("NBAUC", "NSAUC", "NSVMSGD2", "NOAM", "NSOLAM")

#: The fields that identify a cell.
KEY = ("data", "method", "seed", "rows_asked", "curve", "substitute", "landmarks", "quick", "protocol")

#: A fit counts as disturbed if other programs took more than this share of the processors' time. A
#: disturbed fit is timed again, until it has been timed this often.
MOST_COMPANY, MOST_TIMINGS = 0.1, 3


def protocol_of(method: str) -> int:
    """Return the version of the protocol that a method is run with.

    >>> protocol_of("Linear RankSVM"), protocol_of("NBAUC")
    (2, 3)
    """
    return LANDMARK_PROTOCOL if method in _ON_LANDMARKS else PROTOCOL


class FolderInUseError(OSError):
    """Another run is writing to the folder."""


class Store:
    """The rows of a folder: the last row of each cell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "rows.jsonl"
        self._rows, _ = _read(self.path)

    @property
    def rows(self) -> list[Row]:
        return list(self._rows.values())

    def get(self, key: Key) -> Row | None:
        return self._rows.get(key)

    @contextmanager
    def open(self) -> Iterator[Store]:
        """Create the folder if needed, and lock it for writing."""
        with _naming(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open_own(self.folder / ".lock", "ab")
        with lock:
            try:
                hold(lock)
            except BlockingIOError:
                raise FolderInUseError(
                    f"another run is writing to {self.folder}: wait for it, or choose another --out"
                ) from None
            self._rows, whole = _read(self.path)
            # This refuses an unwritable file now, and not after the first cell.
            with _naming(self.path), self.path.open("ab") as file:
                file.truncate(len(whole))
                if whole and not whole.endswith(b"\n"):
                    file.write(b"\n")
            yield self

    def append(self, row: Row) -> None:
        """Add a row, and return when it is on disk."""
        line = json.dumps(row, allow_nan=False) + "\n"
        with _naming(self.path), self.path.open("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        self._rows[_key_of(row)] = row


def is_disturbed(row: Mapping[str, Any]) -> bool:
    """Return whether other programs disturbed the timed fit of a row."""
    return bool((row.get("company") or 0.0) > MOST_COMPANY)


def needs_timing(row: Row) -> bool:
    """Return whether the fit of a row is to be timed again."""
    return is_disturbed(row) and row.get("timings", 1) < MOST_TIMINGS


def timed_again(before: Row, after: Row) -> Row:
    """Return a row with the times of the less disturbed of two fits at the same hyper-parameters."""
    names = ("embedding_seconds", "learning_seconds", "company", "curve_points", "machine", "finished")
    quieter = after["status"] == "done" and (after["company"] or 0.0) < before["company"]
    times = {name: after[name] for name in names if name in before} if quieter else {}
    return {**before, **times, "timings": before.get("timings", 1) + 1}


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the path in errors of the system."""
    try:
        yield
    except OSError as error:
        raise OSError(f"cannot write results to {path}: {error.strerror}") from None


def _key_of(row: Row) -> Key:
    return tuple(row.get(name) for name in KEY)


def _read(path: Path) -> tuple[dict[Key, Row], bytes]:
    """Return the last row of each cell, and the content without a last line that was cut short."""
    rows: dict[Key, Row] = {}
    content = path.read_bytes() if path.exists() else b""
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError:
            if number == len(lines):
                return rows, content[: -len(line)]
            raise ValueError(
                f"{path}, line {number} is not JSON: correct it, or delete it to run its cell again."
            ) from None
        if row is not None:
            rows[_key_of(row)] = row
    return rows, content
