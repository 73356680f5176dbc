"""Programs to be killed: the ``aucmax`` command, and a fit with a checkpoint."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from reliability.launcher import ENDED, STARTED

#: The checkpoint of a fit, and where it puts its scores and chosen values.
CHECKPOINT, SCORES, STOPPED = "fit.checkpoint", "scores.npz", ".stopped.json"


def fits() -> dict[str, Callable[[], Any]]:
    """The fits that are killed. Newton's are solved to a tolerance at which their scores agree."""
    import aucmax

    exact = {"tol": 1e-8, "random_state": 0}
    return {
        "kernel": lambda: aucmax.KernelAUCClassifier(
            preset="paper", n_landmarks=500, C=300.0, gamma=2.0, **exact
        ),
        "auto": lambda: aucmax.KernelAUCClassifier(n_landmarks=40, effort=0.05, **exact),
        "search": lambda: aucmax.KernelAUCClassifierCV(
            aucmax.KernelAUCClassifier(n_landmarks=100, preset="paper", **exact), Cs=16, gammas=3
        ),
        "linear search": lambda: aucmax.LinearAUCClassifierCV(
            aucmax.LinearAUCClassifier(tol=1e-8), Cs=200
        ),
        "sgd": lambda: aucmax.SGDAUCClassifier(epochs=600, trace="train", random_state=0),
    }


def fit(name: str, data: str) -> None:
    """Fit with a checkpoint in the current folder, and keep the scores of all rows."""
    with np.load(data) as arrays:
        X, y = arrays["X"], arrays["y"]
    model = fits()[name]()
    held = getattr(model, "estimator", model)  # a search has the checkpoint of its estimator
    held.set_params(checkpoint=CHECKPOINT)
    try:
        model.fit(X, y)
    except KeyboardInterrupt as stopped:
        learnt = [name for name in vars(model) if name.endswith("_")]
        Path(STOPPED).write_text(json.dumps({"sentence": str(stopped), "learnt": learnt}))
        raise SystemExit(130) from None
    chosen = [float(np.ravel(getattr(model, each, 0.0))[0]) for each in ("C_", "gamma_")]
    part = Path(f"{SCORES}.new")
    with part.open("wb") as file:
        np.savez(file, scores=model.decision_function(X), chosen=chosen)
    part.replace(SCORES)


def run(program: list[str]) -> None:
    """Run ``["fit", name, data]`` or ``["aucmax", arguments...]``, as a command of that name would.

    ``["limited", order]`` runs a program where there is little room, and judges what it leaves.
    """
    if program[0] == "limited":
        from reliability.small_disk import run_limited

        run_limited(json.loads(program[1]))
        return
    if program[0] == "fit":
        fit(*program[1:])
    else:
        from aucmax.cli import main

        sys.argv = program
        main()
    Path(ENDED).touch()


def warm_up() -> None:
    """Import what takes long, and load compiled loops. Polars starts threads, so it is left out."""
    import aucmax
    import aucmax.cli
    import aucmax.paper.runner

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.arange(60) % 2
    for dtype in (np.float32, np.float64):
        aucmax.KernelAUCClassifier(preset="paper", n_landmarks=5).fit(X.astype(dtype), y)
        aucmax.SGDAUCClassifier(epochs=1, trace="train").fit(X.astype(dtype), y)


if __name__ == "__main__":
    import aucmax.cli  # noqa: F401  (before the program counts as started)

    Path(STARTED).touch()
    run(sys.argv[1:])
