"""Run ``aucmax train``: make a model file from a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from aucmax.cli import inputs_outputs as io
from aucmax.estimators.kernel import KernelAUCClassifier
from aucmax.estimators.search import KernelAUCClassifierCV
from aucmax.persistence.model_file import save_model
from aucmax.tables.fit_table_file import fit_table, plan_table
from aucmax.tables.labels import why_positive

_MANY_COPIES = 0.01  # from this share of duplicate rows on, a remark is printed


def run_train(
    table: Path,
    target: str,
    output: Path,
    *,
    force: bool,
    as_json: bool,
    dry_run: bool,
    gammas: int | None,
    machine: dict[str, Any],
    **params: Any,
) -> None:
    """Fit and save a model; print how each column was prepared and how well the model ranks.

    ``machine`` has parameters of the kernel classifier, ``params`` those of :func:`fit_table`.
    """
    verbose, seed = int(sys.stderr.isatty() and not dry_run), params["random_state"]
    rule = "auto" if gammas is None else "distance"
    classifier = KernelAUCClassifier(gamma=rule, random_state=seed, verbose=verbose, **machine)
    params["estimator"] = KernelAUCClassifierCV(classifier, gammas=gammas)
    if dry_run:
        if as_json:
            raise ValueError("--dry-run prints text only: leave out --json.")
        print(plan_table(table, target, **params))
        return
    io.check_output(output, table, force=force)
    model = fit_table(table, target, **params)
    save_model(model, output)
    about, search = model.training_, model.model_
    if as_json:
        results = {"C": search.C_, "gamma": search.gamma_, "threshold": model.threshold_.to_dict()}
        more = {"columns": model.columns_, "path": search.path_}
        io.print_json({"model": output, **about, **results, **more})
        return
    why = why_positive(about["positive"], about["negative"], named=params.get("positive") is not None)
    io.say(
        f"{about['rows']:,} rows, {about['positives']:,} of them with {about['positive']!r} in "
        f"{target!r}, which is ranked high ({why})."
    )
    if about["copies"] > _MANY_COPIES * about["rows"] and about["group"] is None:
        io.say(
            f"{about['copies']:,} rows are copies of others. If copies are held out from each other, "
            "the AUC is too high: drop them, or keep them together by --group."
        )
    if about["rows_without_label"]:
        io.say(f"{about['rows_without_label']:,} rows without a label were left out.")
    io.print_columns(model.columns_, "name", "kind", "treatment")
    print()
    threshold = model.threshold_
    lines = (
        ("cross-validated AUC", io.interval(about, "auc")),
        ("C, gamma", f"{search.C_:.4g}, {search.gamma_:.4g}"),
        ("kernel features", f"{search.feature_map_.rank_:,}"),
        (f"threshold ({io.aim_words(threshold.aim)})", f"{threshold.threshold:.4g}"),
        ("precision there", io.interval(vars(threshold), "precision")),
        ("recall there", io.interval(vars(threshold), "recall")),
        ("seconds", f"{about['seconds']:.1f}"),
    )
    io.print_table(("result", ""), lines)
    io.say(f"The model is in {output}. To look at it: aucmax report {output}")
