"""What a solver may ask of the data: products with a feature matrix that it never sees.

A solver knows the ``r`` features ``F`` (n, r) of ``n`` rows through four methods and two numbers:

* ``scores(W)``, (r, k) -> (n, k): ``F @ W``
* ``pullback(G)``, (n, k) -> (r, k): ``F.T @ G``
* ``rows(index, features)``: some rows of ``F``, dense, or some features of them, for a preconditioner
* ``restricted(index)``: an operator over some rows alone, copied to memory, for many products with
  them; None if there is no room
* ``nbytes``: what one pass over the data (one call of either product) costs, in bytes read from memory
* ``room``: the number of rows that may be copied to memory

Products take and return float64; in between they use the dtype of the data. To add an operator, write a
class with these members and choose it in ``placement.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt

if TYPE_CHECKING:
    from aucmax.pairs import Floats, Indices

#: Flops this kind of machine does in the time it reads one byte (100 GFLOP/s against 20 GB/s).
FLOPS_PER_BYTE = 5.0

ALL = slice(None)


class Operator(Protocol):
    """What a solver sees of the data; the module's docstring describes the members."""

    n_rows: int
    n_features: int
    nbytes: int
    room: int

    def scores(self, coef: Floats) -> Floats: ...

    def pullback(self, gradient: Floats) -> Floats: ...

    def rows(self, index: Indices, features: slice = ALL) -> npt.NDArray[Any]: ...

    def restricted(self, index: Indices) -> Operator | None: ...
