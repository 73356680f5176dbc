"""
A table with dates, categories and missing values
=================================================

``fit_table`` takes a table without any preparation. It decides how to treat each column, tunes a
model, measures it on held-out rows, calibrates probabilities and chooses a threshold.
"""

# %%
# A table
# -------

import datetime as dt

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from aucmax import KernelAUCClassifier, check_table, fit_table, with_threshold

rng = np.random.default_rng(0)
n = 4000
since = [dt.date(2020, 1, 1) + dt.timedelta(days=int(days)) for days in rng.integers(0, 1400, n)]
table = pl.DataFrame(
    {
        "customer": [f"C{i:05d}" for i in range(n)],
        "since": since,
        "plan": rng.choice(["basic", "plus", "family", ""], n, p=[0.4, 0.3, 0.2, 0.1]),
        "spent": [f"${value:,.2f}" for value in rng.gamma(2.0, 600.0, n)],
        "visits": rng.poisson(3, n),
    }
)
table = table.with_columns(pl.col("plan").replace("", None))
days = np.array([(dt.date(2024, 1, 1) - day).days for day in since])
chance = np.where((days < 700) & (table["plan"] == "basic").fill_null(False).to_numpy(), 0.5, 0.02)
table = table.with_columns(left=pl.Series(np.where(rng.random(n) < chance, "yes", "no")))

# %%
# What will be done
# -----------------

found = check_table(table, "left")
for column in found.columns:
    print(f"{column['name']:9s} {column['kind']:9s} {column['treatment']}")

# %%
# Fit
# ---
# Without ``estimator``, everything is tuned. Here the paper's settings keep the fit short.

quick = KernelAUCClassifier(preset="paper", n_landmarks=200, random_state=0)
model = fit_table(table[:3000], "left", estimator=quick)
print(f"'{model.positive_label_}' is ranked high")

# %%
# A threshold for 90 % recall
# ---------------------------

keen = with_threshold(model, "recall=0.9")
threshold = keen.threshold_
print(f"recall {threshold.recall:.2f}, precision {threshold.precision:.2f} on held-out rows")

# %%
# New rows
# --------

new = table[3000:]
probability = keen.probabilities(new)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
days_ago = days[3000:]
for name in ("basic", "plus", "family"):
    mine = (new["plan"] == name).fill_null(False).to_numpy()
    ax.plot(days_ago[mine], probability[mine], ".", ms=4, label=name)
ax.set(xlabel="days since the customer joined", ylabel="probability of leaving")
ax.legend(title="plan")
