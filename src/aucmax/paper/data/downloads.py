"""Where data files are: the mirror folder, the user's cache, or the official site.

A download is written beside as ``.name.part`` and takes its name only after it was read and verified.
What has come of a broken transfer stays under that mark and is resumed, if the site still has the same
file: its ETag or date is kept in ``.name.part.tag``.
"""

from __future__ import annotations

import errno
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from aucmax.paper.data.formats import SUFFIXES, WrongFileError, read_rows
from aucmax.paper.data.registry import DATASETS, DataFile, Dataset, find_dataset
from aucmax.runtime.output_files import hold, open_own

_TRIES = 4
_PAUSE = 1.0  # seconds before the second try; doubled for each further one
_TIMEOUT = 30.0
_CHUNK = 1 << 18


class DataMissingError(FileNotFoundError):
    """A data file is neither in the mirror folder nor in the cache."""


class DownloadError(OSError):
    """A data file could not be downloaded."""


class _BrokenTransferError(Exception):
    """The transfer ended early: it may be resumed."""


# --- at hand


def cache_folder() -> Path:
    """Where downloads are kept: ``AUCMAX_CACHE``, or ``aucmax`` in the platform's cache folder."""
    chosen = os.environ.get("AUCMAX_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "aucmax"


def folders(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Folders to look in, in order: the mirror (``data_dir``, else ``AUCMAX_DATA``), then the cache."""
    mirror = os.fspath(data_dir) if data_dir is not None else os.environ.get("AUCMAX_DATA")
    return [Path(mirror).expanduser(), cache_folder()] if mirror else [cache_folder()]


def find_file(file: DataFile, places: list[Path]) -> Path | None:
    """The first copy of a file, bare or compressed."""
    for place in places:
        for suffix in SUFFIXES:
            path = place / (file.name + suffix)
            if path.is_file():
                return path
    return None


def require(dataset: Dataset, files: tuple[DataFile, ...], places: list[Path]) -> dict[DataFile, Path]:
    """Where each file is; the first that is missing is named, with the command that fetches it."""
    paths = {}
    for file in files:
        path = find_file(file, places)
        if path is None:
            looked = " or ".join(
                f"{place}{'' if place.is_dir() else ' (no such folder)'}" for place in places
            )
            raise DataMissingError(
                f"{dataset.name} needs the file {file.name} (bare, .gz, .bz2, .xz or .Z), which is not "
                f"in {looked}; run aucmax datasets fetch {dataset.name}, or set AUCMAX_DATA to the "
                "folder that holds it."
            )
        paths[file] = path
    return paths


@dataclass(frozen=True)
class DatasetStatus:
    """What is at hand of one data set: ``state`` is present, substitute or missing."""

    name: str
    state: str
    paths: tuple[Path, ...]
    size: int


def dataset_status(data_dir: str | os.PathLike[str] | None = None) -> list[DatasetStatus]:
    """For each data set, whether its files are at hand, where, and their bytes on disk."""
    places = folders(data_dir)
    return [_status(dataset, places) for dataset in DATASETS.values()]


def _status(dataset: Dataset, places: list[Path]) -> DatasetStatus:
    offers = [("present", dataset.files)]
    if dataset.substitute:
        offers.append(("substitute", dataset.substitute.files))
    for state, files in offers:
        paths = [path for file in files if (path := find_file(file, places))]
        if len(paths) == len(files):
            return DatasetStatus(dataset.name, state, tuple(paths), _bytes(paths))
    found = [path for file in dataset.files if (path := find_file(file, places))]
    return DatasetStatus(dataset.name, "missing", tuple(found), _bytes(found))


def _bytes(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


# --- fetching


def fetch(name: str | Dataset, *, data_dir: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """Download what is missing of a data set, verify it, and return where its files are.

    Files go to ``data_dir`` if it is given. Otherwise those in the mirror ``AUCMAX_DATA`` or in the
    cache are left as they are, and the others go to the cache.
    """
    dataset = find_dataset(name)
    if data_dir is not None:
        return fetch_files(dataset, [Path(data_dir).expanduser()])
    return fetch_files(dataset, folders())


def fetch_files(dataset: Dataset, places: list[Path]) -> tuple[Path, ...]:
    """Find each file in ``places`` or download it into the last of them."""
    paths = []
    for file in dataset.files:
        path = find_file(file, places)
        paths.append(_fetch_one(dataset, file, places[-1]) if path is None else path)
    return tuple(paths)


def _fetch_one(dataset: Dataset, file: DataFile, folder: Path) -> Path:
    final = folder / unquote(PurePosixPath(urlsplit(file.url).path).name)
    part = folder / f".{final.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open_own(folder / f".{final.name}.lock", "ab")
    except OSError as error:
        if error.errno in _FULL:
            raise _disk_full(final, 0) from None
        raise DownloadError(
            f"cannot write into {folder} ({error.strerror}); choose another folder with AUCMAX_CACHE."
        ) from None
    with lock:
        _wait_for(lock, final.name)
        if final.exists():  # another process fetched it while this one waited
            return final
        if part.is_symlink() or _tag_path(part).is_symlink():
            _discard(part)  # a download is never a link
        _download(file.url, part, final)
        try:
            read_rows(part, dataset, file)
        except WrongFileError as error:
            _discard(part)
            what = str(error).replace(str(part), "what came").split("; delete it")[0]
            raise DownloadError(
                f"{file.url} did not give {file.name}: {what}; the download was removed. Try again "
                f"later, or put a good copy into {folder} by hand."
            ) from None
        os.replace(part, final)
        _discard(part)
    return final


def _download(url: str, part: Path, final: Path) -> None:
    """Bring ``part`` to the full length of the file, resuming after broken transfers."""
    with _progress(final.name) as show:
        for attempt in range(1, _TRIES + 1):
            try:
                _transfer(url, part, final, show)
                return
            except _BrokenTransferError as broken:
                if attempt == _TRIES:
                    raise DownloadError(
                        f"the download of {url} broke off {_TRIES} times ({broken}); what has come is "
                        "kept, run the command again to resume."
                    ) from None
            time.sleep(_PAUSE * 2 ** (attempt - 1))


def _transfer(url: str, part: Path, final: Path, show: Callable[[int, int | None], None]) -> None:
    """One request: the rest of ``part`` if the site still has the same file, else all of it."""
    tag = _tag_path(part)
    have = part.stat().st_size if part.exists() else 0
    validator = tag.read_text() if have and tag.exists() else ""
    headers = {"User-Agent": "aucmax", "Accept-Encoding": "identity"}
    if validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        response = urllib.request.urlopen(  # closed below
            urllib.request.Request(url, headers=headers), timeout=_TIMEOUT
        )
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # nothing lies beyond what we have: it is of another file
            _discard(part)
            raise _BrokenTransferError("the kept part was of another file") from None
        if error.code >= 500 or error.code == 429:
            raise _BrokenTransferError(f"the site answers {error.code} {error.reason}") from None
        raise DownloadError(
            f"{url} answers {error.code} {error.reason}; the file may have moved: get it by hand and "
            f"put it into {final.parent} as {final.name}."
        ) from None
    except (http.client.HTTPException, OSError) as error:
        if have:
            raise _BrokenTransferError(_reason(error)) from None
        raise DownloadError(
            f"cannot reach {urlsplit(url).netloc} ({_reason(error)}); check the network, or put "
            f"{final.name} from {url} into {final.parent} by hand."
        ) from None
    with response:
        resumed = response.status == 206 and _starts_at(response.headers, have)
        if response.status == 206 and not resumed:
            _discard(part)
            raise _BrokenTransferError("the site sent another range than was asked for")
        have = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length and length.isdigit() else None
        try:
            if not resumed:
                _remember(tag, response.headers)
            with open_own(part, "ab" if resumed else "wb") as out:
                have = _copy(response, out, have, total, show)
        except OSError as error:
            if error.errno in _FULL:
                _discard(part)
                raise _disk_full(final, total or 0) from None
            raise
    if total is not None and have < total:
        raise _BrokenTransferError(f"{have:,} of {total:,} bytes came")


def _copy(
    response: http.client.HTTPResponse,
    out: IO[bytes],
    have: int,
    total: int | None,
    show: Callable[[int, int | None], None],
) -> int:
    while True:
        show(have, total)
        try:
            chunk = response.read(_CHUNK)
        except (http.client.HTTPException, OSError) as error:
            raise _BrokenTransferError(f"{have:,} bytes came, then {_reason(error)}") from None
        if not chunk:
            return have
        _write(out, chunk)
        have += len(chunk)


def _write(out: IO[bytes], chunk: bytes) -> None:
    out.write(chunk)


_FULL = (errno.ENOSPC, errno.EDQUOT)


def _disk_full(final: Path, total: int) -> DownloadError:
    need = f" {final.name} needs {total / 1e6:,.1f} MB:" if total else ""
    return DownloadError(
        f"the disk that holds {final.parent} is full;{need} free some space there, or choose another "
        "folder with AUCMAX_CACHE."
    )


def _starts_at(headers: Any, have: int) -> bool:
    return str(headers.get("Content-Range", "")).strip().startswith(f"bytes {have}-")


def _remember(tag: Path, headers: Any) -> None:
    """Keep what tells this file from a later one; a weak ETag cannot vouch for bytes."""
    etag = headers.get("ETag", "")
    validator = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")
    if validator:
        with open_own(tag, "wb") as file:
            file.write(validator.encode())
    else:
        tag.unlink(missing_ok=True)


def _tag_path(part: Path) -> Path:
    return part.with_name(part.name + ".tag")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag_path(part).unlink(missing_ok=True)


def _reason(error: BaseException) -> str:
    inner = getattr(error, "reason", error)
    return str(getattr(inner, "strerror", None) or inner or type(inner).__name__)


def _wait_for(lock: IO[bytes], name: str) -> None:
    """Let one process at a time fetch a file."""
    try:
        hold(lock)
    except OSError:
        if sys.stderr.isatty():
            print(f"waiting for another process that fetches {name} ...", file=sys.stderr)
        # A file system without locks: go on. What is fetched is verified in any case.
        with suppress(OSError):
            hold(lock, wait=True)


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on a terminal, nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(name, markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
