"""``aucmax evaluate``, ``compare`` and ``report``: models on rows with known labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aucmax.cli.model_arguments import (
    aim_words,
    check_output,
    interval,
    naming,
    print_json,
    print_table,
    table_model,
    told,
)
from aucmax.cli.rivals import RIVALS
from aucmax.cli.status_line import Line, shown, watched
from aucmax.metrics import compare_roc_auc, roc_auc
from aucmax.metrics.evaluation import Evaluation
from aucmax.metrics.evaluation import evaluate as measure
from aucmax.metrics.thresholds import Threshold, measure_threshold
from aucmax.runtime.spelling import known_name
from aucmax.tables import TableModel
from aucmax.tables.evaluation_rows import EvaluationRows, evaluation_rows


def run_evaluate(path: Path, table: Path, target: str | None, as_json: bool) -> None:
    """Everything that labels can tell of a model."""
    model = table_model(path)
    with shown() as line:
        rows = _scored(model, table, target, line)
        line.part("measuring")
        weight = rows.weight if rows.weighted else None
        found = measure(rows.positive, rows.score, rows.probability, weight)
        cut = measure_threshold(rows.positive, rows.score, model.threshold_.threshold, weight)
    if as_json:
        print_json({"source": rows.source, **found.to_dict(), "threshold": cut.to_dict()})
        return
    _print_evaluation(found, cut, model)


def _print_evaluation(found: Evaluation, cut: Threshold, model: TableModel) -> None:
    lines = [
        ("rows", f"{found.rows:,}"),
        (f"of {model.positive_label_!r}", f"{found.positives:,} ({found.positive_share:.2%})"),
        ("AUC", interval(found.auc, found.auc_low, found.auc_high)),
        *(
            (f"AUC up to {part.max_fpr:.0%} false positives, standardised", f"{part.standardized:.4f}")
            for part in found.partial_auc
        ),
        ("average precision", f"{found.average_precision:.4f}"),
        *(
            (f"lift in the top {top.share:.0%}", f"{top.lift:.2f} ({top.captured:.1%} of them found)")
            for top in found.top
        ),
        ("Brier score (skill)", f"{found.brier:.4f} ({found.brier_skill:.3f})"),
        ("log loss", f"{found.log_loss:.4f}"),
        (f"at the threshold {cut.threshold:.4g} ({aim_words(model.threshold_.aim)}):", ""),
        ("  precision", interval(cut.precision, cut.precision_low, cut.precision_high)),
        ("  recall", interval(cut.recall, cut.recall_low, cut.recall_high)),
        ("  false-positive rate", interval(cut.fpr, cut.fpr_low, cut.fpr_high)),
        ("  found, missed", f"{cut.tp:,.0f}, {cut.fn:,.0f}"),
        ("  false alarms, rightly left", f"{cut.fp:,.0f}, {cut.tn:,.0f}"),
    ]
    print_table(("measure", ""), lines)
    if found.calibration:
        print()
        print_table(
            ("probability from", "to", "rows", "mean", "observed"),
            (
                (
                    f"{each.low:.4f}",
                    f"{each.high:.4f}",
                    f"{each.rows:,}",
                    f"{each.mean_probability:.4f}",
                    interval(each.observed, each.observed_low, each.observed_high),
                )
                for each in found.calibration
            ),
            left=0,
        )


def _scored(model: TableModel, table: Path, target: str | None, line: Line) -> EvaluationRows:
    line.part(f"reading {table.name}")
    rows = evaluation_rows(watched(model, line), table, target)
    if rows.frame is not None:
        for sentence in model.unseen_values(rows.frame):
            line.say(sentence)
    if rows.source == "training table":
        line.say(f"The model learnt from {table}: its rows are scored by folds that had not seen them.")
    return rows


def run_compare(
    first: str,
    second: str,
    table: Path,
    train: Path | None,
    target: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Both on the same rows. A rival learns from the columns as the other's model prepares them."""
    paths = [Path(name) if _is_file(name) else None for name in (first, second)]
    models = [None if path is None else table_model(path) for path in paths]
    lead = next((model for model in models if model is not None), None)
    if lead is None:
        raise ValueError(
            f"neither {first} nor {second} is a model file: one of the two must be, for a rival takes "
            "the columns as that model prepares them."
        )
    high = [model.positive_label_ for model in models if model is not None]
    if len(set(map(str, high))) > 1:
        raise ValueError(
            f"{first} ranks {high[0]!r} high and {second} {high[1]!r}: they cannot be compared."
        )
    with shown() as line:
        rows = _scored(lead, table, target, line)
        scores = [
            _rival(name, lead, rows, table, train, target, seed, line)
            if model is None
            else rows.score
            if model is lead
            else evaluation_rows(watched(model, line), table, target).score
            for name, model in zip((first, second), models, strict=True)
        ]
    if len(scores[0]) != len(scores[1]):
        raise ValueError(
            f"{first} and {second} leave out different rows of {table} (by their weights): they cannot "
            "be compared on it."
        )
    if rows.weighted:
        told().print("The paired test has no weights: each row counts once.")
    found = compare_roc_auc(rows.positive, *scores)
    if as_json:
        print_json({"first": first, "second": second, "rows": len(rows.positive), **found._asdict()})
        return
    print_table(
        ("model", "AUC"),
        ((first, f"{found.auc_a:.4f}"), (second, f"{found.auc_b:.4f}")),
    )
    print()
    print_table(
        ("difference", "p"),
        ((interval(found.difference, found.low, found.high), f"{found.p_value:.3g}"),),
        left=0,
    )
    better, worse = (first, second) if found.difference > 0 else (second, first)
    clear = found.p_value < 0.05
    told().print(
        f"{better} ranks better than {worse}, beyond chance."
        if clear
        else f"These {len(rows.positive):,} rows do not tell which of the two ranks better."
    )


def _is_file(name: str) -> bool:
    """Whether a name means a file: a rival's is a bare word that is no file here."""
    return name not in RIVALS or Path(name).exists()


def _rival(
    name: str,
    lead: TableModel,
    rows: EvaluationRows,
    table: Path,
    train: Path | None,
    target: str | None,
    seed: int,
    line: Line,
) -> np.ndarray:
    """Scores by a model of another library, on the features that ``lead`` makes of the columns."""
    make = RIVALS[known_name("rival", name, RIVALS)]
    if train is None:
        raise ValueError(f"{name} has to learn first: name the table it shall learn from by --train.")
    if train.exists() and table.exists() and train.samefile(table):
        raise ValueError(
            f"{name} would be tested on {table}, which it learns from: give another table by --train."
        )
    line.part(f"reading {train.name}")
    learnt = evaluation_rows(watched(lead, line), train, target)
    assert learnt.frame is not None
    assert rows.frame is not None
    model = make(seed)
    line.part(f"{name} learns from {len(learnt.positive):,} rows")
    model.fit(lead.features(learnt.frame), learnt.positive.astype(int))
    line.part(f"{name} scores {len(rows.positive):,} rows")
    features = lead.features(rows.frame)
    found: np.ndarray = (
        model.decision_function(features)
        if hasattr(model, "decision_function")
        else model.predict_proba(features)[:, 1]
    )
    line.say(f"{name}: AUC {roc_auc(rows.positive, found):.4f}, not tuned.")
    return found


def run_report(
    path: Path,
    table: Path | None,
    output: Path,
    *,
    target: str | None,
    permutation: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write the page."""
    from aucmax.report import write_report

    check_output(output, path, table, force=force)
    model = table_model(path)
    with naming(output), shown() as line:
        line.part("measuring" if table is None else f"reading {table.name}")
        seen = watched(model, line, permutation=permutation)
        write_report(seen, table, output, target=target, permutation=permutation)
    if as_json:
        print_json({"report": output, "bytes": output.stat().st_size})
    else:
        told().print(f"The report is in {output}: open it in a browser.")
