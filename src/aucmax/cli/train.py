"""Run ``aucmax train``: make a model file from a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aucmax.cli.check import first_line, open_tables, print_check, time_sentence
from aucmax.cli.remarks import check_output, say
from aucmax.cli.table_inputs import table_files
from aucmax.reading.opened import OpenedTable

_MANY_COPIES = 0.01  # from this share of duplicate rows on, a remark is printed


def run_train(
    tables: Sequence[Path],
    target: str,
    output: Path,
    *,
    reading: dict[str, str | None],
    force: bool,
    as_json: bool,
    dry_run: bool,
    machine: dict[str, Any],
    **params: Any,
) -> None:
    """Fit and save a model; print how each column was prepared and how well the model ranks.

    ``reading`` has the encoding and the sheet, ``machine`` parameters of the kernel classifier, and
    ``params`` those of :func:`fit_table` and the number of ``gammas``.
    """
    gammas = params.pop("gammas")
    if dry_run and as_json:
        raise ValueError("--dry-run prints text only: leave out --json.")
    if not dry_run:
        check_output(output, *tables, force=force)
    with table_files(tables, **reading) as files:
        opened = open_tables(files, params)
        if not (as_json or dry_run):  # before scikit-learn is imported, which takes a second or more
            say(first_line(opened, tables, target))
        from aucmax.estimators.kernel import KernelAUCClassifier
        from aucmax.estimators.search import KernelAUCClassifierCV
        from aucmax.tables.fit_table_file import plan_table

        verbose, seed = int(sys.stderr.isatty() and not dry_run), params["random_state"]
        rule = "auto" if gammas is None else "distance"
        classifier = KernelAUCClassifier(gamma=rule, random_state=seed, verbose=verbose, **machine)
        params["estimator"] = KernelAUCClassifierCV(classifier, gammas=gammas)
        if dry_run:
            print(plan_table(opened, target, **params))
            return
        _check_fit_print(opened, target, output, as_json, params)


def _check_fit_print(
    opened: OpenedTable, target: str, output: Path, as_json: bool, params: dict[str, Any]
) -> None:
    from aucmax.cli import inputs_outputs as io
    from aucmax.persistence.model_file import save_model
    from aucmax.tables.check import add_estimate, check_opened
    from aucmax.tables.fit_table_file import fit_table

    named = {"target": target} | {key: params[key] for key in ("weight", "group", "time")}
    rest = {key: value for key, value in params.items() if key not in named}
    checked, fit = check_opened(opened, named, **rest)
    checked.refuse_problems()
    if as_json:
        for each in checked.warnings:
            say(f"Warning: {each}")
    else:
        print_check(checked)
        if fit is not None and params["estimator"].estimator.time_budget is None:
            say(time_sentence(add_estimate(checked, fit).seconds or 0.0))
    model = fit_table(opened, target, **params)
    save_model(model, output)
    about, search = model.training_, model.model_
    if as_json:
        results = {"C": search.C_, "gamma": search.gamma_, "threshold": model.threshold_.to_dict()}
        more = {"columns": model.columns_, "path": search.path_}
        warnings = [each.to_dict() for each in checked.warnings]
        io.print_json({"model": output, **about, **results, **more, "warnings": warnings})
        return
    if about["copies"] > _MANY_COPIES * about["rows"] and about["group"] is None:
        say(
            f"{about['copies']:,} rows are copies of others. If copies are held out from each other, "
            "the AUC is too high: drop them, or keep them together by --group."
        )
    print()
    threshold = model.threshold_
    split = "cross-validated AUC" if about["time"] is None else "AUC of the latest quarter"
    machines = (("machines blended", f"{search.weights_.size}"),) if search.parts_ else ()
    lines = (
        (split, io.interval(about, "auc")),
        *machines,
        ("C, gamma", f"{search.C_:.4g}, {search.gamma_:.4g}"),
        ("kernel features", f"{search.feature_map_.rank_:,}"),
        (f"threshold ({io.aim_words(threshold.aim)})", f"{threshold.threshold:.4g}"),
        ("precision there", io.interval(vars(threshold), "precision")),
        ("recall there", io.interval(vars(threshold), "recall")),
        ("seconds", f"{about['seconds']:.1f}"),
    )
    io.print_table(("result", ""), lines)
    say(f"The model is in {output}. To look at it: aucmax report {output}")
