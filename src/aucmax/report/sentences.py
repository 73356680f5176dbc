"""What a report says in words, made from its numbers."""

from __future__ import annotations

from typing import Any

from aucmax.metrics.evaluation import Evaluation
from aucmax.metrics.thresholds import Aim
from aucmax.report.column_table import missing_cells
from aucmax.report.words import count, fixed, percent
from aucmax.tables.evaluation_rows import EvaluationRows

#: With fewer of a class, a reader is warned of wide intervals.
_FEW = 50


def lead(rows: EvaluationRows, found: Evaluation, positive: str) -> str:
    """Which rows the report is about."""
    where = f" of {rows.name}" if rows.name else ""
    which = "held-out training rows" if rows.source == "held out" else f"rows{where}"
    return (
        f"{count(found.rows)} {which}, {count(found.positives)} of them {positive} "
        f"({percent(found.positives / found.rows)})"
    )


def source(model: Any, rows: EvaluationRows) -> dict[str, str]:
    """Whether the model has seen these rows; loud where it has."""
    folds = model.model_.n_splits_
    held_out = (
        f"each row is scored by a model that has not seen it ({folds}-fold cross-validation), while C "
        "and gamma were chosen on the same folds"
    )
    if rows.source == "training table":
        text = (
            "This is the table the model was trained on. The numbers are of held-out scores: "
            f"{held_out}. A table of other rows tells more."
        )
        return {"kind": "training", "text": text}
    if rows.source == "held out":
        text = (
            "No table was given: the numbers are of the training rows with held-out scores, where "
            f"{held_out}."
        )
        return {"kind": "training", "text": text}
    auc = model.training_.get("auc")
    before = "" if auc is None else f" In training, the AUC of held-out rows was {auc:.3f}."
    text = f"Measured on a table that is not the one the model was trained on.{before}"
    return {"kind": "table", "text": text}


def notes(rows: EvaluationRows, found: Evaluation, positive: str, negative: str) -> list[str]:
    """What a reader must know before the numbers."""
    said = []
    for label, number in ((positive, found.positives), (negative, found.rows - found.positives)):
        if number < _FEW:
            said.append(
                f"There are only {number} rows of {label}: read every number with its interval."
            )
    if rows.without_label:
        said.append(f"{count(rows.without_label)} rows without a label were left out.")
    if rows.weighted:
        said.append("Rows count by their weights.")
    return said


def tiles(found: Evaluation, positive: str) -> list[dict[str, str]]:
    """A few numbers beside the AUC."""
    tenth = found.top[-1]
    partial = found.partial_auc[0]
    shown = [
        {
            "label": f"Found in the first {percent(tenth.share, 0)}",
            "value": percent(tenth.captured),
            "more": f"of all {positive}, {tenth.lift:.1f} times a random order",
        },
        {
            "label": "Average precision",
            "value": fixed(found.average_precision, 3),
            "more": f"a random order has {found.positive_share:.3f}",
        },
        {
            "label": "Partial AUC",
            "value": fixed(partial.standardized, 3),
            "more": f"up to a false-positive rate of {percent(partial.max_fpr, 0)}; chance is 0.5",
        },
    ]
    if found.brier is not None and found.brier_skill is not None:
        shown.append(
            {
                "label": "Brier skill",
                "value": percent(found.brier_skill),
                "more": f"less error than always saying {percent(found.positive_share)}",
            }
        )
    return shown


def aim_in_words(aim: str) -> str:
    """Why the model's threshold is where it is.

    >>> aim_in_words("recall=0.9")
    'chosen in training for a recall of at least 90 %'
    """
    if aim == "given":
        return "which was given to it"
    parsed = Aim.parse(aim)
    value = parsed.value or 0.0
    share = f"{100 * value:g} %"
    return {
        "youden": "where recall less false-positive rate was largest in training",
        "cost": f"the cheapest in training, a missed positive costing {value:g} false alarms",
        "precision": f"chosen in training for a precision of at least {share}",
        "recall": f"chosen in training for a recall of at least {share}",
        "fpr": f"chosen in training for a false-positive rate of at most {share}",
        "top": f"chosen in training for the first {value:g} rows",
        "share": f"chosen in training for the first {share} of the rows",
    }[parsed.kind]


def data_facts(
    model: Any, rows: EvaluationRows, found: Evaluation, positive: str, negative: str
) -> list[tuple[str, str]]:
    """The table in short."""
    kinds = [column["kind"] for column in model.columns_]
    named = {
        "number": ("number", "numbers"),
        "boolean": ("true or false", "true or false"),
        "category": ("category", "categories"),
        "dropped": ("left out", "left out"),
    }
    counts = [(kinds.count(kind), words) for kind, words in named.items() if kind in kinds]
    facts = [
        ("Rows here", count(found.rows)),
        (f"Rows of {positive}", f"{count(found.positives)} ({percent(found.positives / found.rows)})"),
        (f"Rows of {negative}", count(found.rows - found.positives)),
        ("Training rows", count(model.training_["rows"])),
        (
            "Columns",
            f"{len(kinds)}: " + ", ".join(f"{number} {words[number > 1]}" for number, words in counts),
        ),
        ("Features made of them", count(len(model.feature_names_))),
    ]
    if rows.frame is not None:
        missing, cells = missing_cells(model.columns_, rows.frame)
        facts.append(("Missing values here", f"{count(missing)} ({percent(missing / max(1, cells))})"))
    for key, name in (("weight", "Weights"), ("group", "Groups kept together")):
        if model.training_.get(key):
            facts.append((name, str(model.training_[key])))
    return facts


def training_facts(model: Any) -> list[tuple[str, str]]:
    """The training in short."""
    search, about = model.model_, model.training_
    landmarks = getattr(search.feature_map_, "landmarks_", None)
    low, high = about.get("auc_low"), about.get("auc_high")
    interval = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
    facts = [
        ("AUC of held-out rows", f"{about['auc']:.3f}{interval}"),
        ("Kernel", f"{search.feature_map_.kernel}, gamma {search.gamma_:.3g}"),
        ("C", f"{search.C_:.3g}, of {len(search.Cs_)} values"),
        ("Folds", str(search.n_splits_)),
        (
            "Solver",
            {"newton": "truncated Newton", "sgd": "stochastic"}.get(search.solver, search.solver),
        ),
        ("Probabilities", f"{model.calibration}, on held-out scores"),
        ("Time", f"{about['seconds']:.1f} s"),
        ("Trained", about["date"].replace("T", " ").replace("+00:00", " UTC")),
        ("Seed", str(about["random_state"])),
        ("Fingerprint of the data", f"sha256 {about['data_hash'][:16]}…"),
    ]
    if landmarks is not None:
        facts.insert(2, ("Landmarks", count(len(landmarks))))
    return facts
