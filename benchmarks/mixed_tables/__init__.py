"""TableModel beside CatBoost and LightGBM on real tables with categories and missing values.

Every method gets the same rows and the same columns, and handles categories and missing values itself.
Each row of the results is one method on one split, fitted in a process of its own after a warm-up.
Rows that are in ``mixed_tables.jsonl`` already, in the folder of results or in docs/benchmarks, are not
run again.
"""

from benchmarks.mixed_tables.runner import COLUMNS, arguments, run, show

__all__ = ["COLUMNS", "arguments", "run", "show"]
