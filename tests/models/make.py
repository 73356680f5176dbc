"""Make the model files that are kept for ever, of the version at hand: python -m tests.models.make

Later versions must load them and score the rows beside them as was noted when they were made. Run it
once for a version, before its release, and never write over the files of another.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_moons

import aucmax
from aucmax.persistence.model_file import save_model

FOLDER = Path(__file__).parent


def rows(kept: Any) -> Any:
    """Rows as a model takes them, from what JSON has kept: a table by columns, or an array."""
    if isinstance(kept, dict):
        import polars as pl

        return pl.DataFrame(kept)
    return np.array(kept)


def scores(model: Any, X: Any) -> np.ndarray:
    """Scores of the positive label, by which models of all versions can be compared."""
    found: np.ndarray = (model.scores if hasattr(model, "scores") else model.decision_function)(X)
    return found


def keep(name: str, model: Any, kept: Any) -> None:
    path = save_model(model, FOLDER / f"{name}-{aucmax.__version__}.aucmax")
    noted = {"rows": kept, "scores": scores(model, rows(kept)).tolist()}
    if hasattr(model, "probabilities"):
        noted["probability"] = model.probabilities(rows(kept)).tolist()
        noted["positive"] = model.positive_label_
    path.with_suffix(".json").write_text(json.dumps(noted, indent=1) + "\n")


def kernel_model() -> None:
    X, y = make_moons(100, noise=0.3, random_state=0)
    machine = aucmax.KernelAUCClassifier(preset="paper", n_landmarks=20, random_state=0)
    model = aucmax.KernelAUCClassifierCV(machine, Cs=3, gammas=2)
    keep("kernel", model.fit(X, np.array(["no", "yes"])[y]), X[:8].round(3).tolist())


def small_table_model(
    labels: tuple[str, str] = ("no", "yes"), **params: Any
) -> tuple[Any, dict[str, list[Any]]]:
    """A model of a table with holes and of all kinds of columns, and the table."""
    from tests.searches import table_model

    random = np.random.default_rng(0)
    n = 150
    age = random.integers(18, 90, n).astype(float)
    town = random.choice(["Bath", "Hull", "Rye"], n, p=[0.5, 0.4, 0.1])
    noise = random.normal(size=n)
    y = np.where(age / 20 + 2 * (town == "Hull") + noise > 5.5, labels[1], labels[0])
    table: dict[str, list[Any]] = {
        "age": [None if i % 11 == 0 else value for i, value in enumerate(age.tolist())],
        "town": [None if i % 13 == 0 else value for i, value in enumerate(town.tolist())],
        "member": (random.random(n) < 0.5).tolist(),
    }
    model = table_model(Cs=3, preset="paper", n_landmarks=20, **params)
    return model.fit(rows(table), y), table


def table_model() -> None:
    model, table = small_table_model()
    keep("table", model, {name: values[:14] for name, values in table.items()})
    model, table = small_table_model(("lived", "died"))  # the positive label sorts first
    keep("table-first", model, {name: values[:14] for name, values in table.items()})


if __name__ == "__main__":
    kernel_model()
    table_model()
