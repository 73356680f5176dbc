"""Hostile arrays, frames, weights and parameters: finite scores, or an error that names the argument.

A case takes one public estimator or function and plain data, and replaces one argument or parameter by
a hostile one. Either the answer is finite, of the right shape and within its range, or there is a
``ValueError`` or ``TypeError`` whose message names what was wrong. Where a plain twin of the hostile
value exists, both must give the same scores.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError

from aucmax.metrics import roc_auc
from reliability import hostile_rows
from reliability.harness import Case, Violation
from reliability.hostile import Hostile, pick
from reliability.hostile_values import is_nonsense, values_for
from reliability.hostile_vectors import LABELS, SCORES, WEIGHTS
from reliability.targets import Target, draw_target

FULL = 10_000

#: Words of which an error must use one, by the argument that was hostile.
WORDS = {
    "X": ("X", "column", "columns", "row", "rows", "feature", "features", "sample", "samples"),
    "y": ("y", "label", "labels", "class", "classes", "target"),
    "sample_weight": ("sample_weight", "weight", "weights"),
    "y_true": ("y_true", "labels"),
    "y_score": ("y_score", "score_a", "scores"),
    "positive": ("positive", "classes"),
    "scores": ("scores", "score"),
}
#: Wordings of scikit-learn and of this package's tables that say it in another way.
ALSO = {
    "X": r"2D array|Found array|A table is|no-such-file",
    "drop": "dropped",
    "y": "numbers of samples",
    "random_state": "RandomState|seed",
}
#: A drop in AUC that no rounding explains.
LOST = 0.05
#: Parameters of which any value means something, or that are not looked at.
LENIENT = (
    "verbose",
    "random_state",
    "checkpoint",
    "positive",
    "pos_label",
    "drop",
    "n_jobs",
    "landmarks",
)


@dataclass(frozen=True)
class Plan:
    """What a case tries."""

    target: Target
    given: dict[str, Any]
    """Plain arguments."""
    argument: str
    hostile: Hostile
    is_param: bool = False
    at_fit: bool = True
    """Whether a classifier is fitted to the hostile rows, too, and not only asked about them."""


def case(number: int, seed: int) -> Case:
    """The case of this number: which target, which argument, which hostile value."""
    rng = np.random.default_rng([seed, number, 1])
    plan = _draw(rng)
    when = "" if plan.at_fit else " (to score)"
    name = f"{plan.target.name}: {plan.argument}{when}: {plan.hostile.what}; {_settings(plan)}"
    return Case(name, lambda: run(plan), limit=30.0)


def _settings(plan: Plan) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in plan.target.params.items())[:120]


def plain_data(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows on a grid that every floating-point type represents, labels that can be learnt, weights."""
    n, d = int(rng.integers(30, 90)), int(rng.integers(1, 6))
    X = np.clip(np.round(8 * rng.normal(size=(n, d))) / 8, -8, 8)
    truth = X @ rng.normal(size=d) + 0.5 * rng.normal(size=n)
    y = (truth > np.quantile(truth, rng.uniform(0.5, 0.85))).astype(int)
    weight = rng.integers(1, 17, size=n) / 8
    scores = np.round(8 * (truth + rng.normal(size=n))) / 8
    return {"X": X, "y": y, "sample_weight": weight, "scores": scores}


def _draw(rng: np.random.Generator) -> Plan:
    target, plain = draw_target(rng), plain_data(rng)
    given: dict[str, Any] = {
        **plain,
        "X_new": plain["X"],
        "y_true": plain["y"],
        "y_score": plain["scores"],
        "positive": plain["y"] == 1,
        "plain_X": plain["X"],
        "plain_y": plain["y"],
    }
    weighted = "sample_weight" in target.arguments
    if not weighted or rng.random() < 0.6:
        given["sample_weight"] = None
    if target.names and rng.random() < (0.25 if "X" in target.arguments else 0.4):
        return _draw_param(rng, target, given)
    shares = np.array([3.0 if name == "X" else 1.0 for name in target.arguments])
    argument = target.arguments[int(rng.choice(len(shares), p=shares / shares.sum()))]
    if argument == "X":
        return _draw_rows(rng, target, given)
    makers = {"y": LABELS, "y_true": LABELS, "positive": LABELS, "sample_weight": WEIGHTS}
    value = pick(makers.get(argument, SCORES), rng, plain[_plain_name(argument)])
    return Plan(target, given, argument, _expected(target, argument, value))


def _plain_name(argument: str) -> str:
    names = {"y_true": "y", "positive": "y", "y_score": "scores"}
    return names.get(argument, argument)


def _draw_param(rng: np.random.Generator, target: Target, given: dict[str, Any]) -> Plan:
    name = target.names[int(rng.integers(len(target.names)))]
    values = values_for(name)
    value = values[int(rng.integers(len(values)))]
    must = "refused" if is_nonsense(value) and name not in LENIENT else "either"
    return Plan(target, given, name, Hostile(repr(value), value, must=must), is_param=True)


def _draw_rows(rng: np.random.Generator, target: Target, given: dict[str, Any]) -> Plan:
    kind = hostile_rows.KINDS[int(rng.integers(len(hostile_rows.KINDS)))]
    value = _expected(target, "X", pick(kind, rng, given["X"]))
    at_fit = not target.scores_new or rng.random() < 0.7
    if not at_fit and target.name == "TableModel":
        value = replace(value, must="either")  # frames may have other names than the model knows
    new_shape = _shape(value.value) != given["X"].shape or issparse(value.value)
    if not at_fit and (new_shape or value.ranks_like is not None):
        value = replace(value, must="either", ranks_like=None)
    if at_fit and isinstance(value.value, np.memmap):
        # Sums over rows that are not in memory are by blocks, and draws by place.
        value = replace(value, tolerance=2e-2, twin=None if target.draws else value.twin)
    if issparse(value.value) and target.name in _STOCHASTIC:
        value = replace(value, ranks_like=None)  # not centred, they take more epochs than these
    if issparse(value.value) and target.params.get("standardize") == "quantile":
        value = replace(value, must="either")  # ranks would make it dense
    return Plan(target, given, "X", value, at_fit=at_fit)


def _shape(value: Any) -> Any:
    return getattr(value, "shape", None)


def _expected(target: Target, argument: str, value: Hostile) -> Hostile:
    """What is promised of a hostile value where it differs from the classifiers of arrays."""
    if argument == "sample_weight" and value.what == "bool" and target.tunes:
        return replace(value, must="either")  # a fold may be left without a class
    if target.name in ("TableModel", "fit_table") and argument in ("X", "y"):
        # Missing values, text and missing labels are its trade; arrays have no names for columns.
        frame = argument == "y" or type(value.value).__module__.split(".")[0] in ("pandas", "polars")
        valid = frame and value.must == "scored" and "empty" not in value.what  # no text, no label
        return replace(value, must="scored" if valid else "either")
    if argument in ("positive", "y_true") and value.must == "scored":
        return replace(value, must="either")  # flags are true or false, not labels of any kind
    if argument == "y" and (target.name in _UNLABELLED or target.name == "LandmarkCoverageDisplay"):
        return replace(value, must="either", twin=None)
    if target.name in (*_UNLABELLED, "to_onnx", "mean_squared_gradient") and value.what in (
        "a row too few",
        "None",
        "one row",
    ):
        return replace(value, must="either")  # labels are not looked at; None is the default
    takes_one = (*_UNLABELLED, "mean_squared_gradient", "measure_threshold")
    if target.name in takes_one and argument == "sample_weight":
        value = replace(value, must="either" if "but one" in value.what else value.must)
    if target.name == "measure_threshold" and value.what == "labels: one class":
        return replace(value, must="either")
    if target.name == "LandmarkCoverageDisplay" and (issparse(value.value) or "column" in value.what):
        return replace(value, must="either")  # it was fitted to dense rows, and to all columns
    if target.name in ("to_onnx", "permutation_importance", "mean_squared_gradient", *_UNLABELLED):
        return replace(value, must="either" if value.must == "scored" else value.must)
    return value


_STOCHASTIC = ("SGDAUCClassifier", "OAMClassifier", "SOLAMClassifier")
_UNLABELLED = ("NystroemFeatures", "FourierFeatures", "permutation_importance")


def run(plan: Plan) -> str:
    """Call the target with the hostile value, and hold it to what is promised."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            answer = _call(plan, plan.hostile.value)
        except (ValueError, TypeError, MemoryError, TimeoutError) as error:
            return _refused(plan, error)
        except FileNotFoundError as error:
            return _refused(plan, error) if isinstance(plan.hostile.value, str) else _unexpected(error)
    if plan.hostile.must == "refused":
        raise Violation(f"accepted without an error; the answer begins {np.ravel(answer)[:3]}")
    if plan.hostile.twin is not None:
        _compare(plan, answer, _quietly(lambda: _call(plan, plan.hostile.twin)))
        return "equal to its twin"
    if plan.hostile.ranks_like is not None and plan.target.standardizes and not told:
        _compare_ranking(plan, answer, _quietly(lambda: _call(plan, plan.hostile.ranks_like)))
    return "scored"


def _unexpected(error: Exception) -> str:
    raise Violation(f"no error of a value: {type(error).__name__}: {error}") from error


def _call(plan: Plan, value: Any) -> np.ndarray:
    given, params = dict(plan.given), dict(plan.target.params)
    if plan.is_param:
        params[plan.argument] = value
        return plan.target.call(given, params)
    if plan.at_fit:
        given[plan.argument] = value
    if plan.argument == "X":
        given["X_new"] = value
    held = value.copy() if isinstance(value, np.ndarray) else None
    answer = plan.target.call(given, params)
    if held is not None and not _identical(held, value):
        raise Violation(f"the array given as {plan.argument} was changed")
    return answer


def _identical(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind in "OV":
        return True  # their entries need not compare
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fcmM"))


def _quietly(work: Callable[[], np.ndarray]) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def _refused(plan: Plan, error: Exception) -> str:
    text = f"{type(error).__name__}: {str(error)[:400]}"
    if plan.hostile.must == "scored":
        raise Violation(f"refused what is valid: {text}") from error
    if isinstance(error, NotFittedError):
        raise Violation(f"taken for not fitted: {text}") from error
    words = WORDS.get(plan.argument, (plan.argument,)) if not plan.is_param else (plan.argument,)
    pattern = "|".join(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])" for word in words)
    also = ALSO.get(plan.argument)
    pattern = f"{pattern}|{also}" if also else pattern
    if not re.search(pattern, str(error)):
        raise Violation(f"the error does not name {plan.argument}: {text}") from error
    return "refused"


def _compare(plan: Plan, answer: np.ndarray, twin: np.ndarray) -> None:
    if answer.shape != twin.shape:
        raise Violation(f"shape {answer.shape}, that of its twin {twin.shape}")
    if (plan.target.tunes or plan.target.draws) and plan.hostile.tolerance > 1e-3:
        return  # rounding may lead to other hyper-parameters, or other landmarks
    if not np.array_equal(np.isnan(answer), np.isnan(twin)):
        raise Violation("NaN where its twin has none")
    finite = twin[np.isfinite(twin)]
    spread = float(np.ptp(finite)) if finite.size else 0.0
    scale = max(spread, 1e-3 * float(np.abs(finite).max(initial=0.0)), 1e-300)
    apart = float(np.nanmax(np.abs(answer - twin), initial=0.0)) / scale
    if apart > plan.hostile.tolerance:
        raise Violation(f"scores differ from those of its plain twin by {apart:.2g} of their spread")


def _compare_ranking(plan: Plan, answer: np.ndarray, plain: np.ndarray) -> None:
    y = plan.given["y"]
    if answer.shape != y.shape:
        return
    found, expected = (roc_auc(y, scores) for scores in (answer, plain))
    # Draws follow the content of rows, so that few landmarks or epochs may be other ones.
    if found < expected - (4.0 * LOST if plan.target.draws else LOST):
        raise Violation(f"AUC {found:.3f} without a warning; {expected:.3f} on plain rows")
