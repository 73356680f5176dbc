"""An operator over features that workers hold in pieces, and its need of memory and network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from aucmax.distributed.client import gathered, sending
from aucmax.features.landmark_map import FeatureMap
from aucmax.operators.interface import ALL, Operator
from aucmax.operators.placement import hold_operator, solver_bytes
from aucmax.pairs import Floats, Indices
from aucmax.rows.interface import Block, block_bytes, is_sparse

Array = npt.NDArray[Any]

#: Sums of more pieces than this are added up on workers, this many at a time.
FAN_IN = 8

#: Rows per feature that the driver may copy: the sample that a solve starts on.
SAMPLE_ROWS = 30


class DaskOperator:
    """Features in pieces on workers; see :mod:`aucmax.operators.interface`.

    Parameters
    ----------
    client : distributed.Client
    pieces : futures of pieces, in the order of the rows
    lengths : the number of rows of each
    n_features : int
        The number of features.
    row_bytes, cost : int, float
        The bytes of a row that a pass reads, and its time relative to reading memory.
    spare : int
        The number of rows that workers may copy.
    """

    def __init__(
        self,
        client: Any,
        pieces: Sequence[Any],
        lengths: Sequence[int],
        n_features: int,
        row_bytes: int,
        cost: float = 1.0,
        spare: int = 0,
    ) -> None:
        self._client, self._pieces, self._lengths = client, list(pieces), list(lengths)
        self._starts = np.concatenate([[0], np.cumsum(self._lengths, dtype=np.intp)])
        self.n_rows, self.n_features = int(self._starts[-1]), n_features
        self._row_bytes, self._spare = row_bytes, spare
        self.nbytes = int(cost * self.n_rows * row_bytes)
        self.room = min(self.n_rows, SAMPLE_ROWS * n_features)

    def scores(self, coef: Floats) -> Floats:
        with sending():
            asked = self._client.map(_scores, self._pieces, [coef] * len(self._pieces), pure=False)
            return np.concatenate(gathered(self._client, asked))

    def pullback(self, gradient: Floats) -> Floats:
        slices = np.split(gradient, self._starts[1:-1])
        with sending():
            sums = self._client.map(_pullback, self._pieces, slices, pure=False)
            while len(sums) > FAN_IN:
                groups = [sums[i : i + FAN_IN] for i in range(0, len(sums), FAN_IN)]
                sums = self._client.map(_sum, groups, pure=False)
            out: Floats = _sum(gathered(self._client, sums))
        return out

    def rows(self, index: Indices, features: slice = ALL) -> Array:
        def read(piece: Piece, local: Indices) -> Array:
            return piece.operator.rows(local, features)

        found: Array = rows_of_parts(self._client, read, self._pieces, self._starts, index)
        return found

    def restricted(self, index: Indices) -> Operator | None:
        """Copy the values of some rows on the workers; return None if these have no room."""
        ordered = bool((np.diff(index) >= 0).all())
        if index.size > self._spare or not index.size or not ordered:
            return None
        numbers, _, inside = zip(*by_part(self._starts, index), strict=True)
        with sending():
            few = self._client.map(_restricted, [self._pieces[i] for i in numbers], inside, pure=False)
        lengths = [local.size for local in inside]
        return DaskOperator(self._client, few, lengths, self.n_features, self._row_bytes)


class Piece:
    """An operator on a worker with its size, by which Dask plans."""

    def __init__(self, operator: Operator, nbytes: int) -> None:
        self.operator, self.nbytes = operator, nbytes

    def __sizeof__(self) -> int:
        return self.nbytes


def make_piece(parts: Sequence[Any], prepare: Any, mapped: FeatureMap, storage: str) -> Piece:
    """Compute the kernel values of some partitions, where a worker holds these."""
    rows = prepare(parts)
    operator = hold_operator(rows, mapped, storage, room=rows.shape[0])
    if storage != "recomputed":
        return Piece(operator, operator.nbytes)
    held = 0 if mapped.projection is None else mapped.projection.nbytes
    return Piece(operator, block_bytes(rows) + held)


def _restricted(piece: Piece, index: Indices) -> Piece:
    few = piece.operator.restricted(index)
    assert few is not None
    return Piece(few, few.nbytes)


def _scores(piece: Piece, coef: Floats) -> Floats:
    return piece.operator.scores(coef)


def _pullback(piece: Piece, gradient: Floats) -> Floats:
    return piece.operator.pullback(gradient)


def _sum(parts: Sequence[Floats]) -> Floats:
    out: Floats = np.sum(parts, axis=0)
    return out


def by_part(starts: Indices, index: Indices, every: bool = False) -> list[tuple[int, Indices, Indices]]:
    """Split an index by parts: (part, positions in the index, row numbers inside the part)."""
    owner = np.searchsorted(starts, index, side="right") - 1
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(starts.size))
    split = []
    for number, (low, high) in enumerate(pairwise(bounds.tolist())):
        if every or high > low:
            positions = order[low:high]
            split.append((number, positions, index[positions] - starts[number]))
    return split


def rows_of_parts(
    client: Any, read: Any, parts: Sequence[Any], starts: Indices, index: Indices
) -> Block:
    """Return rows in the order of ``index``; ``read`` takes a part and row numbers inside it."""
    numbers, positions, inside = zip(*by_part(starts, index), strict=True)
    with sending():
        asked = client.map(read, [parts[i] for i in numbers], inside, pure=False)
    return stacked(gathered(client, asked))[np.argsort(np.concatenate(positions))]


def stacked(blocks: Sequence[Block]) -> Block:
    """Return blocks of rows as one block."""
    if len(blocks) == 1:
        return blocks[0]
    return sparse.vstack(blocks, format="csr") if is_sparse(blocks[0]) else np.concatenate(blocks)


def driver_bytes(n_rows: int, rank: int, n_problems: int) -> int:
    """Return the memory of the process that fits: solver, preconditioners, and a sample of the rows.

    >>> driver_bytes(10**9, 1000, 1) / 1e9
    250.192768
    """
    sample = min(n_rows, SAMPLE_ROWS * rank) * rank * 4
    return solver_bytes(n_rows, rank, n_problems) + sample


def traffic_bytes(
    n_rows: int, rank: int, n_problems: int, n_pieces: int, product: str = "scores"
) -> int:
    """Return the bytes between the process that fits and the workers in one product with all rows.

    Scores send coefficients to every piece and return one number per row and problem; a pullback sends
    these and returns a sum per piece or, if there are many, per group that workers have summed.

    >>> traffic_bytes(464_809, 1600, 1, 2)
    3744072
    """
    parts = n_pieces
    while product == "pullback" and parts > FAN_IN:
        parts = -(-parts // FAN_IN)
    return 8 * n_problems * (n_rows + rank * parts)
