"""A data set in memory, split by the paper's protocol or by the one that stands in for it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from aucmax.paper.data.downloads import DataMissingError, DownloadError, fetch_files, folders, require
from aucmax.paper.data.formats import read_rows
from aucmax.paper.data.registry import DataFile, Dataset, find_dataset


@dataclass(frozen=True)
class Split:
    """Training and test part of one data set; ``y`` is 1 for the positive class.

    ``substitute`` is empty, or says which protocol stands in for the paper's.
    """

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    substitute: str = ""

    def head(self, rows: int, seed: int = 0) -> Split:
        """At most ``rows`` random training rows (the paper's cap of 80,000)."""
        if len(self.y_train) <= rows:
            return self
        keep = np.random.default_rng(seed).permutation(len(self.y_train))[:rows]
        return replace(self, X_train=self.X_train[keep], y_train=self.y_train[keep])


def load_dataset(
    name: str | Dataset,
    *,
    seed: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> Split:
    """Read one data set in float32 and split it: as given, or 80/20 at random by ``seed``.

    Parameters
    ----------
    name : str or Dataset
        A name in ``DATASETS``, or a data set of your own.
    seed : int
        Seed of the random split; a given split does not use it.
    data_dir : path, optional
        Mirror folder to look in first; ``AUCMAX_DATA`` if not given. The cache comes after it.
    download : bool
        Whether to download missing files into the cache.

    Returns
    -------
    Split
        Where not all of the paper's files are to be had, but those of the data set's substitute
        protocol are, that one is used and ``Split.substitute`` says so.
    """
    dataset = find_dataset(name)
    places = folders(data_dir)
    try:
        if download:
            fetch_files(dataset, places)
        paths = require(dataset, dataset.files, places)
    except (DataMissingError, DownloadError):
        if dataset.substitute is None:
            raise
        try:
            paths = require(dataset, dataset.substitute.files, places)
        except DataMissingError:
            paths = {}
        if not paths:
            raise
        X, codes = _join(dataset, dataset.substitute.files, paths)
        return _random_split(dataset, X, codes, seed, dataset.substitute.sentence)
    X, codes = _join(dataset, dataset.train, paths)
    if not dataset.test:
        return _random_split(dataset, X, codes, seed)
    X_test, test_codes = _join(dataset, dataset.test, paths)
    positive = _positive(dataset, np.concatenate([codes, test_codes]))
    y, y_test = (np.isin(part, positive).astype(int) for part in (codes, test_codes))
    return Split(dataset.name, X, y, X_test, y_test)


def _join(
    dataset: Dataset, files: tuple[DataFile, ...], paths: dict[DataFile, Path]
) -> tuple[np.ndarray, np.ndarray]:
    parts = [read_rows(paths[file], dataset, file) for file in files]
    if len(parts) == 1:
        return parts[0]
    return np.vstack([X for X, _ in parts]), np.concatenate([codes for _, codes in parts])


def _positive(dataset: Dataset, codes: np.ndarray) -> list[int]:
    """The positive classes, by place; where the paper names none, the one that gives its ratio."""
    if dataset.positive:
        return [dataset.classes.index(label) for label in dataset.positive]
    counts = np.bincount(codes, minlength=len(dataset.classes))
    ratios = (codes.size - counts) / np.maximum(counts, 1)
    return [int(np.abs(np.log(ratios / dataset.ratio)).argmin())]


def _random_split(
    dataset: Dataset, X: np.ndarray, codes: np.ndarray, seed: int, substitute: str = ""
) -> Split:
    y = np.isin(codes, _positive(dataset, codes)).astype(int)
    order = np.random.default_rng(seed).permutation(len(y))
    cut = int(0.8 * len(y))
    train, test = order[:cut], order[cut:]
    return Split(dataset.name, X[train], y[train], X[test], y[test], substitute)
