"""The paper's data sets, read from a mirror folder, split by the paper's protocol.

The folder is ``AUCMAX_DATA``; files may be bare or compressed (.gz, .bz2, .xz). Nothing is ever
downloaded here.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_OPENERS: dict[str, Callable] = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class DataMissingError(FileNotFoundError):
    """A data file is not in the mirror folder."""


def folder() -> Path:
    root = os.environ.get("AUCMAX_DATA")
    if not root:
        raise DataMissingError(
            "AUCMAX_DATA is not set: point it at the folder that holds the data files"
        )
    return Path(root)


def find(name: str) -> Path:
    for suffix in _OPENERS:
        path = folder() / (name + suffix)
        if path.exists():
            return path
    raise DataMissingError(f"no {name}[.gz|.bz2|.xz] in {folder()}")


def _read(name: str) -> bytes:
    path = find(name)
    opener = _OPENERS.get(path.suffix, open)
    with opener(path, "rb") as file:
        return file.read()


def _csv(name: str, separator: str = ","):
    import polars as pl

    return pl.read_csv(_read(name), has_header=False, separator=separator, infer_schema_length=None)


def _libsvm(name: str, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(_read(name)), n_features=n_features)
    return X.toarray().astype(np.float32), y


@dataclass(frozen=True)
class Split:
    """Training and test part of one data set; ``y`` is 1 for the positive class."""

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def head(self, rows: int, seed: int = 0) -> Split:
        """At most ``rows`` random training rows (the paper's cap of 80,000)."""
        if len(self.y_train) <= rows:
            return self
        keep = np.random.default_rng(seed).permutation(len(self.y_train))[:rows]
        return Split(self.name, self.X_train[keep], self.y_train[keep], self.X_test, self.y_test)


def _spambase():
    table = _csv("spambase.data").to_numpy()
    return table[:, :-1], table[:, -1] == 1


def _magic04():
    table = _csv("magic04.data")
    return table[:, :-1].to_numpy(), (table[:, -1] == "h").to_numpy()


def _skin():
    table = _csv("Skin_NonSkin.txt", "\t").to_numpy()
    return table[:, :3], table[:, 3] == 1


def _covtype():
    table = _csv("covtype.data").to_numpy()
    return table[:, :-1], table[:, -1] >= 4


def _connect4():
    table = _csv("connect-4.data")
    cells = np.column_stack([(table[:, c] == v).to_numpy() for c in range(42) for v in "box"])
    return cells, (table[:, 42] == "loss").to_numpy()


def _cod_rna():
    parts = [_libsvm(name, 8) for name in ("cod-rna", "cod-rna.t")]
    return np.vstack([p[0] for p in parts]), np.concatenate([p[1] for p in parts]) > 0


_RANDOM_SPLIT = {
    "spambase": _spambase,
    "magic04": _magic04,
    "skin": _skin,
    "covtype": _covtype,
    "connect-4": _connect4,
    "cod-rna": _cod_rna,
}
_GIVEN_SPLIT = {
    "usps": ("usps", "usps.t", 256, lambda y: y >= 6),
    "ijcnn1": ("ijcnn1", "ijcnn1.t", 22, lambda y: y > 0),
}
NAMES = (*_RANDOM_SPLIT, *_GIVEN_SPLIT)


def load(name: str, seed: int = 0) -> Split:
    """Read one data set in float32 and split it: as given, or 80/20 at random by ``seed``."""
    if name in _GIVEN_SPLIT:
        train, test, d, positive = _GIVEN_SPLIT[name]
        (X, y), (X_test, y_test) = _libsvm(train, d), _libsvm(test, d)
        return Split(name, X, positive(y).astype(int), X_test, positive(y_test).astype(int))
    X, y = _RANDOM_SPLIT[name]()
    X, y = np.ascontiguousarray(X, dtype=np.float32), y.astype(int)
    order = np.random.default_rng(seed).permutation(len(y))
    cut = int(0.8 * len(y))
    train, test = order[:cut], order[cut:]
    return Split(name, X[train], y[train], X[test], y[test])
