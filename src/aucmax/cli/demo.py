"""``aucmax demo``: the main job on data made on the spot, beside what a scikit-learn user would try."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax.cli.model_arguments import naming, print_json
from aucmax.estimators.classifiers import KernelAUCClassifier
from aucmax.metrics import compare_roc_auc, roc_auc_interval
from aucmax.runtime.output_files import replacing


def make_pockets(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A rare class (2 %) that hides in small pockets of a clustered background.

    Ten features: six carry the clusters, four are noise. Fifteen of the sixty background clusters have
    a pocket of positives beside their centre, so no line and no single feature tells them apart.

    >>> X, y = make_pockets(1000, seed=0)
    >>> X.shape, int(y.sum())
    ((1000, 10), 20)
    """
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.normal(size=(60, 6))
    offsets = rng.normal(size=(15, 6))
    offsets *= 1.2 / np.linalg.norm(offsets, axis=1, keepdims=True)
    y = (np.arange(rows) < round(0.02 * rows)).astype(int)
    home = np.where(y == 1, rng.integers(0, 15, rows), rng.integers(0, 60, rows))
    X = centres[home] + np.where(y == 1, 0.45, 0.9)[:, None] * rng.normal(size=(rows, 6))
    X[y == 1] += offsets[home[y == 1]]
    X = np.hstack([X, rng.normal(size=(rows, 4))]).astype(np.float32)
    order = rng.permutation(rows)
    return X[order], y[order]


def run_demo(rows: int, landmarks: int, seed: int, picture: Path, as_json: bool) -> None:
    """Make the data, fit three models, print how well each ranks, save their ROC curves."""
    if not picture.absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {picture.parent} to save {picture.name} in")
    told = Console(stderr=True, markup=False, highlight=False)
    X, y = make_pockets(rows, seed)
    cut = rows * 3 // 4
    told.print(
        f"{rows:,} rows, {X.shape[1]} features, {y.mean():.1%} positive; the last {rows - cut:,} test."
    )
    ours = "aucmax"
    gamma = 1.0 / X.shape[1]  # what the distance rule gives on standardised features
    models: dict[str, Any] = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "Nystroem + logistic": make_pipeline(
            StandardScaler(),
            Nystroem(gamma=gamma, n_components=landmarks, random_state=seed),
            LogisticRegression(C=100.0, max_iter=5000),  # its best of 1, 10, 100, 1000 on this data
        ),
        # With the same map as above: what is left is the objective.
        ours: KernelAUCClassifier(
            preset="paper",
            n_landmarks=landmarks,
            gamma=gamma,
            random_state=seed,
            verbose=sys.stderr.isatty(),
        ),
    }
    results, scores = [], {}
    for name, model in models.items():
        told.print(f"fitting {name} ...")
        began = time.perf_counter()
        model.fit(X[:cut], y[:cut])
        seconds = time.perf_counter() - began
        scores[name] = model.decision_function(X[cut:])
        interval = roc_auc_interval(y[cut:], scores[name])
        results.append({"model": name, "seconds": seconds, **interval._asdict()})
    for row in results:
        if row["model"] != ours:
            test = compare_roc_auc(y[cut:], scores[ours], scores[row["model"]])
            row["p_value"] = test.p_value
    if as_json:
        print_json({"rows": rows, "landmarks": landmarks, "seed": seed, "results": results})
    else:
        Console().print(_table(results))
    told.print(_save_picture(y[cut:], scores, results, picture))


def _table(results: list[dict[str, Any]]) -> Table:
    table = Table(title="Ranking of the test rows")
    for heading in ("model", "AUC", "95 % interval", "seconds", "p vs aucmax"):
        table.add_column(heading, justify="left" if heading == "model" else "right", no_wrap=True)
    for row in results:
        table.add_row(
            row["model"],
            f"{row['auc']:.4f}",
            f"{row['low']:.4f} – {row['high']:.4f}",
            f"{row['seconds']:.1f}",
            f"{row['p_value']:.1g}" if "p_value" in row else "",
        )
    return table


def _save_picture(
    y: np.ndarray, scores: dict[str, np.ndarray], results: list[dict[str, Any]], path: Path
) -> str:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return 'No picture: matplotlib is not installed (pip install "aucmax[plot]").'
    from sklearn.metrics import roc_curve

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    for row, colour in zip(results, ("#9a9a9a", "#4c8dae", "#c8442b"), strict=True):
        false_rate, true_rate, _ = roc_curve(y, scores[row["model"]])
        axes.plot(false_rate, true_rate, color=colour, lw=2, label=f"{row['model']}  {row['auc']:.4f}")
    axes.plot([0, 1], [0, 1], color="#cccccc", lw=1, ls=":")
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1.005))
    axes.set_title(f"ROC on {y.size:,} test rows, {y.mean():.1%} positive")
    axes.legend(loc="lower right", frameon=False, title="AUC")
    axes.spines[["top", "right"]].set_visible(False)
    with naming(path), replacing(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix.lstrip(".") or "png")
    return f"ROC curves saved to {path}"
