"""Mutated and crafted model files, checkpoints, tables and LIBSVM files.

Promised: no code of a file runs; the outcome is the right score (a file whose checksum holds), finite
numbers (a file that another value makes no less valid) or a ``ValueError`` of one sentence, soon and in
memory that the file justifies.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import hashlib
import io
import json
import lzma
import re
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aucmax import KernelAUCClassifier, LinearAUCClassifier, load_model, save_model
from aucmax.fitting.checkpoint import Checkpoint
from aucmax.persistence.model_file import read_manifest
from aucmax.reading.read import column_names, read_table, table_batches
from aucmax.tables import fit_table
from reliability.flat_parameters import small_search
from reliability.harness import Case, Violation
from reliability.mutations import BYTES, TEXT, Random

FULL = 5000

#: A type, or a function, that a crafted model file asks for: each would make the file "canary".
CODE = (
    *("builtins.eval", "builtins.exec", "os.system", "subprocess.Popen", "posix.system"),
    *("pathlib.Path.touch", "builtins.open", "functools.partial", "operator.methodcaller"),
    *("numpy.memmap", "shutil.copy", "importlib.import_module", "sklearn.utils._bunch.Bunch"),
)

X = np.random.default_rng(0).normal(size=(80, 3))
Y = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0


def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "a": X[:, 0].round(3),
            "b": [None if i % 9 == 0 else value for i, value in enumerate(X[:, 1].round(3).tolist())],
            "c": np.where(X[:, 2] > 0, "red", "blue"),
            "y": np.where(Y, "yes", "no"),
        }
    )


@functools.cache
def models() -> dict[str, bytes]:
    """Model files by name; each is small."""
    made: dict[str, Any] = {
        "kernel": KernelAUCClassifier(1.0, kernel="rbf", gamma=0.3, n_landmarks=8, random_state=0).fit(
            X, Y
        ),
        "linear": LinearAUCClassifier().fit(X, Y),
        "table": table_model(),
    }
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, model in made.items():
            files[name] = _settled(save_model(model, Path(folder) / name).read_bytes())
    return files


def _settled(data: bytes) -> bytes:
    """The same model file in every process: skops names parts by their place in memory."""
    manifest, parts = _unpacked(data)
    manifest["date"] = "2026-01-01T00:00:00+00:00"
    known: dict[bytes, bytes] = {}

    def number(match: re.Match[bytes]) -> bytes:
        return known.setdefault(match[0], str(1000 + len(known)).encode())

    place = re.compile(rb"(?<![\d.])\d{12,}(?!\d)")
    schema = place.sub(number, parts.pop("schema.json"))
    names = {name: place.sub(number, name.encode()).decode() for name in parts}
    return _packed(manifest, {"schema.json": schema, **{names[each]: parts[each] for each in parts}})


@functools.cache
def table_model() -> Any:
    return fit_table(table(), "y", estimator=small_search(), cv=2)


@functools.cache
def expected(name: str) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.aucmax"
        path.write_bytes(models()[name])
        return scores_of(load_model(path))


@functools.cache
def tables() -> dict[str, bytes]:
    """Tables by the name of their file."""
    frame, text = table(), table().write_csv().encode()
    libsvm = "".join(
        f"{1 if up else -1} " + " ".join(f"{i + 1}:{value:.3f}" for i, value in enumerate(row)) + "\n"
        for row, up in zip(X, Y, strict=True)
    ).encode()
    out = {
        "t.csv": text,
        "t.tsv": frame.write_csv(separator="\t").encode(),
        "t.csv.gz": gzip.compress(text),
        "t.csv.bz2": bz2.compress(text),
        "t.csv.xz": lzma.compress(text),
        "t.libsvm": libsvm,
        "t.libsvm.gz": gzip.compress(libsvm),
    }
    writers: dict[str, Callable[[io.BytesIO], Any]] = {
        "t.parquet": frame.write_parquet,
        "t.arrow": frame.write_ipc,
        "s.arrow": frame.write_ipc_stream,
    }
    for name, write in writers.items():
        buffer = io.BytesIO()
        write(buffer)
        out[name] = buffer.getvalue()
    return out


def scores_of(model: Any) -> np.ndarray:
    rows = table() if hasattr(model, "columns_") else X
    found: np.ndarray = model.decision_function(rows)
    return found


def case(number: int, seed: int) -> Case:
    """Model files, tables and LIBSVM files in turn."""
    rng = np.random.default_rng([seed, number])
    kinds = (
        _mutated_model,
        _mutated_table,
        _inner_model,
        _mutated_table,
        _crafted_model,
        _mutated_table,
    )
    name, run = (_checkpoint if number % 50 == 0 else kinds[number % len(kinds)])(rng)
    return Case(name, functools.partial(_guarded, run), limit=30.0)


def _guarded(run: Callable[[Path], str]) -> str:
    """Run in a folder of its own, in which nothing but the file may be afterwards."""
    with tempfile.TemporaryDirectory(prefix="aucmax-files-") as folder:
        place = Path(folder)
        outcome = run(place)
        if (place / "canary").exists():
            raise Violation("code of the file has run: it has made the file canary")
        return outcome


def _refusal(error: BaseException) -> str:
    """The outcome of an error, if it is one of those promised."""
    text = str(error)
    if not isinstance(error, ValueError | TypeError) and not isinstance(error, MemoryError | OSError):
        raise error
    if not text.strip() or "\n" in text.strip() or len(text) > 1000:
        raise Violation(f"{type(error).__name__} with no clear sentence: {text[:1500]!r}") from error
    return "refused"


def _change(data: bytes, changes: Any, rng: Random) -> tuple[str, bytes]:
    chosen = [changes[int(rng.integers(len(changes)))] for _ in range(int(rng.integers(1, 3)))]
    for change in chosen:
        data = change(data, rng)
    return " and ".join(change.__name__ for change in chosen), data


# Model files


def _mutated_model(rng: Random) -> tuple[str, Callable[[Path], str]]:
    """The file as a whole: its checksum tells, so what loads scores as before."""
    name = list(models())[int(rng.integers(len(models())))]
    how, data = _change(models()[name], BYTES, rng)

    def run(folder: Path) -> str:
        path = folder / "m.aucmax"
        path.write_bytes(data)
        try:
            read_manifest(path)
            found = scores_of(load_model(path))
        except Exception as error:
            return _refusal(error)
        if not np.array_equal(found, expected(name)):
            raise Violation(f"the scores differ by up to {np.abs(found - expected(name)).max()}")
        return "same"

    return f"{name} model file, {how}", run


def _inner_model(rng: Random) -> tuple[str, Callable[[Path], str]]:
    """A member of the model with the checksum made anew, as a file that someone has crafted."""
    name = list(models())[int(rng.integers(len(models())))]
    manifest, parts = _unpacked(models()[name])
    member = list(parts)[int(rng.integers(len(parts)))]
    changes = TEXT if member.endswith(".json") else BYTES
    how, parts[member] = _change(parts[member], changes, rng)
    if rng.random() < 0.3:
        how_manifest, text = _change(json.dumps(manifest).encode(), TEXT, rng)
        how += f", manifest {how_manifest}"
        data = _packed(text, parts)
    else:
        data = _packed(manifest, parts)
    return f"{name} model, its {member}: {how}", functools.partial(_loads_or_not, data)


def _crafted_model(rng: Random) -> tuple[str, Callable[[Path], str]]:
    """A node of the model's schema that asks for code, or is of another kind than it should be."""
    name = list(models())[int(rng.integers(len(models())))]
    manifest, parts = _unpacked(models()[name])
    schema = json.loads(parts["schema.json"])
    nodes: list[dict[str, Any]] = []
    _collect(schema, nodes)
    node = nodes[int(rng.integers(len(nodes)))]
    other = nodes[int(rng.integers(len(nodes)))]
    code = CODE[int(rng.integers(len(CODE)))]
    module, _, last = code.rpartition(".")
    ways = {
        f"of type {code}": {"__module__": module, "__class__": last},
        f"reduced by {code}": {
            "__module__": module,
            "__class__": last,
            "__loader__": "ReduceNode",
            "__reduce__": {"args": {"__loader__": "TupleNode", "content": []}},
        },
        f"a function {code}": {
            "__loader__": "FunctionNode",
            "content": {"module_path": module, "function": last},
        },
        f"a type {code}": {"__loader__": "TypeNode", "__module__": module, "__class__": last},
        "a copy of another node": dict(other),
        "without its content": {"content": None},
        "with another loader": {"__loader__": other["__loader__"]},
        "a cycle": {"__loader__": "CachedNode", "__id__": schema.get("__id__", 1)},
    }
    how = list(ways)[int(rng.integers(len(ways)))]
    node.update(ways[how])
    try:
        parts["schema.json"] = json.dumps(schema).encode()
    except (ValueError, RecursionError):  # a node within itself
        parts["schema.json"] = b"{}"
    return f"{name} model, a node {how}", functools.partial(_loads_or_not, _packed(manifest, parts))


def _loads_or_not(data: bytes, folder: Path) -> str:
    path = folder / "m.aucmax"
    path.write_bytes(data)
    try:
        read_manifest(path)
        found = scores_of(load_model(path))
    except Exception as error:
        return _refusal(error)
    if not np.isfinite(found).all():
        raise Violation("scores are not finite")
    return "scored"


def _unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as outer:
        manifest: dict[str, Any] = json.loads(outer.read("manifest.json"))
        model = outer.read("model.skops")
    with zipfile.ZipFile(io.BytesIO(model)) as inner:
        return manifest, {name: inner.read(name) for name in inner.namelist()}


def _packed(manifest: dict[str, Any] | bytes, parts: dict[str, bytes]) -> bytes:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    if isinstance(manifest, dict):
        digest = hashlib.sha256(inner.getvalue()).hexdigest()
        manifest = json.dumps({**manifest, "sha256": digest}).encode()
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as file:
        file.writestr("manifest.json", manifest)
        file.writestr("model.skops", inner.getvalue())
    return outer.getvalue()


def _collect(value: Any, nodes: list[dict[str, Any]]) -> None:
    if isinstance(value, dict):
        if "__loader__" in value:
            nodes.append(value)
        for each in value.values():
            _collect(each, nodes)
    elif isinstance(value, list):
        for each in value:
            _collect(each, nodes)


# Tables, LIBSVM files and checkpoints


def _mutated_table(rng: Random) -> tuple[str, Callable[[Path], str]]:
    name = list(tables())[int(rng.integers(len(tables())))]
    data = tables()[name]
    unpack = {"gz": gzip, "bz2": bz2, "xz": lzma}.get(name.rsplit(".", 1)[-1])
    if unpack is not None and rng.random() < 0.5:  # packed again, so that its checksum holds
        how, text = _change(unpack.decompress(data), TEXT, rng)
        data = unpack.compress(text)
    else:
        text_like = name.rsplit(".", 1)[-1] in ("csv", "tsv", "libsvm")
        how, data = _change(data, TEXT if text_like else BYTES, rng)
    use = ("read", "batches", "score")[int(rng.integers(3))]

    def run(folder: Path) -> str:
        path = folder / name
        path.write_bytes(data)
        try:
            return _use_table(path, use)
        except Exception as error:
            return _refusal(error)

    return f"{name}, {how}, {use}", run


def _use_table(path: Path, use: str) -> str:
    column_names(path)
    if use == "batches":
        schema = None if "libsvm" in path.name else table_model().reading_schema
        list(table_batches(path, 30, schema=schema))
        return "read"
    frame = read_table(path)
    if use == "score" and "libsvm" not in path.name:
        if not np.isfinite(table_model().decision_function(frame)).all():
            raise Violation("scores are not finite")
        return "scored"
    return "read"


@functools.cache
def checkpoint_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.npz"
        made = Checkpoint(path, {"C": "1"})
        made.note("state", {"a": np.arange(30.0), "b": [1, "x", None]})
        made.write()
        return path.read_bytes()


def _checkpoint(rng: Random) -> tuple[str, Callable[[Path], str]]:
    how, data = _change(checkpoint_file(), BYTES, rng)

    def run(folder: Path) -> str:
        path = folder / "c.npz"
        path.write_bytes(data)
        try:
            Checkpoint(path, {"C": "1"}).recall("state")
        except Exception as error:
            return _refusal(error)
        return "read"

    return f"checkpoint, {how}", run
