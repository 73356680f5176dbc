import numpy as np
import pytest
from scipy import sparse

from aucmax.features.projection import Projection
from aucmax.operators.in_memory import FeatureOperator, KernelOperator
from aucmax.pairs import PairLoss
from aucmax.solvers import conjugate_gradients, newton_steps, preconditioner, starts
from aucmax.solvers.newton import Newton, minimize
from aucmax.solvers.newton_state import FORCING, Data, State
from aucmax.solvers.options import DEFAULT_STOPPING, Hooks, Stopping
from tests import oracle


def problem(seed=0, n=150, r=12, share=0.25):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, r)) * np.logspace(0, -2, r)
    positive = rng.random(n) < share
    positive[:2] = [True, False]
    F[positive, 1] += 0.8
    return F, positive, rng.integers(0, 4, n).astype(float)


def objective(F, positive, C, w, weight=None):
    return 0.5 * w @ w + C * PairLoss(positive, weight).at(F @ w).value


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0, 1000.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_independent_optimiser_finds_no_lower_value(C, weighted):
    F, positive, weight = problem()
    weight = weight if weighted else None
    best, coef = oracle.best_objective(F, positive, C, weight)
    solution = minimize(
        FeatureOperator(F), [PairLoss(positive, weight)], np.array([C]), stopping=Stopping(tol=1e-10)
    )
    assert solution.converged.all()
    assert solution.objective[0] <= best * (1 + 1e-7)
    np.testing.assert_allclose(solution.coef[:, 0], coef, atol=1e-3 * np.abs(coef).max())


def test_the_preconditioner_changes_the_way_not_the_end():
    F, positive, _ = problem(n=2000, r=40)
    operator, losses, C = FeatureOperator(F), [PairLoss(positive)], np.array([1e3])
    with_it = minimize(operator, losses, C, stopping=Stopping(tol=1e-8))
    without = minimize(operator, losses, C, stopping=Stopping(tol=1e-8), precondition=False)
    assert sum(r.preconditioners for r in with_it.history) >= 1
    assert sum(r.preconditioners for r in without.history) == 0
    np.testing.assert_allclose(with_it.objective, without.objective, rtol=1e-6)
    assert with_it.passes < without.passes


def test_a_preconditioner_on_all_rows_is_the_inverse_hessian():
    F, positive, weight = problem()
    loss = PairLoss(positive, weight)
    rng = np.random.default_rng(0)
    scores = F @ rng.normal(size=F.shape[1])
    _, _, hessian = oracle.pair_loss(scores, positive, weight)
    matrix = np.eye(F.shape[1]) + 3.0 * F.T @ hessian @ F
    point = loss.at(scores)
    made = preconditioner.Curvature(FeatureOperator(F), loss, point, scores, rng, 3.0, 10_000)
    inverse = made.factor(3.0)
    vector = rng.normal(size=F.shape[1])
    np.testing.assert_allclose(inverse(vector), np.linalg.solve(matrix, vector), rtol=1e-8)


def test_whether_a_preconditioner_is_renewed_does_not_depend_on_the_problems_before(monkeypatch):
    F, positive, _ = problem(n=300, r=8)
    losses = [PairLoss(positive), PairLoss(positive)]
    # With a preconditioner the second problem would have a limit of its own, far above its products.
    monkeypatch.setattr(
        newton_steps, "patience", lambda _, built=None, share=1.0: 1e9 if built else 3.0
    )
    for first_has_one in (False, True):
        data = Data(FeatureOperator(F), losses, True, DEFAULT_STOPPING)
        state = State.at_zero(data, np.random.default_rng(0))
        for each in state.preconditioners:
            each.products = 10
        if first_has_one:
            newton_steps.build_preconditioner(data, state, 0)
        newton_steps.rebuild_slow(data, state, np.arange(2))
        assert state.preconditioners[1].curvature is not None


def test_the_sampled_hessian_is_unbiased():
    F, positive, weight = problem(n=400)
    loss = PairLoss(positive, weight)
    rng = np.random.default_rng(0)
    scores = F @ rng.normal(size=F.shape[1])
    point = loss.at(scores)
    exact = point.hessian_gram(F)
    draws = []
    for _ in range(300):
        rows, share = preconditioner._draw(loss, point.curvature(), 60, rng)
        assert rows.size < 120
        draws.append(loss.sample(rows, share).at(scores[rows]).hessian_gram(F[rows]))
    assert np.linalg.norm(np.mean(draws, axis=0) - exact) < 0.1 * np.linalg.norm(exact)


def test_of_very_many_columns_the_first_are_factored(monkeypatch):
    F, positive, _ = problem(n=500, r=30)
    F = F * np.logspace(2, -2, 30)  # as features of a kernel, which come in falling order
    losses, C = [PairLoss(positive)], np.array([1e3])
    full = minimize(FeatureOperator(F), losses, C, stopping=Stopping(tol=1e-9))
    without = minimize(FeatureOperator(F), losses, C, stopping=Stopping(tol=1e-9), precondition=False)
    monkeypatch.setattr(preconditioner, "MAX_FACTORED", 20)
    monkeypatch.setattr(preconditioner, "LEADING_FEATURES", 10)
    solution = minimize(FeatureOperator(F), losses, C, stopping=Stopping(tol=1e-9))
    assert solution.converged.all()
    assert sum(r.preconditioners for r in solution.history) > 0
    assert solution.passes < without.passes
    np.testing.assert_allclose(solution.objective, full.objective, rtol=1e-8)


def test_features_of_little_curvature_are_not_factored():
    F, positive, _ = problem(n=3000, r=30)
    F = F * np.logspace(1, -5, 30)
    loss, scores, rng = PairLoss(positive), np.zeros(3000), np.random.default_rng(0)
    point = loss.at(scores)
    diagonal = point.curvature() @ F**2
    for C in (1.0, 1e4):
        made = preconditioner.Curvature(FeatureOperator(F), loss, point, scores, rng, C)
        expected = np.flatnonzero(C * diagonal > 1.0).max() + 1
        assert abs(made.n_factored - expected) <= 1
        assert made.n_factored < 30
    # The minimum is the same as without a preconditioner.
    losses, C, stopping = [loss], np.array([1e4]), Stopping(tol=1e-9)
    with_it = minimize(FeatureOperator(F), losses, C, stopping=stopping)
    without = minimize(FeatureOperator(F), losses, C, stopping=stopping, precondition=False)
    np.testing.assert_allclose(with_it.objective, without.objective, rtol=1e-8)


def test_columns_beyond_those_factored_go_by_the_diagonal(monkeypatch):
    monkeypatch.setattr(preconditioner, "MAX_FACTORED", 3)
    monkeypatch.setattr(preconditioner, "LEADING_FEATURES", 3)
    F, positive, _ = problem(n=300, r=8)
    loss, scores, rng = PairLoss(positive), np.zeros(300), np.random.default_rng(0)
    point = loss.at(scores)
    made = preconditioner.Curvature(FeatureOperator(F), loss, point, scores, rng, 2.0, 1000)
    found = made.factor(2.0)
    exact = np.eye(8) + 2.0 * point.hessian_gram(F)
    expected = np.zeros((8, 8))
    expected[:3, :3] = np.linalg.inv(exact[:3, :3])
    expected[3:, 3:] = np.diag(1.0 / (1.0 + 2.0 * point.curvature() @ F[:, 3:] ** 2))
    vectors = rng.normal(size=(8, 4))
    got = np.column_stack([found(vector) for vector in vectors.T])
    np.testing.assert_allclose(got, expected @ vectors, rtol=1e-8)


def test_k_problems_equal_k_solves():
    F, positive, weight = problem(n=300)
    other = np.roll(positive, 7)
    losses = [PairLoss(positive), PairLoss(other), PairLoss(positive, weight), PairLoss(positive)]
    C = np.array([0.1, 1.0, 10.0, 300.0])
    together = minimize(FeatureOperator(F), losses, C, stopping=Stopping(tol=1e-11))
    for index, (loss, c) in enumerate(zip(losses, C, strict=True)):
        alone = minimize(FeatureOperator(F), [loss], np.array([c]), stopping=Stopping(tol=1e-11))
        np.testing.assert_allclose(together.objective[index], alone.objective[0], rtol=1e-8)
        np.testing.assert_allclose(together.coef[:, index], alone.coef[:, 0], atol=1e-4)
        np.testing.assert_allclose(together.scores[:, index], F @ together.coef[:, index], atol=1e-11)


def test_a_fold_is_a_problem_with_zero_weights():
    F, positive, _ = problem(n=200)
    weight = (np.arange(200) % 3 > 0).astype(float)
    keep = weight > 0
    fold = minimize(
        FeatureOperator(F), [PairLoss(positive, weight)], np.array([5.0]), stopping=Stopping(tol=1e-9)
    )
    subset = minimize(
        FeatureOperator(F[keep]),
        [PairLoss(positive[keep])],
        np.array([5.0]),
        stopping=Stopping(tol=1e-9),
    )
    np.testing.assert_allclose(fold.coef, subset.coef, atol=1e-5)


def test_a_warm_start_at_the_optimum_stops_at_once():
    F, positive, _ = problem()
    operator, losses, C = FeatureOperator(F), [PairLoss(positive)], np.array([10.0])
    newton = Newton(operator, losses, stopping=Stopping(tol=1e-8))
    cold, warm = newton.run(C), newton.run(C)
    assert warm.n_iter == 1
    assert warm.objective[0] <= cold.objective[0] * (1 + 1e-9)
    assert warm.passes - cold.passes < cold.passes


def test_records_tell_the_story():
    F, positive, _ = problem()
    seen = []
    loss = PairLoss(positive)
    solution = minimize(FeatureOperator(F), [loss], np.array([10.0]), hooks=Hooks(seen.append))
    assert seen == solution.history
    objectives = [float(r.objective[0]) for r in seen]
    assert objectives == sorted(objectives, reverse=True)
    assert [r.iteration for r in seen] == list(range(1, len(seen) + 1))
    # Each product is two passes and each step one; the last is the check of the scores.
    assert solution.passes == 1 + sum(1 + 2 * r.products for r in seen)
    assert seen[-1].auc[0] == pytest.approx(loss.at(solution.scores[:, 0]).auc())


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_the_gap_bounds_the_distance_to_the_minimum_about(C):
    F, positive, _ = problem(n=400)
    best, _ = oracle.best_objective(F, positive, C)
    for tol in (1e-2, 1e-4, 1e-6):
        solution = minimize(
            FeatureOperator(F), [PairLoss(positive)], np.array([C]), stopping=Stopping(tol=tol)
        )
        assert solution.objective[0] / best - 1 <= 3 * tol + 1e-7


def test_stopping_early_is_reported():
    F, positive, _ = problem()
    solution = minimize(
        FeatureOperator(F), [PairLoss(positive)], np.array([1e3]), stopping=Stopping(max_iter=2)
    )
    assert solution.n_iter == 2
    assert not solution.converged.any()
    assert solution.gap[0] > 1e-4


def test_rounding_ends_the_iteration_rather_than_looping():
    F, positive, _ = problem(n=500)
    operator = KernelOperator(F.astype(np.float32), Projection([np.eye(F.shape[1])]))
    solution = minimize(operator, [PairLoss(positive)], np.array([1e3]), stopping=Stopping(1e-15, 200))
    assert solution.n_iter < 200
    best, _ = oracle.best_objective(F, positive, 1e3)
    assert solution.objective[0] == pytest.approx(best, rel=1e-5)


def test_far_from_the_origin_no_products_are_wasted_on_rounding():
    F, positive, _ = problem(n=60, r=3)
    counted = minimize(
        FeatureOperator(F + 1e9), [PairLoss(positive)], np.array([10.0]), stopping=Stopping(tol=1e-7)
    )
    most = conjugate_gradients.ROUNDED_PRODUCTS + 5 * 3
    assert counted.passes <= counted.n_iter * (2 * most + 20)


def test_separable_data_reaches_the_large_margin():
    F = np.array([[2.0], [3.0], [-2.0], [-3.0]])
    positive = np.array([True, True, False, False])
    solution = minimize(
        FeatureOperator(F), [PairLoss(positive)], np.array([1e6]), stopping=Stopping(tol=1e-9)
    )
    np.testing.assert_allclose(solution.coef, [[0.25]], rtol=1e-3)  # margin 1 over a gap of 4


def test_the_seed_of_the_sample_does_not_show_in_the_minimum():
    F, positive, _ = problem(n=1500, r=30)
    operator, losses = FeatureOperator(F), [PairLoss(positive)]
    solves = [Newton(operator, losses, stopping=Stopping(tol=1e-9), seed=seed) for seed in (0, 1)]
    a, b = (solve.run(np.array([1e4])) for solve in solves)
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-8)
    assert FORCING < 1


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("precondition", [True, False])
def test_badly_scaled_features_do_not_pass_for_converged(seed, precondition):
    """Plain conjugate gradients look settled while the weak directions have not moved yet."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 12))
    F = rng.normal(size=(120, d)) * 10.0 ** rng.uniform(-3, 3, d)
    w = rng.normal(size=d) / np.abs(F).mean(axis=0)
    positive = F @ w + 0.3 * rng.normal(size=120) > 1
    positive[:2] = [True, False]
    operator, losses, C = FeatureOperator(F), [PairLoss(positive)], np.array([1.0])
    solution = minimize(operator, losses, C, precondition=precondition)
    # scipy's optimiser is started where ours ended: it, too, is slow on such scales.
    best, _ = oracle.best_objective(F, positive, 1.0, start=solution.coef[:, 0])
    if solution.converged.all():
        assert solution.objective[0] <= best * (1 + 3e-4)
    assert solution.converged.all() or not precondition


def test_a_column_beyond_factoring_is_solved_more_closely(monkeypatch):
    monkeypatch.setattr(preconditioner, "MAX_FACTORED", 1)
    monkeypatch.setattr(preconditioner, "LEADING_FEATURES", 1)
    rng = np.random.default_rng(0)
    F = rng.normal(size=(200, 2)) * [1000.0, 1.0]
    positive = F[:, 1] + 0.3 * rng.normal(size=200) > 1
    solution = minimize(FeatureOperator(F), [PairLoss(positive)], np.array([1.0]))
    best, _ = oracle.best_objective(F, positive, 1.0, start=solution.coef[:, 0])
    assert solution.converged.all()
    assert solution.objective[0] <= best * (1 + 3e-4)


def test_features_that_overflow_are_an_error():
    F, positive = np.array([[1e300], [0.0], [0.0], [0.0]]), np.array([True, False, False, False])
    with pytest.raises(FloatingPointError, match="products overflow"), np.errstate(all="ignore"):
        minimize(FeatureOperator(F), [PairLoss(positive)], np.array([1e300]))


def large_problem(k=1):
    """Many rows for few columns: such a solve starts on a sample."""
    F, positive, _ = problem(n=6000, r=8)
    losses = [PairLoss(np.roll(positive, c)) for c in range(k)]
    return FeatureOperator(F), losses, np.full(k, 100.0)


def test_many_rows_start_on_a_sample_and_end_at_the_same_minimum(monkeypatch):
    drawn = []
    draw = starts.draw_sample
    monkeypatch.setattr(starts, "draw_sample", lambda *a: drawn.append(draw(*a)) or drawn[-1])
    for k in (1, 3):
        operator, losses, C = large_problem(k)
        started = minimize(operator, losses, C, stopping=Stopping(tol=1e-9))
        assert drawn[-1][0].size * starts.GAIN < 2 * operator.n_rows
        monkeypatch.setattr(starts, "GAIN", np.inf)
        cold = minimize(operator, losses, C, stopping=Stopping(tol=1e-9))
        assert drawn[-1] is None
        monkeypatch.setattr(starts, "GAIN", 8)
        assert started.converged.all()
        np.testing.assert_allclose(started.objective, cold.objective, rtol=1e-8)
        assert started.n_iter < cold.n_iter


def sampled(operator, losses):
    return starts.draw_sample(Data(operator, losses, True, DEFAULT_STOPPING), np.random.default_rng(0))


def test_the_sample_has_both_classes_and_stands_for_all_rows():
    operator, losses, _ = large_problem()
    rows, few = sampled(operator, losses)
    (loss,) = few.losses
    assert abs(loss.pos.size - loss.neg.size) < 0.3 * rows.size
    assert loss.weight.sum() == pytest.approx(losses[0].weight.sum(), rel=0.15)
    assert loss.scale == losses[0].scale
    assert sampled(FeatureOperator(np.ones((50, 8))), [PairLoss(np.arange(50) < 9)]) is None


def test_absent_rows_are_not_sampled():
    operator, losses, _ = large_problem()
    weight = (np.arange(6000) % 2).astype(float)
    rows, _ = sampled(operator, [PairLoss(losses[0].positive, weight)])
    assert (rows % 2 == 1).all()


@pytest.mark.parametrize("kind", ["features", "folded", "csr"])
def test_products_on_the_active_rows_alone_are_those_on_all_rows(kind, monkeypatch):
    """Where few rows are in an active pair, no other row is read for a product with the Hessian."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=(400, 12))
    positive = F[:, 0] + 0.1 * rng.normal(size=400) > 1
    weights = [np.where(np.arange(400) % 3 == fold, 0.0, 1.0) for fold in range(2)]
    losses = [PairLoss(positive, weight) for weight in (None, *weights)]
    operator = {
        "features": FeatureOperator(F),
        "folded": KernelOperator(F, Projection([np.eye(12)[:, ::-1]])),
        "csr": FeatureOperator(sparse.csr_matrix(F)),
    }[kind]
    found = {}
    for share in (0.0, 1.0):
        monkeypatch.setattr(conjugate_gradients, "_FEW_ACTIVE", share)
        found[share] = minimize(operator, losses, np.full(3, 1e3), stopping=Stopping(tol=1e-11))
    assert found[1.0].converged.all()
    assert found[1.0].passes < 0.7 * found[0.0].passes
    np.testing.assert_allclose(found[1.0].objective, found[0.0].objective, rtol=1e-9)
    np.testing.assert_allclose(found[1.0].coef, found[0.0].coef, rtol=1e-4, atol=1e-6)
