"""What each part of automatic tuning is worth: AUC and seconds of a default fit without it.

Data sets are those of the contest, on draws that it does not use (seeds from 100 on), with at most
20,000 training rows. Each row of results is one fit. One fit to the same data leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

from aucmax import KernelAUCClassifier
from aucmax.features.kernel_products import kernel_matrix, raw_matrix
from aucmax.features.kernels import LandmarkKernel
from aucmax.metrics import roc_auc
from aucmax.paper.data import load_dataset
from aucmax.runtime.machine import Company
from aucmax.tuning import blend, trial_map, trial_rows, trials, tuner
from benchmarks.harness import stored_rows, timed

COLUMNS = ("data", "seed", "part", "auc", "seconds", "company")
DATA = ("spambase", "usps", "magic04", "protein", "ijcnn1", "connect-4", "cod-rna", "covtype")
FIRST_SEED, SEEDS, ROWS = 100, 2, 20_000
#: Data sets that come with one split, which is the contest's: all their rows are split anew.
FIXED = ("usps", "ijcnn1")
WHOLE = "everything on"


@dataclass(frozen=True)
class Part:
    """A part of tuning, and what leaves it out: parameters, and values put in place of others."""

    parameters: dict[str, Any] = field(default_factory=dict)
    patches: tuple[tuple[Any, str, Any], ...] = ()


def _nothing(*_: Any) -> None:
    """Take the place of a step."""


def _one_by_one(work: Callable[[Any], Any], items: Any) -> list[Any]:
    return [work(item) for item in items]


def _distances_anew(self: Any, multiple: float) -> tuple[Any, list[Any]]:
    self._raw = raw_matrix(self._kernel, self._rows)
    return _features(self, multiple)


def _eigenvectors(self: Any, multiple: float) -> tuple[Any, list[Any]]:
    """Return features by eigenvectors of the landmarks' kernel, as a fit makes them."""
    spec, count = self.spec(multiple), len(self._points)
    kernel = LandmarkKernel(self._points, spec, self._rows.dtype)
    values, whitening = kernel_matrix(kernel, None, self._raw), []
    for number, part in enumerate(spec.parts):
        own = slice(number * count, (number + 1) * count)
        found, vectors = np.linalg.eigh(np.exp(part.gamma * self._between[:, own]))
        kept = found > trial_map._JITTER
        scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, found, 1.0) * len(spec.parts)), 0.0)
        whitening.append(vectors * scale)
        values[:, own] = values[:, own] @ whitening[-1].astype(values.dtype)
    return values, whitening


def _unwhitened(coef: Any, whitening: list[Any]) -> Any:
    parts = np.split(coef, len(whitening))
    return np.vstack([each @ part for each, part in zip(whitening, parts, strict=True)])


_features = trial_map.TrialMap.features

#: Each part by what is done without it.
PARTS = {
    WHOLE: Part(),
    "no second kernel": Part({"kernel": "rbf"}),
    "no metric": Part({"metric": None}),
    "columns standardised only": Part({"standardize": True}),
    "nothing tuned on more rows": Part(patches=((trial_rows, "_WIDER", np.inf),)),
    "the paper's settings not tried": Part(patches=((tuner.Tuner, "try_paper", _nothing),)),
    "trials on 20,000 rows": Part(
        patches=((trial_rows, "SAMPLE_ROWS", 20_000), (trial_rows, "_MOST_SAMPLE_ROWS", 20_000))
    ),
    "eigenvectors, not Cholesky factors": Part(
        patches=(
            (trial_map.TrialMap, "features", _eigenvectors),
            (trial_map.TrialMap, "fold", staticmethod(_unwhitened)),
        )
    ),
    "distances anew at each width": Part(patches=((trial_map.TrialMap, "features", _distances_anew),)),
    "preconditioners as early as in a fit": Part(patches=((trials, "_PATIENCE", 1.0),)),
    "candidates one after the other": Part(
        patches=((tuner, "side_by_side", _one_by_one), (trials, "side_by_side", _one_by_one))
    ),
    "effort=4": Part({"effort": 4.0}),
    "effort=4, one machine": Part({"effort": 4.0}, ((blend, "MOST_MACHINES", 1),)),
}


def run(options: Any) -> Iterator[dict[str, Any]]:
    """Fit what has no row yet."""
    X, y = make_moons(1000, noise=0.3, random_state=0)
    KernelAUCClassifier(random_state=0).fit(X, y)  # compiles
    names = ("data", "seed", "part")
    done = {tuple(row[name] for name in names) for row in stored_rows("parts", options.out)}
    for seed in range(FIRST_SEED, FIRST_SEED + (options.seeds or SEEDS)):
        for data in options.data or DATA:
            missing = [part for part in PARTS if (data, seed, part) not in done]
            rows = _rows(data, seed) if missing else None
            for part in missing:
                yield {"data": data, "seed": seed, "part": part, **_one(PARTS[part], *rows)}


def _rows(data: str, seed: int) -> tuple[Any, ...]:
    """Return training rows and labels, and held-out ones."""
    split = load_dataset(data, seed=seed)
    if data in FIXED:
        X = np.concatenate([split.X_train, split.X_test])
        y = np.concatenate([split.y_train, split.y_test])
        test = min(len(split.y_test), ROWS)
        X, X_test, y, y_test = train_test_split(X, y, test_size=test, random_state=seed, stratify=y)
        split = replace(split, X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    split = split.head(ROWS, seed=seed)
    return split.X_train, split.y_train, split.X_test[:ROWS], split.y_test[:ROWS]


def _one(part: Part, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    with ExitStack() as stack:
        for owner, name, value in part.patches:
            stack.enter_context(patch.object(owner, name, value))
        model, company = KernelAUCClassifier(random_state=0, **part.parameters), Company()
        seconds, _ = timed(lambda: model.fit(X, y))
    auc = float(roc_auc(y_test, model.decision_function(X_test)))
    found = {name: model.settings_[name] for name in ("kernel", "n_landmarks")}
    return {"rows": len(y), "auc": auc, "seconds": seconds, "company": company.share(), **found}
