"""``aucmax train``: from a table to a model file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from aucmax.cli.model_arguments import (
    aim_words,
    check_output,
    interval,
    print_columns,
    print_json,
    print_table,
    told,
)
from aucmax.persistence.model_file import save_model
from aucmax.tables import TableModel, fit_table, plan_table

#: The share of rows with a twin that is worth a word.
_MANY_COPIES = 0.01


def run_train(
    table: Path,
    target: str,
    output: Path,
    *,
    force: bool,
    as_json: bool,
    dry_run: bool,
    **params: Any,
) -> None:
    """Fit, save, and say what was done to each column and how well the model ranks."""
    if dry_run:
        if as_json:
            raise ValueError("--dry-run tells its plan in words: leave --json out.")
        print(plan_table(table, target, **params))
        return
    check_output(output, table, force=force)
    say = told()
    model = fit_table(table, target, verbose=int(sys.stderr.isatty()), **params)
    save_model(model, output)
    about, threshold = model.training_, model.threshold_
    if as_json:
        print_json({"model": output, **summary(model)})
        return
    chosen = "as asked" if params.get("positive") is not None else "the rarer label"
    say.print(
        f"{about['rows']:,} rows, {about['positives']:,} of them {about['positive']!r} in "
        f"{target!r}: that is ranked high ({chosen})."
    )
    if about["copies"] > _MANY_COPIES * about["rows"] and about["group"] is None:
        say.print(
            f"{about['copies']:,} rows are copies of others. Held out apart from their twins they "
            "flatter the AUC: drop them, or keep twins together by --group."
        )
    if about["rows_without_label"]:
        say.print(f"{about['rows_without_label']:,} rows without a label were left out.")
    print_columns(model.columns_, "name", "kind", "treatment")
    print()
    print_table(
        ("result", ""),
        (
            ("cross-validated AUC", interval(about["auc"], about["auc_low"], about["auc_high"])),
            ("C, gamma", f"{model.model_.C_:.4g}, {model.model_.gamma_:.4g}"),
            ("landmarks", f"{model.model_.feature_map_.rank_:,} features of the kernel"),
            (f"threshold ({aim_words(threshold.aim)})", f"{threshold.threshold:.4g}"),
            (
                "precision there",
                interval(threshold.precision, threshold.precision_low, threshold.precision_high),
            ),
            ("recall there", interval(threshold.recall, threshold.recall_low, threshold.recall_high)),
            ("seconds", f"{about['seconds']:.1f}"),
        ),
    )
    say.print(f"The model is in {output}; look at it with: aucmax report {output}")


def summary(model: TableModel) -> dict[str, Any]:
    """What is known of a model, in plain values."""
    search = model.model_
    return {
        **model.training_,
        "C": search.C_,
        "gamma": search.gamma_,
        "threshold": model.threshold_.to_dict(),
        "columns": model.columns_,
        "path": search.path_,
    }
