"""Gather the numbers, sentences and figures of a report, and fill its template."""

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
from aucmax.inspection.importance import mean_squared_gradient, permutation_importance
from aucmax.metrics.evaluation import Evaluation, evaluate
from aucmax.metrics.thresholds import Aim
from aucmax.report import figures
from aucmax.report.cases import id_column, shown_cases
from aucmax.report.column_table import column_rows, missing_cells
from aucmax.report.curves import DRAWS, Cuts, make_cuts, roc_band, score_histogram, slider_stops
from aucmax.report.words import count, percent
from aucmax.runtime.installing import extra_command
from aucmax.runtime.output_files import check_folder, replacing
from aucmax.runtime.parameters import COUNT, check_value
from aucmax.tables.evaluation_rows import EvaluationRows, evaluation_rows
from aucmax.tables.model import TableModel

_MOST_BARS = 20  #: Columns listed by importance.


def write_report(
    model: Any,
    table: Any = None,
    path: str | Path = "report.html",
    *,
    target: str | None = None,
    id: str | None = None,
    permutation: bool = False,
    max_rows: int = 5000,
) -> Path:
    """Write a report on a model as one HTML file that loads nothing from elsewhere.

    Parameters
    ----------
    model : fitted TableModel
    table : path, polars or pandas frame, optional
        The rows to evaluate the model on, with the target among the columns. For the training table, or
        without a table, the report uses the held-out scores of the training rows.
    path : path, default="report.html"
        An existing file is replaced once the report is complete.
    target : str, optional
        The column with the labels, if it is not that of the training table.
    id : str, optional
        The column that names rows in the report, by default one that was dropped as an identifier. If
        there is none, rows have their numbers.
    permutation : bool, default=False
        Also measure the AUC lost when a column is shuffled, with five scorings for each column.
    max_rows : int, default=5000
        The size of the random sample for the importance of columns. All else uses all rows.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import polars as pl
    >>> from pathlib import Path
    >>> from aucmax import KernelAUCClassifier, fit_table, write_report
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> table = pl.DataFrame({"size": x, "sold": np.where(np.abs(x) > 1.2, "yes", "no")})
    >>> model = fit_table(table, "sold", estimator=KernelAUCClassifier(n_landmarks=30))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(model, table, Path(folder, "report.html"))
    ...     path.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    if not isinstance(model, TableModel):
        raise TypeError(
            f"write_report needs a fitted TableModel; got a {type(model).__name__}. Fit one with "
            "fit_table(table, target) or TableModel().fit(X, y), or load one with load_model(path)."
        )
    check_is_fitted(model, "model_")
    check_value("max_rows", max_rows, COUNT)
    path = Path(path)
    check_folder(path)
    rows = evaluation_rows(model, table, target)
    id_name = id_column(model, rows, id)
    page = _render(_context(model, rows, id_name, permutation, max_rows))
    with replacing(path) as file:
        file.write(page.encode())
    return path


def _render(context: dict[str, Any]) -> str:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError(f"A report needs jinja2. Install it: {extra_command('report')}") from None
    environment = Environment(
        loader=PackageLoader("aucmax.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"count": count, "percent": percent}
    # The slider's numbers are many, so they are written without blanks.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    # The page may load nothing and run only this script. Should text from a table ever escape the
    # escaping, it still could not run.
    script = environment.get_template("slider.js").render()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template("template.html.j2")
    return page.render(context, script=script, script_hash=digest)


def _context(
    model: Any, rows: EvaluationRows, id_name: str | None, permutation: bool, max_rows: int
) -> dict[str, Any]:
    """Return the variables of the template."""
    weight = rows.weight if rows.weighted else None
    found = evaluate(rows.positive, rows.score, rows.probability, weight)
    cuts = make_cuts(rows.positive, rows.score, weight, threshold=model.threshold_.threshold)
    negative, positive = (f"“{label}”" for label in (model.negative_label_, model.positive_label_))
    target, aim = model.training_.get("target"), model.threshold_.aim
    importance = _importance(model, rows, max_rows, permutation)
    return {
        "version": __version__,
        "sklearn_version": sklearn_version,
        "python_version": platform.python_version(),
        "title": f"Ranking {f'{target} = ' if target else ''}{model.positive_label_}",
        "model": model,
        "rows": rows,
        "found": found,
        "positive": positive,
        "negative": negative,
        "threshold_aim": {"kind": "given", "value": None, "alarm": 1}
        if aim == "given"
        else Aim.parse(aim),
        "stops": slider_stops(model, cuts),
        "distinct": cuts.distinct,
        "draws": DRAWS,
        "figures": _figures(model, rows, found, cuts, max_rows),
        "importance": importance,
        "id_name": id_name,
        "cases": shown_cases(model, rows, importance["names"], (positive, negative), id_name),
        "missing": None if rows.frame is None else missing_cells(model.columns_, rows.frame),
        "columns": column_rows(model.columns_, rows.frame),
    }


def _sample(indices: np.ndarray, most: int) -> np.ndarray:
    """Draw at most ``most`` of the indices at random."""
    if indices.size <= most:
        return indices
    return np.sort(np.random.default_rng(0).choice(indices, most, replace=False))


def _sample_classes(positive: np.ndarray, most: int) -> np.ndarray:
    """Draw at most half as many rows from each class, so that a rare one is represented."""
    half = max(1, most // 2)
    classes = (np.flatnonzero(positive), np.flatnonzero(~positive))
    return np.sort(np.concatenate([_sample(rows, half) for rows in classes]))


def _importance(model: Any, rows: EvaluationRows, max_rows: int, permutation: bool) -> dict[str, Any]:
    """Return the columns by importance; without a table, at the landmarks, if the model has any."""
    losses = None
    if rows.frame is not None:
        drawn = _sample(np.arange(rows.frame.height), max_rows)
        found = mean_squared_gradient(model, rows.frame[drawn], sample_weight=rows.weight[drawn])
        where = f"{count(drawn.size) if drawn.size < rows.frame.height else 'all'} rows"
        if permutation:
            drawn = _sample_classes(rows.positive, max_rows)
            labels = np.where(rows.positive[drawn], model.positive_label_, model.negative_label_)
            weight = rows.weight[drawn] if rows.weighted else None
            options: dict[str, Any] = {"sample_weight": weight, "random_state": 0}
            lost = permutation_importance(model, rows.frame[drawn], labels, **options)
            pairs = zip(lost.value, lost.standard_error, strict=True)
            losses = [f"{value:.4f} ± {error:.4f}" for value, error in pairs]
    elif getattr(model.model_.feature_map_, "landmarks_", None) is not None:
        found, where = mean_squared_gradient(model), "the model's landmarks, which are training rows"
    else:
        return {"rows": [], "names": []}
    share, order = found.share, found.order
    largest, hidden = max(float(share.max(initial=0.0)), 1e-12), order[_MOST_BARS:]
    return {
        "rows": [
            (found.names[i], share[i], f"{100 * share[i] / largest:.1f}", losses and losses[i])
            for i in order[:_MOST_BARS]
        ],
        "names": [found.names[i] for i in order],
        "where": where,
        "permuted": losses is not None,
        "hidden": hidden.size,
        "hidden_share": share[hidden].sum(),
    }


def _figures(
    model: Any, rows: EvaluationRows, found: Evaluation, cuts: Cuts, max_rows: int
) -> dict[str, figures.Figure | None]:
    plots: dict[str, tuple[Any, ...]] = {
        "roc": (figures.roc, cuts, roc_band(cuts)),
        "pr": (figures.precision_recall, cuts, found.average_precision),
        "gain": (figures.gain, cuts),
        "lift": (figures.lift, cuts),
        "scores": (figures.scores, score_histogram(rows.positive, rows.score, rows.weight)),
        "calibration": (figures.calibration, found.calibration),
        "path": (figures.cv_path, model.model_),
        "convergence": (figures.convergence, model.model_),
    }
    if rows.frame is not None:
        drawn = _sample_classes(rows.positive, max_rows)
        features = model.features(rows.frame[drawn])
        plots["coverage"] = (figures.coverage, model.model_, features, rows.positive[drawn])
    return {"coverage": None} | {name: figures.draw(name, *plot) for name, plot in plots.items()}
