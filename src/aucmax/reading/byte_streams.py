"""Files as bytes: what a name says of them, unpacked as they are read."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import importlib
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any

import polars as pl

from aucmax.reading.frames import TableError
from aucmax.runtime import memory

__all__ = ["TableFile", "file_hash", "find_table", "read_all", "unpacked", "whole_lines"]

#: Bytes read at a time, and of the longest line.
PIECE = 2**23
LONGEST_LINE = 2**27

_FORMATS = {
    ".csv": "text",
    ".txt": "text",
    ".tsv": "text",
    ".tab": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
}
_PACKED = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class TableFile:
    """A table on disk: where, in which format, and the ending that says so."""

    path: Path
    format: str  # text, parquet, arrow or libsvm
    ending: str


def find_table(path: str | Path) -> TableFile:
    """Look at a file's name; a missing file, a folder and an unknown ending are refused."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(
            f"{path} is a folder; give one file of it, such as {path / 'table.csv'}."
        )
    if not path.exists():
        there = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        near = get_close_matches(path.name, there, n=1)
        hint = f" Did you mean {path.with_name(near[0])}?" if near else ""
        raise FileNotFoundError(f"there is no file {path}.{hint}")
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _PACKED:
        endings.pop()
    if not endings or endings[-1] not in _FORMATS:
        raise TableError(
            f"{path} has no ending that tells its format; known are {' '.join(_FORMATS)}, each also "
            f"with {' '.join(_PACKED)} after it. Save it as one of these, a spreadsheet as .csv."
        )
    return TableFile(path, _FORMATS[endings[-1]], endings[-1])


def file_hash(path: str | Path) -> str:
    """sha256 of a file, as ``sha256sum`` prints it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """A file's bytes to read from; its first bytes tell how it is packed, not its name."""
    with open(path, "rb") as raw:
        magic = raw.read(6)
        raw.seek(0)
        unpack = next((how for start, how in _UNPACK.items() if magic.startswith(start)), None)
        if unpack is None:
            yield raw
            return
        try:
            yield unpack(raw)
        except Exception as error:
            if not _tells_of_damage(error):
                raise
            reason = str(error).split("\n", 1)[0].rstrip(".") or type(error).__name__
            raise TableError(f"{path} is cut off or damaged ({reason}); get or pack it anew.") from None


def read_all(stream: IO[bytes], path: Path) -> bytes:
    """All that an unpacked file holds, if it fits into memory twice: as text, and parsed."""
    parts, size, limit = [], 0, memory.available_bytes()
    while part := stream.read(PIECE):
        parts.append(part)
        size += len(part)
        if limit is not None and 2 * size > limit:
            raise TableError(
                f"{path} unpacks to more than {memory.format_bytes(size)}, and "
                f"{memory.format_bytes(limit)} of memory is free: unpack it on the disk, or read it "
                "in parts (table_batches)."
            )
    return b"".join(parts)


def whole_lines(stream: IO[bytes], path: Path) -> Iterator[list[bytes]]:
    """The lines of a stream, some at a time, with their ends."""
    rest, count = b"", 0
    while more := stream.read(PIECE):
        rest += more
        end = rest.rfind(b"\n") + 1
        if end:
            lines = io.BytesIO(rest[:end]).readlines()
            yield lines
            rest, count = rest[end:], count + len(lines)
        check_line(path, count + 1, len(rest))
    if rest:
        yield [rest]


def check_line(path: Path, number: int, size: int) -> None:
    """Refuse a line without end, which would take all memory."""
    if size > LONGEST_LINE:
        raise TableError(
            f"{path}: line {number} is longer than {memory.format_bytes(LONGEST_LINE)}: the file is "
            "no table, or its line ends are lost."
        )


def _tells_of_damage(error: Exception) -> bool:
    """Whether unpacking failed for what is in the file; each way to unpack has its own errors."""
    if isinstance(error, OSError):
        return error.errno is None  # else it is the system's
    return isinstance(error, EOFError | zlib.error | lzma.LZMAError) or "Zstd" in type(error).__name__


def is_packed(path: Path) -> bool:
    """Whether a file's first bytes are those of a packed one."""
    with open(path, "rb") as raw:
        return raw.read(6).startswith(tuple(_UNPACK))


def _unpack_zstd(raw: IO[bytes]) -> IO[bytes]:
    """By Python 3.14's own module or one of two packages; else all at once, by polars."""
    for module in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(module).ZstdFile(raw)
        except ImportError:
            continue
    try:
        return importlib.import_module("zstandard").ZstdDecompressor().stream_reader(raw)
    except ImportError:
        return _unpack_by_polars(raw)


def _unpack_by_polars(raw: IO[bytes]) -> IO[bytes]:
    """polars unpacks .zst, but only as a part of reading it as text."""
    # One column of whole lines: a separator and a quote that no text holds.
    try:
        lines = pl.read_csv(
            raw.read(),
            has_header=False,
            separator="\x01",
            quote_char=None,
            schema={"line": pl.String},
            encoding="utf8-lossy",
        )
    except pl.exceptions.PolarsError as error:
        raise EOFError(str(error)) from None
    return io.BytesIO("\n".join(line or "" for line in lines["line"]).encode())


_UNPACK: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _unpack_zstd,
}
