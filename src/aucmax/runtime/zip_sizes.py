"""Arrays in zip files: the sizes they declare, checked against the bytes that are there."""

from __future__ import annotations

import math
import zipfile
from typing import IO, Any

import numpy as np

from aucmax.runtime.memory import format_bytes


class DeclaredSizeError(ValueError):
    """A part of a zip file declares more than it holds."""


def check_arrays(file: zipfile.ZipFile) -> None:
    """Refuse members that are compressed, and arrays that declare more than they hold.

    A reader takes the memory that a header asks for before it reads.
    """
    for member in file.infolist():
        if member.compress_type != zipfile.ZIP_STORED:
            raise DeclaredSizeError(f"its part {member.filename!r} is compressed")
        if not member.filename.endswith(".npy"):
            continue
        with file.open(member) as stream:
            try:
                shape, dtype = _read_header(stream)
            except Exception as error:  # whatever is wrong in a header, it is wrong with the file
                reason = " ".join(str(error).split())[:100]
                raise DeclaredSizeError(
                    f"its part {member.filename!r} is no array ({reason})"
                ) from None
            held = member.file_size - stream.tell()
        declared = math.prod(shape) * dtype.itemsize
        if declared > held and not dtype.hasobject:
            size = " x ".join(f"{each:,}" for each in shape)
            raise DeclaredSizeError(
                f"its part {member.filename!r} declares {size} values of {dtype} "
                f"({format_bytes(declared)}) and holds {held:,} bytes"
            )


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype
