"""Where the landmarks of a kernel map lie.

``"kmeans"`` (the paper), ``"class-kmeans"`` (k-means within each class, equal shares, so that a rare
class is not drowned by a common one), ``"root-kmeans"`` (the same, with shares as the roots of the
sizes) or ``"uniform"`` (rows drawn at random). Any k-means gives the rows nearest to its centres, where
the paper takes the centres. With no more rows than landmarks every distinct row is one, and the map is
exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from aucmax.rows.content_order import content_order
from aucmax.rows.validation import is_sparse
from aucmax.runtime.threads import over_blocks

Array = npt.NDArray[Any]

STRATEGIES = ("kmeans", "class-kmeans", "root-kmeans", "uniform")

#: Those that look at the classes.
OF_CLASSES = ("class-kmeans", "root-kmeans")

#: k-means uses at most this many rows per landmark, drawn at random, and this many to start from.
ROWS_PER_LANDMARK = 25
SEED_ROWS_PER_LANDMARK = 8

#: Lloyd iterations. Landmarks need to cover the data, not to be a converged clustering.
_ITERATIONS = 10

#: Of the rounding of a square, what must be below the squares of distances.
_ROUNDING = 1e4

#: Rows of more columns are compared as bytes: by number it takes a minute for a million of them.
_COMPARED_COLUMNS = 1000


def choose_landmarks(
    X: Any,
    n_landmarks: int,
    strategy: str,
    random_state: np.random.RandomState,
    weight: Array,
    y: Array | None = None,
) -> tuple[Array, int]:
    """Landmarks (v, d) with v at most ``n_landmarks``, and how many rows they were made from.

    ``X`` may be anything that gives some of its rows when indexed; more than it takes are never read.
    """
    n_rows = X.shape[0]
    if n_landmarks >= n_rows:
        return _distinct(X), n_rows
    rows = content_order(X, y, weight)  # draws do not depend on the order that rows came in
    if strategy == "uniform":
        share = weight[rows] / weight.sum()
        return _dense(_taken(X, random_state.choice(rows, n_landmarks, replace=False, p=share))), n_rows
    if strategy == "kmeans":
        return _kmeans(X, rows, n_landmarks, random_state, weight)
    assert y is not None
    groups = [rows[y[rows] == label] for label in np.unique(y)]
    share_out = equal_shares if strategy == "class-kmeans" else root_shares
    centres, seen = [], 0
    for group, share in zip(groups, share_out([g.size for g in groups], n_landmarks), strict=True):
        if share:
            centre, used = _kmeans(X, group, share, random_state, weight)
            centres.append(centre)
            seen += used
    return np.vstack(centres), seen


def equal_shares(sizes: list[int], total: int) -> list[int]:
    """Split ``total`` equally among groups; what a small group cannot use goes to the others.

    >>> equal_shares([10, 1000, 1000], 301)
    [10, 146, 145]
    """
    shares = [0] * len(sizes)
    left = total
    order = sorted(range(len(sizes)), key=lambda g: sizes[g])
    for done, group in enumerate(order):
        shares[group] = min(sizes[group], -(-left // (len(sizes) - done)))
        left -= shares[group]
    return shares


def root_shares(sizes: list[int], total: int) -> list[int]:
    """Split ``total`` among groups as the roots of their sizes, at least one each of those with any.

    >>> root_shares([100, 10_000], 330)
    [30, 300]
    """
    roots = np.sqrt(sizes)
    ends = np.round(total * np.cumsum(roots) / roots.sum()).astype(int)
    shares = np.diff(ends, prepend=0)
    return [int(min(size, max(share, 1))) for size, share in zip(sizes, shares, strict=True)]


def _kmeans(
    X: Any, among: Array, n_landmarks: int, random_state: np.random.RandomState, weight: Array
) -> tuple[Array, int]:
    """Rows nearest to the centres of k-means over the rows ``among`` all."""
    from sklearn.cluster import kmeans_plusplus

    if n_landmarks >= among.size:
        return _distinct(_taken(X, among)), among.size
    order = random_state.permutation(among.size)
    rows = among[np.sort(order[: ROWS_PER_LANDMARK * n_landmarks])]
    few = among[np.sort(order[: SEED_ROWS_PER_LANDMARK * n_landmarks])]
    # k-means++ with one candidate a time, on a few rows. At 1600 landmarks of covtype it takes 2 s
    # for 0.9558 AUC; scikit-learn's own start takes 12 s for 0.9563, random rows 1 s for 0.9548.
    seeds, given, weights = _taken(X, few), _taken(X, rows), weight[rows]
    with np.errstate(over="ignore"):  # found and named
        X, centre = given, np.asarray(given.mean(axis=0)).ravel()
    if _is_far(given, centre):  # distances would be lost to rounding
        seeds, X = _dense(seeds) - centre, _dense(given) - centre
        if not np.isfinite(X).all():
            raise ValueError("Differences between rows of X overflow: divide X, or standardize it.")
    start, _ = kmeans_plusplus(
        seeds.astype(np.float64),  # it would convert at every step
        n_landmarks,
        sample_weight=weight[few],
        n_local_trials=1,
        random_state=random_state,
    )
    centres = lloyd(X, _dense(start), weights)
    # The row nearest to each centre: a mean of one-hot or skewed columns lies where no row does. On
    # rows held back from training it was worth 0.0007 to 0.0044 AUC on connect-4, 0.0011 to 0.0016 on
    # covtype and 0.0004 to 0.0008 on magic04; on ijcnn1 and spambase it changed 0.0002 at most.
    return _distinct(given[_nearest(centres.astype(X.dtype), X)]), X.shape[0]


def _is_far(X: Any, centre: Array) -> bool:
    """Whether rows lie so far from zero that their distances are lost in the rounding of squares."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = X.multiply(X) if is_sparse(X) else X * X
        away = float(centre @ centre)
        spread = float(squares.sum()) / X.shape[0] - away
    if not np.isfinite(spread):
        return True
    return bool(_ROUNDING * float(np.finfo(X.dtype).eps) * away > max(0.0, spread))


def lloyd(X: Any, start: Array, weight: Array, iterations: int = _ITERATIONS) -> Array:
    """Centres (k, d) of weighted k-means, from given ones, after so many iterations or when they stay.

    As scikit-learn's ``KMeans``, but for two things. Its sums depend on the number of threads, and the
    last bits of a centre decide often enough which row is nearest to give other landmarks, and with
    them another model: here they are taken over blocks of one size, in their order. And a centre that
    no row is nearest to stays where it is.
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
        sums, some = member @ X, total > 0
        sums = sums.toarray() if is_sparse(sums) else sums
        centres = centres.copy()
        centres[some] = sums[some] / total[some, None]
    return centres


def _nearest(rows: Any, points: Any) -> npt.NDArray[np.intp]:
    """For each row, the number of the nearest point; of equally near ones the first."""
    centre = np.zeros(points.shape[1], points.dtype)
    if not (is_sparse(rows) or is_sparse(points)):
        centre = points.mean(axis=0)  # far from zero, differences of squares would cancel
    far = points - centre if centre.any() else points
    half = 0.5 * np.asarray((far.multiply(far) if is_sparse(far) else far * far).sum(axis=1)).ravel()
    out = np.empty(rows.shape[0], dtype=np.intp)

    def work(part: slice) -> None:
        own = rows[part] - centre if centre.any() else rows[part]
        products = own @ far.T
        products = products.toarray() if is_sparse(products) else products
        out[part] = (half - products).argmin(axis=1)

    over_blocks(work, rows.shape[0], 2 * points.shape[0] * points.dtype.itemsize)
    return out


def _taken(X: Any, rows: Array) -> Any:
    """Some rows, in the order asked for; they are read from front to back."""
    back = np.argsort(rows)
    place = np.empty_like(back)
    place[back] = np.arange(back.size)
    return X[rows[back]][place]


def _dense(X: Any) -> Array:
    return X.toarray() if is_sparse(X) else np.array(X[:])


def _distinct(X: Any) -> Array:
    """Every row once, ordered by content: neither repetition nor order of the rows matters."""
    rows = _dense(X)
    if rows.shape[1] <= _COMPARED_COLUMNS:
        return np.unique(rows, axis=0)
    rows = np.ascontiguousarray(rows) + 0.0  # -0.0 is 0.0
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    return rows[np.unique(whole, return_index=True)[1]]
