"""Gradients of kernel scores, averaged along straight lines from one start to many rows.

For a score ``sum_j b_j k(x, u_j)`` and the line ``x(t) = start + t step`` with t from 0 to 1, each
function returns the mean of the gradient over t. Times ``step``, and summed over features, it is the
score at the end of the line less the score at its start (integrated gradients). No function needs
nodes in t:

============= ======================================================================================
rbf           k is a Gaussian in t, and its integral an error function
laplacian     k is an exponential in t between the points where the line crosses a landmark's value of
              some feature (``manhattan_line`` of the compiled loops)
polynomial    the gradient is a polynomial in t; Gauss-Legendre nodes integrate it exactly
linear        the gradient is constant
============= ======================================================================================

All is in float64: weights over landmarks are large and cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erf

from aucmax.features.kernels import KernelSpec
from aucmax.runtime import compiled

Array = npt.NDArray[Any]

#: Below this length in bandwidths, a line is as good as a point.
_POINT = 1e-7


def mean_gradients(landmarks: Array, spec: KernelSpec, start: Array, step: Array, coef: Array) -> Array:
    """Return the mean gradient (m, d) of a score on the lines from ``start`` (d,) by ``step`` (m, d).

    ``coef`` are the weights over landmarks (v,), one array after the other for two kernels.

    >>> start, step = np.zeros(1), np.ones((1, 1))
    >>> slope = mean_gradients(np.ones((1, 1)), KernelSpec("rbf", 1.0), start, step, np.ones(1))
    >>> bool(np.isclose(slope[0, 0], 1.0 - np.exp(-1.0)))  # k is 1 at the end and 1/e at the start
    True
    """
    away = np.asarray(landmarks, np.float64) - start
    step = np.ascontiguousarray(step, np.float64)
    out = np.zeros(step.shape)
    for part, weights in zip(spec.parts, np.split(coef, len(spec.parts)), strict=True):
        out += _MEANS[part.name](away, start, step, weights.astype(np.float64), part)
    return out


def _rbf(away: Array, start: Array, step: Array, coef: Array, spec: KernelSpec) -> Array:
    # In units of bandwidths: a line of this length passes a landmark at this position.
    length = np.sqrt(spec.gamma * np.einsum("ij,ij->i", step, step))[:, None]
    short = length < _POINT
    length = np.where(short, 1.0, length)
    position = spec.gamma * (step @ away.T) / length
    at_start = -spec.gamma * np.einsum("ij,ij->i", away, away)
    nearest = np.exp(np.minimum(position**2 + at_start, 0.0))
    at_end = nearest * np.exp(-((length - position) ** 2))
    first = np.exp(at_start)
    # The integrals of k and of t k.
    k = nearest * (erf(position) - erf(position - length))
    k *= 0.5 * np.sqrt(np.pi) / length
    tk = position * k / length - (at_end - first) / (2.0 * length**2)
    if short.any():
        k, tk = np.where(short, first, k), np.where(short, 0.5 * first, tk)
    mean: Array = 2.0 * spec.gamma * ((k * coef) @ away - (tk @ coef)[:, None] * step)
    return mean


def _laplacian(away: Array, start: Array, step: Array, coef: Array, spec: KernelSpec) -> Array:
    out = np.zeros(step.shape)
    compiled.run("manhattan_line", np.ascontiguousarray(away), step, coef, float(spec.gamma), out)
    return out


def _polynomial(away: Array, start: Array, step: Array, coef: Array, spec: KernelSpec) -> Array:
    landmarks = away + start
    nodes, shares = np.polynomial.legendre.leggauss(-(-spec.degree // 2))
    out = np.zeros(step.shape)
    for t, share in zip(0.5 + 0.5 * nodes, 0.5 * shares, strict=True):
        base = spec.gamma * ((start + t * step) @ landmarks.T) + spec.coef0
        out += share * ((base ** (spec.degree - 1) * coef) @ landmarks)
    return spec.degree * spec.gamma * out


def _linear(away: Array, start: Array, step: Array, coef: Array, spec: KernelSpec) -> Array:
    return np.broadcast_to(coef @ (away + start), step.shape)


_MEANS: dict[str, Callable[[Array, Array, Array, Array, KernelSpec], Array]] = {
    "rbf": _rbf,
    "laplacian": _laplacian,
    "polynomial": _polynomial,
    "linear": _linear,
}
