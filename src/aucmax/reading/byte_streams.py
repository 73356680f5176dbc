"""Files as bytes: the format by the name, and the content unpacked as it is read."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import importlib
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

from aucmax.reading.frames import TableError, reason_of
from aucmax.reading.lzw import unpack_lzw
from aucmax.runtime import memory
from aucmax.runtime.spelling import nearest

#: Bytes read at a time, and bytes of the longest line.
PIECE = 2**24
LONGEST_LINE = 2**27

_ENDINGS = {
    "text": (".csv", ".txt", ".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "libsvm": (".libsvm", ".svmlight", ".svm"),
    "json": (".jsonl", ".ndjson"),
    "excel": (".xlsx", ".xls", ".xlsb", ".ods"),
}
_FORMATS = {ending: name for name, endings in _ENDINGS.items() for ending in endings}
_PACKED = (".gz", ".bz2", ".xz", ".zst")

#: Errors of unpacking a damaged file; an OSError of the system has a number.
_DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)


class DamagedFileError(TableError):
    """A packed file cannot be unpacked; ``args`` are the path and the reason."""

    def __str__(self) -> str:
        return "{} is cut off or damaged ({}); download or pack it again.".format(*self.args)


@dataclass(frozen=True)
class TableFile:
    """A table on disk: its path, its format, and the ending that names the format."""

    path: Path
    format: str  # text, parquet, arrow, libsvm, json or excel
    ending: str


def find_table(path: str | Path) -> TableFile:
    """Find a file's format by its name; refuse a missing file, a folder and an unknown ending."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if not path.exists():
        there = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        near = nearest(path.name, there)
        hint = f" Did you mean {path.with_name(near)}?" if near else ""
        raise FileNotFoundError(f"there is no file {path}.{hint}")
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _PACKED:
        endings.pop()
    if not endings or endings[-1] not in _FORMATS:
        raise TableError(
            f"{path} has no ending of a known format. Known are {' '.join(_FORMATS)}, also followed by "
            f"{' '.join(_PACKED)}. Save the table as one of these."
        )
    return TableFile(path, _FORMATS[endings[-1]], endings[-1])


def file_hash(path: str | Path) -> str:
    """Return the sha256 of a file, as ``sha256sum`` prints it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading; unpack it if its first bytes are those of a packed file."""
    with open(path, "rb") as raw:
        unpack = _unpacker(raw)
        try:
            yield raw if unpack is None else unpack(raw)
        except Exception as error:
            damage = isinstance(error, _DAMAGE) or "Zstd" in type(error).__name__
            if unpack is None or not damage or getattr(error, "errno", None) is not None:
                raise
            raise DamagedFileError(path, reason_of(error)) from None


def is_packed(path: Path) -> bool:
    """Return whether a file's first bytes are those of a packed file."""
    with open(path, "rb") as raw:
        return _unpacker(raw) is not None


def join_pieces(pieces: Iterable[bytes], path: Path) -> bytes:
    """Join the content of an unpacked file, if it fits into memory twice: as it is, and parsed."""
    parts, size = [], 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        remedy = "unpack it on disk, or read it in parts (table_batches)"
        check_memory(2 * size, f"{path}, unpacked and parsed, needs more than", remedy)
    return b"".join(parts)


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse what needs more memory than is free."""
    free = memory.available_bytes()
    if free is not None and needed > free:
        size, left = memory.format_bytes(needed), memory.format_bytes(free)
        raise TableError(f"{what} {size}, and {left} of memory is free: {remedy}.")


def line_pieces(
    stream: IO[bytes], path: Path, start: bytes = b"", first_line: int = 1
) -> Iterator[tuple[bytes, int]]:
    """Cut ``start`` and a stream into pieces of whole lines; yield each with its first line's number.

    A line does not end within quotes. Blank lines begin the next piece, or are the last one.
    """
    rest, line, more = start, first_line, b"..."
    while more:
        more = stream.read(PIECE)
        rest += more
        end = rest.rfind(b"\n") if more else len(rest)
        if more and rest.count(b'"', 0, end) % 2 and len(rest) < 4 * PIECE:  # else a quote is no quote
            end = rest.rfind(b"\n", 0, rest.rfind(b'"', 0, end))
        if written := len(rest[: end + 1].rstrip(b"\r\n")):
            end = rest.find(b"\n", written) + 1 or len(rest)
            yield rest[:end], line
            line += rest.count(b"\n", 0, end)
            rest = rest[end:]
        if len(rest) > LONGEST_LINE:  # a line without an end would take all memory
            raise TableError(
                f"{path}: line {line} is longer than {memory.format_bytes(LONGEST_LINE)}; the file is "
                "not a table, or has lost its line ends."
            )
    if rest:
        yield rest, line


def _unpacker(raw: IO[bytes]) -> Callable[[IO[bytes]], Any] | None:
    magic = raw.read(6)
    raw.seek(0)
    return next((unpack for start, unpack in _UNPACK.items() if magic.startswith(start)), None)


def _open_zstd(raw: IO[bytes]) -> IO[bytes]:
    """Open a .zst file with Python 3.14 or one of two packages, or else unpack it at once by polars."""
    for module in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return importlib.import_module(module).ZstdFile(raw)
    with suppress(ImportError):
        return importlib.import_module("zstandard").ZstdDecompressor().stream_reader(raw)
    # polars unpacks only what it reads as text: one column, with a separator that no text holds.
    options: dict[str, Any] = {"separator": "\x01", "quote_char": None, "encoding": "utf8-lossy"}
    try:
        lines = pl.read_csv(raw.read(), has_header=False, schema={"line": pl.String}, **options)
    except pl.exceptions.PolarsError as error:
        raise EOFError(str(error)) from None
    return io.BytesIO("\n".join(line or "" for line in lines["line"]).encode())


#: How to unpack a file, by its first bytes.
_UNPACK: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"\x1f\x9d": lambda raw: io.BytesIO(join_pieces(unpack_lzw(raw.read()), Path(raw.name))),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _open_zstd,
}
