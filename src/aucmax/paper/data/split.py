"""A data set in memory, split by the paper's protocol or by its substitute."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from aucmax.paper.data import downloads
from aucmax.paper.data.downloads import DownloadError
from aucmax.paper.data.registry import DataFile, Dataset, find_dataset


class DataMissingError(FileNotFoundError):
    """A data file is neither in the mirror folder nor in the cache."""


@dataclass(frozen=True)
class Split:
    """The training and test rows of one data set; ``y`` is 1 for the positive class.

    ``substitute`` is empty, or describes the protocol that replaces the paper's.
    """

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    substitute: str = ""

    def head(self, rows: int, seed: int = 0) -> Split:
        """Return a split with at most ``rows`` random training rows (the paper's cap of 80,000)."""
        if len(self.y_train) <= rows:
            return self
        chosen = np.random.default_rng(seed).permutation(len(self.y_train))[:rows]
        return replace(self, X_train=self.X_train[chosen], y_train=self.y_train[chosen])


def load_dataset(
    name: str | Dataset,
    *,
    seed: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> Split:
    """Read one data set in float32 and split it: as published, or 80/20 at random.

    Parameters
    ----------
    name : str or Dataset
        A name in ``DATASETS``, or a data set of your own.
    seed : int
        Seed of the random split; a published split does not use it.
    data_dir : path, optional
        Mirror folder to search before the cache; ``AUCMAX_DATA`` by default.
    download : bool
        Whether to download missing files into the cache. If some are still missing, a data set with a
        substitute protocol is split by that, and ``Split.substitute`` describes it.
    """
    dataset = find_dataset(name)
    folders = downloads.data_folders(data_dir)
    failure = None
    if download:
        try:
            downloads.fetch_files(dataset, folders)
        except DownloadError as error:
            failure = error
    state, paths = downloads.find_files(dataset, folders)
    if state == "missing":
        raise failure or _missing(dataset, paths, folders)
    if dataset.substitute and state == "substitute":
        return _random_split(dataset, *_join(dataset, paths), seed, dataset.substitute.sentence)
    X, codes = _join(dataset, {file: paths[file] for file in dataset.train})
    if not dataset.test:
        return _random_split(dataset, X, codes, seed)
    X_test, test_codes = _join(dataset, {file: paths[file] for file in dataset.test})
    positive = _positive(dataset, np.concatenate([codes, test_codes]))
    y, y_test = (np.isin(part, positive).astype(int) for part in (codes, test_codes))
    return Split(dataset.name, X, y, X_test, y_test)


def _missing(dataset: Dataset, found: Collection[DataFile], folders: list[Path]) -> DataMissingError:
    file = next(file for file in dataset.files if file not in found)
    searched = (f"{each}{'' if each.is_dir() else ' (no such folder)'}" for each in folders)
    return DataMissingError(
        f"{dataset.name} needs the file {file.name} (plain, .gz, .bz2, .xz or .Z), which is not in "
        f"{' or '.join(searched)}; run aucmax datasets fetch {dataset.name}, or set AUCMAX_DATA to the "
        "folder that holds it."
    )


def _join(dataset: Dataset, paths: dict[DataFile, Path]) -> tuple[np.ndarray, np.ndarray]:
    """Read some files of a data set and join their rows."""
    from aucmax.paper.data.formats import read_rows  # loads polars

    parts = [read_rows(path, dataset, file) for file, path in paths.items()]
    if len(parts) == 1:
        return parts[0]
    return np.vstack([X for X, _ in parts]), np.concatenate([codes for _, codes in parts])


def _positive(dataset: Dataset, codes: np.ndarray) -> list[int]:
    """Return the codes of the positive classes, or of the one class that gives the paper's ratio."""
    if dataset.positive:
        return [dataset.classes.index(label) for label in dataset.positive]
    counts = np.bincount(codes, minlength=len(dataset.classes))
    ratios = (codes.size - counts) / np.maximum(counts, 1)
    return [int(np.abs(np.log(ratios / dataset.ratio)).argmin())]


def _random_split(
    dataset: Dataset, X: np.ndarray, codes: np.ndarray, seed: int, substitute: str = ""
) -> Split:
    y = np.isin(codes, _positive(dataset, codes)).astype(int)
    cut = int(0.8 * len(y))
    train, test = np.split(np.random.default_rng(seed).permutation(len(y)), [cut])
    return Split(dataset.name, X[train], y[train], X[test], y[test], substitute)
