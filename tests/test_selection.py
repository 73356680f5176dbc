"""Kernel classifiers within scikit-learn's feature selection and calibration."""

import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax import (
    KernelAUCClassifier,
    KernelRankSVM,
    LinearAUCClassifier,
    SGDAUCClassifier,
)
from tests.searches import kernel_search

FEW = {"preset": "paper", "n_landmarks": 20, "random_state": 0}
WITH_IMPORTANCES = [
    KernelAUCClassifier(**FEW),
    KernelAUCClassifier(**FEW, solver="sgd"),
    KernelAUCClassifier(**FEW, standardize=False),
    kernel_search([1.0, 10.0], **FEW),
    KernelRankSVM(),
    KernelRankSVM(standardize=False),
]
KERNELS = [*WITH_IMPORTANCES, KernelAUCClassifier(**FEW, feature_map="fourier")]


@pytest.fixture(scope="module")
def problem():
    """Only columns 1 and 3 of five bear on the class."""
    X = np.random.default_rng(0).normal(size=(200, 5))
    return X, (np.abs(X[:, 1]) + X[:, 3] > 0.8).astype(int)


@pytest.mark.parametrize("model", KERNELS, ids=repr)
def test_kernel_classifiers_have_dual_coefficients_alone(model, problem):
    model.fit(*problem)
    assert not hasattr(model, "coef_")
    assert model.dual_coef_.shape[0] == 1
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.dual_coef_, model.dual_coef_)


@pytest.mark.parametrize("model", WITH_IMPORTANCES, ids=repr)
def test_selection_finds_the_columns_that_bear_on_the_class(model, problem):
    X, y = problem
    by_rounds = RFE(model, n_features_to_select=2).fit(X, y)
    assert by_rounds.get_support().tolist() == [False, True, False, True, False]
    at_once = SelectFromModel(model, threshold=-np.inf, max_features=2).fit(X, y)
    assert at_once.get_support().tolist() == [False, True, False, True, False]
    assert at_once.transform(X).shape == (200, 2)


def test_importances_of_an_unfitted_model_are_absent():
    assert not hasattr(KernelRankSVM(), "feature_importances_")
    assert not hasattr(KernelAUCClassifier(), "feature_importances_")


def test_fourier_features_name_what_measures_importance(problem):
    model = KernelAUCClassifier(**FEW, feature_map="fourier").fit(*problem)
    with pytest.raises(AttributeError, match="mean_squared_gradient"):
        _ = model.feature_importances_


@pytest.mark.parametrize("name", ["predict_proba", "predict_log_proba"])
@pytest.mark.parametrize("model", [KernelAUCClassifier(), LinearAUCClassifier(), SGDAUCClassifier()])
def test_missing_probabilities_name_what_has_them(model, name):
    assert not hasattr(model, name)
    assert not hasattr(type(model), name)
    with pytest.raises(AttributeError, match=rf"has no {name}: .*CalibratedClassifierCV.*TableModel"):
        getattr(model, name)
    assert not hasattr(make_pipeline(StandardScaler(), model), name)


def test_a_calibrated_classifier_has_probabilities(problem):
    X, y = problem
    calibrated = CalibratedClassifierCV(LinearAUCClassifier(), cv=2).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
