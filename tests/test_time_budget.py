"""A time budget bounds a whole fit, tuning included; an effort below 1 makes it cheaper."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from aucmax import KernelAUCClassifier
from aucmax.metrics import roc_auc
from aucmax.operators.in_memory import FeatureOperator
from aucmax.pairs import PairLoss
from aucmax.runtime import deadline
from aucmax.runtime.deadline import Deadline, OutOfTimeError
from aucmax.solvers.newton import Newton, minimize
from aucmax.solvers.options import Stopping
from aucmax.tuning import trial_rows as sample
from aucmax.tuning.effort import most_landmarks
from aucmax.tuning.trial_rows import first_landmarks, sample_rows
from tests.searches import kernel_search, linear_search, table_model


class Clock:
    """Stands for the time module: a look at it takes some of the time it shows."""

    def __init__(self, tick):
        self.now, self.tick = 0.0, tick

    def monotonic(self):
        self.now += self.tick
        return self.now


@pytest.fixture(scope="module")
def problem():
    return make_classification(600, 6, n_informative=4, weights=[0.8], flip_y=0.05, random_state=3)


@pytest.fixture
def clock(monkeypatch):
    """Sets how much time a look at the clock takes."""

    def set_tick(tick):
        made = Clock(tick)
        monkeypatch.setattr(deadline, "time", made)
        return made

    return set_tick


def test_a_part_ends_before_the_whole(clock):
    made = clock(0.0)
    whole = Deadline(10.0, spent=2.0)
    assert whole.left() == 8.0
    assert whole.part(0.25).left() == 2.0
    made.now = 8.5
    assert whole.over()
    assert whole.left() == 0.0
    assert not Deadline().limited


def test_newton_stops_where_it_is_when_time_is_over(problem, clock):
    X, y = problem
    losses, C = [PairLoss(y == 1)], np.array([100.0])
    operator = FeatureOperator(X)
    clock(1.0)
    cut = minimize(operator, losses, C, stopping=Stopping(tol=1e-10, deadline=Deadline(6.0)))
    whole = minimize(operator, losses, C, stopping=Stopping(tol=1e-10))
    assert not cut.converged.all()
    assert cut.n_iter > 0
    assert cut.passes < whole.passes
    at_zero = C[0] * losses[0].at(np.zeros(len(y))).value
    assert whole.objective[0] < cut.objective[0] < at_zero


@pytest.mark.parametrize("looks", [30, 60])
def test_tuning_ends_with_the_best_so_far(problem, clock, looks):
    X, y = problem
    full = KernelAUCClassifier(effort=0.3, n_landmarks=40, random_state=0).fit(X, y)
    clock(1.0)
    model = KernelAUCClassifier(effort=0.3, n_landmarks=40, time_budget=looks, random_state=0)
    with pytest.warns((UserWarning, ConvergenceWarning)):
        model.fit(X, y)
    assert len(model.trials_) < len(full.trials_)
    assert roc_auc(y, model.decision_function(X)) > 0.8


def test_a_fit_without_any_result_in_time_is_refused(problem, clock):
    X, y = problem
    clock(1.0)
    for model in (
        KernelAUCClassifier(preset="paper", n_landmarks=40, time_budget=0.5, random_state=0),
        kernel_search(n_landmarks=40, time_budget=0.5, random_state=0),
        linear_search(time_budget=0.5),
    ):
        with pytest.raises(TimeoutError, match=r"time_budget=0\.5 s .* no result"):
            model.fit(X, y)
        assert not hasattr(model, "classes_")


def test_a_search_leaves_out_the_value_that_time_broke_off(problem, clock):
    X, y = problem
    clock(1.0)
    model = linear_search(time_budget=40.0, patience=None).fit(X, y)
    assert 1 <= len(model.path_) < model.Cs_.size
    assert all(record["converged"] for record in model.path_)


def test_epochs_end_when_time_is_over(problem, clock):
    X, y = problem
    clock(1.0)
    model = KernelAUCClassifier(
        preset="paper", n_landmarks=40, solver="sgd", max_iter=50, time_budget=8.0, random_state=0
    ).fit(X, y)
    assert 1 <= model.n_iter_ < 50


@pytest.mark.slow
def test_less_effort_is_less_work(problem, monkeypatch):
    assert sample_rows(9000, 0.1) < sample_rows(9000, 0.5) < sample_rows(9000, 1.0)
    assert first_landmarks(4000, 0.1) < first_landmarks(4000, 1.0) == first_landmarks(4000, 4.0)
    assert most_landmarks(500_000, 20, 0.1) < 1000 <= most_landmarks(500_000, 20, 1.0)
    X, y = problem
    monkeypatch.setattr(sample, "SAMPLE_ROWS", 1000)  # as if 600 rows were many
    monkeypatch.setattr(sample, "_LEAST_ROWS", 100)
    read = []

    def counted(self, *args):
        read[-1] += self.data.operator.nbytes
        return run(self, *args)

    run = Newton.run
    monkeypatch.setattr(Newton, "run", counted)
    for effort in (0.2, 1.0):
        read.append(0)
        KernelAUCClassifier(effort=effort, random_state=0).fit(X, y)
    assert read[0] < 0.5 * read[1]


@pytest.mark.parametrize("budget", [0, -1.0, float("nan"), "ten"])
def test_a_budget_that_is_no_time_is_refused(problem, budget):
    with pytest.raises(ValueError, match="time_budget must be None or a number above 0"):
        KernelAUCClassifier(time_budget=budget).fit(*problem)


def test_out_of_time_is_no_error_that_reaches_users():
    assert not issubclass(OutOfTimeError, ValueError)


def test_reading_and_preparing_a_table_count(problem, monkeypatch):
    X, y = problem
    taken = iter([0.0, 2.5, 2.5, 2.5, 2.5, 2.5])
    monkeypatch.setattr("aucmax.tables.model.time.perf_counter", lambda: next(taken))
    with pytest.raises(TimeoutError, match=r"time_budget=2 s was over .* after 2\.5 s"):
        table_model(time_budget=2.0).fit(X, y)
