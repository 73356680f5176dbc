"""The page of a report: its numbers put into words, and the template filled."""

from __future__ import annotations

import base64
import hashlib
import platform
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import __version__ as sklearn_version
from sklearn.utils.validation import check_is_fitted

from aucmax import __version__
from aucmax.inspection.importance import Importance, mean_squared_gradient, permutation_importance
from aucmax.metrics.evaluation import Evaluation, evaluate
from aucmax.report import figures as draw
from aucmax.report import sentences
from aucmax.report.column_table import column_rows, confident_mistakes
from aucmax.report.curves import DRAWS, Cuts, make_cuts, roc_band, score_histogram
from aucmax.report.slider import RATES, cost_ratio, slider_stops, text_at_start
from aucmax.report.words import count, fixed, percent
from aucmax.runtime.output_files import replacing
from aucmax.runtime.parameters import check_number
from aucmax.tables import TableModel
from aucmax.tables.evaluation_rows import EvaluationRows, evaluation_rows

__all__ = ["write_report"]

#: Columns whose importance is listed, and columns listed with what was done to them.
_MOST_BARS = 20
_MOST_COLUMNS = 200


def write_report(
    model: Any,
    table: Any = None,
    path: str | Path = "report.html",
    *,
    target: str | None = None,
    permutation: bool = False,
    max_rows: int = 5000,
) -> Path:
    """Write a report on a model as one HTML file, with nothing to load from elsewhere.

    It measures the model on the rows of ``table``. Where that is the table the model was trained on, or
    none is given, it takes the held-out scores of the training rows instead, each by a model that had
    not seen the row, and says so.

    Parameters
    ----------
    model : fitted TableModel
    table : path, polars or pandas frame, optional
        With the target among its columns. Without a table the report shows no rows.
    path : path, default="report.html"
        A file that is there is replaced, by a whole one or not at all.
    target : str, optional
        The column with the labels, if not that of the training.
    permutation : bool, default=False
        Also measure what AUC loses when a column is shuffled: five scorings for each column.
    max_rows : int, default=5000
        Rows, drawn at random, to take the importance of columns from. Everything else counts all rows.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import polars as pl
    >>> from pathlib import Path
    >>> from aucmax.report import write_report
    >>> from aucmax.tables import fit_table
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> table = pl.DataFrame({"size": x, "sold": np.where(np.abs(x) > 1.2, "yes", "no")})
    >>> model = fit_table(table, "sold", n_landmarks=30)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(model, table, Path(folder, "report.html"))
    ...     path.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    if not isinstance(model, TableModel):
        raise TypeError(
            f"write_report needs a fitted TableModel; got a {type(model).__name__}. Fit one to the "
            "same rows with fit_table(table, target) or TableModel().fit(X, y), or read one with "
            "load_model(path)."
        )
    check_is_fitted(model, "model_")
    check_number("max_rows", max_rows, low=1, closed=True, integer=True)
    path = Path(path)
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to save {path.name} in.")
    rows = evaluation_rows(model, table, target)
    page = _render(_context(model, rows, permutation, max_rows))
    with replacing(path) as file:
        file.write(page.encode())
    return path


def _render(context: dict[str, Any]) -> str:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError('A report needs jinja2: pip install "aucmax[report]".') from None
    environment = Environment(
        loader=PackageLoader("aucmax.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"count": count, "fixed": fixed, "percent": percent}
    # Numbers of a slider with a thousand stops: no blanks between them.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    # The page may load nothing and run this script alone: should text of a table ever get past the
    # escaping, it would still be no program.
    script = environment.get_template("slider.js").render()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template("template.html.j2")
    return page.render(context, script=script, script_hash=digest)


def _context(model: Any, rows: EvaluationRows, permutation: bool, max_rows: int) -> dict[str, Any]:
    """All that the template shows."""
    weight = rows.weight if rows.weighted else None
    found = evaluate(rows.positive, rows.score, rows.probability, weight)
    cuts = make_cuts(rows.positive, rows.score, weight, threshold=model.threshold_.threshold)
    negative, positive = (f"“{label}”" for label in (model.negative_label_, model.positive_label_))
    target = model.training_.get("target")
    importance = _importance(model, rows, max_rows, permutation)
    order = [] if importance is None else [importance["names"][i] for i in importance["order"]]
    ratio = cost_ratio(model, cuts)
    stops = slider_stops(model, cuts, ratio)
    columns = column_rows(model.columns_, rows.frame)
    return {
        "version": __version__,
        "title": f"Ranking {f'{target} = ' if target else ''}{model.positive_label_}",
        "lead": sentences.lead(rows, found, positive),
        "positive": positive,
        "negative": negative,
        "auc": {"value": found.auc, "low": found.auc_low, "high": found.auc_high},
        "source": sentences.source(model, rows),
        "notes": sentences.notes(rows, found, positive, negative),
        "tiles": sentences.tiles(found, positive),
        "scope": "the held-out training rows" if rows.source != "table" else "these rows",
        "aim": sentences.aim_in_words(model.threshold_.aim),
        "stops": stops,
        "now": text_at_start(stops, ratio),
        "rates": RATES,
        "ratio": f"{ratio:g}",
        "weighted": rows.weighted,
        "thinned": cuts.distinct > cuts.threshold.size,
        "distinct": cuts.distinct,
        "draws": DRAWS,
        "base": found.positive_share,
        "ap": found.average_precision,
        "top": found.top,
        "n_bins": len(found.calibration or ()),
        "brier": found.brier,
        "log_loss": found.log_loss,
        "figures": _figures(model, rows, found, cuts, max_rows),
        "importance": importance,
        "mistakes": confident_mistakes(rows, order, positive, negative),
        "data_facts": sentences.data_facts(model, rows, found, positive, negative),
        "columns": columns[:_MOST_COLUMNS],
        "more_columns": max(0, len(columns) - _MOST_COLUMNS),
        "summarised": rows.frame is not None,
        "training_facts": sentences.training_facts(model),
        "footer": (
            f"Made by aucmax {__version__} with scikit-learn {sklearn_version} on Python "
            f"{platform.python_version()}. This file needs no network: send it, keep it, print it."
        ),
    }


def _some(places: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the places, drawn at random."""
    if places.size <= most:
        return places
    return np.sort(np.random.default_rng(0).choice(places, most, replace=False))


def _some_of_each_class(positive: np.ndarray, most: int) -> np.ndarray:
    """At most so many rows, half of them of each class: a rare one is not lost."""
    half = max(1, most // 2)
    return np.sort(np.concatenate([_some(np.flatnonzero(of), half) for of in (positive, ~positive)]))


def _importance(
    model: Any, rows: EvaluationRows, max_rows: int, permutation: bool
) -> dict[str, Any] | None:
    """The columns in order of importance, as the template lists them."""
    permuted: Importance | None = None
    if rows.frame is not None:
        drawn = _some(np.arange(rows.frame.height), max_rows)
        found = mean_squared_gradient(model, rows.frame[drawn], sample_weight=rows.weight[drawn])
        where = f"over {count(drawn.size)} rows" if drawn.size < rows.frame.height else "over all rows"
        if permutation:
            drawn = _some_of_each_class(rows.positive, max_rows)
            permuted = permutation_importance(
                model,
                rows.frame[drawn],
                np.where(rows.positive[drawn], model.positive_label_, model.negative_label_),
                sample_weight=rows.weight[drawn] if rows.weighted else None,
                random_state=0,
            )
    else:
        landmarks = getattr(model.model_.feature_map_, "landmarks_", None)
        if landmarks is None:
            return None
        found = mean_squared_gradient(model)
        where = "over the model's landmarks, which are rows of the training"
    share, order = found.share, found.order
    shown = order[:_MOST_BARS]
    text = (
        "How steeply the score changes with a column, the others held: the mean square of its gradient "
        f"in standard deviations of the column, {where}, as a share of all columns."
    )
    if permuted is not None:
        text += (
            " The last column is what AUC falls by when the values of a column are shuffled among the "
            "rows, with its standard error over five shuffles; a column whose information another one "
            "has, too, loses little."
        )
        if rows.source == "training table":
            text += " It is measured on the rows the model was trained on."
    largest = max(float(share.max(initial=0.0)), 1e-12)
    listed = [
        {
            "name": found.names[i],
            "share": float(share[i]),
            "width": f"{100 * share[i] / largest:.1f}",
            "loss": None
            if permuted is None
            else f"{permuted.value[i]:.4f} ± {permuted.standard_error[i]:.4f}",
        }
        for i in shown
    ]
    left = order.size - shown.size
    return {
        "names": found.names,
        "order": order.tolist(),
        "rows": listed,
        "permuted": permuted is not None,
        "text": text,
        "more": f"{count(left)} more columns have {percent(share[order[_MOST_BARS:]].sum())} together."
        if left
        else None,
    }


def _figures(
    model: Any, rows: EvaluationRows, found: Evaluation, cuts: Cuts, max_rows: int
) -> dict[str, draw.Figure | None]:
    covered = None
    if rows.frame is not None:
        drawn = _some_of_each_class(rows.positive, max_rows)
        covered = draw.coverage(model.model_, model.features(rows.frame[drawn]), rows.positive[drawn])
    return {
        "roc": draw.roc(cuts, roc_band(cuts)),
        "pr": draw.precision_recall(cuts, found.average_precision),
        "gain": draw.gain(cuts),
        "lift": draw.lift(cuts),
        "scores": draw.scores(score_histogram(rows.positive, rows.score, rows.weight)),
        "calibration": draw.calibration(found.calibration) if found.calibration else None,
        "path": draw.cv_path(model.model_),
        "convergence": draw.convergence(model.model_),
        "coverage": covered,
    }
