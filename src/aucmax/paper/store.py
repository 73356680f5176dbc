"""Result rows on disk: one JSON line a cell, appended when the cell has ended.

A folder belongs to one run at a time. A line that a crash cut short is dropped when the folder is
opened next, and its cell runs again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aucmax.runtime.output_files import hold, open_own

Row = dict[str, Any]

#: What tells one cell from another.
KEY = ("data", "method", "seed", "rows_asked", "curve", "substitute", "landmarks", "quick")


def key_of(row: Row) -> tuple[Any, ...]:
    """The cell that a row is the result of."""
    return tuple(row.get(name) for name in KEY)


class FolderInUseError(OSError):
    """Another run holds the folder."""


class Store:
    """The rows of a folder, the last one of each cell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "rows.jsonl"
        self._rows = read_rows(self.path) if self.path.exists() else {}

    @property
    def rows(self) -> list[Row]:
        return list(self._rows.values())

    def get(self, key: tuple[Any, ...]) -> Row | None:
        return self._rows.get(key)

    @contextmanager
    def open(self) -> Iterator[Store]:
        """Hold the folder, made if need be, for writing."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open_own(self.folder / ".lock", "ab")
        except OSError as error:
            raise OSError(f"cannot write results to {self.folder}: {error.strerror}") from None
        with lock:
            try:
                hold(lock)
            except BlockingIOError:
                raise FolderInUseError(
                    f"another run is writing to {self.folder}: wait for it, or give another by --out"
                ) from None
            if self.path.exists():
                self._rows = read_rows(self.path)
                _end_line(self.path)
            with self._writing("ab"):  # refused now, not when the first cell has ended
                pass
            yield self

    @contextmanager
    def _writing(self, mode: str) -> Iterator[Any]:
        try:
            with self.path.open(mode) as file:
                yield file
        except OSError as error:
            raise OSError(f"cannot write results to {self.path}: {error.strerror}") from None

    def append(self, row: Row) -> None:
        """Add a row; it is on disk when this returns."""
        line = json.dumps(row, allow_nan=False) + "\n"
        with self._writing("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        self._rows[key_of(row)] = row


def read_rows(path: Path) -> dict[tuple[Any, ...], Row]:
    """Rows by cell, later ones in place of earlier; a last line without its end is left out."""
    rows: dict[tuple[Any, ...], Row] = {}
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            if number == len(lines):
                break
            raise ValueError(
                f"{path}, line {number} is not JSON: mend or remove that line, its cell runs again."
            ) from None
        rows[key_of(row)] = row
    return rows


def _end_line(path: Path) -> None:
    """Cut off what follows the last line end."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole == len(content):
        return
    try:
        json.loads(content[whole:])
    except ValueError:
        os.truncate(path, whole)
    else:
        with path.open("ab") as file:
            file.write(b"\n")
