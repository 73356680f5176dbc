"""Make model files of the current format, which stay in the repository: python -m tests.models.make

Later versions must load them, and score the rows in the JSON file of the same name as it records. Files
of format 1 have the version in their names, because 0.1.0 wrote it; later ones have the format. Run
this when the format changes, before it is released, and never replace the files of a released format.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_moons

import aucmax
from aucmax.persistence.model_file import FORMAT, save_model

FOLDER = Path(__file__).parent


def rows(kept: Any) -> Any:
    """Return rows as a model takes them, from JSON: a table by columns, or an array."""
    if isinstance(kept, dict):
        import polars as pl

        return pl.DataFrame(kept)
    return np.array(kept)


def scores(model: Any, X: Any) -> np.ndarray:
    """Return the scores of the positive label, which models of all versions have."""
    found: np.ndarray = (model.scores if hasattr(model, "scores") else model.decision_function)(X)
    return found


def keep(name: str, model: Any, kept: Any) -> None:
    path = save_model(model, FOLDER / f"{name}-format-{FORMAT}.aucmax")
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
    """Return a model of a table with missing values and all types of columns, and the table."""
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
