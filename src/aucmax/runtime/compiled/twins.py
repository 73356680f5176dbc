"""The functions of ``loops`` in NumPy: their specification in tests, used where numba is absent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import cdist

if TYPE_CHECKING:
    from aucmax.runtime.compiled.loops import Array, Buffers, Counts, Learnt, Progress, Schedule, Sizes


def pair_sgd(
    X: Array, pos: Array, neg: Array, w: Array, mean: Array, t: int, q: int, schedule: Schedule
) -> tuple[int, int, int]:
    alpha, t0, regularize_every, average_every, average_power = schedule
    active = 0
    for i, j in zip(pos, neg, strict=True):
        t += 1
        difference = X[i] - X[j]
        if w @ difference < 1:
            active += 1
            w += w.dtype.type(1.0 / (alpha * (t + t0))) * difference
        if t % regularize_every == 0:
            w *= w.dtype.type(1.0 - regularize_every / (t + t0))
        if average_every and t % average_every == 0:
            mean += (average_power + 1.0) / (q + average_power + 1.0) * (w - mean)
            q += 1
    return t, q, active


def pair_sgd_grid(
    X: Array, pos: Array, neg: Array, w: Array, mean: Array, t: int, q: int, schedule: Schedule
) -> Counts:
    alpha, t0, *every = schedule
    ends = (t, q)
    for c in range(len(w)):
        ends = pair_sgd(X, pos, neg, w[c], mean[c], t, q, (alpha[c], t0[c], *every))[:2]
    return ends


def oam(
    X: Array, positive: Array, slots: Array, w: Array, buffers: Buffers, counts: Counts, C: float
) -> Counts:
    (pos_buffer, neg_buffer), (n_pos, n_neg) = buffers, counts
    for x, up, slot in zip(X, positive, slots, strict=True):
        own, other = (pos_buffer, neg_buffer) if up else (neg_buffer, pos_buffer)
        seen = n_neg if up else n_pos
        n_pos, n_neg = n_pos + bool(up), n_neg + (not up)
        if slot >= 0:
            own[slot] = x
        most = 0.5 * C * max(1.0, seen / len(other))
        sign = 1.0 if up else -1.0
        for opposite in other[:seen]:
            difference = x - opposite
            loss, square = 1.0 - sign * (w @ difference), difference @ difference
            if loss > 0 and square > 0:
                w += w.dtype.type(sign * min(most, loss / square)) * difference
    return n_pos, n_neg


def solam(
    X: Array, positive: Array, w: Array, mean: Array, scalars: Array, t: int, total: float, sizes: Sizes
) -> tuple[int, float]:
    zeta, radius, kappa = sizes
    for x, up in zip(X, positive, strict=True):
        a, b, alpha, p = scalars.tolist()
        t += 1
        p += (float(up) - p) / t
        score, eta = float(w @ x), zeta / np.sqrt(t)
        # Gradient of F(w, a, b, alpha; x): the part of b is zero for a positive, that of a for a
        # negative
        if up:
            pull = 2.0 * (1.0 - p) * (score - a - 1.0 - alpha)
            a += eta * 2.0 * (1.0 - p) * (score - a)
            rise = -2.0 * (1.0 - p) * (score + p * alpha)
        else:
            pull = 2.0 * p * (score - b + 1.0 + alpha)
            b += eta * 2.0 * p * (score - b)
            rise = 2.0 * p * (score - (1.0 - p) * alpha)
        w -= w.dtype.type(eta * pull) * x
        norm = float(np.sqrt(w @ w))
        if norm > radius:
            w *= w.dtype.type(radius / norm)
        bound = radius * kappa
        scalars[:2] = np.clip([a, b], -bound, bound)
        scalars[2] = np.clip(alpha + eta * rise, -2.0 * bound, 2.0 * bound)
        scalars[3] = p
        total += eta
        mean += eta / total * (w - mean)
    return t, total


def solam_grid(
    gram: Array, scores: Array, positive: Array, learnt: Learnt, sizes: Array, progress: Progress
) -> tuple[int, float, float]:
    scalars, square, keep, coef = learnt
    (t, p, kappa), (zeta, radius), weight = progress, sizes, 0.0
    for s, up in enumerate(positive):
        t += 1
        p += (up - p) / t
        root = 1.0 / np.sqrt(t)
        weight += root
        eta, bound = zeta * root, radius * kappa
        a, b, alpha = scalars
        score = keep[0] * scores[s] + gram[:s, s] @ coef[0, :s]
        if up:
            pull = 2.0 * (1.0 - p) * (score - a - 1.0 - alpha)
            a = a + eta * 2.0 * (1.0 - p) * (score - a)
            rise = -2.0 * (1.0 - p) * (score + p * alpha)
        else:
            pull = 2.0 * p * (score - b + 1.0 + alpha)
            b = b + eta * 2.0 * p * (score - b)
            rise = 2.0 * p * (score - (1.0 - p) * alpha)
        coef[0, s] = -eta * pull
        square += coef[0, s] * (2.0 * score + coef[0, s] * gram[s, s])
        shrink = np.minimum(1.0, radius / np.sqrt(np.maximum(square, np.finfo(float).tiny)))
        np.minimum(square, radius**2, out=square)
        keep[0] *= shrink
        coef[0] *= shrink
        bounds = np.array([bound, bound, 2.0 * bound])
        scalars[:] = np.clip([a, b, alpha + eta * rise], -bounds, bounds)
        keep[1] += root * keep[0]
        coef[1] += root * coef[0]
    return t, p, weight


def thin_scores(matrix: Array, coef: Array, out: Array, first: int, last: int) -> None:
    out[:, first:last] = coef @ matrix[first:last].T


def thin_pullback(matrix: Array, gradient: Array, out: Array, first: int, last: int) -> None:
    out += gradient[:, first:last] @ matrix[first:last]


def both_products(matrix: Array, right: Array, left: Array, across: Array, down: Array) -> None:
    across += matrix @ right
    down += left @ matrix


def exponential(raw: Array, out: Array) -> None:
    np.minimum(raw, 0, out=out, casting="same_kind")
    np.exp(out, out=out)


def manhattan(X: Array, points: Array, factor: float, out: Array) -> None:
    np.multiply(cdist(X, points.T, "cityblock"), factor, out=out)


def manhattan_line(away: Array, step: Array, coef: Array, gamma: float, out: Array) -> None:
    for i, move in enumerate(step):
        side = np.where(away == 0, -np.sign(move), np.sign(away))
        moves = np.broadcast_to(move, away.shape)
        ahead = away * move > 0
        times = np.divide(away, moves, out=np.ones(away.shape), where=ahead)
        order = np.argsort(np.minimum(times, 1.0), axis=1)
        ends = np.take_along_axis(np.minimum(times, 1.0), order, axis=1)
        ends = np.hstack([np.zeros((len(away), 1)), ends, np.ones((len(away), 1))])
        turns = 2.0 * np.take_along_axis(np.abs(moves), order, axis=1)
        first = np.where(ahead, -np.abs(move), np.abs(move)).sum(axis=1)[:, None]
        slopes = np.hstack([first, first + np.cumsum(turns, axis=1)])
        widths = np.diff(ends, axis=1)
        starts = np.abs(away).sum(axis=1)[:, None]
        values = np.exp(-gamma * np.hstack([starts, starts + np.cumsum(slopes * widths, axis=1)]))
        falls, before, after = gamma * slopes * widths, values[:, :-1], values[:, 1:]
        parts = 0.5 * widths * (before + after)
        np.divide(before - after, gamma * slopes, out=parts, where=np.abs(falls) > 1e-4)
        areas = np.cumsum(parts, axis=1)
        total = areas[:, -1:]
        crossing = np.empty(away.shape)
        np.put_along_axis(crossing, order, areas[:, :-1], axis=1)
        area = np.where(ahead & (times < 1.0), 2.0 * crossing - total, total)
        out[i] += gamma * coef @ (side * area)
