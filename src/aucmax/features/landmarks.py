"""Choose the landmarks of a kernel map.

=============== ====================================================================================
strategy        landmarks
=============== ====================================================================================
"centroids"     the centres of k-means over all rows, as in the paper's Algorithm 1
"kmeans"        the rows nearest to these centres
"class-kmeans"  rows nearest to the centres of each class, in equal shares, which helps a rare class
"root-kmeans"   rows nearest to the centres of each class, in shares as the roots of the class sizes
"uniform"       rows drawn at random
=============== ====================================================================================

With no more rows than landmarks every distinct row is a landmark, and the map is exact. Equal landmarks
are kept once, so there may be fewer than asked for. To add a strategy, add its name to ``STRATEGIES``
and its case to ``choose_landmarks``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from aucmax.rows.content_order import content_order
from aucmax.rows.interface import Block, Rows, dense, is_sparse, squared_norms
from aucmax.runtime.threads import over_blocks

Array = npt.NDArray[Any]

STRATEGIES = ("centroids", "kmeans", "class-kmeans", "root-kmeans", "uniform")

#: Strategies that use the classes.
OF_CLASSES = ("class-kmeans", "root-kmeans")

#: k-means uses at most this many rows per landmark, drawn at random, and this many for its start.
ROWS_PER_LANDMARK = 25
SEED_ROWS_PER_LANDMARK = 8

#: Lloyd iterations, for centres and for the rows nearest to them. Landmarks have to cover the data; the
#: clustering need not converge, the less so as rows are rounded to.
_ITERATIONS, _ROW_ITERATIONS = 10, 5

#: Squares of distances must be above the rounding of a square by this factor.
_ROUNDING = 1e4

#: Rows with more columns are compared as bytes: comparing a million numbers takes a minute.
_COMPARED_COLUMNS = 1000


def choose_landmarks(
    rows: Rows,
    n_landmarks: int,
    strategy: str,
    random_state: np.random.RandomState,
    weight: Array,
    y: Array | None = None,
) -> tuple[Array, int]:
    """Return at most ``n_landmarks`` landmarks (v, d), and from how many rows they were made."""
    if n_landmarks >= rows.shape[0]:
        return _distinct(rows[:]), rows.shape[0]
    order = content_order(rows, y, weight)  # draws do not depend on the order of the rows
    if strategy == "uniform":
        share = weight[order] / weight.sum()
        drawn = random_state.choice(order, n_landmarks, replace=False, p=share)
        return dense(_taken(rows, drawn)), rows.shape[0]
    if strategy in ("centroids", "kmeans"):
        return _kmeans(rows, order, n_landmarks, random_state, weight, strategy == "centroids")
    assert y is not None
    groups = [order[y[order] == label] for label in np.unique(y)]
    shares = shares_of(strategy)([group.size for group in groups], n_landmarks)
    centres, seen = [], 0
    for group, count in zip(groups, shares, strict=True):
        if count:
            centre, used = _kmeans(rows, group, count, random_state, weight)
            centres.append(centre)
            seen += used
    return np.vstack(centres), seen


def shares_of(strategy: str) -> Callable[[list[int], int], list[int]]:
    """Return the function that splits landmarks among the classes for one of ``OF_CLASSES``."""
    return equal_shares if strategy == "class-kmeans" else root_shares


def equal_shares(sizes: list[int], total: int) -> list[int]:
    """Split ``total`` equally among groups; what a small group cannot use goes to the others.

    >>> equal_shares([10, 1000, 1000], 301)
    [10, 146, 145]
    """
    shares = [0] * len(sizes)
    left = total
    for done, group in enumerate(sorted(range(len(sizes)), key=lambda g: sizes[g])):
        shares[group] = min(sizes[group], -(-left // (len(sizes) - done)))
        left -= shares[group]
    return shares


def root_shares(sizes: list[int], total: int) -> list[int]:
    """Split ``total`` among groups in proportion to the roots of their sizes, at least one to each.

    >>> root_shares([100, 10_000], 330)
    [30, 300]
    """
    roots = np.sqrt(sizes)
    ends = np.round(total * np.cumsum(roots) / roots.sum()).astype(int)
    shares = np.diff(ends, prepend=0)
    return [int(min(size, max(share, 1))) for size, share in zip(sizes, shares, strict=True)]


def _kmeans(
    rows: Rows,
    among: Array,
    n_landmarks: int,
    random_state: np.random.RandomState,
    weight: Array,
    centroids: bool = False,
) -> tuple[Array, int]:
    """Return the centres of k-means over the rows numbered ``among``, or the rows nearest to them."""
    from sklearn.cluster import kmeans_plusplus

    if n_landmarks >= among.size:
        return _distinct(_taken(rows, among)), among.size
    order = random_state.permutation(among.size)
    numbers = among[np.sort(order[: ROWS_PER_LANDMARK * n_landmarks])]
    few = among[np.sort(order[: SEED_ROWS_PER_LANDMARK * n_landmarks])]
    seeds, chosen = _taken(rows, few), _taken(rows, numbers)
    X, shift = chosen, np.zeros(1)
    with np.errstate(over="ignore"):  # checked below
        centre = np.asarray(chosen.mean(axis=0)).ravel()
    if _is_far(chosen, centre):  # distances would be lost to rounding
        seeds, X, shift = dense(seeds) - centre, dense(chosen) - centre, centre
        if not np.isfinite(X).all():
            raise ValueError("Differences between rows of X overflow: divide X, or standardize it.")
    # k-means++ with one candidate at a time, on a few rows. For 1600 landmarks of covtype it takes 2 s
    # (AUC 0.9558); scikit-learn's own start takes 12 s (0.9563), random rows 1 s (0.9548).
    start, _ = kmeans_plusplus(
        seeds.astype(np.float64),  # it would convert at every step
        n_landmarks,
        sample_weight=weight[few],
        n_local_trials=1,
        random_state=random_state,
    )
    iterations = _ITERATIONS if centroids else _ROW_ITERATIONS
    centres = lloyd(X, dense(start), weight[numbers], iterations)
    if centroids:
        return _distinct((centres + shift).astype(X.dtype)), X.shape[0]
    # The row nearest to each centre: a mean of one-hot or skewed columns lies where no row does. On
    # held-out rows this was worth 0.0007 to 0.0044 AUC on connect-4, 0.0011 to 0.0016 on covtype,
    # 0.0004 to 0.0008 on magic04, and at most 0.0002 on ijcnn1 and spambase.
    return _distinct(chosen[_nearest(centres.astype(X.dtype), X)]), X.shape[0]


def _is_far(X: Block, centre: Array) -> bool:
    """Whether rows are so far from zero that the rounding of squares hides their distances."""
    with np.errstate(over="ignore", invalid="ignore"):
        away = float(centre @ centre)
        spread = float(squared_norms(X).sum()) / X.shape[0] - away
    if not np.isfinite(spread):
        return True
    return bool(_ROUNDING * float(np.finfo(X.dtype).eps) * away > max(0.0, spread))


def lloyd(X: Block, start: Array, weight: Array, iterations: int = _ITERATIONS) -> Array:
    """Return the centres (k, d) of weighted k-means after some iterations, or when they stay.

    This differs from scikit-learn's ``KMeans`` in two ways. Its sums depend on the number of threads,
    and the last bits of a centre often decide which row is nearest; here sums run over blocks of one
    size, in order, so that landmarks do not depend on the threads. And a centre that no row is nearest
    to stays where it is.
    """
    centres, labels = start, np.full(X.shape[0], -1, dtype=np.intp)
    for _ in range(iterations):
        before, labels = labels, _nearest(X, centres.astype(X.dtype))
        if np.array_equal(before, labels):
            break
        member = sparse.csr_array(
            (weight, labels, np.arange(X.shape[0] + 1)), shape=(X.shape[0], len(centres))
        ).T.tocsr()
        total = member.sum(axis=1)
        sums, some = dense(member @ X), total > 0
        centres = centres.copy()
        centres[some] = sums[some] / total[some, None]
    return centres


def _nearest(rows: Block, points: Block) -> npt.NDArray[np.intp]:
    """Return for each row the number of the nearest point; of equally near ones the first."""
    centre = np.zeros(points.shape[1], points.dtype)
    if not (is_sparse(rows) or is_sparse(points)):
        centre = points.mean(axis=0)  # far from zero, differences of squares would cancel
    far = points - centre if centre.any() else points
    half = 0.5 * squared_norms(far)
    out = np.empty(rows.shape[0], dtype=np.intp)

    def work(part: slice) -> None:
        own = rows[part] - centre if centre.any() else rows[part]
        out[part] = (half - dense(own @ far.T)).argmin(axis=1)

    over_blocks(work, rows.shape[0], 2 * points.shape[0] * points.dtype.itemsize)
    return out


def _taken(rows: Rows, index: Array) -> Block:
    """Return rows in the order asked for; they are read from front to back."""
    back = np.argsort(index)
    position = np.empty_like(back)
    position[back] = np.arange(back.size)
    return rows[index[back]][position]


def _distinct(X: Block) -> Array:
    """Return every distinct row once, ordered by content."""
    rows = dense(X)
    if rows.shape[1] <= _COMPARED_COLUMNS:
        return np.unique(rows, axis=0)
    rows = np.ascontiguousarray(rows) + 0.0  # -0.0 is 0.0
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    return rows[np.unique(whole, return_index=True)[1]]
