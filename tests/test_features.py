import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

from aucmax import FourierFeatures, NystroemFeatures
from aucmax.features import kernels, landmarks
from aucmax.features.bandwidth import resolve_gamma as gamma_of_rows
from aucmax.features.kernel_products import kernel_product
from aucmax.features.kernels import KernelSpec, LandmarkKernel
from aucmax.rows.interface import as_rows
from aucmax.runtime.threads import Scratch, ahead, over_blocks

PAIRWISE = {
    "rbf": lambda X, U: pairwise.rbf_kernel(X, U, gamma=0.3),
    "laplacian": lambda X, U: pairwise.laplacian_kernel(X, U, gamma=0.3),
    "polynomial": lambda X, U: pairwise.polynomial_kernel(X, U, gamma=0.3, degree=2, coef0=0.5),
    "linear": lambda X, U: pairwise.linear_kernel(X, U),
    kernels.BOTH: lambda X, U: np.hstack(
        [pairwise.rbf_kernel(X, U, gamma=0.3), pairwise.laplacian_kernel(X, U, gamma=0.2)]
    ),
}


def resolve_gamma(gamma, X, weight, kernel):
    return gamma_of_rows(gamma, as_rows(X), weight, kernel)


def data(n=120, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), (rng.random(n) < 0.3).astype(int)


@parametrize_with_checks(
    [
        NystroemFeatures(),
        FourierFeatures(n_components=20),
        NystroemFeatures(kernel="laplacian"),
        NystroemFeatures(kernel="rbf+laplacian"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", kernels.LANDMARK_KERNELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("count", [30, 600])
def test_kernels_are_scikit_learns(name, dtype, as_csr, count):
    X, _ = data()
    U = np.resize(X, (count, 4)) + 0.1
    shape = {"gamma": 0.3, "degree": 2, "coef0": 0.5, "gamma_l1": 0.2}
    kernel = LandmarkKernel(U, KernelSpec(name, **shape), dtype)
    rows = sparse.csr_matrix(X.astype(dtype)) if as_csr else X.astype(dtype)
    out = kernel(rows, np.empty((len(X), kernel.width), dtype=dtype))
    tolerance = 1e-10 if dtype == np.float64 else 2e-5
    np.testing.assert_allclose(out, PAIRWISE[name](X, U), rtol=tolerance, atol=tolerance)


def test_two_kernels_are_approximated_as_their_mean():
    X, _ = data(n=60)
    made = NystroemFeatures(landmarks=X, kernel="rbf+laplacian", gamma=0.3, cut=1e-12).fit(X)
    made.gamma_l1_ = 0.2
    made = made.with_gamma(0.3)
    parts = np.split(PAIRWISE[kernels.BOTH](X, X), 2, axis=1)
    features = made.transform(X)
    np.testing.assert_allclose(features @ features.T, 0.5 * (parts[0] + parts[1]), atol=1e-8)
    # Those that matter most come first, whichever kernel they are of.
    sizes = (features**2).sum(axis=0)
    assert (np.diff(sizes) <= 1e-8).all()
    assert made.projection_.shape == (120, made.rank_)
    of_rbf = np.abs(made.projection_[:60]).max(axis=0) > 0
    of_other = np.abs(made.projection_[60:]).max(axis=0) > 0
    assert (of_rbf != of_other).all()
    assert of_rbf[:20].any()
    assert of_other[:20].any()
    # Zeros are not kept.
    assert made.map.projection.nbytes == made.projection_.nbytes // 2 == 8 * 60 * made.rank_
    coef = np.random.default_rng(0).normal(size=(made.rank_, 3))
    np.testing.assert_allclose(made.map.fold(coef), made.projection_ @ coef, atol=1e-9)


def test_the_laplacians_width_follows_its_rule_beside_another():
    X, _ = data()
    made = NystroemFeatures(20, kernel="rbf+laplacian", gamma=5.0, random_state=0).fit(X)
    assert made.gamma_ == 5.0
    assert made.gamma_l1_ == resolve_gamma("distance", X, np.ones(len(X)), "laplacian")
    assert made.with_gamma(2.0).gamma_l1_ == made.gamma_l1_


def test_float32_distances_survive_a_far_origin():
    X, _ = data()
    far = (X + 1000.0).astype(np.float32)
    exact = pairwise.rbf_kernel(far.astype(np.float64), gamma=0.3)
    out = LandmarkKernel(far, KernelSpec("rbf", 0.3), np.float32)(far, np.empty((120, 120), np.float32))
    np.testing.assert_allclose(out, exact, atol=1e-4)


@pytest.mark.parametrize("name", kernels.KERNELS)
@pytest.mark.parametrize("wide", [False, True])
def test_many_landmarks_go_through_compiled_loops(name, wide):
    rng = np.random.default_rng(0)
    X, U = rng.normal(size=(500, 4)), rng.normal(size=(300, 4))
    kernel = LandmarkKernel(U, KernelSpec(name, 0.3, 2, 0.5), np.float32, wide)
    exact = PAIRWISE[name](X, U)
    assert kernels.loops_pay(exact.astype(np.float32))
    out = kernel(X.astype(np.float32), np.empty((500, 300), np.float32))
    np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-5)
    coef = rng.normal(size=(300, 2))
    scores = kernel_product(kernel, X.astype(np.float32), coef)
    np.testing.assert_allclose(scores, exact @ coef, atol=2e-5 * np.abs(exact @ coef).max())
    order = rng.permutation(500)
    if wide:  # the same score in any company
        np.testing.assert_array_equal(
            kernel_product(kernel, X[order[:99]].astype(np.float32), coef), scores[order[:99]]
        )


def test_gamma_rules():
    X, _ = data()
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    ones = np.ones(len(X))
    squared = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    assert resolve_gamma("distance", X, ones, "rbf") == pytest.approx(1 / squared.mean())
    assert resolve_gamma("scale", X, ones, "rbf") == pytest.approx(1 / (X.shape[1] * X.var()))
    assert resolve_gamma(0.7, X, ones, "rbf") == 0.7
    absolute = np.abs(X - X.mean(axis=0)).sum(axis=1)
    assert resolve_gamma("distance", X, ones, "laplacian") == pytest.approx(1 / absolute.mean())
    repeated = np.repeat(X, weight.astype(int), axis=0)
    for rule in ("distance", "scale"):
        for kernel in ("rbf", "laplacian"):
            expected = resolve_gamma(rule, repeated, np.ones(len(repeated)), kernel)
            assert resolve_gamma(rule, X, weight, kernel) == pytest.approx(expected, rel=1e-10)
            csr = sparse.csr_matrix(X)
            assert resolve_gamma(rule, csr, weight, kernel) == pytest.approx(expected, rel=1e-10)
    far = resolve_gamma("scale", X + 1e6, ones, "rbf")
    assert far == pytest.approx(1 / (X.shape[1] * X.var()), rel=1e-6)


@pytest.mark.parametrize("rule", ["distance", "scale"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gamma_of_constant_data_is_one(rule, kernel, dtype):
    X = np.full((500, 2), 0.1, dtype=dtype)
    weight = np.random.default_rng(0).random(500)
    assert resolve_gamma(rule, X, weight, kernel) == 1.0


def test_gamma_takes_the_first_80000_rows(monkeypatch):
    X, _ = data()
    monkeypatch.setattr("aucmax.features.bandwidth.GAMMA_ROWS", 50)
    assert resolve_gamma("distance", X, np.ones(120), "rbf") == resolve_gamma(
        "distance", X[:50], np.ones(50), "rbf"
    )


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_as_many_landmarks_as_rows_reproduce_the_kernel(name):
    X, _ = data()
    features = NystroemFeatures(120, kernel=name, gamma=0.3, degree=2, coef0=0.5, cut=1e-12)
    F = features.fit_transform(X)
    np.testing.assert_allclose(F @ F.T, PAIRWISE[name](X, X), atol=1e-6)
    assert features.spectrum_kept_ == pytest.approx(1.0, abs=1e-9)


def test_gram_error_falls_with_landmarks():
    X, _ = data(n=400)
    exact = pairwise.rbf_kernel(X, gamma=0.2)
    errors = []
    for v in (5, 20, 80, 320):
        F = NystroemFeatures(v, gamma=0.2, random_state=0).fit_transform(X)
        errors.append(np.linalg.norm(F @ F.T - exact))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01 * errors[0]


def test_repeated_landmarks_are_cut_not_amplified():
    X, _ = data()
    points = np.vstack([X[:20], X[:20], X[:20] + 1e-9]).astype(np.float32)
    features = NystroemFeatures(landmarks=points, gamma=0.3).fit(X.astype(np.float32))
    assert features.rank_ <= 20
    F = features.transform(X[:20].astype(np.float32))
    np.testing.assert_allclose(F @ F.T, pairwise.rbf_kernel(X[:20], gamma=0.3), atol=1e-3)
    assert 0.99 < features.spectrum_kept_ <= 1.0


def test_block_size_changes_nothing():
    X, _ = data(n=333)
    features = NystroemFeatures(40, gamma=0.3, random_state=0).fit(X)
    whole = features.map.linear(X, features.projection_, block_rows=1000)
    for rows in (1, 7, 64):
        part = features.map.linear(X, features.projection_, block_rows=rows)
        np.testing.assert_allclose(part, whole, atol=1e-10)
    np.testing.assert_allclose(features.transform(X), whole, atol=1e-10)


def test_transform_holds_only_blocks_beyond_its_output():
    import tracemalloc

    X = np.random.default_rng(0).normal(size=(60_000, 5)).astype(np.float32)
    features = NystroemFeatures(400, kernel="linear", random_state=0).fit(X)  # rank 5 of 400
    features.transform(X[:10])  # a loop that is compiled meanwhile would count
    tracemalloc.start()
    F = features.transform(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert F.shape == (60_000, 5)
    assert peak < F.nbytes + 32e6 < 60_000 * 400 * 4  # the whole kernel block would be 96 MB


def test_an_error_inside_a_block_comes_out():
    def work(rows):
        raise RuntimeError(f"at {rows.start}")

    with pytest.raises(RuntimeError, match="at 0"):
        over_blocks(work, 100, 1, block_rows=10)


@pytest.mark.parametrize("strategy", landmarks.STRATEGIES)
@pytest.mark.parametrize("as_csr", [False, True])
def test_landmark_strategies(strategy, as_csr):
    X, y = data(n=300)
    rows = sparse.csr_matrix(X) if as_csr else X
    features = NystroemFeatures(50, landmarks=strategy, random_state=0).fit(rows, y)
    assert features.landmarks_.shape == (50, 4)
    assert isinstance(features.landmarks_, np.ndarray)
    again = clone(features).fit(rows, y)
    np.testing.assert_array_equal(features.landmarks_, again.landmarks_)


def test_fewer_distinct_rows_than_centroids():
    """Each distinct row is a centre then, and is kept once."""
    distinct = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]])
    X = np.repeat(distinct, 40, axis=0)
    features = NystroemFeatures(20, landmarks="centroids", random_state=0).fit(X)
    np.testing.assert_allclose(features.landmarks_, distinct)


def test_class_kmeans_gives_the_rare_class_its_share():
    X, _ = make_blobs([990, 10], centers=[[0, 0], [9, 9]], random_state=0, shuffle=False)
    y = np.repeat([0, 1], [990, 10])
    features = NystroemFeatures(40, landmarks="class-kmeans", random_state=0).fit(X, y)
    near_rare = (features.landmarks_ > 5).all(axis=1).sum()
    assert near_rare == 10  # all of its rows; the rest goes to the common class
    assert len(features.landmarks_) == 40


def test_root_kmeans_lies_between():
    X, _ = make_blobs([900, 100], centers=[[0, 0], [9, 9]], random_state=0, shuffle=False)
    y = np.repeat([0, 1], [900, 100])
    features = NystroemFeatures(40, landmarks="root-kmeans", random_state=0).fit(X, y)
    near_rare = (features.landmarks_ > 5).all(axis=1).sum()
    assert near_rare == 10  # roots of 900 and 100 are 30 and 10
    assert len(features.landmarks_) == 40
    assert landmarks.root_shares([3, 10**6], 500) == [1, 499]


def test_own_landmarks():
    X, _ = data()
    features = NystroemFeatures(landmarks=X[:7]).fit(X)
    np.testing.assert_array_equal(features.landmarks_, X[:7])
    with pytest.raises(ValueError, match="landmarks has 3 columns, X has 4"):
        NystroemFeatures(landmarks=X[:7, :3]).fit(X)


def test_kmeans_runs_on_a_sample_of_large_data_and_says_so(monkeypatch, capsys):
    X, _ = data(n=2000)
    monkeypatch.setattr(landmarks, "ROWS_PER_LANDMARK", 20)
    features = NystroemFeatures(10, random_state=0, verbose=True).fit(X)
    assert features.landmark_rows_ == 200
    assert "10 landmarks by kmeans on 200 of 2,000 rows" in capsys.readouterr().err


def test_more_landmarks_than_rows_says_so_and_works():
    X, _ = data(n=20)
    with pytest.warns(UserWarning, match="n_landmarks=50 is more than the 20 rows"):
        features = NystroemFeatures(50).fit(X)
    assert len(features.landmarks_) == 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NystroemFeatures().fit(X)  # nobody asked for a number


def test_row_order_does_not_matter_when_every_row_is_a_landmark():
    X, _ = data(n=50)
    order = np.random.default_rng(0).permutation(50)
    a, b = NystroemFeatures().fit(X), NystroemFeatures().fit(X[order])
    np.testing.assert_allclose(a.transform(X), b.transform(X), atol=1e-8)


def test_zero_weight_rows_are_absent_from_landmarks_and_bandwidth():
    X, y = data(n=300)
    weight = (np.arange(300) % 3 > 0).astype(float)
    keep = weight > 0
    for strategy in landmarks.STRATEGIES:
        kwargs = {"landmarks": strategy, "n_landmarks": 30, "random_state": 0}
        a = NystroemFeatures(**kwargs).fit(X, y, sample_weight=weight)
        b = NystroemFeatures(**kwargs).fit(X[keep], y[keep], sample_weight=weight[keep])
        assert a.gamma_ == b.gamma_
        np.testing.assert_array_equal(a.landmarks_, b.landmarks_)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_fourier_features_approximate_the_kernel(kernel):
    X, _ = data(n=30)
    F = FourierFeatures(20_000, kernel=kernel, gamma=0.3, random_state=0).fit_transform(X)
    np.testing.assert_allclose(F @ F.T, PAIRWISE[kernel](X, X), atol=0.05)
    csr = FourierFeatures(200, kernel=kernel, gamma=0.3, random_state=0)
    np.testing.assert_allclose(
        csr.fit_transform(sparse.csr_matrix(X)), csr.fit_transform(X), atol=1e-10
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("make", [lambda: NystroemFeatures(5), lambda: FourierFeatures(5)])
def test_frames_in_and_out(library, make):
    X, _ = data()
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names) if library == "pandas" else pl.DataFrame(X, schema=names)
    features = make().set_output(transform=library).fit(frame)
    out = features.transform(frame)
    assert list(out.columns) == list(features.get_feature_names_out())
    assert out.shape == (120, 5)
    assert list(features.feature_names_in_) == names
    prefix = type(features).__name__.lower()
    assert features.get_feature_names_out()[0] == f"{prefix}0"


BAD = [
    (NystroemFeatures(kernel="sigmoid"), "kernel must be one of 'rbf'"),
    (NystroemFeatures(gamma=-1.0), "gamma must be .*a number above 0; got -1.0"),
    (NystroemFeatures(gamma="wide"), "gamma must be .*one of 'distance', 'paper', 'scale'"),
    (NystroemFeatures(0), "n_landmarks must be .*a whole number of at least 1; got 0"),
    (NystroemFeatures(2.5), "n_landmarks must be .*a whole number"),
    (NystroemFeatures(landmarks="grid"), "landmarks must be one of 'centroids', 'kmeans'"),
    (NystroemFeatures(cut=2.0), "cut must be a number of at least 0 and at most 0.5; got 2.0"),
    (NystroemFeatures(degree=0, kernel="polynomial"), "degree must be"),
    (NystroemFeatures(landmarks="class-kmeans"), "requires y to be passed"),
    (FourierFeatures(kernel="linear"), "kernel must be one of 'rbf', 'laplacian'"),
    (FourierFeatures(0), "n_components must be"),
]


@pytest.mark.parametrize(("features", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_parameters_are_named(features, message):
    X, _ = data()
    with pytest.raises(ValueError, match=message):
        features.fit(X)


def test_a_kernel_that_overflows_or_vanishes_is_named():
    X, _ = data()
    with pytest.raises(ValueError, match="overflows at gamma"):
        NystroemFeatures(kernel="polynomial", gamma=1e200).fit(X)
    with pytest.raises(ValueError, match="kernel of the landmarks is zero"):
        NystroemFeatures(kernel="linear").fit(np.zeros((20, 3)))


def test_a_bandwidth_that_tells_nothing_apart_is_said():
    X, _ = data()
    with pytest.warns(UserWarning, match=r"cannot tell the landmarks apart \(rank 1\)"):
        NystroemFeatures(gamma=1e-12).fit(X)


@pytest.mark.parametrize("kernel", kernels.KERNELS)
def test_a_map_at_another_gamma_is_the_map_fitted_there(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    first = NystroemFeatures(20, kernel=kernel, gamma=0.3, random_state=0).fit(X)
    other = first.with_gamma(0.6)
    direct = NystroemFeatures(landmarks=first.landmarks_, kernel=kernel, gamma=0.6).fit(X)
    np.testing.assert_allclose(other.transform(X), direct.transform(X), atol=1e-8)
    assert first.gamma_ == 0.3
    raw = first.map.raw_block(X)
    for each in (first, other):
        np.testing.assert_allclose(each.map.kernel_block(X, raw), each.map.kernel_block(X), atol=1e-12)
        np.testing.assert_allclose(
            each.map.linear(X, each.projection_, raw=raw), each.transform(X), atol=1e-9
        )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_fourier_features_at_another_gamma_are_those_drawn_there(kernel):
    X = np.random.default_rng(0).normal(size=(50, 3))
    first = FourierFeatures(30, kernel=kernel, gamma=0.3, random_state=0).fit(X)
    direct = FourierFeatures(30, kernel=kernel, gamma=1.2, random_state=0).fit(X)
    np.testing.assert_allclose(first.with_gamma(1.2).transform(X), direct.transform(X), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [3, 37])
@pytest.mark.parametrize(
    "model",
    [
        NystroemFeatures(150, gamma=0.5, random_state=0),
        NystroemFeatures(150, kernel="polynomial", random_state=0),
        NystroemFeatures(40, kernel="laplacian", random_state=0),
        NystroemFeatures(150, kernel="rbf+laplacian", random_state=0),
        FourierFeatures(150, random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__} {model.kernel}",
)
def test_equal_rows_have_equal_scores_wherever_they_stand(model, dtype, width):
    """Rounding that depends on a row's place would break ties; not every BLAS can be kept from it."""
    found = [info.get("architecture") for info in threadpool_info() if info["user_api"] == "blas"]
    if not set(found) <= {"Haswell", "Zen"}:
        pytest.skip(f"not known of BLAS for {found}")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1201, width)).astype(dtype)
    copies = rng.choice(1201, 90, replace=False)
    X[copies] = X[copies[0]]
    fitted = clone(model).fit(X)
    coef = rng.normal(size=(fitted.transform(X[:1]).shape[1], 1))
    folded = fitted.map.fold(coef)
    together = fitted.map.linear(X, folded)[:, 0]
    assert len(set(together[copies])) == 1
    for count in (1, 2, 3, 63, 64, 65, 500):
        np.testing.assert_array_equal(fitted.map.linear(X[:count], folded)[:, 0], together[:count])
    np.testing.assert_array_equal(fitted.map.linear(X[700:707], folded)[:, 0], together[700:707])


def test_values_made_ahead_come_in_order_and_so_do_errors():
    made, main = [], threading.get_ident()

    def numbers():
        for i in range(5):
            made.append((i, threading.get_ident() == main))
            yield i
        raise ValueError("at the end")

    seen = []
    with pytest.raises(ValueError, match="at the end"):
        seen.extend(ahead(numbers()))
    assert made == [(i, False) for i in range(5)]
    assert list(ahead([])) == []
    assert next(ahead(iter([3, 4]))) == 3  # and what is left is left


def test_scratch_is_one_array_a_thread():
    scratch = Scratch()
    first = scratch.array((4, 5), np.float64)
    first[:] = 7.0
    smaller = scratch.array((3, 2), np.float32)
    assert np.shares_memory(first, smaller)
    assert scratch.array((100, 5), np.float32).shape == (100, 5)
    others = []
    thread = threading.Thread(target=lambda: others.append(scratch.array((4, 5), np.float64)))
    thread.start()
    thread.join()
    assert not np.shares_memory(first, others[0])


def test_landmarks_without_a_projection_are_no_fitted_map():
    X = np.random.default_rng(0).normal(size=(60, 3))
    mapped = NystroemFeatures(10, random_state=0).fit(X).fit_landmarks(X[:30])
    with pytest.raises(NotFittedError):
        mapped.transform(X)
    whole = NystroemFeatures(10, random_state=0).fit(X[:30])
    again = mapped.with_gamma(mapped.gamma_)
    np.testing.assert_array_equal(again.transform(X), whole.transform(X))
