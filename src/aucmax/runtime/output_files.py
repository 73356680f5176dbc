"""Writing files: whole or not at all, and one writer of a file at a time.

Every output of the package goes through :func:`replacing`. A part file beside the output is written,
then renamed. Its name is ``.OUTPUT.RANDOM.part``; it is created anew, so no link at its name is
followed, and its writer holds a lock on it. The next writer of the same output removes part files
without a lock, which a process that was killed has left.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

#: Flags that some systems lack.
_BINARY, _NOFOLLOW = getattr(os, "O_BINARY", 0), getattr(os, "O_NOFOLLOW", 0)

#: The longest name of an output, in bytes, that stands in the name of its part file: systems take 255.
_LONGEST = 200

#: The errors of a disk without room.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OutputError(OSError):
    """An output cannot be written. It has the system's ``errno``; its text is a whole sentence."""

    def __str__(self) -> str:
        return str(self.strerror)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open an output to write to; what is written takes its place when the block ends without error.

    A file, existing or new, is replaced as a whole. A symbolic link is followed, and stays. A device or
    a pipe is written into when the block ends. A folder or a socket is refused.
    """
    with _named(path):
        target = find_target(path)
        if target is None:
            with tempfile.TemporaryFile() as whole:
                yield whole
                whole.seek(0)
                with os.fdopen(os.open(path, os.O_WRONLY | _BINARY), "wb") as out:
                    shutil.copyfileobj(whole, out, 2**20)
            return
        _sweep(target)
        file, part = _create(target)
        with closing(file):
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())  # a full disk may be reported only now
                if sys.platform == "win32":
                    file.close()  # an open file cannot be renamed there
                os.replace(part, target)
            except BaseException:
                with suppress(OSError):
                    part.unlink()
                raise


@contextmanager
def scratch_folder(path: Path | None = None) -> Iterator[Path]:
    """A folder for temporary files on the disk of an output, or of ``TMPDIR``; removed at the end."""
    target = None if path is None else find_target(path)
    if path is None or target is None:
        with tempfile.TemporaryDirectory(prefix="aucmax-") as folder:
            yield Path(folder)
        return
    with _named(path):
        _sweep(target)
        lock, part = _create_folder(target)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def find_target(path: Path) -> Path | None:
    """The file, existing or not, that a path leads to; None for a device or a pipe."""
    real = Path(os.path.realpath(path))
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return real
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")
    if stat.S_ISSOCK(found.st_mode):
        raise OSError(f"{path} is a socket, which cannot be written to as a file: name another output.")
    # /proc/self/fd holds links to files that may have lost their names.
    named = stat.S_ISREG(found.st_mode) and real.exists() and os.path.samestat(found, os.stat(real))
    return real if named else None


def hold(file: IO[Any], wait: bool = False) -> None:
    """Lock an open file until it is closed, which the system does for a process that dies.

    BlockingIOError says that another process holds it, any other OSError that there are no locks here.
    """
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
    else:
        _lock(file.fileno(), wait)


def open_own(path: Path, mode: str) -> IO[bytes]:
    """Open a file of the package's own whose name is fixed (a lock, a download); links are refused."""
    flags = {"ab": os.O_APPEND, "wb": os.O_TRUNC}[mode] | os.O_WRONLY | os.O_CREAT
    return os.fdopen(os.open(path, flags | _BINARY | _NOFOLLOW, 0o666), mode)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn the system's errors of writing an output into a sentence that names it.

    Those have no file's name, or one of ours. Others come from what the caller reads meanwhile.
    """
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        name = str(error.filename or path)
        if error.errno is None or (name != str(path) and not name.endswith(".part")):
            raise
        remedy = (
            "free some space, or write it elsewhere" if error.errno in FULL else "write it elsewhere"
        )
        sentence = f"cannot write {path}: {os.strerror(error.errno)}; {remedy}."
        raise OutputError(error.errno, sentence) from None


# Part files


def _prefix(target: Path) -> str:
    """How the names of all part files of an output begin."""
    name = os.fsencode(target.name)
    short = target.name if len(name) <= _LONGEST else hashlib.sha256(name).hexdigest()
    return f".{short}."


def _part_name(target: Path) -> Path:
    return target.with_name(f"{_prefix(target)}{os.urandom(8).hex()}.part")


def _create(target: Path) -> tuple[IO[bytes], Path]:
    """A new part file, open and locked."""
    while True:
        part = _part_name(target)
        number = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY | _NOFOLLOW, 0o666)
        file = os.fdopen(number, "w+b")
        if _is_held(file.fileno(), part):
            return file, part
        file.close()


def _create_folder(target: Path) -> tuple[int | None, Path]:
    """A new part folder, and its lock to be closed."""
    while True:
        part = _part_name(target)
        part.mkdir(mode=0o700)
        if sys.platform == "win32":
            return None, part
        with suppress(FileNotFoundError):
            number = os.open(part, os.O_RDONLY)
            if _is_held(number, part):
                return number, part
            os.close(number)


def _is_held(number: int, part: Path) -> bool:
    """Lock a new part file or folder; False if another writer has removed it just before."""
    if sys.platform == "win32":
        return True  # nothing that is open can be removed there
    with suppress(OSError):  # a file system without locks: what is left there is never removed
        _lock(number, wait=True)
    try:
        return os.path.samestat(os.fstat(number), os.lstat(part))
    except FileNotFoundError:
        return False


def _lock(number: int, wait: bool) -> None:
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sweep(target: Path) -> None:
    """Remove part files and folders of an output that no process holds."""
    ours = re.compile(re.escape(_prefix(target)) + "[0-9a-f]{16}[.]part")
    with suppress(OSError), os.scandir(target.parent) as entries:
        found = [each for each in entries if ours.fullmatch(each.name) and not each.is_symlink()]
        for each in found:
            with suppress(OSError):
                _remove_left(each.path, each.is_dir(follow_symlinks=False))


def _remove_left(part: str, is_folder: bool) -> None:
    """Remove a part file or folder whose lock can be taken; OSError if it cannot."""
    if sys.platform == "win32":
        shutil.rmtree(part) if is_folder else os.unlink(part)
        return
    number = os.open(part, (os.O_RDONLY if is_folder else os.O_RDWR | os.O_NONBLOCK) | _NOFOLLOW)
    try:
        _lock(number, wait=False)
        shutil.rmtree(part) if is_folder else os.unlink(part)
    finally:
        os.close(number)
