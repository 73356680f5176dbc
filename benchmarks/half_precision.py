"""The exact kernel machine with its matrix rounded to float32 and to float16.

Half precision would hold twice as many rows. Each machine is solved to 1e-5 of its own minimum on 2,500
rows, and its coefficients are judged by the objective with the matrix in float64. ``excess`` is how far
that is above the minimum, relative to it; ``KernelRankSVM`` promises 1e-4 by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from aucmax.pairs import PairLoss
from aucmax.paper.data import load_dataset
from aucmax.solvers.kernel_newton import minimize_kernel
from aucmax.solvers.options import Stopping

COLUMNS = ("data", "gamma", "paper_C", "dtype", "excess", "products")
ROWS, STOPPING = 2_500, Stopping(tol=1e-5)


class _Matrix:
    """A kernel matrix held whole, for the solver."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def product(self, vector: np.ndarray) -> np.ndarray:
        return self.values @ vector

    def restricted(self, rows: np.ndarray) -> _Matrix:
        return _Matrix(self.values[np.ix_(rows, rows)])


def run(options: Any) -> Iterator[dict[str, Any]]:
    for data in options.data or ("ijcnn1", "covtype"):
        split = load_dataset(data, seed=0).head(ROWS, seed=0)
        X, up = StandardScaler().fit_transform(split.X_train.astype(np.float64)), split.y_train == 1
        loss = PairLoss(up)
        for gamma in (2.0**-6, 2.0**-4):
            exact = rbf_kernel(X, gamma=gamma)
            for paper_C in (2.0**-5, 1.0):
                C, least = paper_C * up.sum() * (~up).sum() / up.size, None
                for dtype in (np.float64, np.float32, np.float16):
                    rounded = _Matrix(exact.astype(dtype).astype(np.float64))
                    solved = minimize_kernel(rounded, loss, C, restrict=False, stopping=STOPPING)
                    scores = exact @ solved.coef
                    objective = 0.5 * float(solved.coef @ scores) + C * loss.at(scores).value
                    least = objective if least is None else least
                    yield {
                        "data": data,
                        "gamma": gamma,
                        "paper_C": paper_C,
                        "dtype": np.dtype(dtype).name,
                        "excess": objective / least - 1.0,
                        "products": solved.products,
                        "converged": bool(solved.converged),
                    }
