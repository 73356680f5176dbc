"""The sentences and facts of a report, written from its numbers."""

from __future__ import annotations

from typing import Any

from aucmax.metrics.evaluation import Evaluation
from aucmax.metrics.thresholds import Aim
from aucmax.report.column_table import count_missing
from aucmax.report.words import count, percent
from aucmax.tables.evaluation_rows import EvaluationRows

#: With fewer rows of a class, the reader is warned of wide intervals.
_FEW = 50

#: Kinds of columns in the singular and the plural.
_KINDS = {
    "number": ("number", "numbers"),
    "boolean": ("true or false", "true or false"),
    "category": ("category", "categories"),
    "dropped": ("dropped", "dropped"),
}


def lead(rows: EvaluationRows, found: Evaluation, positive: str) -> str:
    """Say which rows the report is about."""
    where = f" of {rows.name}" if rows.name else ""
    which = "held-out training rows" if rows.source == "held out" else f"rows{where}"
    share = percent(found.positives / found.rows)
    return f"{count(found.rows)} {which}, {count(found.positives)} of them {positive} ({share})"


def source(model: Any, rows: EvaluationRows) -> dict[str, str]:
    """Say whether the model was trained on these rows; the kind decides how loudly."""
    if rows.source == "table":
        auc = model.training_.get("auc")
        before = "" if auc is None else f" In training, the AUC of held-out rows was {auc:.3f}."
        text = f"This table is not the one the model was trained on.{before}"
        return {"kind": "table", "text": text}
    is_table = rows.source == "training table"
    first = "This is the table the model was trained on." if is_table else "No table was given."
    text = (
        f"{first} All numbers are for held-out scores of the training rows: each row was scored by a "
        f"model that was not fitted to it ({model.model_.n_splits_}-fold cross-validation). C and "
        "gamma were chosen on the same folds, so other rows give a more reliable result."
    )
    return {"kind": "training", "text": text}


def notes(rows: EvaluationRows, found: Evaluation, positive: str, negative: str) -> list[str]:
    """List what the reader must know before the numbers."""
    classes = {positive: found.positives, negative: found.rows - found.positives}
    sentences = [
        f"There are only {number} rows of {label}, so the numbers are uncertain: see their intervals."
        for label, number in classes.items()
        if number < _FEW
    ]
    if rows.without_label:
        sentences.append(f"{count(rows.without_label)} rows without a label were left out.")
    return sentences + (["Rows are weighted."] if rows.weighted else [])


def tiles(found: Evaluation, positive: str) -> list[tuple[str, str, str]]:
    """Return the label, value and explanation of the numbers next to the AUC."""
    tenth, partial = found.top[-1], found.partial_auc[0]
    shown = [
        (
            f"Found in the top {percent(tenth.share, 0)}",
            percent(tenth.captured),
            f"of all {positive}; {tenth.lift:.1f} times as many as in a random order",
        ),
        (
            "Average precision",
            f"{found.average_precision:.3f}",
            f"a random order has {found.positive_share:.3f}",
        ),
        (
            "Partial AUC",
            f"{partial.standardized:.3f}",
            f"up to a false-positive rate of {percent(partial.max_fpr, 0)}; chance is 0.5",
        ),
    ]
    if found.brier is not None and found.brier_skill is not None:
        guess = f"lower error than always predicting {percent(found.positive_share)}"
        shown.append(("Brier skill", percent(found.brier_skill), guess))
    return shown


def aim_in_words(aim: str) -> str:
    """Say why the model's threshold is where it is.

    >>> aim_in_words("recall=0.9")
    'chosen in training for a recall of at least 90 %'
    """
    if aim == "given":
        return "which was set by hand"
    parsed = Aim.parse(aim)
    value = parsed.value or 0.0
    share = f"{100 * value:g} %"
    return {
        "youden": "where recall minus false-positive rate was largest in training",
        "cost": f"the cheapest in training if a missed positive costs {value:g} false alarms",
        "precision": f"chosen in training for a precision of at least {share}",
        "recall": f"chosen in training for a recall of at least {share}",
        "fpr": f"chosen in training for a false-positive rate of at most {share}",
        "top": f"chosen in training for the first {value:g} rows",
        "share": f"chosen in training for the first {share} of the rows",
    }[parsed.kind]


def data_facts(
    model: Any, rows: EvaluationRows, found: Evaluation, positive: str, negative: str
) -> list[tuple[str, str]]:
    """Summarise the table."""
    kinds = [column["kind"] for column in model.columns_]
    counts = [(kinds.count(kind), words) for kind, words in _KINDS.items() if kind in kinds]
    listed = ", ".join(f"{number} {words[number > 1]}" for number, words in counts)
    facts = [
        ("Rows in this report", count(found.rows)),
        (f"Rows of {positive}", f"{count(found.positives)} ({percent(found.positives / found.rows)})"),
        (f"Rows of {negative}", count(found.rows - found.positives)),
        ("Training rows", count(model.training_["rows"])),
        ("Columns", f"{len(kinds)}: {listed}"),
        ("Features", count(len(model.feature_names_))),
    ]
    if rows.frame is not None:
        used = [column["name"] for column in model.columns_ if column["kind"] != "dropped"]
        columns = [rows.frame[name] for name in used if name in rows.frame.columns]
        missing = sum(map(count_missing, columns))
        share = missing / max(1, len(columns) * rows.frame.height)
        facts.append(("Missing values", f"{count(missing)} ({percent(share)})"))
    for key, name in (("weight", "Weights"), ("group", "Groups held out together")):
        if model.training_.get(key):
            facts.append((name, str(model.training_[key])))
    return facts


def training_facts(model: Any) -> list[tuple[str, str]]:
    """Summarise the training."""
    search, about = model.model_, model.training_
    landmarks = getattr(search.feature_map_, "landmarks_", None)
    low, high = about.get("auc_low"), about.get("auc_high")
    interval = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
    solver = {"newton": "truncated Newton", "sgd": "stochastic"}.get(search.solver, search.solver)
    facts = [
        ("AUC of held-out rows", f"{about['auc']:.3f}{interval}"),
        ("Kernel", f"{search.feature_map_.kernel}, gamma {search.gamma_:.3g}"),
        ("C", f"{search.C_:.3g}, chosen from {len(search.Cs_)}"),
        ("Folds", str(search.n_splits_)),
        ("Solver", solver),
        ("Probabilities", f"{model.calibration}, on held-out scores"),
        ("Time", f"{about['seconds']:.1f} s"),
        ("Date", about["date"].replace("T", " ").replace("+00:00", " UTC")),
        ("Seed", str(about["random_state"])),
        ("Data fingerprint", f"sha256 {about['data_hash'][:16]}…"),
    ]
    if landmarks is not None:
        facts.insert(2, ("Landmarks", count(len(landmarks))))
    return facts
