"""Changes that must not change scores: order, names, weights, batches, files, threads, what is shown.

Each case fits a model to small random data, makes one such change, and compares scores. To the bit, if
the same numbers are computed; else within what the solver promises. A Newton solver stops within a
relative ``tol`` of the least objective f, and f is strongly convex with modulus 1, so that two answers
differ by at most ``2 sqrt(2 tol f)`` in the norm of their weights, and scores by that times the norm of
a row's features.

Scores are compared without the threshold: where two cuts are equally good, rounding may decide. In
k-means, rounding may decide which landmarks are found, so columns in another order are tried without.
Stochastic models draw rows by their content, which is another in other units: columns are not for them.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

import aucmax
from reliability import measures, model_zoo
from reliability.flat_parameters import set_flat
from reliability.harness import Case, Violation
from reliability.hostile import scratch_file
from reliability.model_zoo import Model

FULL = 3_000

Rng = np.random.Generator


@dataclass(frozen=True)
class Data:
    """Rows, labels, and weights where the law needs some."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None


@dataclass(frozen=True)
class Law:
    """A change that must not change scores."""

    name: str
    check: Callable[[Model, Data, Rng], None]
    models: tuple[str, ...]
    share: float = 1.0


def draw_data(rng: Rng, rows: tuple[int, int] = (40, 110)) -> Data:
    """Rows with signal, now and then with ties, copies or three classes."""
    n, d = int(rng.integers(*rows)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d)) * rng.choice([0.01, 1.0, 100.0], size=d) + rng.normal(size=d)
    kind = rng.random()
    if kind < 0.2:
        X = np.round(X, 0 if kind < 0.1 else 1)
    elif kind < 0.35:
        X = X[rng.integers(n, size=n)]
    if not np.ptp(X, axis=0).any():
        X = rng.normal(size=(n, d))  # constant columns alone are refused by some kernels
    truth = np.sin(X @ rng.normal(size=d)) + X[:, 0] + 0.5 * rng.normal(size=n)
    cuts = [0.4, 0.7] if rng.random() < 0.2 else [rng.uniform(0.5, 0.85)]
    y = np.searchsorted(np.quantile(truth, cuts), truth)
    _, counts = np.unique(y, return_counts=True)
    if len(counts) < 2 or counts.min() < 6:
        y = np.arange(n) % 2
    return Data(X, y)


def fit(model: Model, data: Data, **params: Any) -> Any:
    """Fit a fresh estimator, with its settings or others."""
    estimator = set_flat(model.make(), **params)
    weighted = {} if data.weight is None else {"sample_weight": data.weight}
    return estimator.fit(model.rows(data.X), data.y, **weighted)


def scores(model: Model, fitted: Any, X: np.ndarray) -> np.ndarray:
    """Scores (n, k) before the threshold; of a feature map its inner products."""
    if not hasattr(fitted, "decision_function"):
        features = np.asarray(fitted.transform(X))
        return features @ features.T
    decision = np.asarray(fitted.decision_function(model.rows(X)))
    intercept = getattr(fitted, "intercept_", 0.0)
    return decision.reshape(len(X), -1) - intercept


def allowed(model: Model, fitted: Any, X: np.ndarray) -> float:
    """By how much two solutions of the same problem may differ in a score."""
    rounding = 1e-6
    objective = getattr(fitted, "objective_", None)
    if objective is None or not hasattr(fitted, "tol"):
        return rounding
    rows = X if getattr(fitted, "scaler_", None) is None else fitted.scaler_.transform(X)
    # A kernel's k(x, x) is 1, but for the linear one and the polynomial.
    norm = float(np.sqrt((np.asarray(rows) ** 2).sum(axis=1).max())) if model.linear else 1.0
    if model.polynomial:
        norm = float(np.sqrt((fitted.get_params().get("coef0", 1.0) + norm**2) ** 3))
    slack = 1.0 if getattr(fitted, "converged_", True) else 100.0
    return rounding + slack * 2.0 * norm * float(np.sqrt(2.0 * fitted.tol * np.max(objective)))


def agree(a: np.ndarray, b: np.ndarray, within: float, what: str) -> None:
    """Raise a violation unless both agree within a number (0: to the bit), relative or absolute."""
    if a.shape != b.shape:
        raise Violation(f"{what}: shapes {a.shape} and {b.shape}")
    apart = float(np.abs(a - b).max(initial=0.0))
    if within == 0.0:
        if not np.array_equal(a, b):
            raise Violation(f"{what}: scores differ by {apart:.3g}, and should not in any bit")
        return
    if not apart <= within * max(1.0, float(np.abs(a).max(initial=0.0))):
        spread = float(np.ptp(a))
        raise Violation(
            f"{what}: scores differ by {apart:.3g} of {spread:.3g}; allowed is {within:.3g}"
        )


def row_order(model: Model, data: Data, rng: Rng) -> None:
    order = rng.permutation(len(data.y))
    one, other = model.make(), model.make()
    if hasattr(one, "cv"):
        folds = list(StratifiedKFold(2).split(data.X, data.y))
        place = np.argsort(order)
        one.set_params(cv=folds)
        other.set_params(cv=[(place[train], place[test]) for train, test in folds])
    one.fit(data.X, data.y)
    other.fit(data.X[order], data.y[order])
    within = 0.0 if hasattr(one, "classes_") else 1e-9  # a transformer's rows stay where they are
    agree(scores(model, one, data.X), scores(model, other, data.X), within, "rows in another order")


def column_order(model: Model, data: Data, rng: Rng) -> None:
    order = rng.permutation(data.X.shape[1])
    one = fit(model, data)
    points = one.get_params().get("landmarks")
    moved = {"landmarks": points[:, order]} if isinstance(points, np.ndarray) else {}
    other = fit(model, replace(data, X=data.X[:, order]), **moved)
    within = allowed(model, one, data.X)
    a, b = scores(model, one, data.X), scores(model, other, data.X[:, order])
    agree(a, b, within, "columns in another order")


def column_units(model: Model, data: Data, rng: Rng) -> None:
    units = 2.0 ** rng.integers(-20, 20, size=data.X.shape[1])
    one, other = fit(model, data), fit(model, replace(data, X=data.X * units))
    within = allowed(model, one, data.X)
    a, b = scores(model, one, data.X), scores(model, other, data.X * units)
    agree(a, b, within, "columns in other units")


def labels_renamed(model: Model, data: Data, rng: Rng) -> None:
    names = [["a", "b", "c"], [-5.0, 0.0, 7.0], [10**12, 10**12 + 1, 10**13], ["", " ", "x"]]
    new = np.array(names[int(rng.integers(len(names)))])[data.y]
    one, other = fit(model, data), fit(model, replace(data, y=new))
    agree(scores(model, one, data.X), scores(model, other, data.X), 0.0, "labels renamed")


def labels_swapped(model: Model, data: Data, rng: Rng) -> None:
    if data.y.max() > 1:
        data = replace(data, y=np.minimum(data.y, 1))
    one, other = fit(model, data), fit(model, replace(data, y=1 - data.y))
    within = allowed(model, one, data.X)
    agree(scores(model, one, data.X), -scores(model, other, data.X), within, "labels swapped")


def weights_as_copies(model: Model, data: Data, rng: Rng) -> None:
    weight = rng.integers(1, 4, size=len(data.y))
    one = fit(model, replace(data, weight=weight.astype(float)))
    other = fit(model, Data(np.repeat(data.X, weight, axis=0), np.repeat(data.y, weight)))
    within = allowed(model, one, data.X)
    agree(scores(model, one, data.X), scores(model, other, data.X), within, "weights as copies")


def weight_one(model: Model, data: Data, rng: Rng) -> None:
    one, other = fit(model, data), fit(model, replace(data, weight=np.ones(len(data.y))))
    agree(scores(model, one, data.X), scores(model, other, data.X), 0.0, "weights of one")


def weight_zero(model: Model, data: Data, rng: Rng) -> None:
    weight = rng.integers(0, 3, size=len(data.y)).astype(float)
    for label in np.unique(data.y):
        weight[np.flatnonzero(data.y == label)[:5]] = 1.0
    there = weight > 0
    one = fit(model, replace(data, weight=weight))
    other = fit(model, Data(data.X[there], data.y[there], weight[there]))
    agree(scores(model, one, data.X), scores(model, other, data.X), 0.0, "weight 0 as absence")


def batches(model: Model, data: Data, rng: Rng) -> None:
    one = fit(model, data)
    whole, size = scores(model, one, data.X), int(rng.integers(1, 40))
    if not hasattr(one, "decision_function"):
        raise Violation("no scores")
    parts = [scores(model, one, data.X[i : i + size]) for i in range(0, len(data.y), size)]
    agree(whole, np.concatenate(parts), 1e-12, f"scored {size} rows at a time")


def blocks(model: Model, data: Data, rng: Rng) -> None:
    """An iterable of blocks in place of an array, to fit and to score."""
    size = int(rng.integers(1, 40))
    starts = range(0, len(data.y), size)
    one = fit(model, data)
    given = ((data.X[i : i + size], data.y[i : i + size]) for i in starts)
    other = model.make().fit(given, None)
    within = allowed(model, one, data.X)
    agree(
        scores(model, one, data.X), scores(model, other, data.X), within, f"fitted to blocks of {size}"
    )
    read = np.asarray(other.decision_function(data.X[i : i + size] for i in starts))
    agree(np.asarray(other.decision_function(data.X)), read, 1e-12, f"scored by blocks of {size}")


def saved(model: Model, data: Data, rng: Rng) -> None:
    one = fit(model, data)
    path = scratch_file("model.aucmax")
    aucmax.save_model(one, path)
    _same_answers(model, one, aucmax.load_model(path), data, "saved and loaded")


def pickled(model: Model, data: Data, rng: Rng) -> None:
    one = fit(model, data)
    protocol = int(rng.integers(2, pickle.HIGHEST_PROTOCOL + 1))
    _same_answers(model, one, pickle.loads(pickle.dumps(one, protocol)), data, "pickled")
    _same_answers(model, one, copy.deepcopy(one), data, "copied")


def _same_answers(model: Model, one: Any, other: Any, data: Data, what: str) -> None:
    agree(scores(model, one, data.X), scores(model, other, data.X), 0.0, what)
    rows = model.rows(data.X)
    for method in ("predict", "predict_proba"):
        if hasattr(one, method):
            a, b = (np.asarray(getattr(each, method)(rows)) for each in (one, other))
            if not np.array_equal(a, b):
                raise Violation(f"{what}: {method} differs in {int((a != b).sum())} entries")


def again(model: Model, data: Data, rng: Rng) -> None:
    one, other = fit(model, data), fit(model, data)
    agree(scores(model, one, data.X), scores(model, other, data.X), 0.0, "fitted once more")
    refitted = clone(one).fit(model.rows(data.X), data.y)
    agree(scores(model, one, data.X), scores(model, refitted, data.X), 0.0, "cloned and fitted")


def verbose(model: Model, data: Data, rng: Rng) -> None:
    one, other = fit(model, data), fit(model, data, verbose=1)
    agree(scores(model, one, data.X), scores(model, other, data.X), 0.0, "with verbose=1")


def checkpointed(model: Model, data: Data, rng: Rng) -> None:
    one, other = fit(model, data), fit(model, data, checkpoint=scratch_file("fit.checkpoint"))
    agree(scores(model, one, data.X), scores(model, other, data.X), 0.0, "with a checkpoint")


def threads(model: Model, data: Data, rng: Rng) -> None:
    fitted = []
    for count in (1, 2):
        with threadpool_limits(count):
            fitted.append(fit(model, data))
    within = allowed(model, fitted[0], data.X) if model.within is None else model.within
    one, other = (scores(model, each, data.X) for each in fitted)
    agree(one, other, within, "one thread and two")


def sparse_rows(model: Model, data: Data, rng: Rng) -> None:
    X = np.where(np.abs(data.X) < 0.5 * np.abs(data.X).mean(axis=0), 0.0, data.X)
    one = fit(model, replace(data, X=X), standardize=False)
    made = set_flat(model.make(), standardize=False).fit(sparse.csr_array(X), data.y)
    within = allowed(model, one, X)
    agree(scores(model, one, X), scores(model, made, X), within, "sparse rows, not standardised")


def exported(model: Model, data: Data, rng: Rng) -> None:
    """The graph gives the scores of Python, up to 1e-5 of the largest."""
    import onnxruntime

    one = fit(model, data)
    graph = aucmax.to_onnx(one, X=model.rows(data.X), input_type="float64")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options)
    inputs = session.get_inputs()
    if len(inputs) == 1 and len(inputs[0].shape) == 2 and inputs[0].shape[1] == data.X.shape[1]:
        given = {inputs[0].name: data.X}
    else:
        given = {each.name: data.X[:, [i]] for i, each in enumerate(inputs)}
    found = session.run(["score"], given)[0]
    expected = np.asarray(getattr(one, "scores", one.decision_function)(model.rows(data.X)))
    apart = float(np.abs(found.reshape(expected.shape) - expected).max())
    within = 1e-4 if hasattr(one, "columns_") else 1e-5  # features of tables are in float32
    if not apart <= within * float(np.abs(expected).max()):
        raise Violation(f"the ONNX graph differs by {apart:.3g} of {np.abs(expected).max():.3g}")


def measured(model: Model, data: Data, rng: Rng) -> None:
    """Metrics, thresholds and calibrators: row order, weights as copies, weight 0 as absence."""
    scores, positive = data.X[:, 0], data.y == data.y.max()
    order, copies = rng.permutation(len(scores)), rng.integers(1, 4, size=len(scores))
    aim = ("youden", "cost=3", "recall=0.7", "fpr=0.3")[int(rng.integers(4))]
    one = measures.all_numbers(positive, scores, None, aim)
    agree(one, measures.all_numbers(positive[order], scores[order], None, aim), 1e-9, "rows in order")
    given = (copies + 0.0) * (rng.random(len(scores)) < 0.8)
    for label in (True, False):
        given[np.flatnonzero(positive == label)[:3]] = 1.0
    there = given > 0
    whole = measures.all_numbers(positive, scores, given, aim)
    part = measures.all_numbers(positive[there], scores[there], given[there], aim)
    agree(whole, part, 1e-12, "weight 0 as absence")
    weighted = measures.counted(positive, scores, copies + 0.0, aim)
    repeated = measures.counted(np.repeat(positive, copies), np.repeat(scores, copies), None, aim)
    agree(weighted, repeated, 1e-9, "weights as copies")


_EXACT = ("linear", "kernel, every row", "kernel, given landmarks", "rank svm")
_MAPS = ("nystroem", "fourier")
_WEIGHTED = (*_EXACT, "kernel", "fourier kernel", "sgd", "kernel sgd")
_FITTED = (*_WEIGHTED, "kernel cv", "linear cv", "oam", "solam", "table")
_AUTO = ("auto",)

LAWS = (
    Law("row order", row_order, (*_WEIGHTED, *_MAPS, "oam", "solam", "kernel cv", "linear cv"), 2.0),
    Law("column order", column_order, (*_EXACT, "linear cv", "nystroem, every row")),
    Law("column units", column_units, (*_EXACT, "kernel", "linear cv")),
    Law("labels renamed", labels_renamed, (*_WEIGHTED, "linear cv", "kernel cv", "oam", "solam")),
    Law("labels swapped", labels_swapped, _EXACT),
    Law("weights as copies", weights_as_copies, _EXACT),
    Law("weights of one", weight_one, _WEIGHTED, 0.5),
    Law("weight 0", weight_zero, (*_WEIGHTED, *_MAPS)),
    Law("batches", batches, _FITTED),
    Law("blocks", blocks, ("linear", "kernel, every row", "kernel, given landmarks")),
    Law("save", saved, _FITTED),
    Law("pickle", pickled, (*_FITTED, *_MAPS)),
    Law("again", again, (*_FITTED, *_MAPS)),
    Law("verbose", verbose, _FITTED),
    Law(
        "checkpoint", checkpointed, ("linear", "kernel", "kernel cv", "linear cv", "sgd", "kernel sgd")
    ),
    Law("threads", threads, (*_FITTED, *_MAPS)),
    Law("sparse", sparse_rows, ("linear", "kernel, every row", "rank svm")),
    Law("onnx", exported, (*_WEIGHTED, "kernel cv", "linear cv", "oam", "solam", "table")),
    Law("metrics", measured, ("scores",)),
    Law("row order of auto", row_order, _AUTO, 0.08),
    Law("threads of auto", threads, _AUTO, 0.08),
    Law("verbose of auto", verbose, _AUTO, 0.08),
)


def case(number: int, seed: int) -> Case:
    """The case of this number: which law, of which model, on which data."""
    rng = np.random.default_rng([seed, number, 2])
    shares = np.array([law.share for law in LAWS])
    law = LAWS[int(rng.choice(len(LAWS), p=shares / shares.sum()))]
    kind = law.models[int(rng.integers(len(law.models)))]
    auto = kind == "auto"
    data = draw_data(rng, (101, 125)) if auto else draw_data(rng)
    if kind == "table" or law.check is labels_swapped:
        data = replace(data, y=np.minimum(data.y, 1))
    if kind == "table":  # which refuses a table of constant columns
        data = replace(data, X=data.X + 0.01 * rng.normal(size=data.X.shape))
    model = model_zoo.draw(kind, rng, data.X)
    n, d = data.X.shape
    name = f"{law.name}: {kind}: {model.what}; {n} x {d}, {data.y.max() + 1} classes"

    def run() -> str:
        law.check(model, data, rng)
        return f"{law.name}"

    return Case(name, run, limit=240.0 if auto else 60.0)
