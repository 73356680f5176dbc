"""Loops to be compiled by numba.

Each takes random choices as indices, changes ``w``, means and buffers in place, and returns a few
numbers. ``twins`` holds the same functions in NumPy; results agree up to the order of sums. Rows are
C-contiguous, ``w`` has their dtype, running means are float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Buffers = tuple[Array, Array]  # of positives and of negatives
Counts = tuple[int, int]
Schedule = tuple[Any, Any, int, int, float]  # alpha, t0, regularize_every, average_every, average_power
Sizes = tuple[float, float, float]  # zeta, radius, and kappa: the largest norm of a row
Learnt = tuple[Array, Array, Array, Array]  # scalars, squared norms, keep and coef: see `solam_grid`
Progress = tuple[int, float, float]  # steps, share of positives, and kappa


def pair_sgd(
    X: Array, pos: Array, neg: Array, w: Array, mean: Array, t: int, q: int, schedule: Schedule
) -> tuple[int, int, int]:
    """Take steps ``t+1 ... t+len(pos)`` of the paper's Algorithm 3 on pairs of rows ``pos[s], neg[s]``.

    ``mean`` is the average of ``q`` iterates, the q-th with weight ``q**average_power``, or unused
    where ``average_every`` is 0. Returns the new ``t`` and ``q``, and the number of pairs with a margin
    below 1.
    """
    alpha, t0, regularize_every, average_every, average_power = schedule
    d, narrow = w.size, np.zeros(1, w.dtype)  # which converts numbers to the dtype of w
    zero = narrow[0]
    active = 0
    for s in range(pos.size):
        i, j = pos[s], neg[s]
        t += 1
        margin = zero
        for k in range(d):
            margin += w[k] * (X[i, k] - X[j, k])
        if margin < 1:
            active += 1
            narrow[0] = 1.0 / (alpha * (t + t0))
            step = narrow[0]
            for k in range(d):
                w[k] += step * (X[i, k] - X[j, k])
        if t % regularize_every == 0:
            narrow[0] = 1.0 - regularize_every / (t + t0)
            keep = narrow[0]
            for k in range(d):
                w[k] *= keep
        if average_every and t % average_every == 0:
            share = (average_power + 1.0) / (q + average_power + 1.0)
            for k in range(d):
                mean[k] += share * (w[k] - mean[k])
            q += 1
    return t, q, active


def pair_sgd_grid(
    X: Array, pos: Array, neg: Array, w: Array, mean: Array, t: int, q: int, schedule: Schedule
) -> Counts:
    """Run ``pair_sgd`` for m values of ``alpha`` and ``t0`` over pairs read once; w is (m, d)."""
    alpha, t0, regularize_every, average_every, average_power = schedule
    m, d = w.shape
    narrow, difference = np.zeros(1, w.dtype), np.empty(d, w.dtype)
    zero = narrow[0]
    for s in range(pos.size):
        i, j = pos[s], neg[s]
        t += 1
        for k in range(d):
            difference[k] = X[i, k] - X[j, k]
        for c in range(m):
            margin = zero
            for k in range(d):
                margin += w[c, k] * difference[k]
            if margin < 1:
                narrow[0] = 1.0 / (alpha[c] * (t + t0[c]))
                step = narrow[0]
                for k in range(d):
                    w[c, k] += step * difference[k]
        if t % regularize_every == 0:
            for c in range(m):
                narrow[0] = 1.0 - regularize_every / (t + t0[c])
                keep = narrow[0]
                for k in range(d):
                    w[c, k] *= keep
        if average_every and t % average_every == 0:
            share = (average_power + 1.0) / (q + average_power + 1.0)
            for c in range(m):
                for k in range(d):
                    mean[c, k] += share * (w[c, k] - mean[c, k])
            q += 1
    return t, q


def oam(
    X: Array, positive: Array, slots: Array, w: Array, buffers: Buffers, counts: Counts, C: float
) -> Counts:
    """Take a passive-aggressive step for each row against each buffered row of the other class.

    A row is first buffered at ``slots[s]``, unless that is -1. Returns the new ``counts`` of rows seen
    in each class.
    """
    (pos_buffer, neg_buffer), (n_pos, n_neg) = buffers, counts
    d, narrow = w.size, np.zeros(1, w.dtype)  # which converts numbers to the dtype of w
    zero = narrow[0]
    for s in range(positive.size):
        own, other = (pos_buffer, neg_buffer) if positive[s] else (neg_buffer, pos_buffer)
        seen = n_neg if positive[s] else n_pos
        n_pos, n_neg = (n_pos + 1, n_neg) if positive[s] else (n_pos, n_neg + 1)
        if slots[s] >= 0:
            for k in range(d):
                own[slots[s], k] = X[s, k]
        size = other.shape[0]
        most = 0.5 * C * max(1.0, seen / size)
        sign = 1.0 if positive[s] else -1.0
        for b in range(min(seen, size)):
            dot = zero
            square = zero
            for k in range(d):
                difference = X[s, k] - other[b, k]
                dot += w[k] * difference
                square += difference * difference
            loss = 1.0 - sign * dot
            if loss > 0 and square > 0:
                narrow[0] = sign * min(most, loss / square)
                step = narrow[0]
                for k in range(d):
                    w[k] += step * (X[s, k] - other[b, k])
    return n_pos, n_neg


def solam(
    X: Array, positive: Array, w: Array, mean: Array, scalars: Array, t: int, total: float, sizes: Sizes
) -> tuple[int, float]:
    """Take, for each row, a descent step in (w, a, b) and an ascent step in alpha, then project.

    ``scalars`` holds a, b, alpha and the share of positives so far. ``mean`` is the average of w,
    weighted by step sizes, whose sum is ``total``. Returns the new ``t`` and ``total``.
    """
    zeta, radius, kappa = sizes
    d, narrow = w.size, np.zeros(1, w.dtype)  # which converts numbers to the dtype of w
    zero = narrow[0]
    for s in range(positive.size):
        a, b, alpha, p = scalars[0], scalars[1], scalars[2], scalars[3]
        t += 1
        p += ((1.0 if positive[s] else 0.0) - p) / t
        score = zero
        for k in range(d):
            score += w[k] * X[s, k]
        eta = zeta / t**0.5
        if positive[s]:
            pull = 2.0 * (1.0 - p) * (score - a - 1.0 - alpha)
            a_next, b_next = a + eta * 2.0 * (1.0 - p) * (score - a), b
            rise = -2.0 * (1.0 - p) * (score + p * alpha)
        else:
            pull = 2.0 * p * (score - b + 1.0 + alpha)
            a_next, b_next = a, b + eta * 2.0 * p * (score - b)
            rise = 2.0 * p * (score - (1.0 - p) * alpha)
        narrow[0] = -eta * pull
        step = narrow[0]
        square = zero
        for k in range(d):
            w[k] += step * X[s, k]
            square += w[k] * w[k]
        if square > radius * radius:
            narrow[0] = radius / square**0.5
            shrink = narrow[0]
            for k in range(d):
                w[k] *= shrink
        bound = radius * kappa
        scalars[0] = min(bound, max(-bound, a_next))
        scalars[1] = min(bound, max(-bound, b_next))
        scalars[2] = min(2.0 * bound, max(-2.0 * bound, alpha + eta * rise))
        scalars[3] = p
        total += eta
        share = eta / total
        for k in range(d):
            mean[k] += share * (w[k] - mean[k])
    return t, total


def solam_grid(
    gram: Array, scores: Array, positive: Array, learnt: Learnt, sizes: Array, progress: Progress
) -> tuple[int, float, float]:
    """Take the steps of ``solam`` over a block of B rows, for m settings of zeta and radius at once.

    ``gram`` (B, B) has the products of the rows, and ``scores`` (B, m) those with the w before the
    block, of squared norm ``square`` (m,). An iterate is ``keep * w + sum_u coef[u] * x_u``:
    ``keep[0]`` and ``coef[0]`` are of the last one, ``keep[1]`` and ``coef[1]`` sums over all by their
    weights, ``1 / sqrt(t)``. ``scalars`` (3, m) holds a, b and alpha. Returns the new number of steps
    and share of positives, and the sum of the weights.
    """
    scalars, square, keep, coef = learnt
    t, p, kappa = progress
    m, weight = square.size, 0.0
    score, shrink = np.zeros(m), np.ones(m)
    for s in range(positive.size):
        t += 1
        p += ((1.0 if positive[s] else 0.0) - p) / t
        root = 1.0 / t**0.5
        weight += root
        for c in range(m):
            score[c] = keep[0, c] * scores[s, c]
        for u in range(s):
            product = gram[u, s]
            for c in range(m):
                score[c] += coef[0, u, c] * product
        for c in range(m):
            a, b, alpha, eta = scalars[0, c], scalars[1, c], scalars[2, c], sizes[0, c] * root
            if positive[s]:
                pull = 2.0 * (1.0 - p) * (score[c] - a - 1.0 - alpha)
                a += eta * 2.0 * (1.0 - p) * (score[c] - a)
                rise = -2.0 * (1.0 - p) * (score[c] + p * alpha)
            else:
                pull = 2.0 * p * (score[c] - b + 1.0 + alpha)
                b += eta * 2.0 * p * (score[c] - b)
                rise = 2.0 * p * (score[c] - (1.0 - p) * alpha)
            step, radius = -eta * pull, sizes[1, c]
            coef[0, s, c] = step
            square[c] += step * (2.0 * score[c] + step * gram[s, s])
            shrink[c] = radius / square[c] ** 0.5 if square[c] > radius**2 else 1.0
            square[c] = min(square[c], radius**2)
            bound = radius * kappa
            scalars[0, c] = min(bound, max(-bound, a))
            scalars[1, c] = min(bound, max(-bound, b))
            scalars[2, c] = min(2.0 * bound, max(-2.0 * bound, alpha + eta * rise))
            keep[0, c] *= shrink[c]
            keep[1, c] += root * keep[0, c]
        for u in range(s + 1):
            for c in range(m):
                coef[0, u, c] *= shrink[c]
                coef[1, u, c] += root * coef[0, u, c]
    return t, p, weight


def thin_scores(matrix: Array, coef: Array, out: Array, first: int, last: int) -> None:
    """Set ``out[:, i] = coef @ matrix[i]`` for rows ``first`` to ``last``, in the dtype of ``coef``.

    Four problems at a time share one read of a row.
    """
    k, r = coef.shape
    zero = np.zeros(1, coef.dtype)[0]
    for i in range(first, last):
        c = 0
        while c + 4 <= k:
            s0 = s1 = s2 = s3 = zero
            for j in range(r):
                value = matrix[i, j]
                s0 += value * coef[c, j]
                s1 += value * coef[c + 1, j]
                s2 += value * coef[c + 2, j]
                s3 += value * coef[c + 3, j]
            out[c, i], out[c + 1, i], out[c + 2, i], out[c + 3, i] = s0, s1, s2, s3
            c += 4
        while c + 2 <= k:
            s0 = s1 = zero
            for j in range(r):
                value = matrix[i, j]
                s0 += value * coef[c, j]
                s1 += value * coef[c + 1, j]
            out[c, i], out[c + 1, i] = s0, s1
            c += 2
        if c < k:
            s0 = zero
            for j in range(r):
                s0 += matrix[i, j] * coef[c, j]
            out[c, i] = s0


def thin_pullback(matrix: Array, gradient: Array, out: Array, first: int, last: int) -> None:
    """Add ``gradient[:, first:last] @ matrix[first:last]`` to ``out``, four rows at a time."""
    k, r = out.shape
    i = first
    while i + 4 <= last:
        for c in range(k):
            g0, g1, g2, g3 = gradient[c, i], gradient[c, i + 1], gradient[c, i + 2], gradient[c, i + 3]
            for j in range(r):
                out[c, j] += (
                    g0 * matrix[i, j]
                    + g1 * matrix[i + 1, j]
                    + g2 * matrix[i + 2, j]
                    + g3 * matrix[i + 3, j]
                )
        i += 4
    while i < last:
        for c in range(k):
            g0 = gradient[c, i]
            for j in range(r):
                out[c, j] += g0 * matrix[i, j]
        i += 1


def both_products(matrix: Array, right: Array, left: Array, across: Array, down: Array) -> None:
    """Add ``matrix @ right`` to ``across`` and ``left @ matrix`` to ``down``, four rows at a time.

    The matrix is read once for both, and each entry is converted to the dtype of the vectors once.
    """
    n, m = matrix.shape
    zero = np.zeros(1, right.dtype)[0]
    i = 0
    while i + 4 <= n:
        g0, g1, g2, g3 = left[i], left[i + 1], left[i + 2], left[i + 3]
        s0 = s1 = s2 = s3 = zero
        for j in range(m):
            v0, v1 = zero + matrix[i, j], zero + matrix[i + 1, j]
            v2, v3 = zero + matrix[i + 2, j], zero + matrix[i + 3, j]
            x = right[j]
            s0 += v0 * x
            s1 += v1 * x
            s2 += v2 * x
            s3 += v3 * x
            down[j] += (g0 * v0 + g1 * v1) + (g2 * v2 + g3 * v3)
        across[i] += s0
        across[i + 1] += s1
        across[i + 2] += s2
        across[i + 3] += s3
        i += 4
    while i < n:
        g0 = left[i]
        s0 = zero
        for j in range(m):
            s0 += matrix[i, j] * right[j]
            down[j] += g0 * matrix[i, j]
        across[i] += s0
        i += 1


def exponential(raw: Array, out: Array) -> None:
    """Set ``out[i, j] = exp(min(0, raw[i, j]))`` in float32, from raw values of float32 or float64.

    With ``x = n ln 2 + f``, the exponential of ``f`` is a polynomial, interpolated at the Chebyshev
    points of [-ln 2 / 2, ln 2 / 2], and ``2**n`` is assembled from its bits; below -88 it is 0. A value
    takes 0.8 ns where NumPy takes 2.2, with an error of at most 3e-7 (NumPy: 2e-7).
    """
    zero, one, half, least = np.float32(0.0), np.float32(1.0), np.float32(0.5), np.float32(-88.0)
    per_ln2, high, low = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
    c1, c2, c3 = np.float32(1.0000000377), np.float32(0.50000000471), np.float32(0.16666415515)
    c4, c5, c6 = np.float32(0.0416663529), np.float32(0.0083751264), np.float32(0.00139411084)
    bias, mantissa = np.int32(127), np.int32(23)
    part, bits = np.empty(raw.shape[1], np.float32), np.empty(raw.shape[1], np.int32)
    power = bits.view(np.float32)
    for i in range(raw.shape[0]):
        for j in range(raw.shape[1]):
            part[j] = raw[i, j]
        for j in range(raw.shape[1]):
            x = part[j]
            x = zero if x > zero else x  # comparisons that keep NaN
            x = least if x < least else x
            n = np.floor(x * per_ln2 + half)
            f = (x - n * high) - n * low  # ln 2 = high + low
            part[j] = (((((c6 * f + c5) * f + c4) * f + c3) * f + c2) * f + c1) * f + one
            bits[j] = (np.int32(n) + bias) << mantissa
        for j in range(raw.shape[1]):
            out[i, j] = part[j] * power[j]


def manhattan(X: Array, points: Array, factor: float, out: Array) -> None:
    """Set ``out[i, j] = factor * sum_f |X[i, f] - points[f, j]|``, summed in the dtype of ``out``.

    Points (d, v) are taken 512 at a time, so that these stay in cache for all rows: 0.1 ns for one
    feature of one pair in float32, where SciPy's cdist takes 0.4 to 1.1 in float64.
    """
    width = 512
    part = np.empty(width, out.dtype)
    for first in range(0, points.shape[1], width):
        last = min(first + width, points.shape[1])
        for i in range(X.shape[0]):
            part[:] = 0
            for f in range(X.shape[1]):
                x, feature = X[i, f], points[f, first:last]
                for j in range(feature.size):
                    part[j] += abs(x - feature[j])
            line = out[i, first:last]
            for j in range(line.size):
                line[j] = factor * part[j]


def manhattan_line(away: Array, step: Array, coef: Array, gamma: float, out: Array) -> None:
    """Add the mean gradient of ``sum_j coef[j] exp(-gamma |away[j] - t step[i]|_1)`` to ``out[i]``.

    It is the mean over t from 0 to 1, with respect to the point ``t step[i]``. The distance is linear
    in t between the *crossings*, where a feature of the point equals the landmark's. A feature that is
    equal at t = 0 counts as passed.
    """
    (v, d), side = away.shape, np.sign(away)
    times, areas, which = np.empty(d + 1), np.empty(d + 1), np.empty(d + 1, np.intp)
    start, equal, inverse = np.empty(v), np.zeros(v, np.bool_), np.empty(d)
    for j in range(v):
        start[j] = np.sum(np.abs(away[j]))
        equal[j] = np.any(away[j] == 0.0)
    for i in range(step.shape[0]):
        for f in range(d):
            inverse[f] = 1.0 / step[i, f] if step[i, f] != 0.0 else 0.0
        for j in range(v):
            slope, n = 0.0, 0
            for f in range(d):
                slope -= side[j, f] * step[i, f]
            for f in range(d if equal[j] else 0):
                slope += abs(step[i, f]) if side[j, f] == 0.0 else 0.0
            for f in range(d):
                t = away[j, f] * inverse[f]
                if 0.0 < t < 1.0:
                    at, n = n, n + 1
                    while at > 0 and times[at - 1] > t:
                        times[at], which[at] = times[at - 1], which[at - 1]
                        at -= 1
                    times[at], which[at] = t, f
            times[n], which[n] = 1.0, 0
            t, area, level = 0.0, 0.0, start[j]
            value = np.exp(-gamma * level)
            for c in range(n + 1):
                width, rate = times[c] - t, gamma * slope
                level += slope * width
                after = np.exp(-gamma * level)
                # Where the value hardly changes, its difference is mostly rounding.
                flat = abs(rate * width) < 1e-4
                area += 0.5 * width * (value + after) if flat else (value - after) / rate
                t, value, areas[c] = times[c], after, area
                slope += 2.0 * abs(step[i, which[c]])
            weight = gamma * coef[j]
            total = weight * area
            for f in range(d):
                out[i, f] += total * side[j, f]
            for f in range(d if equal[j] else 0):
                out[i, f] -= total * np.sign(step[i, f]) if side[j, f] == 0.0 else 0.0
            for c in range(n):
                out[i, which[c]] += 2.0 * weight * (areas[c] - area) * side[j, which[c]]
