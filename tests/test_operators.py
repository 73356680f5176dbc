import numpy as np
import pytest
from scipy import sparse

from aucmax import NystroemFeatures
from aucmax.features.projection import Projection
from aucmax.operators import blocks
from aucmax.operators import in_memory as memory
from aucmax.operators.blocks import BlockOperator
from aucmax.operators.in_memory import FeatureOperator, KernelOperator


def matrices(dtype=np.float64, kernels=1, n=300, v=20, r=6):
    """Kernel values, and a projection of them, of one kernel or several."""
    rng = np.random.default_rng(0)
    sides = [v // kernels, r // kernels]
    places = np.split(rng.permutation(r), kernels)
    projection = Projection([rng.normal(size=sides) for _ in places], [np.sort(own) for own in places])
    return rng.random((n, v)).astype(dtype), projection


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "kind", ["dense", "csr", "folded", "folded, 2", "blocks", "blocks, 2", "blocks as they are"]
)
def test_products_are_those_of_the_explicit_matrix(kind, dtype, k, monkeypatch):
    monkeypatch.setattr(memory, "_SUM_ROWS", 64)  # several partial sums
    monkeypatch.setattr(blocks, "_SUM_ROWS", 64)
    block, projection = matrices(dtype, kernels=2 if kind.endswith("2") else 1)
    if kind.startswith("folded"):
        operator, F = KernelOperator(block, projection), block.astype(float) @ projection.dense()
    elif kind in ("blocks", "blocks, 2"):
        operator = BlockOperator(block / 2, 20, projection, lambda X, out: np.add(X, X, out=out))
        F = block.astype(float) @ projection.dense()
    elif kind == "blocks as they are":
        operator, F = BlockOperator(block, 20), block.astype(float)
    else:
        F = block.astype(float)
        operator = FeatureOperator(sparse.csr_matrix(block) if kind == "csr" else block)
    rng = np.random.default_rng(1)
    coef, gradient = rng.normal(size=(F.shape[1], k)), rng.normal(size=(F.shape[0], k))
    tolerance = 1e-10 if dtype == np.float64 else 1e-3
    scores, pulled = operator.scores(coef), operator.pullback(gradient)
    assert scores.dtype == pulled.dtype == np.float64
    np.testing.assert_allclose(scores, F @ coef, atol=tolerance)
    np.testing.assert_allclose(pulled, F.T @ gradient, atol=tolerance)
    index = np.array([5, 3, 299])
    np.testing.assert_allclose(operator.rows(index), F[index], atol=tolerance)
    for columns in (slice(2, 5), slice(0, 1), slice(3, None), slice(4, 4)):
        some = operator.rows(index, columns)
        np.testing.assert_allclose(some, F[index][:, columns], atol=tolerance)
        assert some.dtype == dtype
    assert (operator.n_rows, operator.n_features) == F.shape
    assert operator.nbytes > 0


def test_float32_sums_over_many_rows_stay_exact():
    block = np.full((400_000, 3), 0.1, dtype=np.float32)
    pulled = FeatureOperator(block).pullback(np.ones((400_000, 1)))
    np.testing.assert_allclose(pulled[:, 0], 400_000 * float(np.float32(0.1)), rtol=2e-5)


def test_folded_and_projected_are_the_same_operator():
    X = np.random.default_rng(0).normal(size=(200, 3))
    features = NystroemFeatures(50, gamma=1.0, random_state=0).fit(X)
    folded = KernelOperator(features.map.kernel_block(X), features.map.projection)
    projected = FeatureOperator(features.transform(X))
    coef = np.random.default_rng(1).normal(size=(features.rank_, 2))
    np.testing.assert_allclose(folded.scores(coef), projected.scores(coef), atol=1e-9)
    gradient = np.random.default_rng(2).normal(size=(200, 2))
    np.testing.assert_allclose(folded.pullback(gradient), projected.pullback(gradient), atol=1e-9)


@pytest.mark.parametrize("k", [2, 4, 7, 15])
def test_thin_products_through_compiled_loops_are_blas_products(k, monkeypatch):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(9000, 40))
    W, G = rng.normal(size=(40, k)), rng.normal(size=(9000, k))
    monkeypatch.setattr(memory, "_THIN_BYTES", 0)
    operator = FeatureOperator(F)
    np.testing.assert_allclose(operator.scores(W), F @ W, atol=1e-10)
    np.testing.assert_allclose(operator.pullback(G), F.T @ G, atol=1e-10)
