"""A model card in Markdown: what a table model was trained on, how well it ranks, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aucmax.tables.model import TableModel

_MOST_COLUMNS = 200  #: Columns that are listed.


def model_card(model: TableModel, manifest: Mapping[str, Any], name: str) -> str:
    """Return the card of a model, from the model and the manifest of its file."""
    about, threshold = model.training_, model.threshold_
    target = about.get("target") or "the target"
    return "\n".join(
        [
            f"# Model card: {name}",
            "",
            f"The model ranks rows by how likely {target} is {model.positive_label_!r} rather than "
            f"{model.negative_label_!r}.",
            "",
            *_table("Data", _data(about, target)),
            *_columns(model),
            *_table(
                "How well it ranks",
                [
                    ("AUC", _interval(about, "auc")),
                    ("measured on", _split(about)),
                ],
            ),
            *_table(
                "Threshold",
                [
                    ("score from which a row is positive", f"{threshold.threshold:.4g}"),
                    ("aim", str(threshold.aim)),
                    ("precision there", _interval(vars(threshold), "precision")),
                    ("recall there", _interval(vars(threshold), "recall")),
                    ("false-positive rate there", _interval(vars(threshold), "fpr")),
                ],
            ),
            "## Limits",
            "",
            *(f"- {limit}" for limit in _limits(about)),
            "",
            *_table("Origin", _origin(manifest, about)),
        ]
    ).rstrip()


def _data(about: Mapping[str, Any], target: str) -> list[tuple[str, str]]:
    rows, ups = about["rows"], about["positives"]
    return [
        ("target", target),
        ("rows", f"{rows:,}"),
        (f"rows with {about['positive']!r}", f"{ups:,} ({ups / rows:.1%})"),
        ("rows without a label, left out", f"{about.get('rows_without_label', 0):,}"),
        ("weights", about.get("weight") or "none"),
    ]


def _columns(model: TableModel) -> list[str]:
    columns = model.columns_
    lines = ["## Columns", "", "| column | kind | treatment |", "|---|---|---|"]
    for column in columns[:_MOST_COLUMNS]:
        cells = (column["name"], column["kind"], column["treatment"])
        lines.append("| " + " | ".join(_cell(each) for each in cells) + " |")
    if len(columns) > _MOST_COLUMNS:
        lines += ["", f"{len(columns) - _MOST_COLUMNS:,} more columns are not shown."]
    return [*lines, ""]


def _split(about: Mapping[str, Any]) -> str:
    if about.get("time"):
        return f"the latest quarter of the rows by {about['time']}, by a model of the earlier rows"
    if about.get("group"):
        return f"held-out rows of cross-validation; rows of one {about['group']} were held out together"
    return "held-out rows of cross-validation, split at random"


def _limits(about: Mapping[str, Any]) -> list[str]:
    limits = [
        "Scores are comparable for rows like those of the training table. `aucmax evaluate` and "
        "`aucmax predict` name columns that differ from it.",
        "Probabilities and the threshold hold while the share of positives stays as in training.",
        "The model finds associations, not causes: changing a value need not change what happens.",
    ]
    if not about.get("time"):
        limits.append("The AUC was not measured on later rows; it may be lower for them.")
    if min(about["positives"], about["rows"] - about["positives"]) < 100:
        limits.append("One label has fewer than 100 rows, so the AUC is uncertain: see its interval.")
    return limits


def _origin(manifest: Mapping[str, Any], about: Mapping[str, Any]) -> list[tuple[str, str]]:
    versions = manifest.get("versions", {})
    return [
        ("trained", str(about.get("date", manifest.get("date")))),
        ("sha256 of the data", str(about.get("data_hash"))),
        ("sha256 of the model", str(manifest.get("sha256"))),
        ("versions", ", ".join(f"{name} {number}" for name, number in versions.items())),
        ("seed", str(about.get("random_state"))),
    ]


def _table(title: str, lines: list[tuple[str, str]]) -> list[str]:
    rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in lines]
    return [f"## {title}", "", "| | |", "|---|---|", *rows, ""]


def _cell(value: Any) -> str:
    """Return text that does not break a table of Markdown."""
    return " ".join(str(value).split()).replace("|", "\\|")


def _interval(values: Mapping[str, Any], name: str) -> str:
    value, low, high = (values.get(key) for key in (name, f"{name}_low", f"{name}_high"))
    if value is None or value != value:
        return "unknown"
    return f"{value:.4f}" if low is None else f"{value:.4f} (95 % interval {low:.4f} to {high:.4f})"
