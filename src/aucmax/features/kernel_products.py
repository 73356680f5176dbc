"""Kernel values of all rows, and products with them, a block of rows at a time.

Work is cut into blocks of rows that fit a core's share of the cache and spread over threads. BLAS is
held to one thread meanwhile: the exponential, which BLAS does not thread, takes as long as the product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.kernels import LandmarkKernel, loops_pay
from aucmax.features.projection import Projection
from aucmax.rows.interface import Fill, fill_matrix, is_sparse
from aucmax.runtime import compiled
from aucmax.runtime.threads import Scratch, over_blocks

Array = npt.NDArray[Any]

#: Rows are multiplied in multiples of this: BLAS processes a remainder in another way, with other
#: rounding.
_GROUP = 64

#: Products with up to this many vectors are summed in float64 by compiled loops.
_THIN = 12


def raw_matrix(kernel: LandmarkKernel, X: Any) -> Array:
    """Return raw values (n, v) of a kernel whose gamma is 1; values at any gamma follow from them."""
    return fill_matrix(kernel.raw, X, kernel.width, kernel.dtype)


def kernel_matrix(kernel: LandmarkKernel, X: Any, raw: Array | None = None) -> Array:
    """Return ``k(X, U)`` (n, v) in the kernel's dtype, made from :func:`raw_matrix` if it is given."""
    if raw is None:
        return fill_matrix(kernel, X, kernel.width, kernel.dtype)
    return fill_matrix(_from_raw(kernel), raw, kernel.width, kernel.dtype)


def kernel_product(
    kernel: LandmarkKernel,
    X: Any,
    coef: Array | Projection,
    block_rows: int | None = None,
    raw: Array | None = None,
) -> Array:
    """Return ``k(X, U) @ coef`` for coef (v, m); only blocks of kernel values are held."""
    if raw is None:
        return product_over_blocks(kernel, X, coef, kernel.dtype, block_rows)
    return product_over_blocks(_from_raw(kernel), raw, coef, kernel.dtype, block_rows)


def _from_raw(kernel: LandmarkKernel) -> Fill:
    def finish(part: Array, out: Array) -> Array:
        return kernel.finish(np.multiply(part, kernel.factor, out=out), out)

    return finish


def product_over_blocks(
    fill: Fill,
    X: Any,
    coef: Array | Projection,
    dtype: np.dtype[Any],
    block_rows: int | None = None,
) -> Array:
    """Return ``F(X) @ coef`` for coef (v, m); only blocks of ``F(X)``, made by ``fill``, are held.

    Blocks are whole groups of rows, the last one padded with zeros, so that equal rows have equal
    results wherever they are.
    """
    width, scratch = coef.shape[0], Scratch()
    out = np.empty((X.shape[0], coef.shape[1]), dtype=dtype)
    times = _times_projection(coef, dtype) if isinstance(coef, Projection) else _times(coef, dtype)

    def work(rows: slice) -> None:
        size = rows.stop - rows.start
        block = scratch.array((-(-size // _GROUP) * _GROUP, width), dtype)
        part = X[rows]
        if is_sparse(part):
            fill(part, block[:size])
        else:
            if len(block) > size:
                part = np.concatenate([part, np.zeros((len(block) - size, part.shape[1]), part.dtype)])
            fill(part, block)
        out[rows] = times(block)[:size]  # padded rows may hold anything

    over_blocks(work, X.shape[0], (width + X.shape[1]) * dtype.itemsize, block_rows, _GROUP)
    return out


def _times_projection(projection: Projection, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    if len(projection.blocks) == 1:
        return _times(projection.blocks[0], dtype)
    cast = projection.astype(dtype)
    return lambda values: cast.features(values, slice(None))


def _times(coef: Array, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    right, cast = np.ascontiguousarray(coef.T, dtype=np.float64), coef.astype(dtype)

    def times(values: Array) -> Array:
        if len(right) > _THIN or not loops_pay(values):
            return np.asarray(values @ cast)
        # Weights over landmarks are large and cancel: sum in float64.
        sums = np.empty((len(right), len(values)))
        compiled.run("thin_scores", values, right, sums, 0, len(values))
        return sums.T

    return times


def check_features(features: Array) -> Array:
    """Return the features; refuse them if some are not finite, and name the first row of X."""
    finite = np.isfinite(features).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"The features of row {int(finite.argmin())} of X are not finite "
            f"({int((~finite).sum())} such rows): its entries are too large for this kernel. "
            "Standardize X."
        )
    return features
