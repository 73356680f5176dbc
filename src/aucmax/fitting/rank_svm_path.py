"""Held-out AUCs of the exact kernel machine along a rising path of C.

The kernel matrix of the training rows is made once. Each C starts from the solution of the one before;
the first starts from the landmark machine, whose features precondition all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.features.kernel_products import kernel_product
from aucmax.features.kernels import KernelSpec, LandmarkKernel
from aucmax.fitting.rank_svm_fit import FEW_ROWS, START, landmark_features, landmark_rows
from aucmax.operators.kernel_tiles import KernelTiles
from aucmax.pairs import Floats, Mask, PairLoss, ordered_share
from aucmax.solvers.kernel_newton import minimize_kernel
from aucmax.solvers.newton import minimize
from aucmax.solvers.options import Stopping

Array = npt.NDArray[Any]
Part = tuple[Array, Mask]  # dense rows, and which of them are positive

#: To choose C, solutions need not be as exact as a final one.
_STOPPING = Stopping(tol=1e-3)


def held_out_aucs(
    train: Part, test: Part, spec: KernelSpec, Cs: Floats, *, room: float, seed: int
) -> Iterator[float]:
    """Yield the AUC on the test rows for each C, in rising order."""
    (X, positive), (X_test, up) = train, test
    loss, start, landmarks, weight = PairLoss(positive), None, None, np.ones(len(up))
    if len(X) > FEW_ROWS:
        landmarks = landmark_features(X, landmark_rows(loss, seed), spec)
        solved = minimize(landmarks.operator, [loss], np.array([Cs[0]]), stopping=START)
        start = landmarks.as_rows(solved.coef[:, 0])
    kernel = KernelTiles(X, spec, room)
    for C in Cs:
        solution = minimize_kernel(
            kernel,
            loss,
            float(C),
            start=start,
            landmarks=landmarks,
            restrict=len(X) > FEW_ROWS,
            stopping=_STOPPING,
        )
        start = solution.coef
        support = np.flatnonzero(start)
        values = LandmarkKernel(X[support], spec, X.dtype)
        scores = kernel_product(values, X_test, start[support, None])[:, 0]
        yield ordered_share(scores[up], scores[~up], weight[up], weight[~up])
