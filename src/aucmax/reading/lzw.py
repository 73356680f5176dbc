"""Unpack files of the Unix command ``compress`` (.Z), which the standard library does not read."""

from __future__ import annotations

from collections.abc import Iterator


def unpack_lzw(packed: bytes) -> Iterator[bytes]:
    """Unpack LZW codes of 9 to 16 bits, some bytes at a time; damage raises EOFError."""
    flags = packed[2] if len(packed) > 2 else 0
    widest, may_clear = flags & 0x1F, bool(flags & 0x80)
    if not 10 <= widest <= 16:  # programs disagree on files of 9 bits throughout
        raise EOFError(f"codes of {widest} bits")
    literals = [bytes([i]) for i in range(256)]
    table = literals + [b""] * may_clear
    out: list[bytes] = []
    size, bits, previous = 0, 9, b""
    position = group = 8 * 3  # in bits; codes of one width come in groups of eight
    while position + bits <= 8 * len(packed):
        at = position >> 3
        code = int.from_bytes(packed[at : at + 3], "little") >> (position & 7) & ((1 << bits) - 1)
        position += bits
        if code == 256 and may_clear:
            position = group + -(-(position - group) // (8 * bits)) * 8 * bits
            table, bits, previous, group = [*literals, b""], 9, b"", position
            continue
        if code < len(table):
            entry = table[code]
        elif code == len(table) and previous:
            entry = previous + previous[:1]
        else:
            raise EOFError(f"code {code} comes before it is defined")
        out.append(entry)
        size += len(entry)
        if size >= 2**20:
            yield b"".join(out)
            out, size = [], 0
        if previous and len(table) < 1 << widest:
            table.append(previous + entry[:1])
        previous = entry
        if len(table) == 1 << bits and bits < widest:
            position = group + -(-(position - group) // (8 * bits)) * 8 * bits
            bits, group = bits + 1, position
    yield b"".join(out)
