"""
More rows than memory
=====================

A fit uses at most ``max_memory``. If the kernel values do not fit, they are computed again in each
pass, and the minimum is the same. Rows are read from a file. The same calls work for ten million
rows in 4 GB; this example is small so that it runs quickly.
"""

# %%
# A file of rows
# --------------

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from aucmax import KernelAUCClassifier
from aucmax.metrics import roc_auc

rng = np.random.default_rng(0)
X = rng.normal(size=(60_000, 10)).astype(np.float32)
y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=60_000)) > 3
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.parquet"
pl.DataFrame(X).with_columns(y=pl.Series(y)).write_parquet(path)
print(f"{y.sum():,} of {y.size:,} rows are positive")

# %%
# See the plan
# ------------
# ``plan`` shows where kernel values would be kept, before anything is fitted.

settings = {"preset": "paper", "n_landmarks": 200, "random_state": 0}
for memory in ("2GB", "60MB"):
    print(KernelAUCClassifier(max_memory=memory, **settings).plan(X), end="\n\n")

# %%
# Fit from the file
# -----------------
# The minimum is the same in both places; only the time differs.

models = {
    memory: KernelAUCClassifier(max_memory=memory, **settings).fit(path, "y")
    for memory in ("2GB", "60MB")
}
scores = {memory: model.decision_function(path) for memory, model in models.items()}
for memory, model in models.items():
    print(f"{memory:5s} kernel values: {model.place_:12s} AUC {roc_auc(y, scores[memory]):.4f}")

figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.plot(scores["2GB"][:5000], scores["60MB"][:5000], ".", ms=2)
ax.set(xlabel="score, values in memory", ylabel="score, values computed again")
ax.set_title("The same model")
folder.cleanup()
