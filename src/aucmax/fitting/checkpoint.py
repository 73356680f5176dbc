"""Checkpoints: what a fit has reached, in one file, so that a fit that was stopped can go on.

A file is NumPy's npz, arrays and one header in JSON, without pickle. The header tells which fit it is
of: the class, every parameter that bears on the result, and hashes of all rows, labels and weights. A
fit of anything else refuses the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from aucmax.rows.blocked import blocks_of
from aucmax.rows.validation import is_sparse
from aucmax.runtime.output_files import replacing
from aucmax.runtime.parameters import warn_user
from aucmax.runtime.zip_sizes import check_arrays

T = TypeVar("T")

#: What is written, and the only one that is read: a checkpoint outlives a crash, not a version.
FORMAT = 1

#: Of a fit's time, what may go into writing. After a write of t seconds the next comes no sooner than
#: ``t / SHARE`` later, which is after every step wherever steps take long enough for it to matter.
SHARE = 0.05

#: Parameters that do not bear on the result. Folds are compared themselves, whatever made them.
_FREE = frozenset({"checkpoint", "cv", "max_memory", "n_jobs", "time_budget", "verbose"})

#: Bytes of rows that are hashed at a time.
_HASH_BYTES = 2**24

_HEADER = "header"


class Checkpoint:
    """Named pieces of a fit's state: noted as it goes on, recalled by the next that is the same.

    Parameters
    ----------
    path : path or None
        The file. None notes nothing, and there is nothing to recall.
    fit : mapping of str to str
        What makes this fit the one it is; see :func:`describe_fit`.

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
        if not isinstance(path, str | os.PathLike | None):
            raise TypeError(f"checkpoint must be the path of a file or None; got {path!r}.")
        self.path = None if path is None else Path(path)
        self._fit, self._lock = dict(fit or {}), threading.Lock()
        self._state: dict[str, Any] = {}
        self.before, self._began = 0.0, time.monotonic()  # seconds that earlier runs have spent
        self._next, self._warned = 0.0, False
        if self.path is None:
            return
        if self.path.is_dir():
            raise ValueError(f"checkpoint={str(path)!r} is a folder: name a file in it.")
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"checkpoint={str(path)!r} is no ordinary file: name another.")
        if self.path.exists():
            self._load(self.path)
        else:
            self.write()  # a folder that cannot be written to is better known now

    @property
    def on(self) -> bool:
        """Whether there is a file at all."""
        return self.path is not None

    def recall(self, name: str) -> Any:
        """What was noted under a name, or None."""
        return self._state.get(name)

    def note(self, name: str, value: Any) -> None:
        """Note plain data and arrays, not to be changed afterwards, and write if it is time to."""
        with self._lock:
            if self.path is None:
                return
            self._state[name] = value
            if time.monotonic() >= self._next:
                self._write_or_warn()

    def hook(self, name: str) -> Callable[[Any], None] | None:
        """What notes a solver's state under a name; None if nothing is noted, so that none is made."""
        return partial(self.note, name) if self.on else None

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What was noted under a name; if nothing was, it is made, and noted."""
        if name not in self._state:
            value = make()
            self.note(name, value)
            return value
        found: T = self._state[name]
        return found

    def fitted(self, name: str, fit: Callable[[], T], blank: Callable[[], T]) -> T:
        """An estimator: a blank one given what was learnt before, or else one fitted now."""
        if name in self._state:
            learnt = self._state[name]
            if learnt is None:
                return None  # type: ignore[return-value]
            model = blank()
            _teach(model, learnt)
            return model
        model = fit()
        if self.on:
            self.note(name, None if model is None else _learnt(model))
        return model

    def write(self) -> None:
        """Write all that is noted, beside, and rename."""
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
                f"The checkpoint {str(self.path)!r} cannot be written ({reason}); choose a place for "
                "it with room, in a folder that exists and may be written to",
            ) from None
        ended = time.monotonic()
        self._next = ended + (ended - began) / SHARE

    def _write_or_warn(self) -> None:
        """A fit that has run for hours does not end because its checkpoint's disk is full."""
        try:
            self.write()
        except OSError as error:
            if not self._warned:
                warn_user(f"{error.strerror}. The fit goes on; the checkpoint stays as it was.")
            self._warned, self._next = True, time.monotonic() + 10.0

    def remove(self) -> None:
        """The fit is done: there is nothing to go on from."""
        if self.path is not None:
            self.path.resolve().unlink(missing_ok=True)  # a link to it stays, as when it is written

    def close(self) -> None:
        """Write no more: threads of a fit that was stopped may not have heard of it yet."""
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
        # All these come of bytes that make no sense.
        except (
            zipfile.BadZipFile,
            ArithmeticError,
            AttributeError,
            EOFError,
            LookupError,
            OSError,
            RuntimeError,
            TypeError,
            ValueError,
        ):
            raise ValueError(
                f"checkpoint={str(path)!r} is a file that is no checkpoint, or not a whole one: remove "
                "it to begin anew, or name another file."
            ) from None
        if written != FORMAT:
            raise ValueError(
                f"checkpoint={str(path)!r} was written by another version of aucmax (format {written}, "
                f"here {FORMAT}): go on with that one, or remove the file to begin anew."
            )
        for name in [*self._fit, *fit]:
            there, here = fit.get(name), self._fit.get(name)
            if there != here:
                raise ValueError(
                    f"checkpoint={str(path)!r} is of another fit: its {name} is {there}, here {here}. "
                    "Make them equal to go on, remove the file to begin anew, or name another file."
                )
        self._state, self.before = state, spent


def describe_fit(estimator: Any, data: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """What makes a fit the one it is: class, parameters, and for each name in ``data`` its arrays.

    >>> from sklearn.linear_model import Ridge
    >>> describe_fit(Ridge(alpha=2.0), {"y": [[1, 2]]})["alpha"]
    '2.0'
    """
    params = estimator.get_params(deep=False).items()
    return {
        "class": type(estimator).__name__,
        **{name: _described(value) for name, value in params if name not in _FREE},
        **{name: _hashed(*parts) for name, parts in data.items()},
    }


def _described(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, list | tuple) or hasattr(value, "__array__"):
        return _hashed(np.atleast_1d(np.asarray(value)))
    # A generator, for one: what it has drawn is in the checkpoint, and where it stands does not matter.
    return type(value).__name__


def _hashed(*parts: Any) -> str:
    """Shape and type of the first of some arrays, or rows of any kind, and a hash of all of them."""
    digest = hashlib.blake2b(digest_size=8)
    parts = tuple(part if hasattr(part, "shape") else np.asarray(part) for part in parts)
    for part in parts:
        for values in (part.data, part.indices, part.indptr) if is_sparse(part) else (part,):
            row = int(np.prod(values.shape[1:])) * values.dtype.itemsize
            for block in blocks_of(values, max(1, _HASH_BYTES // max(1, row))):
                plain = block.astype(str) if block.dtype.kind == "O" else block
                digest.update(np.ascontiguousarray(plain).reshape(-1).view(np.uint8).data)
    shape = " x ".join(f"{size:,}" for size in parts[0].shape)
    return f"{shape} {parts[0].dtype} (hash {digest.hexdigest()})"


def _learnt(model: Any) -> dict[str, Any]:
    """All of a fitted estimator but its parameters, unless it says that these were learnt, too."""
    params = set(model.get_params(deep=False)) - set(getattr(model, "_learnt_params", ()))
    own = {name: value for name, value in vars(model).items() if name not in params}
    return {name: _learnt(each) if hasattr(each, "get_params") else each for name, each in own.items()}


def _teach(model: Any, learnt: Mapping[str, Any]) -> None:
    """Give a blank estimator, and estimators in it, what others like them have learnt."""
    for name, value in learnt.items():
        part = getattr(model, name, None)
        if hasattr(part, "get_params") and value is not None:
            _teach(part, value)
        else:
            setattr(model, name, value)


def _packed(value: Any, arrays: dict[str, Any]) -> Any:
    """Nested data as JSON holds it, each array put aside and its name left in its place."""
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
    if isinstance(value, dict):
        if "" in value:
            return arrays[value[""]][()]
        return {key: _unpacked(each, arrays) for key, each in value.items()}
    if isinstance(value, list):
        return [_unpacked(each, arrays) for each in value]
    return value
