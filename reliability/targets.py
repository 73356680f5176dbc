"""Everything public that takes data: how each is called quickly, and what its answer must look like."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

import aucmax
from aucmax.inspection.importance import mean_squared_gradient, permutation_importance
from aucmax.metrics import auc as metrics
from aucmax.metrics.calibration import IsotonicCalibrator, SigmoidCalibrator
from aucmax.metrics.evaluation import evaluate
from aucmax.metrics.thresholds import choose_threshold, measure_threshold
from reliability.flat_parameters import build
from reliability.flat_parameters import names as flat_names
from reliability.harness import Violation

Given = Mapping[str, Any]
Params = Mapping[str, Any]
Rng = np.random.Generator


@dataclass(frozen=True)
class Target:
    """Something to call with data and parameters."""

    name: str
    arguments: tuple[str, ...]
    """Those that hold a value per row; of the plain ones, "X_new" is X again."""
    call: Callable[[Given, Params], np.ndarray]
    """Calls it and gives numbers that can be compared; raises Violation."""
    params: Params = field(default_factory=dict)
    """Settings that make it quick."""
    names: tuple[str, ...] = ()
    """Parameters to be tried with hostile values."""
    standardizes: bool = False
    """Whether scores must not depend on the units of columns."""
    scores_new: bool = False
    """Whether it is fitted to X and then asked about "X_new"."""
    draws: bool = False
    """Whether rows have a part that are drawn at random."""
    tunes: bool = False
    """Whether rounding may lead to another choice of hyper-parameters."""


def expect(kept: bool, text: str) -> None:
    """Raise a violation unless the promise was kept."""
    if not kept:
        raise Violation(text)


def check_scores(model: Any, X: Any, scores: np.ndarray, n_rows: int | None) -> None:
    """Scores of the right shape and finite; predicted labels are among the classes."""
    classes = np.asarray(model.classes_)
    scores = np.asarray(scores)
    shape = (len(scores),) if len(classes) == 2 else (len(scores), len(classes))
    expect(scores.shape == shape, f"scores have shape {scores.shape} for {len(classes)} classes")
    expect(n_rows is None or len(scores) == n_rows, f"{len(scores)} scores for {n_rows} rows")
    expect(bool(np.isfinite(scores).all()), f"scores are not finite: {scores[:5]}")
    labels = np.asarray(model.predict(X))
    expect(labels.shape == (len(scores),), f"predict gave shape {labels.shape}")
    expect(set(labels.tolist()) <= set(classes.tolist()), "predict gave a label that is no class")


def _unchanged(model: Any, before: dict[str, Any]) -> None:
    changed = [
        name for name, value in model.get_params(deep=False).items() if value is not before[name]
    ]
    expect(not changed, f"fit changed the parameters {changed}")


def _fit(model: Any, given: Given) -> Any:
    before = model.get_params(deep=False)
    more = {} if given.get("sample_weight") is None else {"sample_weight": given["sample_weight"]}
    model.fit(given["X"], given["y"], **more)
    _unchanged(model, before)
    return model


def _rows(X: Any) -> int | None:
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2:
        return int(shape[0])
    return len(X) if isinstance(X, list | tuple) else None


def classify(kind: str) -> Callable[[Given, Params], np.ndarray]:
    """Fit a classifier, score the rows, predict their labels."""

    def call(given: Given, params: Params) -> np.ndarray:
        model = _fit(build(kind, params), given)
        scores = model.decision_function(given["X_new"])
        check_scores(model, given["X_new"], scores, _rows(given["X_new"]))
        return np.asarray(scores)

    return call


def stream(kind: str) -> Callable[[Given, Params], np.ndarray]:
    """Two calls of ``partial_fit`` with the same rows, then as :func:`classify`."""

    def call(given: Given, params: Params) -> np.ndarray:
        model = build(kind, params)
        for _ in range(2):
            model.partial_fit(given["X"], given["y"])
        scores = model.decision_function(given["X_new"])
        check_scores(model, given["X_new"], scores, _rows(given["X_new"]))
        return np.asarray(scores)

    return call


def transform(kind: str) -> Callable[[Given, Params], np.ndarray]:
    """Fit a feature map; features are finite, and their products are kernel values."""

    def call(given: Given, params: Params) -> np.ndarray:
        model = _fit(build(kind, params), given)
        features = np.asarray(model.transform(given["X_new"]))
        n_rows = _rows(given["X_new"])
        expect(features.ndim == 2, f"features have shape {features.shape}")
        expect(n_rows is None or len(features) == n_rows, f"{len(features)} features for {n_rows} rows")
        expect(bool(np.isfinite(features).all()), "features are not finite")
        return features @ features.T  # features themselves may turn

    return call


def as_table(X: Any) -> Any:
    """A plain array as a frame; all else as it is."""
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype == np.float64 and X.flags.c_contiguous:
        return pl.DataFrame(X, schema=[f"c{i}" for i in range(X.shape[1])])
    return X


def table(given: Given, params: Params) -> np.ndarray:
    """Fit a model of tables; scores, probabilities and labels."""
    given = {**given, "X": as_table(given["X"]), "X_new": as_table(given["X_new"])}
    model = _fit(build("TableModel", params), given)
    scores = model.decision_function(given["X_new"])
    check_scores(model, given["X_new"], scores, _rows(given["X_new"]))
    share = np.asarray(model.predict_proba(given["X_new"]))
    expect(share.shape == (len(scores), 2), f"probabilities have shape {share.shape}")
    expect(bool(((share >= 0) & (share <= 1)).all()), "probabilities leave [0, 1]")
    expect(bool(np.allclose(share.sum(axis=1), 1.0)), "probabilities do not add up to 1")
    return np.asarray(scores)


def table_with_target(given: Given, params: Params) -> np.ndarray:
    """``fit_table`` on a frame that holds the labels."""
    frame = as_table(given["X"])
    try:
        if isinstance(frame, pl.DataFrame):
            frame = frame.with_columns(pl.Series("label", given["y"]))
        elif hasattr(frame, "assign"):
            frame = frame.assign(label=given["y"])
    except Exception as error:  # no frame can be made of it, so there is nothing to hand in
        raise ValueError(f"X and y make no table: {error}") from None
    own = build("TableModel", {name: params[name] for name in params if name not in _COLUMNS})
    columns = {name: params[name] for name in params if name in _COLUMNS}
    model = aucmax.fit_table(frame, **{"target": "label", **columns}, **own.get_params(deep=False))
    scores = model.decision_function(frame)
    check_scores(model, frame, scores, _rows(frame))
    return np.asarray(scores)


def scored(function: Callable[..., Any], *names: str) -> Callable[[Given, Params], np.ndarray]:
    """Call a function of rows with scores; its numbers in one array."""

    def call(given: Given, params: Params) -> np.ndarray:
        arguments = {name: given[name] for name in names}
        if given.get("sample_weight") is not None:
            arguments["sample_weight"] = given["sample_weight"]
        answer = function(**arguments, **params)
        numbers = np.array(_numbers(answer), dtype=np.float64)
        if np.isnan(numbers[:1]).any():
            raise Violation(f"{function.__name__} gave {answer}")
        return numbers

    return call


def _numbers(answer: Any) -> list[float]:
    """All numbers in an answer, in order; NaN for none."""
    if answer is None or isinstance(answer, str):
        return [np.nan]
    if isinstance(answer, int | float | np.number):
        return [float(answer)]
    if hasattr(answer, "__dataclass_fields__"):
        answer = asdict(answer)
    values = answer.values() if isinstance(answer, dict) else answer
    return [number for value in values for number in _numbers(value)]


def auc(given: Given, params: Params) -> np.ndarray:
    answer = scored(metrics.roc_auc, "y_true", "y_score")(given, params)
    expect(bool(0 <= answer[0] <= 1), f"an AUC of {answer[0]}")
    return answer


def auc_interval(given: Given, params: Params) -> np.ndarray:
    value, low, high, error = scored(metrics.roc_auc_interval, "y_true", "y_score")(given, params)
    expect(0 <= low <= value <= high <= 1 and error >= 0, f"the interval {low, value, high, error}")
    return np.array([value, low, high, error])


def compare(given: Given, params: Params) -> np.ndarray:
    given = {**given, "score_a": given["y_score"], "score_b": np.arange(len(given["plain_y"])) * 1.0}
    answer = scored(metrics.compare_roc_auc, "y_true", "score_a", "score_b")(given, params)
    a, b, difference, low, high, p = answer
    kept = 0 <= a <= 1 and 0 <= b <= 1 and -1 <= low <= difference <= high <= 1 and 0 <= p <= 1
    expect(kept, f"the comparison {answer}")
    return answer


def calibrate(kind: type) -> Callable[[Given, Params], np.ndarray]:
    """Fit a calibrator: probabilities in [0, 1] that rise with the score."""

    def call(given: Given, params: Params) -> np.ndarray:
        model = kind(**params).fit(given["scores"], given["positive"], given.get("sample_weight"))
        share = np.asarray(model.predict(given["scores"]))
        expect(bool(np.isfinite(share).all()), "probabilities are not finite")
        expect(bool(((share >= 0) & (share <= 1)).all()), "probabilities leave [0, 1]")
        order = np.argsort(np.asarray(given["scores"], dtype=np.float64).ravel(), kind="stable")
        falls = -np.diff(share[order]).min(initial=0.0)
        expect(bool(falls <= 1e-9), f"a probability falls by {falls} as the score rises")
        return share

    return call


def explain(function: Callable[..., Any], *names: str) -> Callable[[Given, Params], np.ndarray]:
    """Importances of a classifier that was fitted to plain rows."""

    def call(given: Given, params: Params) -> np.ndarray:
        plain = {name: given[f"plain_{name}"] for name in ("X", "y")}
        model = _fit(aucmax.KernelAUCClassifier(**KERNEL), plain)
        arguments = {name: given[name] for name in names}
        found = function(model, **arguments, sample_weight=given.get("sample_weight"), **params)
        expect(bool(np.isfinite(found.value).all()), f"importances are {found.value}")
        return np.asarray(found.value)

    return call


def display(given: Given, params: Params) -> np.ndarray:
    """The coverage of landmarks, drawn."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    model = _fit(aucmax.KernelAUCClassifier(**KERNEL), {n: given[f"plain_{n}"] for n in ("X", "y")})
    shown = aucmax.LandmarkCoverageDisplay.from_estimator(model, given["X"], given["y"], **params)
    plt.close("all")
    return np.asarray(shown.distances if hasattr(shown, "distances") else [0.0])


def export(given: Given, params: Params) -> np.ndarray:
    """An ONNX graph, compared on the rows given."""
    model = _fit(aucmax.LinearAUCClassifier(), {name: given[f"plain_{name}"] for name in ("X", "y")})
    made = aucmax.to_onnx(model, X=given["X"], **params)
    return np.array([float(len(made.graph.output))])


#: Of the exact solvers: twins whose rounding differs then agree.
_TOL = 1e-7
KERNEL = {"preset": "paper", "C": 1.0, "tol": _TOL, "n_landmarks": 12, "random_state": 0}
GRID = {
    "preset": "paper",
    "tol": _TOL,
    "Cs": [0.1, 10.0],
    "cv": 2,
    "n_landmarks": 10,
    "random_state": 0,
}
TABLE = {"preset": "paper", "Cs": [1.0, 10.0], "cv": 2, "n_landmarks": 10}
#: Parameters of ``fit_table`` that name columns.
_COLUMNS = ("target", "weight", "group")
#: More landmarks than a case has rows.
_EVERY_ROW = 200
_CHOICES: dict[str, tuple[Any, ...]] = {
    "kernel": ("rbf", "rbf", "laplacian", "rbf+laplacian", "polynomial", "linear"),
    "standardize": (True, True, False, "quantile"),
    "landmarks": ("centroids", "kmeans", "class-kmeans", "root-kmeans", "uniform"),
    "n_landmarks": (5, 12, _EVERY_ROW),
    "C": (0.01, 1.0, 10.0, 1e4),
}


def _drawn(rng: Rng, *names: str) -> dict[str, Any]:
    return {name: _CHOICES[name][int(rng.integers(len(_CHOICES[name])))] for name in names}


def _estimator(kind: str, call: Callable[[Given, Params], np.ndarray], params: Params) -> Target:
    cls = getattr(aucmax, kind)
    weighted = call.__qualname__.startswith("stream") or "sample_weight" not in _signature(cls.fit)
    arguments = ("X", "y") if weighted else ("X", "y", "sample_weight")
    tunes = (
        kind.endswith("CV") or kind == "TableModel" or (kind == "KernelAUCClassifier" and not params)
    )
    standardizes = bool(params.get("standardize", True)) and not kind.endswith("Features")
    names = flat_names(kind)
    every_row = params.get("n_landmarks", 0) == _EVERY_ROW and params.get("solver") != "sgd"
    draws = not (kind.startswith("Linear") or kind == "KernelRankSVM" or every_row)
    return Target(
        kind, arguments, call, params, names, standardizes, scores_new=True, draws=draws, tunes=tunes
    )


def _signature(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _kernel(rng: Rng) -> Target:
    params = {**KERNEL, **_drawn(rng, "kernel", "standardize", "landmarks", "n_landmarks", "C")}
    if params["kernel"] in ("rbf", "laplacian") and rng.random() < 0.25:
        params |= {"feature_map": "fourier", "landmarks": "auto"}
    if rng.random() < 0.2:
        params |= {"solver": "sgd", "max_iter": 3}
    return _estimator("KernelAUCClassifier", classify("KernelAUCClassifier"), params)


def _kernel_cv(rng: Rng) -> Target:
    params = {**GRID, **_drawn(rng, "kernel", "standardize")}
    return _estimator("KernelAUCClassifierCV", classify("KernelAUCClassifierCV"), params)


def _auto(rng: Rng) -> Target:
    return _estimator("KernelAUCClassifier", classify("KernelAUCClassifier"), {"random_state": 0})


def _linear(rng: Rng) -> Target:
    params = {**_drawn(rng, "C"), "tol": _TOL, "standardize": bool(rng.random() < 0.7)}
    return _estimator("LinearAUCClassifier", classify("LinearAUCClassifier"), params)


def _linear_cv(rng: Rng) -> Target:
    params = {"Cs": [0.1, 10.0], "cv": 2, "tol": _TOL, "standardize": bool(rng.random() < 0.7)}
    return _estimator("LinearAUCClassifierCV", classify("LinearAUCClassifierCV"), params)


def _streaming(rng: Rng) -> Target:
    kind = ("SGDAUCClassifier", "OAMClassifier", "SOLAMClassifier")[int(rng.integers(3))]
    # Two epochs of SOLAM are a draw of luck on so few rows: its AUC is 0.88 to 0.98 by their order.
    epochs = 15 if kind == "SOLAMClassifier" else 2
    params = {"random_state": 0, "epochs": epochs, "standardize": bool(rng.random() < 0.7)}
    call = stream(kind) if rng.random() < 0.3 else classify(kind)
    return _estimator(kind, call, params)


def _rank_svm(rng: Rng) -> Target:
    params = {**_drawn(rng, "kernel", "C"), "standardize": bool(rng.random() < 0.7)}
    params |= {"random_state": 0, "tol": _TOL}
    if params["kernel"] == "rbf+laplacian":
        params["kernel"] = "rbf"
    return _estimator("KernelRankSVM", classify("KernelRankSVM"), params)


def _nystroem(rng: Rng) -> Target:
    params = {**_drawn(rng, "kernel", "landmarks", "n_landmarks"), "random_state": 0}
    return _estimator("NystroemFeatures", transform("NystroemFeatures"), params)


def _fourier(rng: Rng) -> Target:
    params = {
        "n_components": 16,
        "random_state": 0,
        "kernel": ("rbf", "laplacian")[int(rng.integers(2))],
    }
    return _estimator("FourierFeatures", transform("FourierFeatures"), params)


def _table(rng: Rng) -> Target:
    return _estimator("TableModel", table, TABLE)


def _fit_table(rng: Rng) -> Target:
    names = ("positive", "drop", "weight", "group", *TABLE)
    call = table_with_target
    return Target("fit_table", ("X", "y"), call, TABLE, names, tunes=True, standardizes=True)


_FLAGS = ("positive", "scores", "sample_weight")
_TRUE = ("y_true", "y_score")
_FUNCTIONS = (
    Target("roc_auc", (*_TRUE, "sample_weight"), auc, names=("pos_label",)),
    Target("roc_auc_interval", _TRUE, auc_interval, names=("confidence", "pos_label")),
    Target("compare_roc_auc", _TRUE, compare, names=("confidence", "pos_label")),
    Target(
        "choose_threshold",
        _FLAGS,
        scored(choose_threshold, "positive", "scores"),
        names=("aim", "confidence"),
    ),
    Target(
        "measure_threshold",
        _FLAGS,
        scored(measure_threshold, "positive", "scores"),
        params={"threshold": 1.0},
        names=("threshold", "confidence"),
    ),
    Target("SigmoidCalibrator", _FLAGS, calibrate(SigmoidCalibrator)),
    Target("IsotonicCalibrator", _FLAGS, calibrate(IsotonicCalibrator)),
    Target("evaluate", _FLAGS, scored(evaluate, "positive", "scores"), names=("confidence",)),
    Target("mean_squared_gradient", ("X", "sample_weight"), explain(mean_squared_gradient, "X")),
    Target(
        "permutation_importance",
        ("X", "y", "sample_weight"),
        explain(permutation_importance, "X", "y"),
        params={"n_repeats": 2, "random_state": 0},
        names=("n_repeats", "random_state"),
    ),
    Target("LandmarkCoverageDisplay", ("X", "y"), display, names=("max_rows", "random_state")),
    Target("to_onnx", ("X",), export, names=("input_type",)),
)


def _function(rng: Rng) -> Target:
    return _FUNCTIONS[int(rng.integers(len(_FUNCTIONS)))]


#: How often each is drawn, in parts of 100.
SHARES: tuple[tuple[int, Callable[[Rng], Target]], ...] = (
    (18, _kernel),
    (2, _auto),
    (8, _kernel_cv),
    (10, _linear),
    (6, _linear_cv),
    (12, _streaming),
    (7, _rank_svm),
    (7, _nystroem),
    (5, _fourier),
    (5, _table),
    (2, _fit_table),
    (18, _function),
)


def draw_target(rng: Rng) -> Target:
    """One of all, the frequent ones oftener."""
    shares = np.array([share for share, _ in SHARES], dtype=float)
    return SHARES[int(rng.choice(len(SHARES), p=shares / shares.sum()))][1](rng)
