"""``python -m benchmarks NAME``: run one benchmark, append its rows, print its table."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from aucmax.paper.data import DataMissingError
from benchmarks.harness import Writer

BENCHMARKS = {
    "pairs": "all-pairs value, gradient and Hessian product, by number of rows",
    "bandwidth": "one scores + pullback against reading the same bytes",
    "passes": "Newton with and without preconditioner, to the same objective (ijcnn1)",
    "accuracy": "test AUC on the paper's data sets, C from a validation split",
    "end_to_end": "covtype, all rows: against scikit-learn's Nystroem + LogisticRegression",
    "step": "one step of Algorithm 3 against NumPy and against the memory it moves",
    "stochastic": "NSAUC, NSVMSGD2, NSOLAM and NOAM by epoch, beside NBAUC",
    "rank_svm": "the exact kernel machine against landmarks on every row",
    "rank_svm_large": "the exact kernel machine on up to 80,000 rows, and what each part brings",
    "half_precision": "the exact kernel machine with its matrix in float32 and in float16",
    "search": "26 values of C by 3 folds in one solve, against one fit and 79",
    "gamma": "the paper's bandwidth b read as 1/b, 1/(2b) and 1/(4b), against its NBAUC and NSAUC",
    "tables": "a CSV of 500,000 rows: training beside the solve, rows a second of predict",
    "large": "ten million rows within 4 GB, time by rows, what recomputing kernel values costs",
    "distributed": "covtype on two Dask workers of one thread each, against the same cores in process",
    "contest": "aucmax beside boosted trees and others, whole data sets and rare positives",
    "mixed_tables": "TableModel beside CatBoost and LightGBM: categories and missing values",
    "parts": "what each part of automatic tuning is worth: AUC and seconds without it",
    "limits": "time budgets, efforts and estimates against what fits take",
    "explain": "contributions of 20 columns to the scores of 1,000 rows, by kernel",
    "startup": "import aucmax and aucmax --help against import numpy",
}


def main() -> int:
    listed = "\n".join(f"  {name:12s} {text}" for name, text in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Measurements of aucmax.\n\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--data", nargs="*", help="data sets, for benchmarks that take several")
    parser.add_argument("--seeds", type=int, help="random splits, for benchmarks that make some")
    parser.add_argument("--landmarks", type=int, default=1600)
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"), help="folder for rows")
    named = next((word for word in sys.argv[1:] if word in BENCHMARKS), None)
    module = import_module(f"benchmarks.{named}") if named else None
    if hasattr(module, "arguments"):
        module.arguments(parser)
    options = parser.parse_args()
    if getattr(options, "show", False) or getattr(options, "publish", False):
        print(module.show(options))
        return 0
    writer = Writer(options.name, options.out)
    try:
        for row in module.run(options):
            writer.add(row)
    except DataMissingError as missing:
        print(f"{missing}", file=sys.stderr)
        return 2
    print()
    print(writer.table(getattr(module, "COLUMNS", None)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
