"""Tables as commands take them: files, patterns of file names, and ``-`` for standard input.

The library reads files. What is not a file in UTF-8 becomes a temporary one, and errors name the
original. Nothing here imports scikit-learn, so that the first line of a command appears soon.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from glob import glob
from pathlib import Path

from aucmax.reading.byte_streams import find_table
from aucmax.reading.encodings import as_utf8
from aucmax.reading.frames import TableError, renamed_in
from aucmax.reading.read import read_table

STANDARD = Path("-")  #: Standard input, or standard output.
_NAME = "standard input"
#: The ending of a format's file names, by its first bytes; all else is comma-separated text.
_ENDINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\x03\x04": ".xlsx", b"{": ".jsonl"}


@contextmanager
def table_file(path: Path, *, encoding: str | None = None, sheet: str | None = None) -> Iterator[Path]:
    """Yield a file that the library reads by its name alone."""
    with ExitStack() as stack:
        if path == STANDARD:
            path = stack.enter_context(_standard_input())
        if encoding is not None:
            path = stack.enter_context(as_utf8(path, encoding))
        if sheet is not None:
            path = stack.enter_context(_sheet_file(path, sheet))
        yield path


@contextmanager
def optional_table(path: Path | None, **reading: str | None) -> Iterator[Path | None]:
    """Yield a file as :func:`table_file` does; None if there is no table."""
    if path is not None:
        with table_file(path, **reading) as file:
            yield file
        return
    if given := [f"--{option}" for option, value in reading.items() if value is not None]:
        need = "needs" if len(given) == 1 else "need"
        raise TableError(f"{' and '.join(given)} {need} a table: name it after the model.")
    yield None


@contextmanager
def table_files(
    paths: Sequence[Path], *, encoding: str | None = None, sheet: str | None = None
) -> Iterator[list[Path]]:
    """Yield the files of several names and patterns, such as ``part-*.csv``."""
    names = [each for path in paths for each in _expanded(path)]
    if len(names) > 1 and STANDARD in names:
        raise TableError("Standard input (-) cannot be one of several tables: name it alone.")
    with ExitStack() as stack:
        yield [stack.enter_context(table_file(name, encoding=encoding, sheet=sheet)) for name in names]


def name_of(paths: Sequence[Path]) -> str:
    """Return how to call tables in a sentence."""
    first = _NAME if paths[0] == STANDARD else paths[0].name
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def _expanded(path: Path) -> list[Path]:
    if path == STANDARD or path.exists() or not set("*?[") & set(str(path)):
        return [path]
    found = sorted(Path(each) for each in glob(str(path), recursive=True))
    if not found:
        raise FileNotFoundError(f"no file matches {path}.")
    return found


@contextmanager
def _standard_input() -> Iterator[Path]:
    """Copy standard input to a file, because a table is read more than once."""
    if sys.stdin is None or sys.stdin.isatty():
        raise TableError("- stands for standard input, but nothing is piped into the command.")
    with tempfile.TemporaryDirectory(prefix="aucmax-") as folder:
        stream = sys.stdin.buffer
        start = stream.read(65536)
        if not start.strip():
            raise TableError(
                "Standard input is empty; it should have a line of column names, then rows."
            )
        lead = start.lstrip()
        ending = next((end for magic, end in _ENDINGS.items() if lead.startswith(magic)), ".csv")
        copy = Path(folder, f"{_NAME}{ending}")
        with copy.open("wb") as out:
            out.write(start)
            shutil.copyfileobj(stream, out, 2**20)
        with renamed_in(copy, _NAME):
            yield copy


@contextmanager
def _sheet_file(path: Path, sheet: str) -> Iterator[Path]:
    """Copy a sheet of an Excel file to an Arrow file."""
    find_table(path)
    frame = read_table(path, sheet=sheet)
    with tempfile.TemporaryDirectory(prefix="aucmax-") as folder:
        copy = Path(folder, f"{path.stem}.arrow")
        frame.write_ipc(copy)
        with renamed_in(copy, f"{path}, sheet {sheet!r},"):
            yield copy
