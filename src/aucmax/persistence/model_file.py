"""Model files: one zip with a manifest and the model, loaded without running any of its code.

``manifest.json`` describes the model, its training and the versions that saved it. ``model.skops`` is
the model in the format of skops; the manifest holds its hash. Members of both zips are stored
uncompressed, so none can unpack to more than the size of the file.

A file may hold plain data of Python and NumPy, the scikit-learn estimators that skops trusts, and the
types in ``TRUSTED``. A file that names any other type is refused before a type is imported. The hash
detects damage, not malice: anyone who alters a model can alter the hash.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from aucmax import __version__
from aucmax.runtime.json_values import json_ready
from aucmax.runtime.machine import versions
from aucmax.runtime.output_files import replacing
from aucmax.runtime.parameters import warn_user
from aucmax.runtime.zip_sizes import DeclaredSizeError, check_arrays

__all__ = ["ModelFileError", "load_model", "read_manifest", "save_model"]

#: The format that is written, and the latest that is read. Format 1, of version 0.1, ordered the
#: classes of a TableModel differently and stored its columns one by one. Format 2 also held the
#: projections of landmark maps, which scores do not need.
FORMAT = 3

_MANIFEST, _MODEL = "manifest.json", "model.skops"
_SCHEMA = "schema.json"  # the member of a skops file that names types
#: Types that a file may hold besides those that skops trusts, by their present module. A file of an
#: earlier version names some of ours by another module.
_TRUSTED_BY_MODULE = {
    "aucmax.estimators.kernel": ("KernelAUCClassifier",),
    "aucmax.estimators.linear": ("LinearAUCClassifier",),
    "aucmax.estimators.online": ("OAMClassifier", "SOLAMClassifier"),
    "aucmax.estimators.rank_svm": ("KernelRankSVM",),
    "aucmax.estimators.search": ("KernelAUCClassifierCV", "LinearAUCClassifierCV"),
    "aucmax.estimators.streaming": ("SGDAUCClassifier",),
    "aucmax.features.fourier": ("FourierFeatures",),
    "aucmax.features.nystroem": ("NystroemFeatures",),
    "aucmax.features.scalers": ("MetricScaler", "QuantileScaler"),
    "aucmax.metrics.calibration": ("IsotonicCalibrator", "SigmoidCalibrator"),
    "aucmax.metrics.thresholds": ("Aim", "Threshold"),
    "aucmax.solvers.reservoir": ("Reservoir",),
    "aucmax.solvers.stochastic": ("OAM", "PairSGD", "SOLAM"),
    "aucmax.tables.model": ("TableModel",),
    "aucmax.tables.table_features": ("TableFeatures",),
    "numpy": ("dtype",),
    "sklearn.model_selection._split": (  # splitters, which a search keeps in its parameter cv
        *("GroupKFold", "GroupShuffleSplit", "KFold", "LeaveOneGroupOut", "PredefinedSplit"),
        *("RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit", "StratifiedGroupKFold"),
        *("StratifiedKFold", "StratifiedShuffleSplit", "TimeSeriesSplit"),
    ),
}
_HOMES = {
    name: home
    for home, names in _TRUSTED_BY_MODULE.items()
    for name in names
    if home.startswith("aucmax.")
}
TRUSTED = frozenset(f"{home}.{name}" for home, names in _TRUSTED_BY_MODULE.items() for name in names)


class ModelFileError(ValueError):
    """A file that is not a model file, is damaged, or is not safe to load."""


def save_model(model: Any, path: str | os.PathLike[str], **manifest: Any) -> Path:
    """Write a fitted model to one file, without pickle, and return its path.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of aucmax, or a scikit-learn pipeline around one.
    path : path
        By convention it ends in ``.aucmax``. An existing file is replaced only by a complete one: a
        part file next to it is written, then renamed. Symbolic links are followed.
    **manifest
        Further entries for the manifest, of any type that JSON can hold.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCClassifier, load_model, save_model
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelAUCClassifier(n_landmarks=50, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(model, f"{folder}/moons.aucmax")
    ...     loaded = load_model(path)
    >>> bool((loaded.decision_function(X) == model.decision_function(X)).all())
    True
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    path = Path(path)
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder: name a file in it to save the model to.")
    data = _dump(model)
    entries = {
        "format": FORMAT,
        "kind": type(model).__name__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "sha256": hashlib.sha256(data).hexdigest(),
        **_describe(model),
    }
    taken = sorted(set(manifest) & set(entries))
    if taken:
        raise ValueError(f"the manifest entry {taken[0]!r} is reserved by aucmax: choose another name.")
    try:
        text = json.dumps(json_ready(entries | manifest), indent=2, allow_nan=False, ensure_ascii=False)
    except TypeError as error:
        raise ValueError(f"JSON cannot hold an entry of the manifest: {error}.") from None
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as out:
        out.writestr(_MANIFEST, text)
        out.writestr(_MODEL, data)
    return path


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model from a file that :func:`save_model` wrote.

    Only types of aucmax and scikit-learn are loaded. A file that is damaged, or that holds any other
    type, is refused, and none of its code runs. A model saved with another version of scikit-learn
    loads with a warning.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucmax import LinearAUCClassifier, load_model, save_model
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(LinearAUCClassifier().fit(X, y), f"{folder}/cancer.aucmax")
    ...     model = load_model(path)
    >>> bool(model.predict(X[:1])[0] == y[0])
    True
    """
    path = Path(path)
    with _naming(path):
        with _opened(path) as (file, manifest):
            data = file.read(_MODEL)
        if hashlib.sha256(data).hexdigest() != manifest["sha256"]:
            raise ModelFileError("was altered: its model does not match its manifest. Get it again.")
        _check_model(data)
        model = _load(data, manifest)
    old, new = str(manifest["versions"].get("scikit-learn")), _versions()["scikit-learn"]
    if old.split(".")[:2] != new.split(".")[:2]:
        warn_user(
            f"{path} was saved with scikit-learn {old}, and this is {new}: compare some scores with "
            "earlier ones before you rely on it, or train and save the model again."
        )
    return model


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest of a model file without loading the model.

    Its entries are ``format``, ``kind`` (the model's class), ``date``, ``versions``, ``sha256`` of the
    model, ``classes``, ``columns`` (the name of each, and for a TableModel how it was prepared),
    ``training`` (the seed, and for a TableModel the target, positive label, AUC with interval, and hash
    of the data), and the entries passed to :func:`save_model`.
    """
    with _naming(Path(path)), _opened(Path(path)) as (_, manifest):
        return manifest


def _dump(model: Any) -> bytes:
    """Return the model in the format of skops; refuse a model that would not load again."""
    skops_io = import_module("skops.io")  # untyped, and slow to import
    refusal = f"this {type(model).__name__} cannot be saved, because"
    try:
        data: bytes = skops_io.dumps(_without_projections(model), compression=zipfile.ZIP_STORED)
    except (TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(
            f"{refusal} part of it is not plain data: {error}. Remove generators, open files and "
            "functions from its parameters."
        ) from None
    unknown = sorted(set(skops_io.get_untrusted_types(data=data)) - TRUSTED)
    if unknown:
        raise ModelFileError(
            f"{refusal} it holds {unknown[0]}: a model file may hold only estimators of aucmax and "
            "scikit-learn, and plain data."
        )
    return data


def _without_projections(model: Any) -> Any:
    """Return a copy of a classifier without the projections of its map, most of its bytes.

    Scores come from weights over kernel values. What needs the projection, such as the map's
    ``transform``, decomposes the kernel of the landmarks again.
    """
    from aucmax.features.nystroem import without_projections  # with scikit-learn, which is slow

    slim = copy(model)
    if hasattr(getattr(model, "model_", None), "feature_map_"):  # of a TableModel
        slim.model_ = _without_projections(model.model_)
    elif hasattr(model, "feature_map_"):
        slim.feature_map_ = without_projections(model.feature_map_)
        slim.parts_ = [_without_projections(part) for part in getattr(model, "parts_", [])]
    return slim


def _versions() -> dict[str, str]:
    return {"aucmax": __version__} | versions(("numpy", "scipy", "scikit-learn", "skops"))


def _describe(model: Any) -> dict[str, Any]:
    """Return the classes, columns and training of a fitted model."""
    columns, training = getattr(model, "columns_", None), getattr(model, "training_", None)
    if columns is None:
        default = [f"x{i}" for i in range(getattr(model, "n_features_in_", 0))]
        columns = [{"name": name} for name in getattr(model, "feature_names_in_", default)]
    if training is None:
        last = model[-1] if hasattr(model, "named_steps") else model
        held = getattr(last, "estimator", None) or last  # a search has the seed of its estimator
        training = {"random_state": getattr(held, "random_state", None)}
    return {"classes": getattr(model, "classes_", None), "columns": columns, "training": training}


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in a ModelFileError, and make one of each error that a damaged zip causes."""
    # A damaged header makes the zip reader raise any of these; OSError is a seek to before the start.
    damage = (ArithmeticError, EOFError, LookupError, OSError, RuntimeError, ValueError)
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{path} {error}") from None
    except (zipfile.BadZipFile, *damage) as error:
        reason = _brief(error)
        raise ModelFileError(f"{path} is truncated or damaged ({reason}): get it again.") from None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """Open the zip of a model file, and read its manifest; refuse other files."""
    if path.is_dir():
        raise ModelFileError("is a folder: name the model file in it.")
    if not path.is_file():
        raise ModelFileError("is not an ordinary file." if path.exists() else "does not exist.")
    size = path.stat().st_size
    with path.open("rb") as opened:
        if opened.read(2) != b"PK":
            what = "is not a model file" if size else "is empty"
            raise ModelFileError(f"{what}: `aucmax train` and save_model write model files.")
        with zipfile.ZipFile(opened) as file:
            members = file.infolist()
            first = [member for member in members if member.filename == _MANIFEST]
            _check_members(first, size)
            # A newer format may have other members, so its number is checked before them.
            manifest = _parse_manifest(file.read(_MANIFEST)) if first else {}
            names = sorted(member.filename for member in members)
            if names != [_MANIFEST, _MODEL]:
                found = ", ".join(repr(name) for name in names[:3]) or "nothing"
                raise ModelFileError(
                    f"is a zip file but not a model file, which holds {_MANIFEST} and {_MODEL} only; "
                    f"this one holds {found}{' and more' * (len(names) > 3)}."
                )
            _check_members(members, size)
            yield file, manifest


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse zip bombs, and names that lead out of the zip; save_model writes neither."""
    packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
    if packed or sum(member.file_size for member in members) > size:
        worst = max(members, key=lambda member: member.file_size)
        raise ModelFileError(
            f"is not safe to load: its part {worst.filename!r} unpacks to {worst.file_size:,} bytes; "
            "the parts of a model file are never compressed."
        )
    for name in (member.filename for member in members):
        if {"/", "\\", ":"} & set(name) or name.startswith("."):
            raise ModelFileError(f"is not safe to load: the name {name!r} leads out of the file.")


def _parse_manifest(text: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError):
        manifest = None
    written = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise ModelFileError(f"is not a model file: its {_MANIFEST} has no format number.")
    if written > FORMAT:
        raise ModelFileError(
            f"has model format {written}, and aucmax {__version__} reads formats up to {FORMAT}: "
            "install a later version of aucmax."
        )
    if not isinstance(manifest.get("sha256"), str) or not isinstance(manifest.get("versions"), dict):
        raise ModelFileError(f"was altered: its {_MANIFEST} lacks the hash or the versions.")
    return manifest


def _check_model(data: bytes) -> None:
    """Refuse a skops zip whose parts need more memory than they have bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as inner:
        _check_members(inner.infolist(), len(data))
        for name in inner.namelist():
            with inner.open(name) as member:
                if member.read(2) == b"PK":  # such as NumPy's npz, which would be unpacked unchecked
                    raise ModelFileError(f"is not safe to load: its part {name!r} is compressed.")
        try:
            check_arrays(inner)
        except DeclaredSizeError as error:
            raise ModelFileError(f"is not safe to load: {error}.") from None


def _load(data: bytes, manifest: dict[str, Any]) -> Any:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import InconsistentVersionWarning

    skops_io = import_module("skops.io")
    data = _with_current_modules(data)
    try:
        unknown = sorted(set(skops_io.get_untrusted_types(data=data)) - TRUSTED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)  # load_model warns itself
            model = None if unknown else skops_io.loads(data, trusted=sorted(TRUSTED))
    except Exception as error:  # any error, of any type, is a fault of the file
        saved, here = (
            ", ".join(f"{name} {each.get(name)}" for name in ("aucmax", "scikit-learn", "numpy"))
            for each in (manifest["versions"], _versions())
        )
        raise ModelFileError(
            f"holds no readable model ({_brief(error)}). It was saved with {saved}; this is {here}."
        ) from None
    if unknown:
        raise ModelFileError(
            f"is not safe to load: it holds {unknown[0]}, a type that model files may not hold. "
            "Nothing in the file was run."
        )
    kind, named = type(model).__name__, manifest.get("kind")
    if not isinstance(model, BaseEstimator) or kind != named:
        raise ModelFileError(f"was altered: its manifest names a {named}, but it holds a {kind}.")
    _check_scores(model)
    return model


def _with_current_modules(data: bytes) -> bytes:
    """Return the same model with each type under its current module.

    Damaged data is returned unchanged: the reader that follows reports the damage.
    """

    def renamed(node: dict[str, Any]) -> dict[str, Any]:
        home = _HOMES.get(str(node.get("__class__")))
        ours = home is not None and str(node.get("__module__")).startswith("aucmax.")
        return node | {"__module__": home} if ours else node

    with suppress(Exception), zipfile.ZipFile(io.BytesIO(data)) as file:
        schema = file.read(_SCHEMA).decode()
        current = json.dumps(json.loads(schema, object_hook=renamed))
        if current == json.dumps(json.loads(schema)):
            return data
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as copy:
            for name in file.namelist():
                copy.writestr(name, current if name == _SCHEMA else file.read(name))
        return out.getvalue()
    return data


def _check_scores(model: Any) -> None:
    """Refuse a classifier of ours that cannot score a row of zeros: one of its parts was altered."""
    model = getattr(model, "model_", model)  # a TableModel passes its features to this one
    if not type(model).__module__.startswith("aucmax.") or not hasattr(model, "decision_function"):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the row has no column names
            model.decision_function(np.zeros((1, model.n_features_in_)))
    except (ValueError, MemoryError):
        return  # zeros may be too extreme for this model, or memory short
    except Exception as error:
        raise ModelFileError(f"was altered: its model cannot score a row ({_brief(error)}).") from None


def _brief(error: Exception) -> str:
    """Return an error in one line, without characters that cannot be printed."""
    text = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split()).strip(".")
    return f"{type(error).__name__}: {text}"[:200]
