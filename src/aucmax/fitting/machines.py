"""Machines: what a fit makes and what scores rows. Each has one score per ranked class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import StandardScaler

from aucmax.features.fourier import FourierFeatures
from aucmax.features.kernel_products import kernel_product
from aucmax.features.kernels import KernelSpec, LandmarkKernel
from aucmax.features.line_gradients import mean_gradients
from aucmax.features.metric import mean_outer
from aucmax.features.nystroem import NystroemFeatures
from aucmax.features.scalers import MetricScaler
from aucmax.fitting.scaling import scale_rows
from aucmax.rows.interface import Rows

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class KernelMachine:
    """Scores ``k(x, U) b`` of scaled rows under a fitted map, for weights ``dual_coef`` (k, v)."""

    scaler: Any
    feature_map: NystroemFeatures | FourierFeatures
    dual_coef: Array
    intercept: Array

    def scores(self, rows: Rows) -> Array:
        """Return scores (n, k) before the threshold."""
        fitted = self.feature_map.kernel_map
        return fitted.linear(scale_rows(self.scaler, rows).astype(fitted.dtype), self.dual_coef.T)

    def gradients(self, points: Array) -> list[Array]:
        """Return the gradient of each score at scaled, dense rows (m, d), in float64."""
        return self.feature_map.kernel_map.gradients(points.astype(np.float64), self.dual_coef)

    def line_gradients(self, start: Array, step: Array, score: int) -> Array:
        """Return the mean gradient (m, d) of a score on lines between scaled, dense rows."""
        return self.feature_map.map.line_gradients(start, step, self.dual_coef[score])

    def importances(self) -> Array:
        """Return each column's share of the mean squared gradient at the landmarks."""
        return gradient_shares(self, self.feature_map.landmarks_)


class Fitted(NamedTuple):
    """A machine, its scores (n, k) of the training rows, and learnt attributes."""

    machine: KernelMachine
    scores: Array
    about: dict[str, Any]


@dataclass(frozen=True)
class Blend:
    """Scores of several kernel machines, added up with weights."""

    machines: Sequence[KernelMachine]
    weights: Array
    intercept: Array

    def scores(self, rows: Rows) -> Array:
        """Return scores (n, k) before the threshold."""
        return add_up([machine.scores(rows) for machine in self.machines], self.weights)

    def importances(self) -> Array:
        """Return the mean of the machines' importances by their weights."""
        return add_up([machine.importances() for machine in self.machines], self.weights)


def add_up(parts: Sequence[Array], weights: Array) -> Array:
    """Return the sum of arrays times weights; a single array as it is."""
    if len(parts) == 1:
        return parts[0]
    total: Array = sum(
        weight * part.astype(np.float64) for part, weight in zip(parts, weights, strict=True)
    )
    return total


@dataclass(frozen=True)
class LinearMachine:
    """Scores that are linear in X: ``coef`` (k, d) is in its units."""

    coef: Array
    intercept: Array

    @classmethod
    def of_scaled(cls, coef: Array, intercept: Array, scaler: Any) -> LinearMachine:
        """Convert coefficients (d, k) over rows that a StandardScaler has scaled."""
        if scaler is not None:
            if not isinstance(scaler, StandardScaler):
                kind = type(scaler).__name__
                raise TypeError(f"Linear scores need a StandardScaler or none; got a {kind}.")
            coef = coef / scaler.scale_[:, None]
            if scaler.with_mean:
                intercept = intercept - scaler.mean_ @ coef
        return cls(coef.T, intercept)

    def scores(self, rows: Rows) -> Array:
        """Return scores (n, k) before the threshold."""
        out: Array = rows[:] @ self.coef.T
        return out


@dataclass(frozen=True)
class SupportMachine:
    """Scores ``k(x, S) b`` over support rows ``S`` (m, d), for weights ``dual_coef`` (k, m)."""

    scaler: Any
    support_rows: Array
    dual_coef: Array
    intercept: Array
    spec: KernelSpec

    def scores(self, rows: Rows) -> Array:
        """Return scores (n, k) before the threshold."""
        if not len(self.support_rows):  # nothing separates the classes
            return np.zeros((rows.shape[0], len(self.dual_coef)))
        dtype = self.support_rows.dtype
        kernel = LandmarkKernel(self.support_rows, self.spec, dtype, wide=True)
        return kernel_product(kernel, scale_rows(self.scaler, rows).astype(dtype), self.dual_coef.T)

    def gradients(self, points: Array) -> list[Array]:
        """Return the gradient of each score at scaled, dense rows (m, d), in float64."""
        kernel = LandmarkKernel(self.support_rows.astype(np.float64), self.spec)
        return kernel.gradients(points, self.dual_coef)

    def line_gradients(self, start: Array, step: Array, score: int) -> Array:
        """Return the mean gradient (m, d) of a score on lines between scaled, dense rows."""
        if not len(self.support_rows):
            return np.zeros(step.shape)
        return mean_gradients(self.support_rows, self.spec, start, step, self.dual_coef[score])

    def importances(self) -> Array:
        """Return each column's share of the mean squared gradient at the support rows."""
        if not len(self.support_rows):
            return np.zeros(self.support_rows.shape[1])
        return gradient_shares(self, self.support_rows)


def gradient_shares(machine: KernelMachine | SupportMachine, points: Array) -> Array:
    """Return each column's share of the mean squared gradient at scaled rows, per deviation."""
    scaler, points = machine.scaler, points.astype(np.float64)
    metric = scaler.metric if isinstance(scaler, MetricScaler) else None
    steep = mean_outer(machine.gradients(points), "diagonal", metric)
    if (scaler.scaler if isinstance(scaler, MetricScaler) else scaler) is None:
        rows = points if scaler is None else scaler.inverse_transform(points)
        steep = steep * rows.var(axis=0)
    return steep / steep.sum() if steep.any() else steep
