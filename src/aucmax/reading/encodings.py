"""Text in other encodings than UTF-8."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aucmax.reading.byte_streams import PIECE, find_table, unpacked
from aucmax.reading.frames import TableError, renamed_in


@contextmanager
def as_utf8(path: str | Path, encoding: str) -> Iterator[Path]:
    """Yield a temporary copy of a text file in UTF-8; errors name the file itself.

    The file is converted in parts, so it may be larger than memory.
    """
    file = find_table(path)
    if file.format not in ("text", "json"):
        raise TableError(f"{file.path} is no text file, so it has no encoding: leave out {encoding!r}.")
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise TableError(
            f"There is no encoding {encoding!r}; common ones are utf-8, latin-1, cp1252 and utf-16."
        ) from None
    with tempfile.TemporaryDirectory(prefix="aucmax-") as folder:
        copy = Path(folder, f"{file.path.name.partition('.')[0]}{file.ending}")
        with unpacked(file.path) as source, copy.open("wb") as out:
            try:
                while piece := source.read(PIECE):
                    out.write(decoder.decode(piece).encode())
                out.write(decoder.decode(b"", final=True).encode())
            except UnicodeError as error:
                raise TableError(f"{file.path} is not {encoding} text ({error}).") from None
        with renamed_in(copy, file.path):
            yield copy
