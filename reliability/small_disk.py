"""A folder without room, or that may not be written to, for one process; and a program run in it.

This runs in a process forked for it. As root on Linux the folder is a file system of its own, of a few
pages, which vanishes with the process. Elsewhere the system limits how large a file may become, or the
folder's permissions forbid writing.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

#: The file in which the process leaves what it found, and the folder that is small.
VERDICT, PLACE = ".verdict.json", "place"

#: A folder in it for temporary files; other libraries may leave some of their own there.
TEMPORARY = "temporary"

_NEW_NAMESPACE, _PRIVATE, _READ_ONLY, _BIND = 0x00020000, (1 << 18) | (1 << 14), 1, 1 << 12
_REMOUNT = 1 << 5


def run_limited(order: dict[str, Any]) -> None:
    """Limit the folder, run the program, and write down what came of it."""
    place, words = Path(PLACE).absolute(), Path(".words").absolute()
    verdict = Path(VERDICT).absolute()
    place.mkdir(exist_ok=True)
    how = _limit(place, order)
    before = {each.name: each.read_bytes().hex() for each in place.iterdir() if each.is_file()}
    if order["temporary"]:
        os.environ["TMPDIR"] = str(place / TEMPORARY)
        tempfile.tempdir = None
    os.chdir(place)
    code = _run(order["program"], words)
    found = {"code": code, "how": how, "words": words.read_text(errors="replace"), "before": before}
    found["after"] = {
        each.name: each.read_bytes().hex() if each.is_file() else ""
        for each in [*place.iterdir(), *(place / TEMPORARY).glob("*aucmax*")]
        if each.name != TEMPORARY
    }
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    number = os.open(verdict, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(number, json.dumps(found).encode())
    os.close(number)


def _limit(place: Path, order: dict[str, Any]) -> str:
    old = b"older\n" * order["old"]
    kind = order["kind"]
    (place / TEMPORARY).mkdir()
    if kind == "full" and _mounted(place, f"size={_pages(len(old)) + order['room']},mode=777"):
        (place / TEMPORARY).mkdir()
        (place / order["output"]).write_bytes(old) if old else None
        return "a file system of few pages"
    if old:
        (place / order["output"]).write_bytes(old)
    if kind == "read-only":
        if _remounted(place):
            return "mounted read-only"
        place.chmod(0o555)
        return "without permission to write"
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (order["room"], resource.RLIM_INFINITY))
    return "a limit on the size of files"


def _pages(size: int) -> int:
    return -(-size // 4096) * 4096


def _mounted(place: Path, options: str) -> bool:
    """Put a small file system there, for this process alone; False where that is not possible."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NAMESPACE) or libc.mount(b"none", b"/", None, _PRIVATE, None):
        return False
    return not libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, options.encode())


def _remounted(place: Path) -> bool:
    if not _mounted_on_itself(place):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    flags = _REMOUNT | _BIND | _READ_ONLY
    return not libc.mount(None, os.fsencode(place), None, flags, None)


def _mounted_on_itself(place: Path) -> bool:
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NAMESPACE) or libc.mount(b"none", b"/", None, _PRIVATE, None):
        return False
    name = os.fsencode(place)
    return not libc.mount(name, name, None, _BIND, None)


def _run(program: list[str], words: Path) -> int:
    """The program's exit code; what it says on standard error goes to a file."""
    # Beyond any limit on the size of files: those hold for regular files, and this is a pipe's end.
    read, write = os.pipe()
    os.dup2(write, 2)
    os.close(write)
    try:
        code = _called(program)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)  # the last writer of the pipe is gone
    said = b""
    os.set_blocking(read, False)
    try:
        while part := os.read(read, 2**16):
            said += part
    except BlockingIOError:
        pass
    number = os.open(words, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(number, said[-3000:])
    os.close(number)
    return code


def _called(program: list[str]) -> int:
    if program[0] == "aucmax":
        from aucmax.cli import main

        sys.argv = program
        main()
        return 0
    try:
        write(*program)
    except (OSError, ValueError) as error:  # in Python; a command prints its own
        print(f"aucmax: {error}", file=sys.stderr)
        return 2
    return 0


def write(what: str, *words: str) -> None:
    """Write a file as Python does, without a command."""
    from aucmax import load_model, save_model

    model = load_model(words[0])
    if what == "save":
        save_model(model, words[1])
    elif what == "onnx":
        from aucmax.persistence.onnx_export import to_onnx

        to_onnx(model, words[1])
    else:
        from aucmax.report import write_report

        write_report(model, None, words[1])
