"""What a solver may ask of data: products with a feature matrix it never sees.

A solver knows ``n`` rows and ``r`` columns of features ``F`` through four methods and two numbers:

* ``scores(W)``, (r, k) -> (n, k): ``F @ W``
* ``pullback(G)``, (n, k) -> (r, k): ``F.T @ G``
* ``rows(index, columns)``: some rows of ``F``, dense, or some columns of them, for a preconditioner
* ``restricted(index)``: an operator of some rows alone, copied to memory, for many products that see no
  other; None if there is no room for them
* ``nbytes``: what one pass over the data (one call of either product) costs, in bytes read from memory
* ``room``: rows that may be copied to memory

Products take and give float64; what lies between is in the dtype of the data.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt

from aucmax.pairs import Floats, Indices

#: Flops this kind of machine does in the time it reads one byte (100 GFLOP/s against 20 GB/s).
FLOPS_PER_BYTE = 5.0

ALL = slice(None)


class Operator(Protocol):
    """The seam between solvers and data; see the module's text."""

    n_rows: int
    n_columns: int
    nbytes: int
    room: int

    def scores(self, coef: Floats) -> Floats: ...

    def pullback(self, gradient: Floats) -> Floats: ...

    def rows(self, index: Indices, columns: slice = ALL) -> npt.NDArray[Any]: ...

    def restricted(self, index: Indices) -> Operator | None: ...
