"""Store what a fit has reached in one file, a checkpoint, so that an interrupted fit can be resumed.

A file is NumPy's npz: arrays and one header in JSON, without pickle. The header identifies the fit: the
class, every parameter that affects the result, and hashes of all rows, labels and weights. A fit of
anything else refuses the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from aucmax.rows.interface import ArrayRows, Rows, is_sparse
from aucmax.runtime.output_files import replacing
from aucmax.runtime.parameters import warn_user
from aucmax.runtime.zip_sizes import check_arrays

T = TypeVar("T")

#: The format written, and the only one read: a checkpoint survives a crash, not an upgrade.
FORMAT = 2

#: The share of a fit's time that may go into writing. After a write of t seconds the next comes no
#: sooner than ``t / SHARE`` later: after every step wherever steps take long enough to matter.
SHARE = 0.05

#: Parameters that do not affect the result, or whose effect is compared instead: the folds of ``cv``.
_FREE = frozenset({"checkpoint", "cv", "max_memory", "n_jobs", "time_budget", "verbose"})

#: Rows in files are hashed this many at a time.
_HASH_ROWS = 2**14

_HEADER = "header"

#: Errors that damaged bytes raise.
_DAMAGE = (EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError)


class Checkpoint:
    """Named pieces of a fit's state: noted as it goes on, recalled when the same fit is run again.

    Parameters
    ----------
    path : path or None
        The file. With None nothing is noted or recalled.
    fit : mapping of str to str
        What identifies this fit; see :func:`describe_fit`.

    Examples
    --------
    >>> import tempfile
    >>> from aucmax.fitting.checkpoint import Checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = Checkpoint(f"{folder}/fit.npz", {"C": "1.0"})
    ...     first.note("epoch", 3)
    ...     first.write()
    ...     Checkpoint(f"{folder}/fit.npz", {"C": "1.0"}).recall("epoch")
    3
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, fit: Mapping[str, str] | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        self._fit, self._lock = dict(fit or {}), threading.Lock()
        self._state: dict[str, Any] = {}
        self._whole, self._prefix = self, ""  # what this is a part of, and how its names begin there
        self.before, self._began = 0.0, time.monotonic()  # seconds that earlier runs have spent
        self._next, self._warned = 0.0, False
        if self.path is None:
            return
        if self.path.is_dir():
            raise ValueError(f"checkpoint={str(path)!r} is a folder: name a file in it.")
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"checkpoint={str(path)!r} is not an ordinary file: name another.")
        if self.path.exists():
            self._load(self.path)
        else:
            self.write()  # report now that a folder cannot be written to

    @property
    def on(self) -> bool:
        """Whether there is a file."""
        return self._whole.path is not None

    def has(self, name: str) -> bool:
        """Return whether something was noted under a name."""
        return self._prefix + name in self._state

    def recall(self, name: str) -> Any:
        """Return what was noted under a name, or None."""
        return self._state.get(self._prefix + name)

    def note(self, name: str, value: Any) -> None:
        """Note plain data and arrays, which must not change afterwards; write if it is time to."""
        whole = self._whole
        with whole._lock:
            if whole.path is None:
                return
            whole._state[self._prefix + name] = value
            if time.monotonic() >= whole._next:
                whole._write_or_warn()

    def part(self, name: str) -> Checkpoint:
        """Return the same checkpoint for one of several machines, whose names begin with its own."""
        own = copy(self)
        own._prefix = f"{self._prefix}{name}, "
        return own

    def hook(self, name: str) -> Callable[[Any], None] | None:
        """Return a function that notes a solver's state under a name; None without a file."""
        return partial(self.note, name) if self.on else None

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return what was noted under a name; make and note it if there is nothing."""
        if self.has(name):
            found: T = self.recall(name)
            return found
        value = make()
        self.note(name, value)
        return value

    def fitted(self, name: str, fit: Callable[[], T], blank: Callable[[], T]) -> T:
        """Return what ``fit`` makes, an estimator or None; if it was noted, restore it in ``blank``."""
        if not self.has(name):
            model = fit()
            if self.on:
                self.note(name, None if model is None else _learnt(model))
            return model
        learnt = self.recall(name)
        if learnt is None:
            return None  # type: ignore[return-value]
        model = blank()
        _restore_learnt(model, learnt)
        return model

    def write(self) -> None:
        """Write everything noted to a new file, and rename it."""
        if self.path is None:
            return
        began = time.monotonic()
        arrays: dict[str, Any] = {}
        header = {
            "format": FORMAT,
            "fit": self._fit,
            "seconds": self.before + began - self._began,
            "state": _packed(self._state, arrays),
        }
        arrays[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        try:
            with replacing(self.path) as file:
                np.savez(file, **arrays)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise OSError(
                error.errno,
                f"The checkpoint {str(self.path)!r} cannot be written ({reason}); choose an existing, "
                "writable folder with room for it",
            ) from None
        ended = time.monotonic()
        self._next = ended + (ended - began) / SHARE

    def _write_or_warn(self) -> None:
        """Write; warn on failure, since a full disk must not end a fit that has run for hours."""
        try:
            self.write()
        except OSError as error:
            if not self._warned:
                warn_user(f"{error.strerror}. The fit continues; the checkpoint stays as it was.")
            self._warned, self._next = True, time.monotonic() + 10.0

    def remove(self) -> None:
        """Remove the file: the fit is done."""
        if self.path is not None:
            self.path.resolve().unlink(missing_ok=True)  # a link to it stays

    def close(self) -> None:
        """Write no more, not even by threads of an interrupted fit that are still running."""
        with self._lock:
            self.path = None

    def _load(self, path: Path) -> None:
        try:
            file = path.open("rb")
        except OSError as error:
            raise OSError(
                error.errno, f"The checkpoint {str(path)!r} cannot be read ({error.strerror or error})"
            ) from None
        try:
            with file:
                with zipfile.ZipFile(file) as members:
                    check_arrays(members)
                file.seek(0)
                arrays = np.load(file, allow_pickle=False)
                header = json.loads(arrays[_HEADER].tobytes())
                written, fit, spent = header["format"], dict(header["fit"]), float(header["seconds"])
                state = dict(_unpacked(header["state"], arrays)) if written == FORMAT else {}
        except (zipfile.BadZipFile, ArithmeticError, AttributeError, *_DAMAGE):
            raise ValueError(
                f"checkpoint={str(path)!r} is not a checkpoint, or not a complete one. Remove it to "
                "start again, or name another file."
            ) from None
        if written != FORMAT:
            raise ValueError(
                f"checkpoint={str(path)!r} was written by another version of aucmax (format {written}, "
                f"here {FORMAT}). Resume with that version, or remove the file to start again."
            )
        for name in [*self._fit, *fit]:
            there, here = fit.get(name), self._fit.get(name)
            if there != here:
                raise ValueError(
                    f"checkpoint={str(path)!r} belongs to another fit: its {name} is {there}, here "
                    f"{here}. Make them equal to resume, remove the file to start again, or name "
                    "another file."
                )
        self._state, self.before = state, spent


def describe_fit(estimator: Any, data: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """Return what identifies a fit: class, parameters, and for each name in ``data`` its arrays.

    >>> from sklearn.linear_model import Ridge
    >>> describe_fit(Ridge(alpha=2.0), {"y": [[1, 2]]})["alpha"]
    '2.0'
    """
    params = estimator.get_params().items()
    return {
        "class": type(estimator).__name__,
        **{name: _described(value) for name, value in params if name.split("__")[-1] not in _FREE},
        **{name: _hashed(*parts) for name, parts in data.items()},
    }


def _described(value: Any) -> str:
    """Return a parameter's value as text that two fits can be compared by."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, list | tuple) or hasattr(value, "__array__"):
        return _hashed(np.atleast_1d(np.asarray(value)))
    # A generator, for one: what it has drawn is in the checkpoint, and its state does not matter.
    return type(value).__name__


def _hashed(*parts: Any) -> str:
    """Return shape and type of the first of some arrays, or rows, and a hash of all of them."""
    digest = hashlib.blake2b(digest_size=8)
    parts = tuple(part if hasattr(part, "shape") else np.asarray(part) for part in parts)
    for part in parts:
        for values in _arrays(part):
            plain = values.astype(str) if values.dtype.kind == "O" else values
            digest.update(np.ascontiguousarray(plain).reshape(-1).view(np.uint8).data)
    shape = " x ".join(f"{size:,}" for size in parts[0].shape)
    return f"{shape} {parts[0].dtype} (hash {digest.hexdigest()})"


def _arrays(part: Any) -> Iterator[Any]:
    """Yield the numbers of an array or of rows."""
    part = part.values if isinstance(part, ArrayRows) else part
    if is_sparse(part):
        yield from (part.data, part.indices, part.indptr)
    elif isinstance(part, Rows):
        yield from (block for _, block in part.blocks(_HASH_ROWS))
    else:
        yield part


def _learnt(model: Any) -> dict[str, Any]:
    """Return what a fitted estimator has learnt: everything but its parameters."""
    params = set(model.get_params(deep=False)) - set(getattr(model, "_learnt_params", ()))
    own = {name: value for name, value in vars(model).items() if name not in params}
    return {name: _learnt(each) if hasattr(each, "get_params") else each for name, each in own.items()}


def _restore_learnt(model: Any, learnt: Mapping[str, Any]) -> None:
    """Set what :func:`_learnt` returned on a blank estimator, and on estimators in it."""
    for name, value in learnt.items():
        part = getattr(model, name, None)
        if hasattr(part, "get_params") and value is not None:
            _restore_learnt(part, value)
        else:
            setattr(model, name, value)


def _packed(value: Any, arrays: dict[str, Any]) -> Any:
    """Return nested data as JSON holds it, with each array replaced by its name in ``arrays``."""
    if isinstance(value, np.ndarray | np.generic):
        name = str(len(arrays))
        arrays[name] = np.asarray(value)
        return {"": name}
    if isinstance(value, Mapping):
        return {key: _packed(each, arrays) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(each, arrays) for each in value]
    return value


def _unpacked(value: Any, arrays: Mapping[str, Any]) -> Any:
    """Return the nested data that :func:`_packed` was called with."""
    if isinstance(value, dict):
        if "" in value:
            return arrays[value[""]][()]
        return {key: _unpacked(each, arrays) for key, each in value.items()}
    if isinstance(value, list):
        return [_unpacked(each, arrays) for each in value]
    return value
