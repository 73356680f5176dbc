"""Kernel features of the rows of a trial, at any bandwidth.

Landmarks are rows of the sample, or the user's own points. Distances to them are computed once. At
each bandwidth, kernel values are whitened by a Cholesky factor of the landmarks' kernel. It costs a
fraction of the eigenvectors of a fit, and gives the same scores but for the eigenvalues that a fit
drops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from aucmax.features.bandwidth import resolve_gamma
from aucmax.features.kernel_products import kernel_matrix, raw_matrix
from aucmax.features.kernels import BOTH, KernelSpec, LandmarkKernel
from aucmax.rows.interface import ArrayRows, Block, dense

Array = npt.NDArray[Any]

#: What is added to the diagonal of the landmarks' kernel, whose entries are 1. A fit drops eigenvalues
#: of about this size.
_JITTER = 1e-5


class TrialMap:
    """The kernel between rows (n, d) and points (v, d), with gamma in multiples of its rule."""

    def __init__(
        self, rows: Block, points: Array, weight: Array, kernel: str, gamma: str | float
    ) -> None:
        self._rows, self._points = rows, points
        self.rule = resolve_gamma(gamma, ArrayRows(rows), weight, kernel)
        self._gamma_l1 = 1.0
        if kernel == BOTH:
            self._gamma_l1 = resolve_gamma("distance", ArrayRows(rows), weight, "laplacian")
        unit = KernelSpec(kernel)
        self._kernel = LandmarkKernel(points, unit, rows.dtype)
        self._raw = raw_matrix(self._kernel, rows)
        wide = points.astype(np.float64)
        between = LandmarkKernel(wide, unit)
        self._between = between.raw(wide, np.empty((len(points), between.width)))

    def spec(self, multiple: float) -> KernelSpec:
        """Return the kernel at a multiple of the rule."""
        name = self._kernel.spec.name
        return KernelSpec(name, gamma=multiple * self.rule, gamma_l1=self._gamma_l1)

    def features(self, multiple: float) -> tuple[Array, list[Array]]:
        """Return features (n, r) at a multiple of the rule, and the factor of each kernel."""
        spec, count = self.spec(multiple), len(self._points)
        values = kernel_matrix(LandmarkKernel(self._points, spec, self._rows.dtype), None, self._raw)
        factors = []
        for number, part in enumerate(spec.parts):
            own = slice(number * count, (number + 1) * count)
            gram = np.exp(part.gamma * self._between[:, own])
            gram[np.diag_indices(count)] += _JITTER
            factor = linalg.cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
            factor *= np.sqrt(len(spec.parts))  # the kernel is the mean of its parts
            values[:, own] = _whitened(factor.astype(values.dtype), values[:, own])
            factors.append(factor)
        return values, factors

    @staticmethod
    def fold(coef: Array, factors: list[Array]) -> Array:
        """Return weights over kernel values from coefficients (r, k) over features."""
        parts = np.split(coef, len(factors))
        solve = [
            linalg.solve_triangular(factor, part, trans=1, lower=True, check_finite=False)
            for factor, part in zip(factors, parts, strict=True)
        ]
        return np.vstack(solve)

    def gradients(self, multiple: float, coef: Array, some: Array) -> list[Array]:
        """Return the gradient of each score at some rows, for weights (v, k) over kernel values."""
        rows = dense(self._rows[some])
        kernel = LandmarkKernel(self._points, self.spec(multiple), rows.dtype)
        return kernel.gradients(rows, coef.T)


def _whitened(factor: Array, values: Array) -> Array:
    """Return ``values @ inv(factor).T``."""
    found: Array = linalg.solve_triangular(factor, values.T, lower=True, check_finite=False)
    return found.T
