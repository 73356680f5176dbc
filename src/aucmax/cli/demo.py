"""Run ``aucmax demo``: rank a rare class in synthetic data, and compare with two other models."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax.cli import inputs_outputs as io
from aucmax.estimators.kernel import KernelAUCClassifier
from aucmax.metrics import compare_roc_auc, roc_auc_interval
from aucmax.metrics.cutoffs import sweep
from aucmax.runtime.installing import extra_command
from aucmax.runtime.output_files import check_folder, replacing


def make_pockets(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Make a rare class (2 %) in small pockets of a clustered background.

    Ten features: six carry the clusters, four are noise. Fifteen of the sixty background clusters have
    a pocket of positives next to their centre, so no line and no single feature separates the classes.

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
    shuffled = rng.permutation(rows)
    return X[shuffled], y[shuffled]


def run_demo(rows: int, landmarks: int, seed: int, picture: Path, as_json: bool) -> None:
    """Make the data, fit three models, print how well each ranks, and save their ROC curves."""
    check_folder(picture)
    X, y = make_pockets(rows, seed)
    cut = rows * 3 // 4
    io.say(
        f"{rows:,} rows, {X.shape[1]} features, {y.mean():.1%} positive; the last {rows - cut:,} are "
        "for testing."
    )
    gamma = 1.0 / X.shape[1]  # as the distance rule gives on standardised features
    kernel_map = Nystroem(gamma=gamma, n_components=landmarks, random_state=seed)
    # C=100 is its best of 1, 10, 100, 1000 on this data.
    kernel_model = make_pipeline(
        StandardScaler(), kernel_map, LogisticRegression(C=100.0, max_iter=5000)
    )
    models: dict[str, Any] = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "Nystroem + logistic": kernel_model,
        # The same kind of map: the difference is the objective.
        "aucmax": KernelAUCClassifier(
            preset="paper",
            n_landmarks=landmarks,
            gamma=gamma,
            random_state=seed,
            verbose=sys.stderr.isatty(),
        ),
    }
    results: list[dict[str, Any]] = []
    scores: dict[str, np.ndarray] = {}
    for name, model in models.items():
        io.say(f"fitting {name} ...")
        began = time.perf_counter()
        model.fit(X[:cut], y[:cut])
        seconds = time.perf_counter() - began
        scores[name] = model.decision_function(X[cut:])
        found = roc_auc_interval(y[cut:], scores[name])
        results.append({"model": name, "seconds": seconds, **found._asdict()})
    for row in results[:-1]:
        row["p_value"] = compare_roc_auc(y[cut:], scores["aucmax"], scores[row["model"]]).p_value
    if as_json:
        io.print_json({"rows": rows, "landmarks": landmarks, "seed": seed, "results": results})
    else:
        lines = (
            (
                row["model"],
                f"{row['auc']:.4f}",
                f"{row['low']:.4f} – {row['high']:.4f}",
                f"{row['seconds']:.1f}",
                f"{row['p_value']:.1g}" if "p_value" in row else "",
            )
            for row in results
        )
        io.print_table(("model", "AUC", "95 % interval", "seconds", "p vs aucmax"), lines)
    _save_picture(y[cut:], scores, results, picture)


def _save_picture(
    y: np.ndarray, scores: dict[str, np.ndarray], results: list[dict[str, Any]], path: Path
) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        io.say(f"No picture: matplotlib is not installed. Install it: {extra_command('plot')}")
        return
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    for row, colour in zip(results, ("#9a9a9a", "#4c8dae", "#c8442b"), strict=True):
        cuts = sweep(y == 1, scores[row["model"]], np.ones(y.size))
        label = f"{row['model']}  {row['auc']:.4f}"
        axes.plot(cuts.fp / cuts.fp[-1], cuts.tp / cuts.tp[-1], color=colour, lw=2, label=label)
    axes.plot([0, 1], [0, 1], color="#cccccc", lw=1, ls=":")
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1.005))
    axes.set_title(f"ROC on {y.size:,} test rows, {y.mean():.1%} positive")
    axes.legend(loc="lower right", frameon=False, title="AUC")
    axes.spines[["top", "right"]].set_visible(False)
    with io.naming_full_disk(path), replacing(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix.lstrip(".") or "png")
    io.say(f"The ROC curves are in {path}.")
