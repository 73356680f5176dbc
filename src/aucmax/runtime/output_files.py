"""Write each file as a whole or not at all, by one writer at a time.

Every output of the package goes through :func:`replacing`. It writes a new file next to the output,
``.OUTPUT.RANDOM.part``, and renames it. The file is always created, so no link at its name is followed,
and its writer holds a lock on it. The next writer of the same output removes part files without a lock:
their processes were killed.
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

#: Longer names of outputs, in bytes, are hashed in the name of a part file: systems allow 255.
_LONGEST = 200

#: The errors of a full disk.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OutputError(OSError):
    """An output cannot be written; it has the system's ``errno``, and its text is a whole sentence."""

    def __str__(self) -> str:
        return str(self.strerror)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open an output for writing; it replaces the old one when the block ends without an error.

    A symbolic link is followed, and stays. A device or a pipe is written to when the block ends. A
    folder or a socket is refused.
    """
    with _naming(path):
        target = find_target(path)
        if target is None:
            with tempfile.TemporaryFile() as whole:
                yield whole
                whole.seek(0)
                with os.fdopen(os.open(path, os.O_WRONLY | _BINARY), "wb") as out:
                    shutil.copyfileobj(whole, out, 2**20)
            return
        number, part = _create(target)
        with closing(os.fdopen(number, "w+b")) as file:
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
    """Make a temporary folder on the disk of an output, or of ``TMPDIR``; remove it in the end."""
    target = None if path is None else find_target(path)
    if path is None or target is None:
        with tempfile.TemporaryDirectory(prefix="aucmax-") as folder:
            yield Path(folder)
        return
    with _naming(path):
        lock, part = _create(target, folder=True)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if lock >= 0:
            os.close(lock)


def check_folder(path: Path) -> None:
    """Refuse an output, before any work, whose folder does not exist."""
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to save {path.name} in.")


def find_target(path: Path) -> Path | None:
    """Return the file, existing or not, to which a path leads; None for a device or a pipe."""
    real = Path(os.path.realpath(path))
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return real
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")
    if stat.S_ISSOCK(found.st_mode):
        raise OSError(f"{path} is a socket, which cannot be written as a file: name another output.")
    # Links in /proc/self/fd may lead to files that have lost their names.
    named = stat.S_ISREG(found.st_mode) and real.exists() and os.path.samestat(found, os.stat(real))
    return real if named else None


def hold(file: IO[Any], wait: bool = False) -> None:
    """Lock an open file until it is closed, which the system does for a process that dies.

    Raise BlockingIOError if another process holds it, another OSError if there are no locks here.
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
    """Open a file of the package's own with a fixed name (a lock, a download); refuse links."""
    flags = {"ab": os.O_APPEND, "wb": os.O_TRUNC}[mode] | os.O_WRONLY | os.O_CREAT
    return os.fdopen(os.open(path, flags | _BINARY | _NOFOLLOW, 0o666), mode)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn the system's errors about an output into a sentence that names it.

    Their file name is missing, or ours. Other errors come from what the caller reads meanwhile.
    """
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        name = str(error.filename or path)
        if error.errno is None or (name != str(path) and not name.endswith(".part")):
            raise
        remedy = f"{'free some space, or ' if error.errno in FULL else ''}write it elsewhere"
        sentence = f"cannot write {path}: {os.strerror(error.errno)}; {remedy}."
        raise OutputError(error.errno, sentence) from None


# Part files


def _create(target: Path, *, folder: bool = False) -> tuple[int, Path]:
    """Create a part file or folder and lock it; return its descriptor (-1 for none) and path."""
    name = os.fsencode(target.name)
    prefix = f".{target.name if len(name) <= _LONGEST else hashlib.sha256(name).hexdigest()}."
    _sweep(target.parent, prefix)
    while True:
        part = target.with_name(f"{prefix}{os.urandom(8).hex()}.part")
        if folder:
            part.mkdir(mode=0o700)
            if sys.platform == "win32":
                return -1, part
        flags = os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY | _NOFOLLOW
        try:
            number = os.open(part, flags, 0o666)
        except FileNotFoundError:
            if folder:  # another writer has removed it before it was locked
                continue
            raise
        if sys.platform == "win32":
            return number, part  # nothing that is open can be removed there
        with suppress(OSError):  # on a file system without locks, part files are never removed
            _lock(number, wait=True)
        with suppress(FileNotFoundError):  # another writer has removed it before it was locked
            if os.path.samestat(os.fstat(number), os.lstat(part)):
                return number, part
        os.close(number)


def _lock(number: int, wait: bool) -> None:
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sweep(parent: Path, prefix: str) -> None:
    """Remove part files and folders of an output that no process holds."""
    ours = re.compile(re.escape(prefix) + "[0-9a-f]{16}[.]part")
    with suppress(OSError), os.scandir(parent) as entries:
        for part in [each for each in entries if ours.fullmatch(each.name) and not each.is_symlink()]:
            is_folder, number = part.is_dir(follow_symlinks=False), -1
            with suppress(OSError):
                if sys.platform != "win32":
                    flags = os.O_RDONLY if is_folder else os.O_RDWR | os.O_NONBLOCK
                    number = os.open(part, flags | _NOFOLLOW)
                    _lock(number, wait=False)
                shutil.rmtree(part) if is_folder else os.unlink(part)
            if number >= 0:
                os.close(number)
