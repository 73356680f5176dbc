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
    at, bits, previous = 3, 9, b""
    while at < len(packed):
        group = packed[at : at + bits]  # eight codes of one width
        at += bits
        for i in range(8 * len(group) // bits):
            code = int.from_bytes(group, "little") >> (i * bits) & ((1 << bits) - 1)
            if code == 256 and may_clear:
                table, bits, previous = [*literals, b""], 9, b""
                break
            if code < len(table):
                entry = table[code]
            elif code == len(table) and previous:
                entry = previous + previous[:1]
            else:
                raise EOFError(f"code {code} comes before it is defined")
            out.append(entry)
            if previous and len(table) < 1 << widest:
                table.append(previous + entry[:1])
            previous = entry
            if len(table) == 1 << bits and bits < widest:
                bits += 1
                break
        if len(out) >= 512:
            yield b"".join(out)
            out = []
    yield b"".join(out)
