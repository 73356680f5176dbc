"""
A stream of rows
================

``partial_fit`` learns from rows as they come, without keeping them. Each new row is paired with a
row of the other class from a small sample of those seen before.
"""

# %%
# A stream, and a kernel map fitted to its beginning
# --------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np

from aucmax import NystroemFeatures, SGDAUCClassifier
from aucmax.metrics import roc_auc

rng = np.random.default_rng(0)


def rows(count):
    """Rows in a plane; the few positives lie on a ring."""
    X = rng.normal(size=(count, 2))
    radius = np.hypot(X[:, 0], X[:, 1])
    return X, (np.abs(radius - 2.2) < 0.15) & (rng.random(count) < 0.8)


X_test, y_test = rows(10_000)
first, labels = rows(2000)
kernel_map = NystroemFeatures(n_landmarks=150, gamma=2.0, random_state=0).fit(first, labels)
test_features = kernel_map.transform(X_test)
print(f"{y_test.mean():.1%} of the rows are positive")

# %%
# Learn as rows come
# ------------------
# A linear learner on the columns cannot separate a ring. The same learner on kernel features can.

linear = SGDAUCClassifier(random_state=0)
kernel = SGDAUCClassifier(standardize=False, random_state=0)
seen, aucs = [], {"columns": [], "kernel features": []}
for step in range(1, 41):
    X, y = rows(500)
    linear.partial_fit(X, y, classes=[False, True])
    kernel.partial_fit(kernel_map.transform(X), y, classes=[False, True])
    if step in (1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40):
        seen.append(500 * step)
        aucs["columns"].append(roc_auc(y_test, linear.decision_function(X_test)))
        aucs["kernel features"].append(roc_auc(y_test, kernel.decision_function(test_features)))

# %%
# Result
# ------

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, values in aucs.items():
    ax.plot(seen, values, marker="o", label=name)
ax.set(xlabel="rows seen", ylabel="AUC on other rows")
ax.legend()
