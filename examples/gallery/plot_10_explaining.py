"""
Why is this row ranked high?
============================

``explain`` splits the score of a row into contributions of its columns. They add up to the
difference between the row's score and that of an average row.
"""

# %%
# A table of customers
# --------------------

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from aucmax import KernelAUCClassifier, fit_table

rng = np.random.default_rng(0)
n = 3000
table = pl.DataFrame(
    {
        "age": rng.integers(18, 85, n),
        "plan": rng.choice(["basic", "plus", "family"], n),
        "complaints": rng.poisson(0.6, n),
        "bill": rng.normal(40, 12, n).round(2),
    }
)
risk = (table["age"] > 60) & (table["plan"] == "basic") | (table["complaints"] > 2)
left = risk.to_numpy() & (rng.random(n) < 0.7) | (rng.random(n) < 0.02)
table = table.with_columns(left=pl.when(pl.Series(left)).then(pl.lit("yes")).otherwise(pl.lit("no")))
estimator = KernelAUCClassifier(preset="paper", n_landmarks=300, random_state=0)
model = fit_table(table[:2000], "left", estimator=estimator)

# %%
# Explain the first rows of the ranking
# -------------------------------------

new = table[2000:]
first = new[np.argsort(-model.scores(new))[:3].tolist()]
found = model.explain(first)
for row, (raises, lowers) in enumerate(found.top(2)):
    up, down = [each.fact for each in raises], [each.fact for each in lowers]
    print(f"row {row}: raised by {up}, lowered by {down}")

# %%
# One row as a picture
# --------------------
# The contributions lead from the score of the average row to the score of this row.

contributions = found.contributions[0]
order = np.argsort(-np.abs(contributions))
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ends = found.reference_score + np.cumsum(contributions[order])
starts = ends - contributions[order]
colours = np.where(contributions[order] > 0, "C3", "C0")
ax.barh(range(order.size), contributions[order], left=starts, color=colours)
names = [f"{found.names[i]} = {first[0, found.names[i]]}" for i in order]
ax.set_yticks(range(order.size), names)
ax.invert_yaxis()
ax.axvline(found.reference_score, color="grey", ls=":")
ax.set(xlabel="score", title="From the average customer to the first of the ranking")

# %%
# They add up
# -----------

print(np.allclose(found.contributions.sum(axis=1), found.scores - found.reference_score, atol=1e-3))
