"""Each compiled loop against its NumPy twin, and each twin against the formulas it stands for."""

import subprocess
import sys

import numpy as np
import pytest

from aucmax.runtime import compiled
from aucmax.runtime.compiled import loops, twins
from aucmax.solvers.reservoir import Reservoir, reservoir_slots
from aucmax.solvers.solam_grid import SOLAMGrid
from aucmax.solvers.stochastic import OAM, SOLAM, PairSGD

TOLERANCE = {np.float64: 1e-9, np.float32: 2e-3}
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def rows(n=200, d=23, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    X = rng.normal(size=(n, d)) + 0.4 * positive[:, None]
    return np.ascontiguousarray(X, dtype=dtype), positive, rng


def both(name, make_arguments):
    """Run twin and compiled loop on the same arguments; returns arguments and results of each."""
    found = []
    for run in (getattr(twins, name), lambda *arguments: compiled.run(name, *arguments)):
        arguments = make_arguments()
        found.append((arguments, run(*arguments)))
    return found


def assert_same(found, dtype):
    (slow, slow_result), (fast, fast_result) = found
    assert fast_result == (slow_result if slow_result is None else pytest.approx(slow_result))
    for a, b in zip(flat(slow), flat(fast), strict=True):
        np.testing.assert_allclose(a, b, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def flat(arguments):
    """Arguments, with those in tuples laid out."""
    return [each for part in arguments for each in (part if isinstance(part, tuple) else (part,))]


@dtypes
@pytest.mark.parametrize("average_every", [0, 3])
@pytest.mark.parametrize("power", [0.0, 2.0])
def test_pair_sgd(dtype, average_every, power):
    X, positive, rng = rows(dtype=dtype)
    pos = rng.choice(np.flatnonzero(positive), 500)
    neg = rng.choice(np.flatnonzero(~positive), 500)

    def arguments():
        w, mean = np.zeros(23, dtype), np.zeros(23)
        return X, pos, neg, w, mean, 0, 0, (1e-3, 1e4, 4, average_every, power)

    found = both("pair_sgd", arguments)
    assert_same(found, dtype)
    (_, _, _, w, mean, *_), (t, q, active) = found[1]
    assert t == 500
    assert q == (500 // 3 if average_every else 0)
    assert 0 < active < 500
    assert np.any(w)
    assert np.any(mean) == bool(average_every)


@dtypes
def test_oam(dtype):
    X, positive, rng = rows(dtype=dtype)
    slots = np.empty(200, dtype=np.intp)
    for members in (positive, ~positive):
        slots[members] = reservoir_slots(0, members.sum(), 10, rng)

    def arguments():
        buffers = tuple(np.zeros((2, 10, 23), dtype))
        return X, positive, slots, np.zeros(23, dtype), buffers, (0, 0), 0.05

    found = both("oam", arguments)
    assert_same(found, dtype)
    assert found[1][1] == (positive.sum(), (~positive).sum())


@dtypes
@pytest.mark.parametrize("radius", [0.05, 100.0])
def test_solam(dtype, radius):
    X, positive, _ = rows(dtype=dtype)

    def arguments():
        means = np.zeros(23), np.zeros(4)
        return X, positive, np.zeros(23, dtype), *means, 0, 0.0, (0.05, radius, 9.0)

    found = both("solam", arguments)
    assert_same(found, dtype)
    (_, _, w, mean, scalars, *_), (t, total) = found[1]
    assert t == 200
    assert total == pytest.approx(0.05 * (1 / np.sqrt(np.arange(1, 201))).sum())
    assert np.linalg.norm(w) <= radius * (1 + 1e-5)
    assert np.linalg.norm(mean) <= radius * (1 + 1e-5)
    assert scalars[3] == pytest.approx(positive.mean())


@dtypes
def test_pair_sgd_grid(dtype):
    X, positive, rng = rows(dtype=dtype)
    pos = rng.choice(np.flatnonzero(positive), 500)
    neg = rng.choice(np.flatnonzero(~positive), 500)
    alpha, t0 = np.array([1e-3, 1e-2, 0.1]), np.array([1e4, 1e3, 50.0])

    def arguments():
        w, mean = np.zeros((3, 23), dtype), np.zeros((3, 23))
        return X, pos, neg, w, mean, 7, 2, (alpha, t0, 4, 3, 1.0)

    found = both("pair_sgd_grid", arguments)
    assert_same(found, dtype)
    assert found[1][1][0] == 507
    assert np.any(found[1][0][3], axis=1).all()


@dtypes
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 7, 9])
@pytest.mark.parametrize("part", [(0, 203), (5, 22)])
def test_thin_products(dtype, k, part):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(203, 37)).astype(dtype)
    coef, gradient = rng.normal(size=(k, 37)).astype(dtype), rng.normal(size=(k, 203)).astype(dtype)
    assert_same(both("thin_scores", lambda: (matrix, coef, np.zeros((k, 203), dtype), *part)), dtype)
    assert_same(
        both("thin_pullback", lambda: (matrix, gradient, np.ones((k, 37), dtype), *part)), dtype
    )


@dtypes
@pytest.mark.parametrize("n", [1, 4, 7, 64])
def test_both_products(dtype, n):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(n, 37)).astype(dtype)
    right, left = rng.normal(size=37), rng.normal(size=n)  # wider than the matrix
    found = both("both_products", lambda: (matrix, right, left, np.ones(n), np.ones(37)))
    assert_same(found, np.float64)


@dtypes
def test_exponential(dtype):
    raw = -np.concatenate([np.geomspace(1e-8, 100.0, 500), np.linspace(0.0, 100.0, 500)])
    raw = np.ascontiguousarray(raw.reshape(20, 50), dtype=dtype)
    exact = np.exp(raw.astype(np.float32).astype(np.float64))
    for _, out in (arguments for arguments, _ in both("exponential", lambda: (raw, blank(raw)))):
        normal = raw > -87.0
        np.testing.assert_allclose(out[normal], exact[normal], rtol=4e-7)
        assert out[~normal].max() < 2e-38
    odd = np.array([[0.0, 1e-3, -np.inf, np.nan]], dtype=dtype)  # rounding may leave a positive
    for _, out in (arguments for arguments, _ in both("exponential", lambda: (odd, blank(odd)))):
        np.testing.assert_array_equal(out, [[1.0, 1.0, 0.0, np.nan]])


def test_exponential_in_place():
    raw = -np.random.default_rng(0).random((30, 40), dtype=np.float32)
    exact = np.exp(raw)
    compiled.run("exponential", raw, raw)
    np.testing.assert_allclose(raw, exact, rtol=4e-7)


@dtypes
@pytest.mark.parametrize("count", [3, 512, 700])
def test_manhattan(dtype, count):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 7)).astype(np.float32)
    columns = np.ascontiguousarray(rng.normal(size=(count, 7)).astype(np.float32).T)
    exact = -0.3 * np.abs(X[:, :, None].astype(np.float64) - columns[None]).sum(axis=1)

    def arguments():  # the right half of a wider array
        return X, columns, -0.3, np.full((20, 2 * count), np.nan, dtype=dtype)[:, count:]

    for (*_, out), _ in both("manhattan", arguments):
        np.testing.assert_allclose(out, exact, rtol=1e-6)


@pytest.mark.parametrize("gamma", [1e-6, 0.1, 3.0])
def test_manhattan_line(gamma):
    rng = np.random.default_rng(0)
    away, step, coef = rng.normal(size=(30, 9)), rng.normal(size=(12, 9)), rng.normal(size=30)
    away[:, 0] = np.sign(
        away[:, 0]
    )  # a line along 0, one that ends at a crossing, one that starts there
    step[:4, 0], away[5, 1], step[2, 3] = 1.0, 0.0, 0.0
    found = both("manhattan_line", lambda: (away, step, coef, gamma, np.zeros((12, 9))))
    assert_same(found, np.float64)
    t = (np.arange(20_000) + 0.5) / 20_000
    for i in (0, 7):
        gap = away[:, None, :] - t[None, :, None] * step[i]
        near = np.exp(-gamma * np.abs(gap).sum(axis=2))
        slow = gamma * np.einsum("j,jt,jtf->f", coef, near, np.sign(gap)) / t.size
        np.testing.assert_allclose(found[1][0][4][i], slow, atol=1e-3 * gamma)


def blank(raw):
    return np.empty(raw.shape, dtype=np.float32)


def test_the_loops_as_plain_python_are_the_same_functions():
    """What numba compiles is also valid Python: nothing depends on how it is run."""
    X, positive, rng = rows(40, 5)
    pos, neg = rng.choice(np.flatnonzero(positive), 60), rng.choice(np.flatnonzero(~positive), 60)
    ends = []
    for run in (loops.pair_sgd, twins.pair_sgd):
        w, mean = np.zeros(5), np.zeros(5)
        run(X, pos, neg, w, mean, 0, 0, (0.01, 100.0, 7, 5, 0.0))
        ends.append((w, mean))
    np.testing.assert_allclose(ends[0], ends[1])


# What the formulas say


def test_algorithm_3_by_hand():
    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    w, mean = np.zeros(2), np.zeros(2)
    one = np.zeros(1, dtype=np.intp)
    # t = 1: margin 0 < 1, step 1 / (0.5 * (1 + 3)) = 0.5 along (1, -2)
    twins.pair_sgd(X, one, one + 1, w, mean, 0, 0, (0.5, 3.0, 2, 1, 0.0))
    np.testing.assert_allclose(w, [0.5, -1.0])
    np.testing.assert_allclose(mean, [0.5, -1.0])
    # t = 2: margin 2.5, no step; shrunk by 2 / (2 + 3); averaged with the first
    _, q, active = twins.pair_sgd(X, one, one + 1, w, mean, 1, 1, (0.5, 3.0, 2, 1, 0.0))
    np.testing.assert_allclose(w, [0.3, -0.6])
    np.testing.assert_allclose(mean, [0.4, -0.8])
    assert (q, active) == (2, 0)


def test_solam_follows_the_gradient_of_its_saddle_function():
    def saddle(w, a, b, alpha, x, up, p):
        s = w @ x
        own = (1 - p) * (s - a) ** 2 if up else p * (s - b) ** 2
        return own + 2 * (1 + alpha) * (-(1 - p) * s if up else p * s) - p * (1 - p) * alpha**2

    rng = np.random.default_rng(0)
    for up in (True, False):
        x, w = rng.normal(size=(2, 3))
        state = np.array([0.3, -0.2, 0.4, 0.35])
        t, zeta = 10, 0.1
        p = state[3] + (up - state[3]) / (t + 1)
        at = np.concatenate([w, state[:3]])

        def value(v, x=x, up=up, p=p):
            return saddle(v[:3], v[3], v[4], v[5], x, up, p)

        gradient = np.array([(value(at + h) - value(at - h)) / 2e-6 for h in 1e-6 * np.eye(6)])
        eta = zeta / np.sqrt(t + 1)
        expected = at - eta * gradient * np.array([1, 1, 1, 1, 1, -1])  # alpha climbs
        twins.solam(x[None], np.array([up]), w, np.zeros(3), state, t, 1.0, (zeta, 1e6, 1e6))
        np.testing.assert_allclose(np.concatenate([w, state[:3]]), expected, atol=1e-7)


def test_oam_takes_the_passive_aggressive_step():
    """Just far enough for the pair to have margin 1, or as far as C allows."""
    for C, wanted in ((1e6, 1.0), (0.02, None)):
        w = np.zeros(2)
        buffers = tuple(np.zeros((2, 4, 2)))
        X, positive = np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([False, True])
        twins.oam(X, positive, np.array([0, 0]), w, buffers, (0, 0), C)
        margin = w @ (X[1] - X[0])
        assert margin == pytest.approx(wanted if wanted else 0.5 * C * 5.0)


# Reservoirs


def test_a_reservoir_is_a_uniform_sample():
    rng = np.random.default_rng(0)
    X = np.arange(60.0)[:, None]
    counts = np.zeros(60)
    for _ in range(3000):
        sample = Reservoir(10, 1, np.float64)
        for part in np.array_split(np.arange(60), 4):  # comes in chunks
            sample.add(X, part, rng)
        assert len(np.unique(sample.rows)) == 10
        counts[sample.rows[:, 0].astype(int)] += 1
    np.testing.assert_allclose(counts / 3000, 1 / 6, atol=0.035)


def test_a_reservoir_holds_all_until_it_is_full():
    sample = Reservoir(100, 1, np.float32)
    sample.add(np.arange(30.0)[:, None], np.arange(30), np.random.default_rng(0))
    np.testing.assert_array_equal(sample.rows[:, 0], np.arange(30))


# How they are run


@pytest.mark.parametrize("make", [
    lambda: PairSGD(6, np.float64, alpha=1e-3, buffer_size=5),
    lambda: OAM(6, np.float64, C=0.1, buffer_size=5),
    lambda: SOLAM(6, np.float64, zeta=0.1, radius=10.0, buffer_size=5),
])  # fmt: skip
def test_without_numba_the_twins_give_the_same(make, monkeypatch):
    X, positive, _ = rows(120, 6)
    ends = []
    for absent in (False, True):
        compiled._loop.cache_clear()
        if absent:
            monkeypatch.setitem(sys.modules, "numba", None)
        learner, rng = make(), np.random.default_rng(3)
        learner.epoch(X, positive, np.ones(120), rng)
        learner.stream(X[:50], positive[:50], rng)
        ends.append(learner.coef)
        assert (compiled._loop("oam")[1] is None) == absent
    compiled._loop.cache_clear()
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-8, atol=1e-10)


SCRIPT = """
import sys
import numpy as np
from aucmax.runtime import compiled
compiled._SILENT = {silent}
print(compiled.run("pair_sgd", np.eye(2), np.array([0]), np.array([1]), np.zeros(2), np.zeros(2),
                    0, 0, (1.0, 1.0, 16, 16, 0.0)))
"""


def test_compiling_is_announced_only_when_it_takes_long(tmp_path):
    import os

    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    shown = []
    for silent in (0.0, 30.0):  # the second run finds the first one's work on disk
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(silent=silent)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == "(1, 0, 1)"
        shown.append(done.stderr)
    assert "compiling" in shown[0]
    assert shown[1] == ""
    assert list(tmp_path.rglob("*.nbc"))


def test_where_no_cache_can_be_written_it_still_compiles(monkeypatch):
    import numba

    real = numba.njit

    def njit(*arguments, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(*arguments, **options)

    monkeypatch.setattr(numba, "njit", njit)
    compiled._loop.cache_clear()
    w = np.zeros(2)
    compiled.run(
        "pair_sgd", np.eye(2), *np.eye(2, dtype=int), w, np.zeros(2), 0, 0, (1.0, 1.0, 9, 9, 0.0)
    )
    compiled._loop.cache_clear()
    assert w.any()


ZETAS, RADII = np.array([0.05, 1.0, 10.0, 100.0]), np.array([1e5, 1.0, 0.1, 10.0])


@dtypes
def test_solam_grid(dtype):
    X, positive, _ = rows(n=40, dtype=dtype)

    def arguments():
        w = np.random.default_rng(1).normal(size=(23, 4)).astype(dtype)
        w *= 0.1 / np.linalg.norm(w, axis=0)
        keep, coef = np.stack([np.ones(4), np.zeros(4)]), np.zeros((2, 40, 4))
        learnt = (np.zeros((3, 4)), (w * w).sum(axis=0).astype(float), keep, coef)
        return X @ X.T, X @ w, positive, learnt, np.stack([ZETAS, RADII]), (7, 0.4, 8.0)

    assert_same(both("solam_grid", arguments), dtype)


@dtypes
def test_many_settings_of_solam_learn_what_each_learns_alone(dtype):
    X, positive, _ = rows(n=300, dtype=dtype)
    grid = SOLAMGrid(23, dtype, zeta=ZETAS, radius=RADII)
    rng = np.random.default_rng(5)
    for _ in range(3):
        grid.epoch(X, positive, rng)
    for column, (zeta, radius) in enumerate(zip(ZETAS, RADII, strict=True)):
        alone = SOLAM(23, dtype, zeta=zeta, radius=radius, buffer_size=1)
        rng = np.random.default_rng(5)
        for _ in range(3):
            alone.epoch(X, positive, np.ones(300), rng)
        size = np.abs(alone.coef).max()
        np.testing.assert_allclose(grid.coef[:, column], alone.coef, atol=TOLERANCE[dtype] * size)
