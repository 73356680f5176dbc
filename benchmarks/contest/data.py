"""The splits of the contest: whole data sets, and data sets with few positives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from aucmax.paper.data import Split, load_dataset

FULL = "full"
#: Share of positives among the training rows.
LEVELS = {"1 %": 0.01, "0.3 %": 0.003, "0.1 %": 0.001}
#: Inside scikit-learn, with the rows that are positive.
INSIDE = {
    "breast_cancer": (datasets.load_breast_cancer, lambda target: target == 1),
    "digits": (datasets.load_digits, lambda target: target % 2 == 1),
    "wine": (datasets.load_wine, lambda target: target == 0),
}
RARE = ("magic04", "ijcnn1", "connect-4", "skin", "cod-rna", "covtype")
DATA = ("spambase", "usps", "protein", *RARE, *INSIDE)

TRAIN_ROWS, TEST_ROWS = 80_000, 100_000
RARE_NEGATIVES, RARE_POSITIVES, RARE_TEST_ROWS = 20_000, 20, 50_000
RARE_DRAWS = 10


def draws(rows: int) -> int:
    """Splits of a whole data set with so many training rows."""
    return 5 if rows < 20_000 else 3


def read(name: str, seed: int) -> Split:
    if name not in INSIDE:
        return load_dataset(name, seed=seed)
    load, positive = INSIDE[name]
    X, target = load(return_X_y=True)
    y = positive(target).astype(int)
    X_train, X_test, y_train, y_test = train_test_split(
        X.astype(np.float32), y, test_size=0.3, random_state=seed, stratify=y
    )
    return Split(name, X_train, y_train, X_test, y_test)


def whole(split: Split, seed: int) -> Split:
    return _cap_test(split.head(TRAIN_ROWS, seed), TEST_ROWS, seed)


def thinned(split: Split, seed: int) -> Iterator[tuple[str, Split]]:
    """The split at each share of positives, by name; test rows keep their ratio.

    All have the same negatives, and the positives of a smaller share are among those of a larger one.
    A share that would leave as many positives as the one before is left out.
    """
    split = _cap_test(split, RARE_TEST_ROWS, seed)
    rng = np.random.default_rng([seed, 1])
    negatives = rng.permutation(np.flatnonzero(split.y_train == 0))[:RARE_NEGATIVES]
    positives = rng.permutation(np.flatnonzero(split.y_train == 1))
    before = None
    for regime, share in LEVELS.items():
        count = max(RARE_POSITIVES, round(share / (1 - share) * len(negatives)))
        count = min(count, len(positives))
        if count != before:
            keep = np.sort(np.concatenate([negatives, positives[:count]]))
            yield regime, replace(split, X_train=split.X_train[keep], y_train=split.y_train[keep])
        before = count


def _cap_test(split: Split, rows: int, seed: int) -> Split:
    if len(split.y_test) <= rows:
        return split
    keep = np.sort(np.random.default_rng([seed, 2]).permutation(len(split.y_test))[:rows])
    return replace(split, X_test=split.X_test[keep], y_test=split.y_test[keep])
