"""Rows of a Dask array or data frame: checked, standardised and mapped where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils import column_or_1d
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import validate_data

from aucmax.distributed.client import default_client, gathered, sending
from aucmax.distributed.dask_operator import DaskOperator, by_part, driver_bytes, make_piece
from aucmax.operators.placement import pays_to_project
from aucmax.pairs import Floats, Indices
from aucmax.rows.blocked import width_after
from aucmax.rows.validation import check_rows, is_dask, is_sparse
from aucmax.runtime.memory import NoMemoryError, available_bytes, format_bytes, parse_bytes

Array = npt.NDArray[Any]

#: Of the workers' memory, what rows and kernel values may take: above it Dask writes to disk.
_WORKER_SHARE = 0.6

#: A piece takes at most this share of a worker's memory, so that another worker can take it over.
_PIECE_SHARE = 0.1

#: A pass that makes kernel values anew, by one over values in memory.
_RECOMPUTING = 10.0


def take_over(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> tuple[DaskRows, Array, Any]:
    """A Dask collection as checked rows on workers, with labels and weights brought here."""
    if not getattr(estimator, "_takes_dask", False):
        raise ValueError(
            f"{type(estimator).__name__} does not fit Dask collections; KernelAUCClassifier and "
            "KernelAUCClassifierCV do. Pass X.compute() if it fits into memory."
        )
    if estimator.solver == "sgd":
        raise ValueError(
            'solver="sgd" jumps about in rows that it holds in memory, which Dask collections are not '
            'meant for: use solver="newton", or SGDAUCClassifier.partial_fit on one partition after '
            "the other."
        )
    client = default_client()
    rows = DaskRows.checked(client, estimator, X)
    y, sample_weight = (_brought(client, part) for part in (y, sample_weight))
    if y is not None:
        y = column_or_1d(y, warn=True)
        if y.shape[0] != rows.shape[0]:
            raise ValueError(f"y has {y.shape[0]} entries for {rows.shape[0]} rows of X.")
    return rows, y, sample_weight


def lazily(model: Any, method: str, X: Any) -> Any:
    """What ``method`` gives for a Dask collection, as a Dask array that is computed when asked for."""
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
    """Checked rows in partitions on workers, standardised when they are used.

    As an array to those who take some rows of it; ``remote`` tells the rest to ask for products.
    """

    remote = True

    def __init__(
        self,
        client: Any,
        parts: Sequence[Any],
        lengths: Sequence[int],
        n_features: int,
        dtype: npt.DTypeLike,
        is_sparse: bool = False,
        scalers: tuple[Any, ...] = (),
    ) -> None:
        kept = [i for i, length in enumerate(lengths) if length]
        self._client, self.is_sparse = client, is_sparse
        self._scalers, self._n_features = scalers, n_features
        self._parts, self._lengths = [parts[i] for i in kept], [int(lengths[i]) for i in kept]
        self._starts = np.concatenate([[0], np.cumsum(self._lengths, dtype=np.intp)])
        self.shape = (int(self._starts[-1]), width_after(scalers, n_features))
        self.dtype = np.dtype(dtype)

    @classmethod
    def checked(cls, client: Any, estimator: Any, X: Any) -> DaskRows:
        """Of a Dask array or data frame; ``estimator`` learns its columns."""
        names = [*X.columns] if hasattr(X, "columns") else None
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and columns; got {X.ndim}.")
        if names is None and not np.isfinite(X.shape[1]):
            raise ValueError(
                "X does not tell how many columns it has: call X.compute_chunk_sizes() first."
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
        }
        return DaskRows(
            self._client,
            n_features=self._n_features,
            is_sparse=self.is_sparse,
            **{**same, **changed},
        )

    def astype(self, dtype: npt.DTypeLike, copy: bool = True) -> DaskRows:
        return self._with(dtype=dtype)

    def scaled_by(self, scaler: Any) -> DaskRows:
        return self._with(scalers=(*self._scalers, scaler))

    def taken(self, index: Indices) -> DaskRows:
        """Some rows alone, in order; they stay where they are."""
        inside = [local for _, _, local in by_part(self._starts, index, every=True)]
        with sending():
            parts = self._client.map(_take, self._parts, inside, pure=False)
        return self._with(parts=parts, lengths=[local.size for local in inside])

    def __getitem__(self, index: Any) -> Array:
        """Some rows, brought here."""
        if isinstance(index, slice):
            index = np.arange(*index.indices(self.shape[0]))
        split = by_part(self._starts, np.asarray(index))
        if not split:
            return np.empty((0, self.shape[1]), self.dtype)
        parts = [self._parts[number] for number, _, _ in split]
        prepare = self._prepare()
        inside = [local for _, _, local in split]
        with sending():
            asked = self._client.map(
                lambda part, local: prepare([_take(part, local)]), parts, inside, pure=False
            )
        order = np.argsort(np.concatenate([place for _, place, _ in split]))
        found: Array = stacked(gathered(self._client, asked))[order]
        return found

    def map_parts(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for the rows of each partition, brought here."""
        prepare = self._prepare()
        with sending():
            asked = self._client.map(lambda part: function(prepare([part])), self._parts, pure=False)
            return list(gathered(self._client, asked))

    def moments(self, weight: Array) -> tuple[Floats, Floats]:
        """Weighted mean and variance of every column, each partition's merged."""
        prepare = self._prepare()

        def measure(part: Any, own: Array) -> tuple[Floats, Floats]:
            rows = prepare([part])
            if is_sparse(rows):
                return mean_variance_axis(rows, axis=0, weights=own.astype(rows.dtype))
            mean = own @ rows / own.sum()
            return mean, own @ (rows - mean) ** 2 / own.sum()

        # A partition whose rows all weigh nothing has no mean.
        slices = np.split(weight, self._starts[1:-1])
        present = [i for i, own in enumerate(slices) if own.any()]
        parts, own = [self._parts[i] for i in present], [slices[i] for i in present]
        with sending():
            found = gathered(self._client, self._client.map(measure, parts, own, pure=False))
        share = np.array([each.sum() for each in own]) / weight.sum()
        means, variances = np.array([m for m, _ in found]), np.array([v for _, v in found])
        mean = share @ means
        return mean, share @ (variances + (means - mean) ** 2)

    def scaler(self, weight: Array) -> StandardScaler:
        """What ``StandardScaler().fit`` would be of all rows together."""
        scaler = StandardScaler(with_mean=not self.is_sparse).set_output(transform="default")
        mean, variance = self.moments(weight)
        count = weight.sum() / weight.max() if np.ptp(weight) else self.shape[0]
        eps = np.finfo(np.float64).eps
        # Rounding gives a constant column a little variance; StandardScaler draws the line here, too.
        constant = variance <= count * eps * variance + (count * mean * eps) ** 2
        scaler.mean_, scaler.var_, scaler.n_samples_seen_ = mean, variance, count
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(variance))
        scaler.n_features_in_ = self.shape[1]
        return scaler

    def linear(self, feature_map: Any, coef: Array) -> Array:
        """``feature_map.linear`` of all rows."""
        prepare = self._prepare()

        def score(part: Any, mapped: Any) -> Array:
            out: Array = mapped.linear(prepare([part]), coef)
            return out

        with sending():
            mapped = self._client.submit(same, feature_map, pure=False)
            asked = self._client.map(score, self._parts, [mapped] * len(self._parts), pure=False)
            return np.concatenate(gathered(self._client, asked))

    def operator(
        self,
        feature_map: Any,
        n_columns: int = 1,
        max_memory: int | str | None = None,
        project: bool = False,
    ) -> tuple[DaskOperator, str]:
        """Rows under a map, with kernel values on the workers; and how these are kept."""
        n_rows, itemsize = self.shape[0], self.dtype.itemsize
        width, rank = feature_map.width, feature_map.rank
        _check_driver(n_rows, rank, n_columns)
        smallest, threads = _workers(self._client)
        total = smallest * len(threads)
        if max_memory is not None:
            total = min(total, parse_bytes(max_memory) / _WORKER_SHARE)
        left = _WORKER_SHARE * total - n_rows * self.shape[1] * itemsize
        sizes = {"memory": n_rows * width * itemsize, "projected": n_rows * rank * itemsize}
        wanted = "projected" if project or pays_to_project(width, rank) else "memory"
        fitting = [name for name in (wanted, "memory", "projected") if sizes[name] <= left]
        place = fitting[0] if fitting else "recomputed"
        size = sizes.get(place, n_rows * self.shape[1] * itemsize)
        count = max(sum(threads.values()), int(np.ceil(size / (_PIECE_SHARE * smallest))))
        groups = _even_groups(self._lengths, count)
        prepare = self._prepare()
        with sending():
            mapped = self._client.submit(same, feature_map, pure=False)
            # Each worker gets its share: where partitions happen to be, it might be all or none.
            homes = [address for address, own in threads.items() for _ in range(own)]
            pieces = [
                self._client.submit(
                    make_piece,
                    [self._parts[i] for i in group],
                    prepare,
                    mapped,
                    place,
                    workers=homes[number * len(homes) // len(groups)],
                    allow_other_workers=True,  # should that one be lost
                    pure=False,
                )
                for number, group in enumerate(groups)
            ]
        lengths = [sum(self._lengths[i] for i in group) for group in groups]
        cost = _RECOMPUTING if place == "recomputed" else 1.0
        row_bytes = (rank if place == "projected" else width) * itemsize
        # A copy of some rows' values is made beside all of them.
        spare = left - (0 if place == "recomputed" else sizes[place])
        room = int(min(n_rows, max(0.0, spare) / row_bytes))  # workers may have no limit
        return DaskOperator(self._client, pieces, lengths, rank, row_bytes, cost, room), place

    def _prepare(self) -> Callable[[Sequence[Any]], Any]:
        scalers, dtype = self._scalers, self.dtype

        def prepare(parts: Sequence[Any]) -> Any:
            rows = stacked(parts)
            for scaler in scalers:
                rows = scaler.transform(rows)
            return rows.astype(dtype, copy=False)

        return prepare


def same(value: Any) -> Any:
    return value


def _take(part: Any, index: Indices) -> Any:
    return part[index]


def _about(part: Any) -> tuple[int, bool]:
    return part.shape[0], is_sparse(part)


def stacked(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if is_sparse(parts[0]) else np.concatenate(parts)


def _predicted(rows: Any, model: Any, method: str, nothing: Array) -> Array:
    return getattr(model, method)(rows) if rows.shape[0] else nothing


def _checked(part: Any, number: int, names: list[Any] | None, width: int, dtype: npt.DTypeLike) -> Any:
    """One partition as rows of numbers; what is wrong with it is told with its number."""
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
    """One number or label a row, here."""
    if not is_dask(values):
        return values
    with sending():
        return gathered(client, client.compute(values))


def _even_groups(lengths: Sequence[int], count: int) -> list[list[int]]:
    """Neighbours together, in at most ``count`` groups of about as many rows each.

    >>> _even_groups([10, 10, 10, 10, 40], 2)
    [[0, 1, 2, 3], [4]]
    """
    middle = np.cumsum(lengths) - 0.5 * np.asarray(lengths)
    number = np.minimum(count - 1, middle * count // max(1, sum(lengths))).astype(np.intp)
    return [np.flatnonzero(number == i).tolist() for i in np.unique(number)]


def _workers(client: Any) -> tuple[float, dict[str, int]]:
    """Memory of the smallest worker in bytes, and the threads of each by its address."""
    threads = client.nthreads()
    if not threads:
        client.wait_for_workers(1, timeout=30)
        threads = client.nthreads()
    limits = [w["memory_limit"] or np.inf for w in client.scheduler_info()["workers"].values()]
    return float(min(limits)), threads  # limits of some, where there are very many


def _check_driver(n_rows: int, rank: int, n_columns: int) -> None:
    needed, free = driver_bytes(n_rows, rank, n_columns), available_bytes()
    if free is not None and needed > free:
        raise NoMemoryError(
            f"The process that fits needs {format_bytes(needed)} for scores of {n_rows:,} rows and "
            f"preconditioners of {rank:,} features, and {format_bytes(free)} is free: run it on a "
            "larger machine, or use fewer landmarks or rows."
        )
