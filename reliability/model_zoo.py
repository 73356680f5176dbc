"""Models of every kind with settings that are quick, for the laws in ``invariants``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from reliability.flat_parameters import build

Rng = np.random.Generator

#: At which the exact solvers stop.
TIGHT = 1e-12


@dataclass(frozen=True)
class Model:
    """How to make an estimator, and what is known of it."""

    what: str
    make: Callable[[], Any]
    rows: Callable[[np.ndarray], Any] = np.asarray
    """Rows in the form that it takes."""
    linear: bool = False
    """Whether the norm of a row's features is that of the row."""
    polynomial: bool = False
    within: float | None = None
    """By how much scores may differ with another number of threads, if it is not by the tolerance."""


def _frame(X: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame(X, schema=[f"c{i}" for i in range(X.shape[1])])


def _one(rng: Rng, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _estimator(kind: str, params: dict[str, Any], **more: Any) -> Model:
    shown = {key: "array" if isinstance(value, np.ndarray) else value for key, value in params.items()}
    told = ", ".join(f"{key}={value!r}" for key, value in shown.items())
    return Model(f"{kind}({told})", lambda: build(kind, params), **more)


def draw(kind: str, rng: Rng, X: np.ndarray) -> Model:
    """A model of this kind, with settings drawn at random."""
    return _KINDS[kind](rng, X)


def _linear(rng: Rng, X: np.ndarray) -> Model:
    return _estimator(
        "LinearAUCClassifier", {"C": _one(rng, 0.1, 1.0, 30.0), "tol": TIGHT}, linear=True
    )


def _kernel_params(rng: Rng) -> dict[str, Any]:
    kernel = _one(rng, "rbf", "rbf", "laplacian", "rbf+laplacian", "polynomial", "linear")
    return {
        "preset": "paper",
        "C": _one(rng, 0.1, 1.0, 30.0),
        "kernel": kernel,
        "standardize": _one(rng, True, True, "quantile"),
        "tol": TIGHT,
        "random_state": 0,
    }


def _norms(params: dict[str, Any]) -> dict[str, bool]:
    kernel = params["kernel"]
    return {"linear": kernel in ("linear", "polynomial"), "polynomial": kernel == "polynomial"}


def _kernel_every_row(rng: Rng, X: np.ndarray) -> Model:
    params = {**_kernel_params(rng), "n_landmarks": 1000, "landmarks": _one(rng, "kmeans", "uniform")}
    return _estimator("KernelAUCClassifier", params, **_norms(params))


def _kernel_given(rng: Rng, X: np.ndarray) -> Model:
    params = {**_kernel_params(rng), "landmarks": rng.normal(size=(12, X.shape[1]))}
    return _estimator("KernelAUCClassifier", params, **_norms(params))


def _kernel(rng: Rng, X: np.ndarray) -> Model:
    landmarks = _one(rng, "kmeans", "class-kmeans", "root-kmeans", "uniform")
    params = {**_kernel_params(rng), "n_landmarks": 12, "landmarks": landmarks}
    return _estimator("KernelAUCClassifier", params, **_norms(params))


def _fourier_kernel(rng: Rng, X: np.ndarray) -> Model:
    params = {**_kernel_params(rng), "feature_map": "fourier", "n_landmarks": 16}
    params["kernel"] = _one(rng, "rbf", "laplacian")
    return _estimator("KernelAUCClassifier", params)


def _kernel_sgd(rng: Rng, X: np.ndarray) -> Model:
    params = {**_kernel_params(rng), "solver": "sgd", "max_iter": 3, "n_landmarks": 12}
    return _estimator("KernelAUCClassifier", params)


def _kernel_cv(rng: Rng, X: np.ndarray) -> Model:
    params = {**_kernel_params(rng), "n_landmarks": 12, "cv": 2, "Cs": [0.1, 10.0], "tol": 1e-6}
    del params["C"]
    return _estimator("KernelAUCClassifierCV", params, **_norms(params))


def _linear_cv(rng: Rng, X: np.ndarray) -> Model:
    params = {"Cs": [0.1, 10.0], "cv": 2, "tol": TIGHT}
    return _estimator("LinearAUCClassifierCV", params, linear=True)


def _rank_svm(rng: Rng, X: np.ndarray) -> Model:
    kernel = _one(rng, "rbf", "laplacian", "polynomial", "linear")
    params = {"C": _one(rng, 0.1, 1.0, 30.0), "kernel": kernel, "tol": 1e-9, "random_state": 0}
    return _estimator("KernelRankSVM", params, **_norms(params))


def _stream(kind: str) -> Callable[[Rng, np.ndarray], Model]:
    def make(rng: Rng, X: np.ndarray) -> Model:
        return _estimator(kind, {"epochs": int(rng.integers(1, 4)), "random_state": 0})

    return make


def _nystroem_every_row(rng: Rng, X: np.ndarray) -> Model:
    params = {"kernel": _one(rng, "rbf", "laplacian", "rbf+laplacian"), "n_landmarks": 1000}
    return _estimator("NystroemFeatures", params)


def _nystroem(rng: Rng, X: np.ndarray) -> Model:
    params = {"kernel": _one(rng, "rbf", "laplacian", "rbf+laplacian", "linear"), "n_landmarks": 9}
    return _estimator("NystroemFeatures", {**params, "random_state": 0})


def _fourier(rng: Rng, X: np.ndarray) -> Model:
    params = {"kernel": _one(rng, "rbf", "laplacian"), "n_components": 20, "random_state": 0}
    return _estimator("FourierFeatures", params)


def _table(rng: Rng, X: np.ndarray) -> Model:
    calibration = _one(rng, "sigmoid", "isotonic")
    params = {
        "preset": "paper",
        "Cs": [1.0, 10.0],
        "cv": 2,
        "n_landmarks": 10,
        "calibration": calibration,
    }
    return _estimator("TableModel", params, rows=_frame)


def _auto(rng: Rng, X: np.ndarray) -> Model:
    return _estimator("KernelAUCClassifier", {"random_state": 0}, within=1e-3)


_KINDS: dict[str, Callable[[Rng, np.ndarray], Model]] = {
    "linear": _linear,
    "kernel, every row": _kernel_every_row,
    "kernel, given landmarks": _kernel_given,
    "kernel": _kernel,
    "fourier kernel": _fourier_kernel,
    "kernel sgd": _kernel_sgd,
    "kernel cv": _kernel_cv,
    "linear cv": _linear_cv,
    "rank svm": _rank_svm,
    "sgd": _stream("SGDAUCClassifier"),
    "oam": _stream("OAMClassifier"),
    "solam": _stream("SOLAMClassifier"),
    "nystroem, every row": _nystroem_every_row,
    "nystroem": _nystroem,
    "fourier": _fourier,
    "table": _table,
    "auto": _auto,
    "scores": lambda rng, X: Model("metrics, thresholds, calibrators", object),
}
