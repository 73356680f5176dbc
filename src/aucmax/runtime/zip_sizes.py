"""Compare the sizes that arrays in zip files declare with the bytes that the files hold."""

from __future__ import annotations

import math
import zipfile

from numpy.lib import format as npy

from aucmax.runtime.memory import format_bytes


class DeclaredSizeError(ValueError):
    """A part of a zip file declares more than it holds."""


def check_arrays(file: zipfile.ZipFile) -> None:
    """Refuse compressed members, and arrays that declare more bytes than they hold.

    A reader would allocate what a header declares before it reads.
    """
    for member in file.infolist():
        name = f"its part {member.filename!r}"
        if member.compress_type != zipfile.ZIP_STORED:
            raise DeclaredSizeError(f"{name} is compressed")
        if not member.filename.endswith(".npy"):
            continue
        with file.open(member) as stream:
            try:
                old = npy.read_magic(stream) == (1, 0)
                read = npy.read_array_header_1_0 if old else npy.read_array_header_2_0
                shape, _, dtype = read(stream)
            except Exception as error:  # any error means a damaged header
                reason = " ".join(str(error).split())[:100]
                raise DeclaredSizeError(f"{name} is no array ({reason})") from None
            held = member.file_size - stream.tell()
        declared = math.prod(shape) * dtype.itemsize
        if declared > held and not dtype.hasobject:
            size = " x ".join(f"{each:,}" for each in shape)
            raise DeclaredSizeError(
                f"{name} declares {size} values of {dtype} ({format_bytes(declared)}) and holds "
                f"{held:,} bytes"
            )
