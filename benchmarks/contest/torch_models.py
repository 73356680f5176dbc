"""Rivals that are built on torch: xRFM, a kernel machine with a learnt metric, and RealMLP, a network.

Both need rows to stop by: a stratified fifth of the training rows. They run as their documentation
advises for the AUC: xRFM on standardised columns, tuned by AUC; RealMLP without label smoothing,
stopped by cross-entropy.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.contest.boosting import THREADS


class XRFM:
    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> XRFM:
        from xrfm import xRFM

        train, valid = train_test_split(
            np.arange(len(y)), test_size=0.2, stratify=y, random_state=self.seed
        )
        self.scaler_ = StandardScaler().fit(X[train])
        own = [self._scaled(X[part]) for part in (train, valid)]
        labels = [y[part].astype(np.int64) for part in (train, valid)]
        self.model_ = xRFM(
            tuning_metric="auc",
            device="cpu",
            n_threads=THREADS,
            random_state=self.seed,
            verbose=False,
        )
        self.model_.fit(own[0], labels[0], own[1], labels[1])
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model_.predict_proba(self._scaled(X)))[:, -1]

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.scaler_.transform(X), dtype=np.float32)


class RealMLP:
    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> RealMLP:
        from pytabkit import RealMLP_TD_Classifier

        self.model_ = RealMLP_TD_Classifier(
            device="cpu",
            random_state=self.seed,
            n_threads=THREADS,
            val_metric_name="cross_entropy",
            use_ls=False,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of lightning, about devices and loaders
            self.model_.fit(X, y)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model_.predict_proba(X))[:, 1]
