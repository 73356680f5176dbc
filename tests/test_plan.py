import numpy as np
import pytest
from sklearn.datasets import make_classification

from aucmax import KernelAUCClassifier
from aucmax.features.landmark_map import LandmarkMap
from aucmax.features.nystroem import NystroemFeatures
from aucmax.operators import placement as plan
from aucmax.operators.placement import Sizes, pays_to_project, plan_fit
from aucmax.operators.speeds import DiskSpeed
from aucmax.runtime.memory import Budget
from tests.searches import kernel_search


@pytest.fixture(scope="module")
def problem():
    return make_classification(3000, 8, n_informative=6, weights=[0.9], random_state=0)


@pytest.fixture
def disk(monkeypatch):
    """Sets how fast the disk is."""

    def set_speed(read: float, free: int = 10**12) -> None:
        monkeypatch.setattr(plan, "disk_speed", lambda: DiskSpeed(read, read, free))

    return set_speed


def chosen(budget, disk=None, rank=1000, **more):
    sizes = Sizes(10**6, 1000, rank)
    return plan_fit(sizes, Budget.of(budget), lambda: 1e-6, **more).place.name


def test_values_stay_in_memory_where_they_fit(disk):
    disk(1e9)
    assert chosen("8GB") == "memory"
    assert chosen("8GB", rank=100) == "projected"
    assert chosen("2GB", rank=100) == "projected"  # the block would take 4 GB


def test_beyond_memory_the_faster_of_disk_and_recomputing_is_taken(disk):
    disk(1e11)
    assert chosen("2GB") == "disk"
    disk(1e11, free=10**9)
    assert chosen("2GB") == "recomputed"
    disk(1e8)
    assert chosen("2GB") == "recomputed"


@pytest.mark.parametrize("speed", [1e3, 1e15])
def test_measuring_to_show_the_time_does_not_change_the_place(monkeypatch, speed):
    monkeypatch.setattr(plan, "memory_speed", lambda: speed)
    for budget, rank in (("8GB", 1000), ("8GB", 900), ("8GB", 100), ("2GB", 100)):
        for passes in (1, 100, 10_000):
            more = {"rank": rank, "passes": passes}
            assert chosen(budget, measure=True, **more) == chosen(budget, **more)


def test_a_budget_too_small_for_the_solver_says_the_least_that_works(disk):
    disk(1e9)
    with pytest.raises(MemoryError, match=r"even with none kept, needs 323 MB, and 200 MB"):
        chosen("200MB")
    assert chosen("330MB") == "recomputed"


def test_a_low_rank_is_projected_and_a_full_one_folded(problem):
    assert pays_to_project(1600, 145)
    assert not pays_to_project(1600, 1600)
    assert not pays_to_project(1600, 1200)
    X, y = problem
    low = KernelAUCClassifier(preset="paper", n_landmarks=60, gamma=1e-4, random_state=0).fit(X, y)
    full = KernelAUCClassifier(preset="paper", n_landmarks=60, gamma=1.0, random_state=0).fit(X, y)
    assert (low.place_, full.place_) == ("projected", "memory")


@pytest.mark.parametrize("feature_map", ["nystroem", "fourier"])
@pytest.mark.parametrize("classes", [2, 3])
def test_all_places_lead_to_the_same_model(problem, monkeypatch, feature_map, classes):
    X, y = problem
    if classes == 3:
        y = np.where(X[:, 0] > 1, 2, y)
    found = {}
    for place in ("memory", "projected", "disk", "recomputed"):
        only(monkeypatch, place)
        model = KernelAUCClassifier(
            preset="paper", feature_map=feature_map, n_landmarks=80, tol=1e-9, random_state=0
        )
        found[place] = model.fit(X, y)
        assert found[place].place_ == place
    for place in ("projected", "disk", "recomputed"):
        np.testing.assert_allclose(found[place].objective_, found["memory"].objective_, rtol=1e-8)
        scores = found["memory"].decision_function(X)
        np.testing.assert_allclose(found[place].decision_function(X), scores, atol=1e-4)


def test_a_search_finds_the_same_in_every_place(problem, monkeypatch):
    X, y = problem
    found = {}
    for place in ("memory", "projected", "disk", "recomputed"):
        only(monkeypatch, place)
        found[place] = kernel_search(
            [0.1, 1.0, 10.0], gammas=[0.5, 1.0], n_landmarks=60, tol=1e-8, random_state=0
        ).fit(X, y)
    for place in ("projected", "disk", "recomputed"):
        np.testing.assert_allclose(found[place].scores_, found["memory"].scores_, atol=1e-5)
        assert found[place].C_ == found["memory"].C_


def test_epochs_run_over_features_in_a_file_as_over_those_in_memory(problem):
    X, y = problem
    given = {"solver": "sgd", "n_landmarks": 100, "max_iter": 3, "random_state": 0}
    inside = KernelAUCClassifier(preset="paper", **given).fit(X, y)
    outside = KernelAUCClassifier(preset="paper", **given, max_memory="1.5MB").fit(X, y)
    assert (inside.place_, outside.place_) == ("projected", "disk")
    np.testing.assert_array_equal(inside.dual_coef_, outside.dual_coef_)


def test_the_plan_is_told(problem, capsys):
    X, y = problem
    KernelAUCClassifier(preset="paper", n_landmarks=50, verbose=1).fit(X, y)
    told = capsys.readouterr().err
    assert "3,000 rows x 50 kernel values: 1.2 MB that are kept in memory" in told


@pytest.mark.parametrize(("gamma", "columns"), [(0.01, 2), (0.1, 3), (0.3, 10)])
def test_the_plan_of_a_large_map_knows_its_rank_from_small_ones(gamma, columns):
    X = np.random.default_rng(0).normal(size=(3000, columns))
    model = KernelAUCClassifier(preset="paper", n_landmarks=800, gamma=gamma)
    sizes = model.plan(X).sizes
    fitted = model.fit(X, X[:, 0] > 1).feature_map_
    assert sizes.width == 800
    assert abs(sizes.rank - fitted.rank_) < 0.35 * fitted.rank_


def test_a_plan_fits_small_maps_only(monkeypatch):
    counts = []
    fit = NystroemFeatures.fit

    def spy(self, *arguments, **more):
        counts.append(self.n_landmarks)
        return fit(self, *arguments, **more)

    monkeypatch.setattr(NystroemFeatures, "fit", spy)
    X = np.random.default_rng(0).normal(size=(3000, 4))
    assert KernelAUCClassifier().plan(X).sizes.width > 1000
    given = KernelAUCClassifier(landmarks=X[:700], preset="paper").plan(X)
    assert given.sizes.width == 700
    assert max(counts) <= 256


def test_nothing_is_left_of_a_file_when_a_fit_is_stopped(problem, monkeypatch, tmp_path):
    X, y = problem
    monkeypatch.setattr(plan.tempfile, "tempdir", str(tmp_path))
    only(monkeypatch, "disk")
    monkeypatch.setattr(LandmarkMap, "kernel_block", stop)
    with pytest.raises(KeyboardInterrupt):
        KernelAUCClassifier(preset="paper", n_landmarks=50).fit(X, y)
    assert not list(tmp_path.iterdir())


def stop(*_, **__):
    raise KeyboardInterrupt


def only(monkeypatch, name):
    """Plans that choose one place."""

    def planned(sizes, *_, **__):
        return plan.Plan(sizes, 10**9, plan.Place(name, 0, per_pass=1e-3), room=1000)

    monkeypatch.setattr("aucmax.fitting.kernel_fit.plan_fit", planned)


@pytest.mark.slow
def test_a_plan_counts_tuning_where_there_is_any(problem):
    X, _ = problem
    whole, quick = KernelAUCClassifier().plan(X), KernelAUCClassifier(effort=0.1).plan(X)
    assert 0.0 < quick.tuning < 0.5 * whole.tuning
    assert whole.seconds == whole.tuning + whole.place.total(whole.passes)
    assert "Tuning before that takes about" in str(whole)
    assert KernelAUCClassifier(time_budget=1.0).plan(X).tuning <= 0.5
    paper = KernelAUCClassifier(preset="paper").plan(X)
    assert paper.tuning == 0.0
    assert "Tuning" not in str(paper)
