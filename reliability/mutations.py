"""Changes to bytes and to text, drawn at random."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

Random = np.random.Generator
Change = Callable[[bytes, Random], bytes]

#: Numbers that readers of text meet with difficulty.
ODD_NUMBERS = (
    *(
        b"5000000000",
        b"-1",
        b"0",
        b"1e999",
        b"-1e999",
        b"nan",
        b"inf",
        b"1e-400",
        b"99999999999999999999",
    ),
    *(b"0x10", b"1_000", b"", b"1.5", b"9" * 5000, b"\xff", b"1,5", b"+", b"1e", b"2147483648"),
)
ODD_TEXT = (
    b'"',
    b"\0",
    b"\r",
    b"\n\n\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b",,,,",
    b"#",
    b":",
    b"'",
    b"\t",
)


def flip_bits(data: bytes, rng: Random) -> bytes:
    out = bytearray(data)
    for place in rng.integers(len(out), size=rng.integers(1, 9)) if out else ():
        out[place] ^= 1 << int(rng.integers(8))
    return bytes(out)


def set_bytes(data: bytes, rng: Random) -> bytes:
    """A few neighbouring bytes become 0, 255 or random: lengths and offsets are among them."""
    begin, end = _range(data, rng, 8)
    made = [bytes(end - begin), b"\xff" * (end - begin), rng.bytes(end - begin)]
    return data[:begin] + made[int(rng.integers(3))] + data[end:]


def cut_off(data: bytes, rng: Random) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def cut_out(data: bytes, rng: Random) -> bytes:
    begin, end = _range(data, rng, len(data))
    return data[:begin] + data[end:]


def put_in(data: bytes, rng: Random) -> bytes:
    place = int(rng.integers(len(data) + 1))
    return data[:place] + rng.bytes(int(rng.integers(1, 200))) + data[place:]


def repeat(data: bytes, rng: Random) -> bytes:
    begin, end = _range(data, rng, 2000)
    return data[:end] + data[begin:end] * int(rng.integers(1, 5)) + data[end:]


def swap(data: bytes, rng: Random) -> bytes:
    places = sorted(int(each) for each in rng.integers(len(data) + 1, size=3))
    first, middle, last = places
    return data[:first] + data[middle:last] + data[first:middle] + data[last:]


def zero(data: bytes, rng: Random) -> bytes:
    begin, end = _range(data, rng, 5000)
    return data[:begin] + bytes(end - begin) + data[end:]


def odd_number(data: bytes, rng: Random) -> bytes:
    """Some number in the text becomes one of the odd ones."""
    found = list(re.finditer(rb"\d+(\.\d+)?", data))
    for _ in range(int(rng.integers(1, 4))):
        if not found:
            return odd_text(data, rng)
        match = found[int(rng.integers(len(found)))]
        data = (
            data[: match.start()]
            + ODD_NUMBERS[int(rng.integers(len(ODD_NUMBERS)))]
            + data[match.end() :]
        )
        found = list(re.finditer(rb"\d+(\.\d+)?", data))
    return data


def odd_text(data: bytes, rng: Random) -> bytes:
    place = int(rng.integers(len(data) + 1))
    return data[:place] + ODD_TEXT[int(rng.integers(len(ODD_TEXT)))] + data[place:]


BYTES: tuple[Change, ...] = (flip_bits, set_bytes, cut_off, cut_out, put_in, repeat, swap, zero)
TEXT: tuple[Change, ...] = (*BYTES, odd_number, odd_number, odd_text)


def _range(data: bytes, rng: Random, longest: int) -> tuple[int, int]:
    begin = int(rng.integers(len(data) + 1))
    return begin, min(len(data), begin + int(rng.integers(1, max(2, longest + 1))))
