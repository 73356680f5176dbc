"""Run ``aucmax evaluate`` and ``aucmax compare``: measure models on rows with known labels."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aucmax.cli import inputs_outputs as io
from aucmax.cli.decisions import CostOptions, cost_lines
from aucmax.cli.remarks import DRIFTED
from aucmax.cli.rivals import RIVALS
from aucmax.cli.status_line import Line, status_line, watched
from aucmax.cli.table_inputs import name_of, table_file
from aucmax.metrics import compare_roc_auc, roc_auc
from aucmax.metrics.costs import ExpectedCost
from aucmax.metrics.evaluation import Evaluation, evaluate
from aucmax.metrics.groups import GroupEvaluation, evaluate_groups
from aucmax.metrics.thresholds import Aim, Threshold, measure_threshold
from aucmax.reading.frames import as_frame, check_names
from aucmax.tables.columns import normal_frame
from aucmax.tables.decisions import cost_at_threshold
from aucmax.tables.evaluation_rows import EvaluationRows, evaluation_rows
from aucmax.tables.row_hashes import share_of_training_rows
from aucmax.tables.table_features import training_features
from aucmax.tables.target_encoding import TargetRows

if TYPE_CHECKING:
    from aucmax.tables.model import TableModel

_MOST_GROUPS = 100  # of evaluate --by
_RATES = ("precision", "recall", "fpr")
_FEW_SHARED = 0.01  # a smaller share of rows that are in the training table too is not remarked on


def run_evaluate(
    path: Path,
    table: Path,
    target: str | None,
    *,
    by: str | None,
    costs: CostOptions,
    reading: dict[str, str | None],
    fail_on_drift: bool,
    as_json: bool,
) -> None:
    """Measure a model on a table, and print all measures."""
    aim = costs.aim()
    model = io.table_model(path)
    with table_file(table, **reading) as file, status_line() as line:
        rows = _score(model, file, target, line, name_of([table]))
        remarks = _compare_with_training(model, rows, line)
        line.part("measuring")
        weight = rows.weight if rows.weighted else None
        found = evaluate(rows.positive, rows.score, rows.probability, weight)
        cut = measure_threshold(rows.positive, rows.score, model.threshold_.threshold, weight)
        aim = _own_costs(model) if aim is None else aim
        by_row = costs.by_row(rows, file)
        cost = None if aim is None else cost_at_threshold(model, aim, rows, by_row)
        groups = None if by is None else _groups(rows, by, cut.threshold, weight)
    if as_json:
        results = {"source": rows.source, **found.to_dict(), "threshold": cut.to_dict(), **remarks}
        results |= {} if cost is None else {"cost": cost.to_dict()}
        results |= {} if groups is None else {"by": by, "groups": [each.to_dict() for each in groups]}
        io.print_json(results)
    else:
        _print_evaluation(found, cut, model, cost)
        if groups is not None:
            _print_groups(groups, str(by), rows.weighted)
    if remarks["drift"] and fail_on_drift:
        raise SystemExit(DRIFTED)


def _own_costs(model: TableModel) -> Aim | None:
    """Return the costs that the model's threshold was chosen for, if it was chosen for costs."""
    text = model.threshold_.aim
    aim = Aim.parse(text) if text.startswith("cost=") else None
    return None if aim is None or aim.by_row else aim


def _groups(
    rows: EvaluationRows, by: str, threshold: float, weight: np.ndarray | None
) -> list[GroupEvaluation]:
    assert rows.frame is not None
    check_names(rows.frame.columns, [by], "--by names")
    names = rows.frame[by].cast(pl.String, strict=False).str.strip_chars()
    names = names.fill_null("(missing)").replace("", "(missing)")
    if names.n_unique() > _MOST_GROUPS:
        raise ValueError(
            f"--by {by} has {names.n_unique():,} different values, and at most {_MOST_GROUPS} groups "
            "are compared: make a column of fewer groups, such as ranges."
        )
    return evaluate_groups(rows.positive, rows.score, names.to_numpy(), threshold, weight)


def _print_groups(groups: list[GroupEvaluation], by: str, weighted: bool) -> None:
    print()
    lines = []
    for each in groups:
        cut, p = vars(each.threshold), "–" if each.p_value is None else f"{each.p_value:.3g}"
        rates = ("–" if cut[key] != cut[key] else f"{cut[key]:.4f}" for key in _RATES)
        auc = io.interval(vars(each), "auc")
        lines.append((each.group, f"{each.rows:,}", f"{each.positives:,}", auc, p, *rates))
    header = (by, "rows", "positives", "AUC", "p (Holm)", "precision", "recall", "fpr")
    io.print_table(header, lines)
    odd = [each for each in groups if each.differs]
    for each in odd:
        worse = "lower" if (each.difference or 0.0) < 0 else "higher"
        io.say(
            f"{by} = {each.group}: the AUC is {abs(each.difference or 0.0):.4f} {worse} than that of "
            "the other rows, which is more than noise explains."
        )
    if weighted:
        io.say("With unequal weights there is no test of whether groups differ.")
    elif not odd:
        io.say("No group differs from the other rows by more than noise explains.")


def _print_evaluation(
    found: Evaluation, cut: Threshold, model: TableModel, cost: ExpectedCost | None
) -> None:
    rates = vars(cut)
    partial = [
        (f"AUC up to {part.max_fpr:.0%} false positives, standardised", f"{part.standardized:.4f}")
        for part in found.partial_auc
    ]
    lift = [
        (f"lift in the top {top.share:.0%}", f"{top.lift:.2f} ({top.captured:.1%} of positives)")
        for top in found.top
    ]
    lines = [
        ("rows", f"{found.rows:,}"),
        (f"with label {model.positive_label_!r}", f"{found.positives:,} ({found.positive_share:.2%})"),
        ("AUC", io.interval(vars(found), "auc")),
        *partial,
        ("average precision", f"{found.average_precision:.4f}"),
        *lift,
        ("Brier score (skill)", f"{found.brier:.4f} ({found.brier_skill:.3f})"),
        ("log loss", f"{found.log_loss:.4f}"),
        (f"at the threshold {cut.threshold:.4g} ({io.aim_words(model.threshold_.aim)}):", ""),
        ("  precision", io.interval(rates, "precision")),
        ("  recall", io.interval(rates, "recall")),
        ("  false-positive rate", io.interval(rates, "fpr")),
        ("  positives found, missed", f"{cut.tp:,.0f}, {cut.fn:,.0f}"),
        ("  false alarms, true negatives", f"{cut.fp:,.0f}, {cut.tn:,.0f}"),
        *([] if cost is None else cost_lines(cost)),
    ]
    io.print_table(("measure", ""), lines)
    if found.calibration:
        print()
        bins = []
        for each in found.calibration:
            numbers = (f"{value:.4f}" for value in (each.low, each.high, each.mean_probability))
            bins.append((*numbers, f"{each.rows:,}", io.interval(vars(each), "observed")))
        io.print_table(("probability from", "to", "mean", "rows", "observed"), bins, left=0)


def _score(model: TableModel, table: Path, target: str | None, line: Line, name: str) -> EvaluationRows:
    line.part(f"reading {name}")
    rows = evaluation_rows(watched(model, line), table, target)
    if rows.frame is not None:
        for sentence in model.unseen_values(rows.frame):
            line.say(sentence)
    if rows.source == "training table":
        line.say(f"The model was trained on {name}, so its rows have the scores of held-out folds.")
    return rows


def _compare_with_training(model: TableModel, rows: EvaluationRows, line: Line) -> dict[str, Any]:
    """Say which columns differ from the training table, and how many rows the model has seen there."""
    if rows.frame is None or rows.source == "training table":
        return {"drift": [], "rows_in_training": None}
    drift = model.drift(rows.frame)
    for each in drift:
        line.say(each.sentence)
    share = share_of_training_rows(model, rows.frame)
    if share is not None and share > _FEW_SHARED:
        line.say(
            f"About {share:.0%} of the rows are in the training table too, so the AUC is too high. "
            "Measure it on other rows."
        )
    return {"drift": [each.to_dict() for each in drift], "rows_in_training": share}


def run_compare(
    names: tuple[str, str],
    table: Path,
    train: Path | None,
    target: str | None,
    seed: int,
    reading: dict[str, str | None],
    as_json: bool,
) -> None:
    """Score a table with two models and compare them; a rival gets the features of the other model."""
    first, second = names
    models = [  # a rival is a bare word that is not a file here
        None if name in RIVALS and not Path(name).exists() else io.table_model(Path(name))
        for name in names
    ]
    fitted = [model for model in models if model is not None]
    if not fitted:
        raise ValueError(
            f"neither {first} nor {second} is a model file: name at least one, which prepares the "
            "columns for a rival."
        )
    labels = [model.positive_label_ for model in fitted]
    if len(set(map(str, labels))) > 1:
        raise ValueError(
            f"{first} ranks {labels[0]!r} high, but {second} ranks {labels[1]!r} high: they cannot be "
            "compared."
        )
    rival = next((name for name, model in zip(names, models, strict=True) if model is None), None)
    if rival and train and train.exists() and table.exists() and train.samefile(table):
        raise ValueError(f"{rival} would be tested on the rows it is fitted to: name another --train.")
    with (
        table_file(table, **reading) as file,
        nullcontext() if train is None else table_file(train, **reading) as train_file,
        status_line() as line,
    ):
        rows = _score(fitted[0], file, target, line, name_of([table]))
        shares = [_compare_with_training(model, rows, line)["rows_in_training"] for model in fitted]
        scores = []
        for name, model in zip(names, models, strict=True):
            if model is None:
                scores.append(_rival_scores(name, seed, fitted[0], rows, train_file, target, line))
            elif model is fitted[0]:
                scores.append(rows.score)
            else:
                scores.append(evaluation_rows(watched(model, line), file, target).score)
    if len(scores[0]) != len(scores[1]):
        raise ValueError(
            f"{first} and {second} give weight 0 to different rows of {table}: they cannot be compared."
        )
    if rows.weighted:
        io.say("The paired test ignores weights: each row counts once.")
    known = [share for share in shares if share is not None]
    _print_comparison(names, rows.positive, scores, max(known, default=None), as_json)


def _print_comparison(
    names: tuple[str, str],
    positive: np.ndarray,
    scores: list[np.ndarray],
    shared: float | None,
    as_json: bool,
) -> None:
    first, second = names
    found = compare_roc_auc(positive, *scores)
    if as_json:
        about = {"first": first, "second": second, "rows": len(positive)}
        io.print_json({**about, **found._asdict(), "rows_in_training": shared})
        return
    moved = {"by": found.difference, "by_low": found.low, "by_high": found.high}
    lines = [(f"AUC of {first}", f"{found.auc_a:.4f}"), (f"AUC of {second}", f"{found.auc_b:.4f}")]
    lines += [("difference", io.interval(moved, "by")), ("p-value", f"{found.p_value:.3g}")]
    io.print_table(("measure", ""), lines)
    better, worse = names if found.difference > 0 else names[::-1]
    if found.p_value < 0.05:
        io.say(f"{better} ranks significantly better than {worse}.")
    else:
        io.say(f"The difference is not significant on these {len(positive):,} rows.")


def _rival_scores(
    name: str,
    seed: int,
    model: TableModel,
    rows: EvaluationRows,
    train: Path | None,
    target: str | None,
    line: Line,
) -> np.ndarray:
    """Fit a model of another library to the features that ``model`` makes of the columns."""
    if train is None:
        raise ValueError(f"{name} must be fitted first: name the table to fit it to with --train.")
    rival = RIVALS[name](seed)
    line.part(f"reading {train.name}")
    learnt = evaluation_rows(watched(model, line), train, target)
    line.part(f"fitting {name} to {len(learnt.positive):,} rows")
    normal = normal_frame(as_frame(learnt.frame), model.columns_)
    target_rows = TargetRows(learnt.positive, learnt.weight)
    rival.fit(
        training_features(model.table_features_, normal, target_rows), learnt.positive.astype(int)
    )
    line.part(f"scoring {len(rows.positive):,} rows with {name}")
    features = model.features(rows.frame)
    scores: np.ndarray
    if hasattr(rival, "decision_function"):
        scores = rival.decision_function(features)
    else:
        scores = rival.predict_proba(features)[:, 1]
    line.say(f"{name}: AUC {roc_auc(rows.positive, scores):.4f}, not tuned.")
    return scores
