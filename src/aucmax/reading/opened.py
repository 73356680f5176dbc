"""A table that was read once, for several steps: its rows, and the files they came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from aucmax.reading.byte_streams import file_hash, find_table
from aucmax.reading.frames import RowError, TableError, as_frame, quoted
from aucmax.reading.read import located, read_table
from aucmax.runtime.spelling import nearest


@dataclass(frozen=True)
class OpenedTable:
    """The rows of a table, and the files that they were read from, one after the other.

    ``files`` is empty for a frame, and ``heights`` has the number of rows of each file.
    """

    frame: pl.DataFrame
    files: tuple[Path, ...] = ()
    heights: tuple[int, ...] = ()

    @property
    def data_hash(self) -> str | None:
        """Return the sha256 of the file; None for a frame, and for several files."""
        return file_hash(self.files[0]) if len(self.files) == 1 else None

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add the file and line to errors that name a row."""
        try:
            yield
        except RowError as error:
            if error.where or not self.files:
                raise
            row, number = error.row, 0
            while number + 1 < len(self.files) and row >= self.heights[number]:
                row, number = row - self.heights[number], number + 1
            with located(self.files[number]):
                raise error.moved(row) from None


def text_columns(params: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that the user says are categories or dates, to read as they are written."""
    return (*params.get("category", ()), *params.get("date", ()))


def open_table(
    table: Any,
    *,
    encoding: str | None = None,
    sheet: str | None = None,
    as_text: Sequence[str] = (),
) -> OpenedTable:
    """Read a path, or several with the same columns; a frame is converted.

    Columns in ``as_text`` are read from text files as they are written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from aucmax.reading.opened import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [pathlib.Path(folder, name) for name in ("may.csv", "june.csv")]
    ...     _ = [path.write_text(f"a,b\\n{i},2\\n") for i, path in enumerate(paths)]
    ...     open_table(paths).frame["a"].to_list()
    [0, 1]
    """
    if isinstance(table, OpenedTable):
        return table
    if isinstance(table, str | Path):
        schema = dict.fromkeys(as_text, pl.String)
        frame = read_table(table, schema=schema, encoding=encoding, sheet=sheet)
        return OpenedTable(frame, (Path(table),), (frame.height,))
    if not _are_paths(table):
        return OpenedTable(as_frame(table))
    files = [Path(path) for path in table]
    frames = [open_table(path, encoding=encoding, sheet=sheet, as_text=as_text).frame for path in files]
    for file, frame in zip(files[1:], frames[1:], strict=True):
        _check_same_columns(frames[0].columns, frame.columns, files[0], file)
    frames = [frame.select(frames[0].columns) for frame in frames]
    frames = _same_types(frames, files, encoding=encoding, sheet=sheet)
    return OpenedTable(
        pl.concat(frames, how="vertical_relaxed"),
        tuple(files),
        tuple(frame.height for frame in frames),
    )


def _are_paths(table: Any) -> bool:
    listed = isinstance(table, list | tuple) and len(table) > 0
    return listed and all(isinstance(each, str | Path) for each in table)


def _check_same_columns(first: Sequence[str], other: Sequence[str], one: Path, two: Path) -> None:
    """Refuse files with different columns, and name all differences."""
    absent = [name for name in first if name not in set(other)]
    extra = [name for name in other if name not in set(first)]
    if not absent and not extra:
        return
    parts = [f"{two} lacks {quoted(absent)}"] if absent else []
    parts += [f"{'it' if absent else two} has {quoted(extra)} in addition"] if extra else []
    near = nearest(absent[0], extra) if absent and extra else None
    hint = f" Is {near!r} another name for {absent[0]!r}?" if near else ""
    raise TableError(f"{one} and {two} have different columns: {', and '.join(parts)}.{hint}")


def _same_types(
    frames: list[pl.DataFrame], files: Sequence[Path], **options: Any
) -> list[pl.DataFrame]:
    """Read columns as text in all text files if one file has text there and another has numbers."""
    mixed = []
    for name in frames[0].columns:
        kinds = {frame[name].dtype for frame in frames} - {pl.Null}
        if pl.String in kinds and len(kinds) > 1:
            mixed.append(name)
    if not mixed:
        return frames
    out = []
    for frame, file in zip(frames, files, strict=True):
        if find_table(file).format == "text":  # "01" must stay as it is written
            again = read_table(file, schema=dict.fromkeys(mixed, pl.String), **options)
            out.append(again.select(frame.columns))
        else:
            out.append(frame.with_columns(pl.col(mixed).cast(pl.String)))
    return out
