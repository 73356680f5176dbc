"""Displays show the numbers of the models they are made from. That of the C path is in test_search."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.tree import DecisionTreeClassifier

from aucmax import KernelAUCClassifier, SGDAUCClassifier
from aucmax.inspection.displays import ConvergenceDisplay, LandmarkCoverageDisplay
from tests.searches import kernel_search, linear_search

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def moons():
    return make_moons(300, noise=0.3, random_state=0)


def test_convergence_of_a_fit_is_its_history():
    X, y = moons()
    model = KernelAUCClassifier(preset="paper", n_landmarks=50, random_state=0).fit(X, y)
    gap, auc = ConvergenceDisplay.from_estimator(model).lines_
    assert gap.get_ydata().tolist() == [record["gap"] for record in model.history_]
    assert gap.get_xdata().tolist() == list(range(model.n_iter_))  # before each step
    assert auc.get_ydata().tolist() == [record["auc"] for record in model.history_]
    assert auc.get_xdata().tolist() == list(range(1, model.n_iter_ + 1))


def test_convergence_of_a_search_has_a_line_for_each_gamma():
    X, y = moons()
    model = kernel_search(8, gammas=2, n_landmarks=50, random_state=0).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model)
    assert len(display.axes_) == 2
    shown = np.concatenate([line.get_ydata() for line in display.lines_[:2]])
    assert shown.tolist() == [record["gap"] for record in model.path_]
    np.testing.assert_array_equal(display.auc.T, model.scores_mean_)
    assert display.axes_[-1].get_xlabel() == "C"


def test_convergence_of_a_search_with_a_map_per_fold_shows_the_worst_gap():
    X, y = moons()
    model = kernel_search(3, n_landmarks=30, map_per_fold=True, random_state=0).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model)
    first = [record["gap"] for record in model.path_ if record["C"] == model.Cs_[0]]
    assert display.gap[0, 0] == max(first)
    assert len(first) == 3


def test_convergence_of_epochs_shows_the_auc_if_it_was_followed():
    X, y = moons()
    model = kernel_search(3, n_landmarks=30, solver="sgd", random_state=0).fit(X, y)
    assert [ax.get_ylabel() for ax in ConvergenceDisplay.from_estimator(model).axes_] == [
        "cross-validated AUC"
    ]
    model = KernelAUCClassifier(preset="paper", n_landmarks=30, solver="sgd", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="did not record gap or auc"):
        ConvergenceDisplay.from_estimator(model)


def test_convergence_of_several_classes_and_of_linear_models():
    X, y = moons()
    display = ConvergenceDisplay.from_estimator(linear_search(4).fit(X, y))
    assert display.labels is None
    model = KernelAUCClassifier(preset="paper", n_landmarks=30, random_state=0).fit(
        X, y + (X[:, 0] > 1.5)
    )
    assert ConvergenceDisplay.from_estimator(model).gap.shape[1] == 3


def test_convergence_takes_axes_and_refuses_too_few():
    X, y = moons()
    model = KernelAUCClassifier(preset="paper", n_landmarks=30, random_state=0).fit(X, y)
    figure, axes = plt.subplots(2)
    assert ConvergenceDisplay.from_estimator(model, axes=axes).figure_ is figure
    with pytest.raises(ValueError, match="axes must hold 2"):
        ConvergenceDisplay.from_estimator(model, axes=axes[:1])
    tree = DecisionTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="DecisionTreeClassifier keeps no history"):
        ConvergenceDisplay.from_estimator(tree)


@pytest.mark.parametrize(("kernel", "power"), [("rbf", 2), ("laplacian", 1), ("rbf+laplacian", 2)])
def test_coverage_is_the_distance_to_the_nearest_landmark_in_bandwidths(kernel, power):
    X, y = moons()
    model = KernelAUCClassifier(preset="paper", n_landmarks=20, kernel=kernel, random_state=0).fit(X, y)
    display = LandmarkCoverageDisplay.from_estimator(model, X, y)
    # The kernel of the nearest landmark says the same: exp(-distance ** power).
    kernel_values = model.feature_map_.map.kernel_block(model.scaler_.transform(X))[:, :20].max(axis=1)
    np.testing.assert_allclose(np.exp(-(display.distances**power)), kernel_values, rtol=1e-6)
    assert (display.half >= display.distances).all()
    assert len(display.lines_) == 4
    assert display.n_landmarks == 20


def test_coverage_draws_some_of_many_rows_and_needs_no_labels():
    X, y = moons()
    model = KernelAUCClassifier(preset="paper", n_landmarks=20, random_state=0).fit(X, y)
    display = LandmarkCoverageDisplay.from_estimator(model, X, max_rows=50)
    assert display.distances.shape == (50,)
    assert len(display.lines_) == 2


def test_coverage_is_refused_where_there_are_no_landmarks_or_bandwidth():
    X, y = moons()
    for model in (
        KernelAUCClassifier(preset="paper", n_landmarks=20, feature_map="fourier", random_state=0),
        KernelAUCClassifier(preset="paper", n_landmarks=20, kernel="polynomial", random_state=0),
        SGDAUCClassifier(random_state=0),
    ):
        with pytest.raises(ValueError, match="models with landmarks and a bandwidth"):
            LandmarkCoverageDisplay.from_estimator(model.fit(X, y), X)
    model = KernelAUCClassifier(preset="paper", n_landmarks=20, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"y has shape \(3,\) for 300 rows"):
        LandmarkCoverageDisplay.from_estimator(model, X, y[:3])
