"""Model files: one zip with a manifest and the model, read without running any code of theirs.

``manifest.json`` says what the model is, what made it and what from; ``model.skops`` is the model, in
the format of skops, whose hash the manifest holds. Members of both zips are stored, never compressed:
so none can be larger than the file, and none needs to be trusted to be small.

A file may hold Python's and NumPy's plain data, scikit-learn's estimators (those that skops trusts) and
the types listed here, nothing else: a file that names another type is refused before any type is
imported. The hash finds damage, not malice: whoever alters a model can alter the hash.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from aucmax import __version__
from aucmax.runtime.json_values import json_ready
from aucmax.runtime.output_files import replacing
from aucmax.runtime.parameters import warn_user
from aucmax.runtime.zip_sizes import DeclaredSizeError, check_arrays

__all__ = ["ModelFileError", "load_model", "read_manifest", "save_model"]

#: What is written, and the latest that is read. Format 1, of version 0.1, had another order of the
#: classes of a TableModel, and its columns one by one.
FORMAT = 2

_MANIFEST, _MODEL = "manifest.json", "model.skops"

#: The part of a skops file that names types.
_SCHEMA = "schema.json"

#: Where modules lie now that earlier versions had elsewhere: files name each type by its module.
_MOVED = {
    "aucmax._scaling": "aucmax.features.scalers",
    "aucmax.baselines": "aucmax.estimators.baselines",
    "aucmax.calibration": "aucmax.metrics.calibration",
    "aucmax.classifiers": "aucmax.estimators.classifiers",
    "aucmax.search": "aucmax.estimators.search",
    "aucmax.streaming": "aucmax.estimators.streaming",
    "aucmax.thresholds": "aucmax.metrics.thresholds",
}

#: Types that a file may hold beside those that skops trusts itself. A type that moves gets an entry in
#: ``_MOVED``, so that older files still load.
TRUSTED = frozenset(
    {
        "aucmax.features.scalers.MetricScaler",
        "aucmax.features.scalers.QuantileScaler",
        "aucmax.estimators.baselines.KernelRankSVM",
        "aucmax.estimators.baselines.OAMClassifier",
        "aucmax.estimators.baselines.SOLAMClassifier",
        "aucmax.metrics.calibration.IsotonicCalibrator",
        "aucmax.metrics.calibration.SigmoidCalibrator",
        "aucmax.estimators.classifiers.KernelAUCClassifier",
        "aucmax.estimators.classifiers.LinearAUCClassifier",
        "aucmax.features.fourier.FourierFeatures",
        "aucmax.features.nystroem.NystroemFeatures",
        "aucmax.estimators.search.KernelAUCClassifierCV",
        "aucmax.estimators.search.LinearAUCClassifierCV",
        "aucmax.solvers.reservoir.Reservoir",
        "aucmax.solvers.stochastic.OAM",
        "aucmax.solvers.stochastic.PairSGD",
        "aucmax.solvers.stochastic.SOLAM",
        "aucmax.estimators.streaming.SGDAUCClassifier",
        "aucmax.tables.model.TableModel",
        "aucmax.metrics.thresholds.Aim",
        "aucmax.metrics.thresholds.Threshold",
        "numpy.dtype",
        # Splitters, which a search keeps in its parameter cv
        "sklearn.model_selection._split.GroupKFold",
        "sklearn.model_selection._split.GroupShuffleSplit",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.LeaveOneGroupOut",
        "sklearn.model_selection._split.PredefinedSplit",
        "sklearn.model_selection._split.RepeatedKFold",
        "sklearn.model_selection._split.RepeatedStratifiedKFold",
        "sklearn.model_selection._split.ShuffleSplit",
        "sklearn.model_selection._split.StratifiedGroupKFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.model_selection._split.StratifiedShuffleSplit",
        "sklearn.model_selection._split.TimeSeriesSplit",
    }
)

#: What a manifest always holds; a caller's own entries have other names.
_OWN = ("format", "kind", "date", "versions", "sha256", "classes", "columns", "training")


class ModelFileError(ValueError):
    """A file that is no model file, not a whole one, or one that is not to be trusted."""


def save_model(model: Any, path: str | os.PathLike[str], **manifest: Any) -> Path:
    """Write a fitted model to one file, without pickle.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of aucmax, or a scikit-learn pipeline around one.
    path : path
        Where to; ending in ``.aucmax`` by convention. An existing file is replaced, by a whole one or
        not at all: a part file beside it is written, then renamed. A symbolic link is followed, and a
        device or a pipe written into.
    **manifest
        Further entries for the manifest, of what JSON can hold.

    Returns
    -------
    Path
        The path written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import KernelAUCClassifier
    >>> from aucmax.persistence.model_file import load_model, save_model
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelAUCClassifier(n_landmarks=50, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(model, Path(folder) / "moons.aucmax")
    ...     loaded = load_model(path)
    >>> bool((loaded.decision_function(X) == model.decision_function(X)).all())
    True
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    path = Path(path)
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder: name a file in it to save the model to.")
    taken = sorted(set(manifest) & set(_OWN))
    if taken:
        raise ValueError(f"the manifest's entry {taken[0]!r} is aucmax's own: choose another name.")
    data = _dump(model)
    entries = {
        "format": FORMAT,
        "kind": type(model).__name__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "sha256": hashlib.sha256(data).hexdigest(),
        **_about(model),
        **manifest,
    }
    try:
        text = json.dumps(json_ready(entries), indent=2, allow_nan=False, ensure_ascii=False)
    except TypeError as error:
        raise ValueError(f"an entry of the manifest is nothing that JSON can hold: {error}.") from None
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as out:
        out.writestr(_MANIFEST, text)
        out.writestr(_MODEL, data)
    return path


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model from a file that :func:`save_model` wrote.

    Only types of aucmax and scikit-learn are loaded. A file that holds any other type, or that is
    damaged, is refused, and none of its code runs. A model that was saved with another version of
    scikit-learn loads with a warning.

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
    with _opened(path) as (file, manifest):
        data = file.read(_MODEL)
    if hashlib.sha256(data).hexdigest() != manifest["sha256"]:
        raise ModelFileError(
            f"{path} has been altered: its model is not the one that its manifest was written for. "
            "Get the file again from where it was made."
        )
    with _whole(path), zipfile.ZipFile(io.BytesIO(data)) as inner:
        _check_members(inner.infolist(), len(data), path)
        for name in inner.namelist():
            with inner.open(name) as member:
                if member.read(2) == b"PK":  # such as NumPy's npz, which would be unpacked unchecked
                    raise ModelFileError(f"{path} is not to be trusted: its part {name!r} is packed.")
        try:
            check_arrays(inner)
        except DeclaredSizeError as error:
            raise ModelFileError(f"{path} is not to be trusted: {error}.") from None
    return _load(data, manifest, path)


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says of itself, with the model left alone.

    Returns
    -------
    dict
        ``format``, ``kind`` (the model's class), ``date``, ``versions``, ``sha256`` of the model,
        ``classes``, ``columns`` (each with its name, and for a model of a table with all that was done
        to it), ``training`` (what is known of it: seed, and for a model of a table target, positive
        label, AUC with interval, hash of the data), and what was handed to :func:`save_model`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import make_moons
    >>> from aucmax import LinearAUCClassifier
    >>> from aucmax.persistence.model_file import read_manifest, save_model
    >>> model = LinearAUCClassifier().fit(*make_moons(200, random_state=0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(model, Path(folder) / "moons.aucmax", author="me")
    ...     manifest = read_manifest(path)
    >>> manifest["kind"], manifest["classes"], manifest["author"]
    ('LinearAUCClassifier', [0, 1], 'me')
    """
    path = Path(path)
    with _opened(path) as (_, manifest):
        return manifest


# Writing


def _dump(model: Any) -> bytes:
    """The model as skops writes it, refused if it would not load again."""
    skops_io = import_module("skops.io")  # untyped, and slow to import
    kind = type(model).__name__
    try:
        data: bytes = skops_io.dumps(model, compression=zipfile.ZIP_STORED)
    except (TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(
            f"this {kind} cannot be saved, because something in it is no plain data: {error}. Leave "
            "generators, open files and functions out of its parameters."
        ) from None
    strange = sorted(set(skops_io.get_untrusted_types(data=data)) - TRUSTED)
    if strange:
        raise ModelFileError(
            f"this {kind} cannot be saved, because it holds {strange[0]}, which a model file may not: "
            "only estimators of aucmax and scikit-learn and plain data are loaded from one."
        )
    return data


def _versions() -> dict[str, str]:
    names = ("numpy", "scipy", "scikit-learn", "skops")
    return {
        "aucmax": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }


def _about(model: Any) -> dict[str, Any]:
    """What a fitted model knows of its classes, columns and training."""
    columns = getattr(model, "columns_", None)
    if columns is None:
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            names = [f"x{i}" for i in range(getattr(model, "n_features_in_", 0))]
        columns = [{"name": name} for name in names]
    training = getattr(model, "training_", None)
    if training is None:
        last = model[-1] if hasattr(model, "named_steps") else model
        training = {"random_state": getattr(last, "random_state", None)}
    classes = getattr(model, "classes_", None)
    return {"classes": classes, "columns": columns, "training": training}


# Reading


@contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """The zip of a model file, with the members it should have, and its manifest."""
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder: name the model file in it.")
    if not path.exists():
        raise ModelFileError(f"there is no model file {path}.")
    if not path.is_file():
        raise ModelFileError(f"{path} is no ordinary file, so no model can be read from it.")
    size = path.stat().st_size
    if not size:
        raise ModelFileError(f"{path} is empty: it is no model file.")
    with path.open("rb") as opened:
        if opened.read(2) != b"PK":
            raise ModelFileError(f"{path} is no model file: `aucmax train` and save_model write those.")
        with _whole(path), zipfile.ZipFile(opened) as file:
            members = file.infolist()
            first = [member for member in members if member.filename == _MANIFEST]
            _check_members(first, size, path)
            # A newer format may have other members, so its number comes before them.
            manifest = _read_manifest(file, path) if first else {}
            names = sorted(member.filename for member in members)
            if names != [_MANIFEST, _MODEL]:
                held = ", ".join(repr(name) for name in names[:3]) or "nothing"
                raise ModelFileError(
                    f"{path} is a zip file but no model file, which has {_MANIFEST} and {_MODEL} in it "
                    f"and nothing else; this one has {held}{' and more' * (len(names) > 3)}."
                )
            _check_members(members, size, path)
            yield file, manifest


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Whatever the zip reader says of a file that is not whole, as one sentence."""
    try:
        yield
    except ModelFileError:
        raise
    # All these the reader raises on headers that make no sense, OSError on a place before the start.
    except (
        zipfile.BadZipFile,
        ArithmeticError,
        EOFError,
        LookupError,
        OSError,
        RuntimeError,
        ValueError,
    ) as error:
        raise ModelFileError(
            f"{path} is truncated or damaged ({_brief(error)}): get the file again from where it was "
            "made."
        ) from None


def _check_members(members: list[zipfile.ZipInfo], size: int, path: Path) -> None:
    """Refuse what save_model never writes and what could hurt: bombs, and names that lead elsewhere."""
    packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
    if packed or sum(member.file_size for member in members) > size:
        worst = max(members, key=lambda member: member.file_size)
        raise ModelFileError(
            f"{path} is not to be trusted: its part {worst.filename!r} says that it unpacks to "
            f"{worst.file_size:,} bytes, and parts of a model file are not packed."
        )
    for member in members:
        if {"/", "\\", ":"} & set(member.filename) or member.filename.startswith("."):
            raise ModelFileError(
                f"{path} is not to be trusted: its part {member.filename!r} has the name of a place "
                "elsewhere on the disk."
            )


def _read_manifest(file: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    text = file.read(_MANIFEST)
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        manifest = {}
    written = manifest.get("format")
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise ModelFileError(f"{path} is no model file: its {_MANIFEST} does not say what it is.")
    if written > FORMAT:
        raise ModelFileError(
            f"{path} has model format {written}, and aucmax {__version__} reads formats up to "
            f"{FORMAT}: upgrade with `pip install --upgrade aucmax`."
        )
    if not isinstance(manifest.get("sha256"), str) or not isinstance(manifest.get("versions"), dict):
        raise ModelFileError(f"{path} has been altered: its {_MANIFEST} lacks what every one has.")
    return manifest


def _load(data: bytes, manifest: dict[str, Any], path: Path) -> Any:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import InconsistentVersionWarning

    skops_io = import_module("skops.io")
    data = _with_present_names(data)
    # Whatever is wrong in here, of whichever type, is wrong with the file.
    try:
        strange = sorted(set(skops_io.get_untrusted_types(data=data)) - TRUSTED)
    except Exception as error:
        raise ModelFileError(f"{path} holds no model that can be read ({_brief(error)}).") from None
    if strange:
        raise ModelFileError(
            f"{path} is not to be trusted: it holds {strange[0]}, which is none of the types that "
            "models are made of. It was not loaded, and nothing in it has run."
        )
    saved, here = manifest["versions"], _versions()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)  # one of ours, below
            model = skops_io.loads(data, trusted=sorted(TRUSTED))
    except Exception as error:
        raise ModelFileError(
            f"{path} holds no model that can be read here ({_brief(error)}). It was saved by "
            f"{_named(saved)}; here are {_named(here)}."
        ) from None
    if not isinstance(model, BaseEstimator) or type(model).__name__ != manifest.get("kind"):
        raise ModelFileError(
            f"{path} has been altered: it says that it holds a {manifest.get('kind')}, and holds a "
            f"{type(model).__name__}."
        )
    _check_scores(model, path)
    if _minor(saved.get("scikit-learn")) != _minor(here["scikit-learn"]):
        warn_user(
            f"{path} was saved with scikit-learn {saved.get('scikit-learn')} and is read with "
            f"{here['scikit-learn']}: compare some scores with older ones before relying on it, or "
            "train and save it again."
        )
    return model


def _with_present_names(data: bytes) -> bytes:
    """The same model with each type under its present module.

    What is damaged is handed back as it came: the reader that follows says what is wrong.
    """
    with suppress(Exception), zipfile.ZipFile(io.BytesIO(data)) as file:
        schema = json.loads(file.read(_SCHEMA))
        if not _rename_modules(schema):
            return data
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as renamed:
            for member in file.infolist():
                here = member.filename == _SCHEMA
                renamed.writestr(member, json.dumps(schema) if here else file.read(member))
        return out.getvalue()
    return data


def _rename_modules(node: Any) -> bool:
    """Rename the modules in a schema in place; whether there were any to rename."""
    found = False
    if isinstance(node, dict):
        module = node.get("__module__")
        if isinstance(module, str) and module in _MOVED:
            node["__module__"], found = _MOVED[module], True
    each = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return any([found, *map(_rename_modules, each)])


def _check_scores(model: Any, path: Path) -> None:
    """Refuse a classifier of ours that cannot score a row: something in it is not what it should be."""
    model = getattr(model, "model_", model)  # the numbers of a table's columns go there
    if not type(model).__module__.startswith("aucmax.") or not hasattr(model, "decision_function"):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that these columns lack
            model.decision_function(np.zeros((1, model.n_features_in_)))
    except (ValueError, MemoryError):
        return  # zeros may be too extreme for it, or memory short
    except Exception as error:
        raise ModelFileError(
            f"{path} has been altered: its model cannot score a row ({_brief(error)})."
        ) from None


def _brief(error: Exception) -> str:
    """An error in one line, with what cannot be printed left out."""
    text = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split()).strip(".")
    return f"{type(error).__name__}: {text}"[:200]


def _named(versions: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {versions.get(name)}" for name in ("aucmax", "scikit-learn", "numpy"))


def _minor(text: Any) -> list[str]:
    return str(text).split(".")[:2]
