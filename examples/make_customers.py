"""Make ``customers.csv``, a table as people have them: numbers, categories, holes, few yeses.

Nothing in it is about anyone. Who leaves depends on age and plan together, on complaints and on chance.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl


def make_customers(rows: int = 3000, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 85, rows)
    plan = rng.choice(["basic", "plus", "family", "business"], rows, p=[0.45, 0.3, 0.2, 0.05])
    city = rng.choice(["Lyon", "Porto", "Gent", "Turin", "Graz", "Bergen"], rows)
    months = rng.gamma(2.0, 14.0, rows).round(0)
    bill = (18 + 11 * (plan == "family") + 40 * (plan == "business") + rng.normal(0, 5, rows)).round(2)
    complaints = rng.poisson(0.4, rows)
    paperless = rng.random(rows) < 0.6
    young_basic = (age < 30) & (plan == "basic")
    old_family = (age > 62) & (plan == "family")
    drive = 2.4 * young_basic + 2.1 * old_family + 1.1 * complaints - 0.03 * months - 0.4 * paperless
    churned = drive + rng.logistic(size=rows) > 2.6
    return pl.DataFrame(
        {
            "customer": [f"C{10000 + i}" for i in range(rows)],
            "age": pl.Series(age).set(pl.Series(rng.random(rows) < 0.04), None),
            "plan": plan,
            "city": pl.Series(city).set(pl.Series(rng.random(rows) < 0.03), None),
            "months": months,
            "bill": bill,
            "complaints": complaints,
            "paperless": np.where(paperless, "yes", "no"),
            "churned": np.where(churned, "yes", "no"),
        }
    )


if __name__ == "__main__":
    folder = Path(__file__).parent
    make_customers().write_csv(folder / "customers.csv")
    make_customers(1500, seed=1).write_csv(folder / "later.csv")
