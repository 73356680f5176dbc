"""Find data files in the mirror folder or the user's cache, or download them from the official site.

A download is written to ``.NAME.part`` and renamed only after it was read and verified. A broken
transfer leaves that file, and the next one resumes it if the site still has the same file, which the
ETag or date in ``.NAME.part.tag`` identifies.
"""

from __future__ import annotations

import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from aucmax.paper.data.registry import DATASETS, DataFile, Dataset, find_dataset
from aucmax.runtime.output_files import FULL, hold, open_own

SUFFIXES = ("", ".gz", ".bz2", ".xz", ".Z")

_TRIES = 4
_PAUSE = 1.0  # seconds before the second try; doubled for each further one
_TIMEOUT = 30.0
_CHUNK = 1 << 18

#: Where caches go on each platform: the variable that names the folder, or else a folder in the home.
_CACHES = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches")}


class DownloadError(OSError):
    """A data file could not be downloaded."""


class _BrokenTransferError(Exception):
    """The transfer ended early and may be resumed."""


# --- finding


def data_folders(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders to search: the mirror (``data_dir``, else ``AUCMAX_DATA``), then the cache.

    The cache is ``AUCMAX_CACHE``, or ``aucmax`` in the platform's cache folder.
    """
    variable, folder = _CACHES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    base = os.environ.get(variable) or Path.home() / folder
    cache = Path(os.environ.get("AUCMAX_CACHE") or Path(base) / "aucmax")
    mirror = os.fspath(data_dir) if data_dir is not None else os.environ.get("AUCMAX_DATA")
    return [Path(each).expanduser() for each in (mirror, cache) if each]


def find_file(file: DataFile, folders: list[Path]) -> Path | None:
    """Return the first copy of a file, plain or compressed."""
    paths = (folder / (file.name + suffix) for folder in folders for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def find_files(dataset: Dataset, folders: list[Path]) -> tuple[str, dict[DataFile, Path]]:
    """Find the files of a data set, or else those of its substitute.

    Return "present", "substitute" or "missing", and the files found.
    """
    stand_in = dataset.substitute.files if dataset.substitute else ()
    for state, files in (("present", dataset.files), ("substitute", stand_in)):
        found = {file: path for file in files if (path := find_file(file, folders))}
        if found and len(found) == len(files):
            return state, found
    return "missing", {file: path for file in dataset.files if (path := find_file(file, folders))}


@dataclass(frozen=True)
class DatasetStatus:
    """The files found of one data set; ``state`` is present, substitute or missing."""

    name: str
    state: str
    paths: tuple[Path, ...]
    size: int


def dataset_status(data_dir: str | os.PathLike[str] | None = None) -> list[DatasetStatus]:
    """Return, for each data set, whether its files are there, their paths and their bytes on disk."""
    rows = []
    for dataset in DATASETS.values():
        state, found = find_files(dataset, data_folders(data_dir))
        size = sum(path.stat().st_size for path in found.values())
        rows.append(DatasetStatus(dataset.name, state, tuple(found.values()), size))
    return rows


# --- fetching


def fetch(name: str | Dataset, *, data_dir: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """Download the missing files of a data set, verify them, and return the paths of all its files.

    Files go to ``data_dir`` if it is set. Otherwise those in the mirror ``AUCMAX_DATA`` or in the
    cache are left as they are, and the others go to the cache.
    """
    folders = data_folders() if data_dir is None else [Path(data_dir).expanduser()]
    return fetch_files(find_dataset(name), folders)


def fetch_files(dataset: Dataset, folders: list[Path]) -> tuple[Path, ...]:
    """Find each file in ``folders`` or download it into the last of them."""
    return tuple(
        find_file(file, folders) or _fetch_one(dataset, file, folders[-1]) for file in dataset.files
    )


def _fetch_one(dataset: Dataset, file: DataFile, folder: Path) -> Path:
    from aucmax.paper.data.formats import WrongFileError, read_rows  # loads polars

    final = folder / unquote(PurePosixPath(urlsplit(file.url).path).name)
    part = folder / f".{final.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open_own(folder / f".{final.name}.lock", "ab")
    except OSError as error:
        if error.errno in FULL:
            raise _disk_full(final) from None
        raise DownloadError(
            f"cannot write into {folder} ({error.strerror}); choose another folder with AUCMAX_CACHE."
        ) from None
    with lock:
        try:
            hold(lock)
        except OSError:  # another process fetches it, or this file system has no locks
            if sys.stderr.isatty():
                print(f"waiting for another process that fetches {final.name} ...", file=sys.stderr)
            with suppress(OSError):
                hold(lock, wait=True)
        if final.exists():  # another process fetched it while this one waited
            return final
        if part.is_symlink() or _tag(part).is_symlink():
            _discard(part)  # a download is never a link
        _download(file.url, part, final)
        try:
            read_rows(part, dataset, file)
        except WrongFileError as error:
            _discard(part)
            raise DownloadError(
                f"{file.url} did not give {file.name}: {error.args[1]}; the download was removed. Try "
                f"again later, or put a good copy into {folder} by hand."
            ) from None
        os.replace(part, final)
        _discard(part)
    return final


def _download(url: str, part: Path, final: Path) -> None:
    """Transfer a file to its end, resuming broken transfers; show a bar on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    name = TextColumn(final.name, markup=False)
    columns = (name, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console, hidden = Console(stderr=True), not sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(final.name, total=None)
        for attempt in range(1, _TRIES + 1):
            try:
                _transfer(url, part, final, lambda n, total: bar.update(task, completed=n, total=total))
                return
            except _BrokenTransferError as broken:
                if attempt == _TRIES:
                    raise DownloadError(
                        f"the download of {url} broke off {_TRIES} times ({broken}); run the command "
                        "again to resume."
                    ) from None
            time.sleep(_PAUSE * 2 ** (attempt - 1))


def _transfer(url: str, part: Path, final: Path, show: Callable[[int, int | None], None]) -> None:
    """Make one request: for the rest of the file if the site still has the same, else for all of it."""
    have = part.stat().st_size if part.exists() else 0
    with _open_url(url, part, final, have) as response:
        resumed = response.status == 206
        if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            _discard(part)
            raise _BrokenTransferError("the site sent another range than was asked for")
        have = have if resumed else 0
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else None
        try:
            if not resumed:
                _write_tag(part, response.headers)
            with open_own(part, "ab" if resumed else "wb") as out:
                show(have, total)
                for chunk in _chunks(response):
                    out.write(chunk)
                    have += len(chunk)
                    show(have, total)
        except OSError as error:
            if error.errno not in FULL:
                raise
            _discard(part)
            raise _disk_full(final, total or 0) from None
    if total is not None and have < total:
        raise _BrokenTransferError(f"{have:,} of {total:,} bytes came")


def _open_url(url: str, part: Path, final: Path, have: int) -> http.client.HTTPResponse:
    """Request a file, from its byte ``have`` on if a tag identifies the file."""
    headers = {"User-Agent": "aucmax", "Accept-Encoding": "identity"}
    if have and _tag(part).exists() and (validator := _tag(part).read_text()):
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    try:
        request = urllib.request.Request(url, headers=headers)
        response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=_TIMEOUT)
        return response
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # the site has no bytes beyond ours, which are of another file
            _discard(part)
            raise _BrokenTransferError("the part on disk was of another file") from None
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


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while chunk := response.read(_CHUNK):
            yield chunk
    except (http.client.HTTPException, OSError) as error:
        raise _BrokenTransferError(_reason(error)) from None


def _reason(error: BaseException) -> str:
    inner = getattr(error, "reason", error)
    return str(getattr(inner, "strerror", None) or inner or type(inner).__name__)


def _disk_full(final: Path, total: int = 0) -> DownloadError:
    need = f" {final.name} needs {total / 1e6:,.1f} MB:" if total else ""
    return DownloadError(
        f"the disk that holds {final.parent} is full;{need} free some space there, or choose another "
        "folder with AUCMAX_CACHE."
    )


def _tag(part: Path) -> Path:
    return part.with_name(part.name + ".tag")


def _write_tag(part: Path, headers: http.client.HTTPMessage) -> None:
    """Store what identifies this version of the file; a weak ETag does not identify its bytes."""
    etag = headers.get("ETag", "")
    validator = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")
    _tag(part).unlink(missing_ok=True)
    if validator:
        with open_own(_tag(part), "wb") as file:
            file.write(validator.encode())


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag(part).unlink(missing_ok=True)
