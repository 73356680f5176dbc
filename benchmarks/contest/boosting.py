"""LightGBM, XGBoost and CatBoost as they come, and after a random search for the AUC.

A search scores each configuration on a stratified fifth held out, or by 3 folds where the smaller
class has fewer than 200 rows, and takes the number of trees from the round with the best AUC (the last
of equals). Folds go on together until their mean gets no better: by itself, a fold of ten positives
would stop at the first lucky round. The first configuration is the library's own. The best one is then
fitted to all rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

THREADS = 1  # small trees gain little by more, and methods can run side by side
ROUNDS = 1000
FEW = 200  # rows of the smaller class, below which three folds score a configuration

Draw = Callable[[np.random.Generator], Any]
Rows = tuple[np.ndarray, np.ndarray]
Fold = tuple[np.ndarray, np.ndarray]


def between(low: float, high: float) -> Draw:
    return lambda rng: float(rng.uniform(low, high))


def log_between(low: float, high: float) -> Draw:
    return lambda rng: float(np.exp(rng.uniform(np.log(low), np.log(high))))


def whole_between(low: int, high: int, log: bool = False) -> Draw:
    draw = log_between(low, high) if log else between(low - 0.5, high + 0.5)
    return lambda rng: int(np.clip(round(draw(rng)), low, high))


def either(*values: Any) -> Draw:
    return lambda rng: values[rng.integers(len(values))]


#: What is searched, by the libraries' own names. ``balanced`` gives both classes the same weight.
SPACES: dict[str, dict[str, Draw]] = {
    "LightGBM": {
        "learning_rate": log_between(0.02, 0.3),
        "num_leaves": whole_between(8, 255, log=True),
        "min_child_samples": whole_between(2, 100, log=True),
        "subsample": between(0.5, 1.0),
        "colsample_bytree": between(0.4, 1.0),
        "reg_lambda": log_between(1e-3, 100.0),
        "balanced": either(False, True),
    },
    "XGBoost": {
        "learning_rate": log_between(0.02, 0.3),
        "max_depth": whole_between(3, 10),
        "min_child_weight": log_between(0.01, 30.0),
        "subsample": between(0.5, 1.0),
        "colsample_bytree": between(0.4, 1.0),
        "reg_lambda": log_between(1e-3, 100.0),
        "balanced": either(False, True),
    },
    "CatBoost": {
        "learning_rate": log_between(0.02, 0.3),
        "depth": whole_between(4, 9),
        "subsample": between(0.5, 1.0),
        "rsm": between(0.4, 1.0),
        "l2_leaf_reg": log_between(1.0, 100.0),
        "balanced": either(False, True),
    },
}
#: CatBoost's own rate depends on the number of trees, so that it would change in the last fit.
OWN: dict[str, dict[str, Any]] = {"LightGBM": {}, "XGBoost": {}, "CatBoost": {"learning_rate": 0.06}}


@dataclass(frozen=True)
class Budget:
    """A search ends with whichever comes first; its first configuration is always finished."""

    configurations: int = 20
    seconds: float = 60.0


class LightGBM:
    def make(self, seed: int, **parameters: Any) -> Any:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_jobs=THREADS, random_state=seed, verbose=-1, **parameters)

    def make_searched(self, seed: int, rounds: int, **parameters: Any) -> Any:
        return self.make(seed, n_estimators=rounds, subsample_freq=1, **parameters)

    def curve(self, model: Any, train: Rows, valid: Rows, wait: int | None, deadline: float) -> Any:
        import lightgbm as lgb
        from lightgbm.callback import EarlyStopException

        def clock(state: Any) -> None:
            if time.perf_counter() > deadline:
                raise EarlyStopException(state.iteration, state.evaluation_result_list)

        clock.order = 99  # after the round was recorded
        model.set_params(metric="auc")
        stop = [lgb.early_stopping(wait, verbose=False)] if wait else []
        with warnings.catch_warnings():
            # Another name for eval_set came with 4.7; older ones know only this.
            warnings.filterwarnings("ignore", message=".*'eval_set' is deprecated")
            model.fit(*train, eval_set=[valid], callbacks=[*stop, clock])
        return list(model.evals_result_["valid_0"]["auc"])

    def margins(self, model: Any, X: Any) -> Any:
        return model.booster_.predict(X, raw_score=True, num_iteration=-1)


class XGBoost:
    def make(self, seed: int, **parameters: Any) -> Any:
        from xgboost import XGBClassifier

        return XGBClassifier(n_jobs=THREADS, random_state=seed, **parameters)

    def make_searched(self, seed: int, rounds: int, **parameters: Any) -> Any:
        return self.make(seed, n_estimators=rounds, **parameters)

    def curve(self, model: Any, train: Rows, valid: Rows, wait: int | None, deadline: float) -> Any:
        from xgboost.callback import TrainingCallback

        class Clock(TrainingCallback):
            def after_iteration(self, *_: Any) -> bool:
                return time.perf_counter() > deadline

        model.set_params(eval_metric="auc", early_stopping_rounds=wait, callbacks=[Clock()])
        model.fit(*train, eval_set=[valid], verbose=False)
        return list(model.evals_result()["validation_0"]["auc"])

    def margins(self, model: Any, X: Any) -> Any:
        return model.predict(X, output_margin=True)


class CatBoost:
    def make(self, seed: int, **parameters: Any) -> Any:
        from catboost import CatBoostClassifier

        return CatBoostClassifier(
            thread_count=THREADS,
            random_seed=seed,
            verbose=False,
            allow_writing_files=False,
            **parameters,
        )

    def make_searched(self, seed: int, rounds: int, **parameters: Any) -> Any:
        if "subsample" in parameters:
            parameters["bootstrap_type"] = "Bernoulli"
        return self.make(seed, iterations=rounds, **parameters)

    def curve(self, model: Any, train: Rows, valid: Rows, wait: int | None, deadline: float) -> Any:
        class Clock:
            def after_iteration(self, _: Any) -> bool:
                return time.perf_counter() <= deadline

        stop = {"od_type": "Iter", "od_wait": wait} if wait else {}
        model.set_params(eval_metric="AUC", **stop)
        model.fit(*train, eval_set=valid, use_best_model=False, callbacks=[Clock()])
        return list(model.get_evals_result()["validation"]["AUC"])

    def margins(self, model: Any, X: Any) -> Any:
        return model.predict(X, prediction_type="RawFormulaVal")


LIBRARIES = {"LightGBM": LightGBM(), "XGBoost": XGBoost(), "CatBoost": CatBoost()}


class Boosted:
    """One library as it comes."""

    def __init__(self, library: str, seed: int) -> None:
        self.library, self.seed = LIBRARIES[library], seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> Boosted:
        self.model_ = self.library.make(self.seed).fit(X, y)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.library.margins(self.model_, X))


class Tuned(Boosted):
    """One library after a random search. ``report_`` says what the search did and found."""

    def __init__(self, library: str, seed: int, budget: Budget) -> None:
        super().__init__(library, seed)
        self.space, self.own, self.budget = SPACES[library], OWN[library], budget

    def fit(self, X: np.ndarray, y: np.ndarray) -> Tuned:
        began = time.perf_counter()
        folds = held_out(y, self.seed)
        best: tuple[float, int, dict[str, Any]] | None = None
        done = 0
        for number in range(self.budget.configurations):
            deadline = began + self.budget.seconds if number else np.inf
            if time.perf_counter() > deadline:
                break
            drawn = self.draw(number)
            score, rounds = best_round(self.mean_curve(drawn, X, y, folds, deadline))
            done += time.perf_counter() <= deadline
            if best is None or score > best[0]:
                best = score, rounds, drawn
        assert best is not None, "a search tries one configuration at least"
        score, rounds, drawn = best
        self.report_ = {
            "configurations": done,
            "search_seconds": time.perf_counter() - began,
            "validation": f"{len(folds)} folds" if len(folds) > 1 else "a fifth held out",
            "validation_auc": score,
            "trees": rounds,
            "chosen": drawn,
        }
        return self.fit_chosen(X, y, drawn, rounds)

    def fit_chosen(self, X: np.ndarray, y: np.ndarray, drawn: dict[str, Any], rounds: int) -> Tuned:
        """The last fit of a search, with what it chose."""
        self.model_ = self.library.make_searched(self.seed, rounds, **weighed(drawn, y)).fit(X, y)
        return self

    def draw(self, number: int) -> dict[str, Any]:
        rng = np.random.default_rng([self.seed, number])
        return {name: draw(rng) for name, draw in self.space.items()} if number else dict(self.own)

    def mean_curve(
        self, drawn: dict[str, Any], X: np.ndarray, y: np.ndarray, folds: list[Fold], deadline: float
    ) -> np.ndarray:
        """AUC by round, until it has not risen for a while, or the time is over."""

        def curve(fold: Fold, rounds: int, wait: int | None) -> list[float]:
            train, valid = ((X[rows], y[rows]) for rows in fold)
            model = self.library.make_searched(self.seed, rounds, **weighed(drawn, train[1]))
            return list(self.library.curve(model, train, valid, wait, deadline))

        wait = patience(drawn)
        if len(folds) == 1:
            return np.array(curve(folds[0], ROUNDS, wait))
        rounds, means = 2 * wait, np.empty(0)
        while True:
            curves = [curve(fold, rounds, None) for fold in folds]
            shortest = min(map(len, curves))
            if shortest > len(means):  # not cut off by the clock
                means = np.mean([each[:shortest] for each in curves], axis=0)
            over = rounds == ROUNDS or time.perf_counter() > deadline
            if over or means.argmax() + 1 + wait <= rounds:
                return means
            rounds = min(2 * rounds, ROUNDS)


def patience(drawn: dict[str, Any]) -> int:
    """Rounds to wait for a better one: more where each does little."""
    return int(np.clip(5 / drawn.get("learning_rate", 0.1), 50, 250))


def held_out(y: np.ndarray, seed: int) -> list[Fold]:
    """Training and validation rows: three folds where a class is small, else one."""
    rows = np.arange(len(y))
    if np.bincount(y).min() < FEW:
        return list(StratifiedKFold(3, shuffle=True, random_state=seed).split(rows, y))
    train, valid = train_test_split(rows, test_size=0.2, random_state=seed, stratify=y)
    return [(train, valid)]


def best_round(means: np.ndarray) -> tuple[float, int]:
    """The best AUC, and after how many rounds it was last reached."""
    return float(means.max()), int(np.flatnonzero(means == means.max())[-1]) + 1


def weighed(drawn: dict[str, Any], y: np.ndarray) -> dict[str, Any]:
    """A configuration in the library's terms, for these labels."""
    parameters = {name: value for name, value in drawn.items() if name != "balanced"}
    if drawn.get("balanced"):
        parameters["scale_pos_weight"] = float((y == 0).sum() / (y == 1).sum())
    return parameters
