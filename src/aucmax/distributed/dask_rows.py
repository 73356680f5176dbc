"""Rows of a Dask array or data frame: checked, scaled and mapped on the workers that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils import column_or_1d
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import validate_data

from aucmax.distributed.client import default_client, gathered, sending
from aucmax.distributed.dask_operator import (
    DaskOperator,
    by_part,
    driver_bytes,
    make_piece,
    rows_of_parts,
    stacked,
)
from aucmax.features.landmark_map import FeatureMap
from aucmax.operators.placement import Sizes
from aucmax.pairs import Floats, Indices
from aucmax.rows.interface import Block, is_sparse, new_standard_scaler, slices
from aucmax.rows.sources import is_dask
from aucmax.rows.stored import width_after
from aucmax.rows.validation import check_rows
from aucmax.runtime.memory import Budget, parse_bytes

Array = npt.NDArray[Any]

#: The share of the workers' memory that rows and kernel values may take: above it Dask writes to disk.
_WORKER_SHARE = 0.6

#: A piece takes at most this share of a worker's memory, so that another worker can take it over.
_PIECE_SHARE = 0.1

#: The time of a pass that recomputes kernel values, relative to one over values in memory.
_RECOMPUTING = 10.0

#: Rows that are brought here at a time when all of them are read.
_READ_ROWS = 65_536


def take_over(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[DaskRows, Array, Any]:
    """Check a Dask collection on its workers, and bring labels and weights here."""
    client = default_client()
    rows = DaskRows.checked(client, estimator, X)
    y, sample_weight = (_brought(client, part) for part in (y, sample_weight))
    if y is not None:
        y = column_or_1d(y, warn=True)
        if y.shape[0] != rows.shape[0]:
            raise ValueError(
                f"y has {y.shape[0]} entries for {rows.shape[0]} rows of X: each row needs one label."
            )
    return rows, y, sample_weight


def lazily(model: Any, method: str, X: Any) -> Any:
    """Return the result of ``method`` on a Dask collection as a Dask array, not computed yet."""
    from dask import delayed

    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1] if X.ndim == 2 else 'no'} columns, but {type(model).__name__} was "
            f"fitted on {model.n_features_in_}."
        )
    dtype = model.classes_.dtype if method == "predict" else np.dtype(np.float64)
    wide = method != "predict" and model.classes_.size > 2
    meta = np.empty((0, model.classes_.size) if wide else 0, dtype)
    model = delayed(model, pure=True)
    if hasattr(X, "map_partitions"):
        return X.map_partitions(_predicted, model, method, meta, meta=meta)
    X = X.rechunk({1: -1})
    shape: dict[str, Any] = {"drop_axis": 1}
    if wide:
        shape = {"chunks": (X.chunks[0], (meta.shape[1],))}
    return X.map_blocks(_predicted, model, method, meta, meta=meta, dtype=dtype, **shape)


class DaskRows:
    """Checked rows in partitions on workers, scaled when they are used; see ``Rows``."""

    in_memory, remote, nbytes = False, True, 0

    def __init__(
        self,
        client: Any,
        parts: Sequence[Any],
        lengths: Sequence[int],
        n_features: int,
        dtype: npt.DTypeLike,
        sparse: bool = False,
        scalers: tuple[Any, ...] = (),
    ) -> None:
        present = [i for i, length in enumerate(lengths) if length]
        self._client, self.sparse = client, sparse
        self._scalers, self._n_features = scalers, n_features
        self._parts, self._lengths = [parts[i] for i in present], [int(lengths[i]) for i in present]
        self._starts = np.concatenate([[0], np.cumsum(self._lengths, dtype=np.intp)])
        self.shape = (int(self._starts[-1]), width_after(scalers, n_features))
        self.dtype = np.dtype(dtype)

    @classmethod
    def checked(cls, client: Any, estimator: Any, X: Any) -> DaskRows:
        """Check a Dask array or data frame, and record its columns on ``estimator``."""
        names = [*X.columns] if hasattr(X, "columns") else None
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and columns; got {X.ndim}.")
        if names is None and not np.isfinite(X.shape[1]):
            raise ValueError(
                "The number of columns of X is unknown: call X.compute_chunk_sizes() first."
            )
        dtypes = {X.dtype} if names is None else {*X.dtypes}
        dtype = np.float32 if dtypes == {np.dtype(np.float32)} else np.float64
        if names is None:
            X, width = X.rechunk({1: -1}), int(X.shape[1])
            estimator.n_features_in_ = width
        else:
            validate_data(estimator, X._meta, skip_check_array=True)
            width = len(names)
        with sending():
            raw = client.compute(list(np.ravel(X.to_delayed())))
            numbers = range(len(raw))
            parts = client.map(
                _checked, raw, numbers, names=names, width=width, dtype=dtype, pure=False
            )
            del raw  # checked rows take their place
            about = gathered(client, client.map(_about, parts, pure=False))
        lengths, sparse_parts = zip(*about, strict=True)
        if not sum(lengths):
            raise ValueError("Found array with 0 sample(s): no partition of X has a row.")
        return cls(client, parts, lengths, width, dtype, any(sparse_parts))

    def _with(self, **changed: Any) -> DaskRows:
        same = {
            "parts": self._parts,
            "lengths": self._lengths,
            "dtype": self.dtype,
            "scalers": self._scalers,
            **changed,
        }
        return DaskRows(self._client, n_features=self._n_features, sparse=self.sparse, **same)

    def astype(self, dtype: npt.DTypeLike) -> DaskRows:
        return self._with(dtype=dtype)

    def scaled(self, scaler: Any) -> DaskRows:
        return self._with(scalers=(*self._scalers, scaler))

    def take(self, index: Indices) -> DaskRows:
        inside = [local for _, _, local in by_part(self._starts, index, every=True)]
        with sending():
            parts = self._client.map(_take, self._parts, inside, pure=False)
        return self._with(parts=parts, lengths=[local.size for local in inside])

    def __getitem__(self, index: Any) -> Block:
        if isinstance(index, slice):
            index = np.arange(*index.indices(self.shape[0]))
        index, prepare = np.asarray(index), self._prepare()
        if not index.size:
            return np.empty((0, self.shape[1]), self.dtype)

        def read(part: Block, local: Indices) -> Block:
            return prepare([part[local]])

        return rows_of_parts(self._client, read, self._parts, self._starts, index)

    def blocks(self, size: int | None = None) -> Iterator[tuple[slice, Block]]:
        for part in slices(self.shape[0], size or _READ_ROWS):
            yield part, self[part]

    def map(self, function: Callable[[Block], Any]) -> list[Any]:
        prepare = self._prepare()
        with sending():
            # What the function holds, such as a kernel map, goes to the cluster once.
            shared = self._client.submit(_same, function, pure=False)
            asked = self._client.map(
                lambda part, apply: apply(prepare([part])),
                self._parts,
                [shared] * len(self._parts),
                pure=False,
            )
            return list(gathered(self._client, asked))

    def standard_scaler(self, weight: Array) -> StandardScaler:
        """Return a StandardScaler as if fitted to all rows together."""
        scaler = new_standard_scaler(not self.sparse)
        mean, variance = self._moments(weight)
        count = weight.sum() / weight.max() if np.ptp(weight) else self.shape[0]
        eps = np.finfo(np.float64).eps
        # Rounding gives a constant column a little variance; StandardScaler draws the line here, too.
        constant = variance <= count * eps * variance + (count * mean * eps) ** 2
        scaler.mean_, scaler.var_, scaler.n_samples_seen_ = mean, variance, count
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(variance))
        scaler.n_features_in_ = self.shape[1]
        return scaler

    def _moments(self, weight: Array) -> tuple[Floats, Floats]:
        """Merge the weighted means and variances of the partitions."""
        prepare = self._prepare()

        def measure(part: Any, own: Array) -> tuple[Floats, Floats]:
            rows = prepare([part])
            if is_sparse(rows):
                return mean_variance_axis(rows, axis=0, weights=own.astype(rows.dtype))
            mean = own @ rows / own.sum()
            return mean, own @ (rows - mean) ** 2 / own.sum()

        # A partition whose weights are all zero has no mean.
        weights = np.split(weight, self._starts[1:-1])
        present = [i for i, own in enumerate(weights) if own.any()]
        parts, own = [self._parts[i] for i in present], [weights[i] for i in present]
        with sending():
            found = gathered(self._client, self._client.map(measure, parts, own, pure=False))
        share = np.array([each.sum() for each in own]) / weight.sum()
        means, variances = np.array([m for m, _ in found]), np.array([v for _, v in found])
        mean = share @ means
        return mean, share @ (variances + (means - mean) ** 2)

    def operator(
        self,
        feature_map: FeatureMap,
        n_problems: int = 1,
        max_memory: int | str | None = None,
        project: bool = False,
    ) -> tuple[DaskOperator, str]:
        """Return an operator with kernel values on the workers, and how these are stored."""
        n_rows, itemsize = self.shape[0], self.dtype.itemsize
        rank, held = feature_map.rank, self.shape[0] * self.shape[1] * self.dtype.itemsize
        Budget.of().require(
            f"The process that fits, for scores of {n_rows:,} rows and preconditioners of {rank:,} "
            "features,",
            driver_bytes(n_rows, rank, n_problems),
            "Run it on a larger machine, or use fewer landmarks or rows",
        )
        smallest, threads = _workers(self._client)
        total = _WORKER_SHARE * smallest * len(threads)
        left = (total if max_memory is None else min(total, parse_bytes(max_memory))) - held
        sizes = Sizes(n_rows, feature_map.width, rank, itemsize)
        storage = next(iter(sizes.fitting(left, project)), "recomputed")
        taken = sizes.held_values.get(storage, 0)
        count = max(sum(threads.values()), int(np.ceil((taken or held) / (_PIECE_SHARE * smallest))))
        pieces, lengths = self._make_pieces(feature_map, storage, count, threads)
        row_bytes = (rank if storage == "projected" else feature_map.width) * itemsize
        # A copy of some rows' values needs room in addition to all of them.
        room = int(min(n_rows, max(0.0, left - taken) / row_bytes))  # workers may have no limit
        cost = _RECOMPUTING if storage == "recomputed" else 1.0
        return DaskOperator(self._client, pieces, lengths, rank, row_bytes, cost, room), storage

    def _make_pieces(
        self, feature_map: FeatureMap, storage: str, count: int, threads: dict[str, int]
    ) -> tuple[list[Any], list[int]]:
        """Make about ``count`` pieces of kernel values, spread evenly over the workers."""
        groups, prepare = _even_groups(self._lengths, count), self._prepare()
        homes = [address for address, own in threads.items() for _ in range(own)]
        with sending():
            mapped = self._client.submit(_same, feature_map, pure=False)
            pieces = [
                self._client.submit(
                    make_piece,
                    [self._parts[i] for i in group],
                    prepare,
                    mapped,
                    storage,
                    workers=homes[number * len(homes) // len(groups)],
                    allow_other_workers=True,  # should that one be lost
                    pure=False,
                )
                for number, group in enumerate(groups)
            ]
        return pieces, [sum(self._lengths[i] for i in group) for group in groups]

    def _prepare(self) -> Callable[[Sequence[Any]], Any]:
        scalers, dtype = self._scalers, self.dtype

        def prepare(parts: Sequence[Any]) -> Any:
            rows = stacked(parts)
            for scaler in scalers:
                rows = scaler.transform(rows)
            return rows.astype(dtype, copy=False)

        return prepare


def _same(value: Any) -> Any:
    """Return the value: a task that holds it on the cluster."""
    return value


def _take(part: Any, index: Indices) -> Any:
    return part[index]


def _about(part: Any) -> tuple[int, bool]:
    return part.shape[0], is_sparse(part)


def _predicted(rows: Any, model: Any, method: str, nothing: Array) -> Array:
    return getattr(model, method)(rows) if rows.shape[0] else nothing


def _checked(part: Any, number: int, names: list[Any] | None, width: int, dtype: npt.DTypeLike) -> Any:
    """Check one partition; an error names its number."""
    own = [*part.columns] if hasattr(part, "columns") else None
    if own != names:
        raise ValueError(
            f"Partition {number} of X has the columns {own}, but X as a whole {names}: all partitions "
            "must have the same, in the same order."
        )
    if part.ndim != 2 or part.shape[1] != width:
        raise ValueError(
            f"Partition {number} of X has the shape {part.shape}, but X as a whole {width} columns: "
            "all partitions must have the same."
        )
    if not part.shape[0]:
        return np.empty((0, width), dtype)
    try:
        rows = check_rows(BaseEstimator(), part)
    except ValueError as error:
        raise ValueError(f"Partition {number} of X: {error}") from None
    return rows.astype(dtype, copy=False)


def _brought(client: Any, values: Any) -> Any:
    """Bring labels or weights here if they are on the cluster."""
    if not is_dask(values):
        return values
    with sending():
        return gathered(client, client.compute(values))


def _even_groups(lengths: Sequence[int], count: int) -> list[list[int]]:
    """Group neighbouring partitions into at most ``count`` groups of about as many rows each.

    >>> _even_groups([10, 10, 10, 10, 40], 2)
    [[0, 1, 2, 3], [4]]
    """
    middle = np.cumsum(lengths) - 0.5 * np.asarray(lengths)
    number = np.minimum(count - 1, middle * count // max(1, sum(lengths))).astype(np.intp)
    return [np.flatnonzero(number == i).tolist() for i in np.unique(number)]


def _workers(client: Any) -> tuple[float, dict[str, int]]:
    """Return the memory of the smallest worker in bytes, and the threads of each by its address."""
    threads = client.nthreads()
    if not threads:
        client.wait_for_workers(1, timeout=30)
        threads = client.nthreads()
    limits = [w["memory_limit"] or np.inf for w in client.scheduler_info()["workers"].values()]
    return float(min(limits)), threads  # Dask lists only some of very many workers
