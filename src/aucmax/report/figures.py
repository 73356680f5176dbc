"""Draw the figures of a report, as SVG for its page.

Colours leave matplotlib as hex codes and become CSS variables, so that the page decides on them and can
have a dark mode. Blue and orange also differ in lightness, so that everyone can distinguish them. No
text from the user is ever drawn: names and labels stay in the page, where they are escaped.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucmax.inspection.displays import ConvergenceDisplay, CVPathDisplay, LandmarkCoverageDisplay
from aucmax.metrics.evaluation import CalibrationBin
from aucmax.report.curves import Band, Cuts, Histogram
from aucmax.runtime.installing import extra_command

#: Our colours while matplotlib draws, and the page's names for them.
INK, MUTED, RULE = "#1c2630", "#5c6873", "#d9dfe5"
POSITIVE, NEGATIVE = "#1463a5", "#d07a1d"
_COLOURS = {INK: "ink", MUTED: "muted", RULE: "rule", POSITIVE: "positive", NEGATIVE: "negative"}
_LINES = (POSITIVE, NEGATIVE, "#2f8f6b", "#8a5fb0", MUTED)

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 8.5,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    **dict.fromkeys(("axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "path.simplify_threshold": 0.2,
    "patch.linewidth": 0.0,
}
#: How a line to compare with is drawn.
_REFERENCE: dict[str, Any] = {"color": MUTED, "lw": 0.8, "ls": (0, (2, 2))}


@dataclass(frozen=True)
class Figure:
    """An SVG, its description, and the position of its axes, for a marker that the page moves."""

    svg: str
    description: str
    box: tuple[float, ...]  #: left, top, right, bottom, in units of the SVG
    limits: tuple[float, ...]  #: of the data: left, top, right, bottom


def draw(name: str, plot: Callable[..., str | None], *values: Any) -> Figure | None:
    """Call ``plot`` with axes in our style and some values; None if it gives no description.

    Every function below is such a plot: it draws, and describes in words what it has drawn.
    """
    try:
        import matplotlib
    except ImportError:
        raise ImportError(f"A report needs matplotlib. Install it: {extra_command('report')}") from None
    from matplotlib.figure import Figure as MatplotlibFigure

    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = MatplotlibFigure(figsize=(4.0, 2.95))
        # All figures have the same margins, so that axes line up across the page.
        figure.subplots_adjust(left=0.178, right=0.948, bottom=0.145, top=0.97)
        ax = figure.add_subplot()
        ax.grid(True)
        ax.set_prop_cycle(color=list(_LINES))
        description = plot(ax, *values)
        if description is None:
            return None
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    width, height = 72.0 * figure.get_size_inches()
    area = ax.get_position()
    box = (area.x0 * width, (1 - area.y1) * height, area.x1 * width, (1 - area.y0) * height)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    limits = (float(left), float(high), float(right), float(low))
    svg = _for_page(buffer.getvalue(), name)
    return Figure(svg, description, tuple(round(float(edge), 2) for edge in box), limits)


def _for_page(svg: str, name: str) -> str:
    """Return the bare svg element, with ids of its own and the colours and fonts of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    for colour, variable in (_COLOURS | {"#000000": "ink", "#808080": "muted"}).items():
        svg = svg.replace(colour, f"var(--{variable})")
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font)", svg)
    svg = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true">', svg, count=1)
    return re.sub(r"\n\s*", "\n", svg).strip()


def _percent(*axes: Any) -> None:
    for axis in axes:
        axis.set_major_formatter(lambda value, _: f"{100 * value:.6g} %")


def _unit_square(ax: Any, xlabel: str, ylabel: str) -> None:
    ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel=xlabel, ylabel=ylabel)
    _percent(ax.xaxis, ax.yaxis)


def roc(ax: Any, cuts: Cuts, band: Band) -> str:
    """Draw the ROC curve with its band."""
    ax.plot([0, 1], [0, 1], **_REFERENCE)
    ax.fill_between(band.fpr, band.low, band.high, color=POSITIVE, alpha=0.18)
    ax.plot(cuts.fpr, cuts.recall, color=POSITIVE)
    _unit_square(ax, "false-positive rate", "true-positive rate")
    return "ROC curve. " + " ".join(
        f"At a false-positive rate of {rate:.0%} the true-positive rate is "
        f"{float(np.interp(rate, cuts.fpr, cuts.recall)):.1%}."
        for rate in (0.01, 0.05, 0.1)
    )


def precision_recall(ax: Any, cuts: Cuts, average_precision: float) -> str:
    """Draw precision against recall, and the precision of a random order."""
    ax.axhline(cuts.base_rate, **_REFERENCE)
    ax.plot(cuts.recall[1:], cuts.precision[1:], color=POSITIVE)
    _unit_square(ax, "recall", "precision")
    return (
        f"Precision against recall. Average precision is {average_precision:.3f}; a random order has a "
        f"precision of {cuts.base_rate:.1%} throughout."
    )


def gain(ax: Any, cuts: Cuts) -> str:
    """Draw the share of positives among the first rows of the ranking."""
    ax.plot([0, 1], [0, 1], **_REFERENCE, label="random order")
    ax.plot([0, cuts.base_rate, 1], [0, 1, 1], color=NEGATIVE, lw=1.0, label="perfect order")
    ax.plot(cuts.called, cuts.recall, color=POSITIVE, label="this model")
    _unit_square(ax, "rows, highest scores first", "positives found")
    ax.legend(loc="lower right")
    return "Gain. " + " ".join(
        f"The first {share:.0%} of the rows hold "
        f"{float(np.interp(share, cuts.called, cuts.recall)):.1%} of the positives."
        for share in (0.05, 0.1, 0.2)
    )


def lift(ax: Any, cuts: Cuts) -> str:
    """Draw how many times as many positives as in a random order the first rows hold."""
    seen = cuts.called > 0
    share, times = cuts.called[seen], cuts.recall[seen] / cuts.called[seen]
    ax.axhline(1.0, **_REFERENCE)
    ax.plot(share, times, color=POSITIVE)
    first = float(np.clip(share[0], 1e-4, 0.5))
    ax.set(xscale="log", xlim=(first, 1.0), xlabel="rows, highest scores first", ylabel="lift")
    ax.set_ylim(0.0, 1.08 * float(times[share >= first].max(initial=1.0)))
    _percent(ax.xaxis)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    return (
        "Lift against the share of rows, on a logarithmic scale. The first 5 % of the rows hold "
        f"{float(np.interp(0.05, share, times)):.1f} times as many positives as in a random order."
    )


def scores(ax: Any, histogram: Histogram) -> str:
    """Draw the distribution of the scores of each class."""
    edges = histogram.edges
    shares = {"negatives": (histogram.negative, NEGATIVE), "positives": (histogram.positive, POSITIVE)}
    for label, (values, colour) in shares.items():
        ax.stairs(values, edges, fill=True, color=colour, alpha=0.28)
        ax.stairs(values, edges, color=colour, lw=1.4, label=label)
    ax.set(xlabel="score", ylabel="share of the class", xlim=(edges[0], edges[-1]))
    ax.set_ylim(0.0, 1.2 * float(max(values.max() for values, _ in shares.values())))
    _percent(ax.yaxis)
    ax.legend(loc="upper center", ncols=2)  # above the bars
    middle = 0.5 * (edges[1:] + edges[:-1])
    down, up = (middle[values.argmax()] for values, _ in shares.values())
    return (
        "Histograms of the scores of each class. The most frequent score of positives is about "
        f"{up:.2g}, that of negatives {down:.2g}."
    )


def calibration(ax: Any, bins: Sequence[CalibrationBin] | None) -> str | None:
    """Draw the observed share of positives, with its interval, against the predicted probability."""
    if not bins:
        return None
    fields = ("mean_probability", "observed", "observed_low", "observed_high")
    x, y, low, high = (np.array([getattr(each, field) for each in bins]) for field in fields)
    top = float(min(1.0, 1.08 * max(x.max(), high.max())))
    ax.plot([0, top], [0, top], **_REFERENCE)
    ax.vlines(x, low, high, color=POSITIVE, lw=1.2, alpha=0.55)
    ax.plot(x, y, color=POSITIVE, marker="o", markersize=4, lw=1.2)
    ax.set(xlim=(0, top), ylim=(0, top))
    ax.set(xlabel="predicted probability", ylabel="observed share of positives")
    _percent(ax.xaxis, ax.yaxis)
    inside = int(((low <= x) & (x <= high)).sum())
    return (
        f"Calibration. In {inside} of {len(bins)} groups of rows the predicted probability lies within "
        "the interval of the observed share."
    )


def cv_path(ax: Any, search: Any) -> str:
    """Draw the cross-validated AUC against C."""
    CVPathDisplay.from_estimator(search, ax=ax)
    ax.set_ylabel("cross-validated AUC")
    return (
        f"Cross-validated AUC against C. The best is {search.best_score_:.4f}, at C = {search.C_:.3g}."
    )


def convergence(ax: Any, fitted: Any) -> str | None:
    """Draw the solver's distance to the minimum, if it was recorded."""
    try:
        display = ConvergenceDisplay.from_estimator(fitted, panels=("gap",), axes=[ax])
    except ValueError:
        return None
    assert display.gap is not None
    # Limits are powers of ten: ticks between them would need labels wider than the margin.
    ends = np.log10([np.nanmin(display.gap), np.nanmax(display.gap)])
    ax.set_ylim(10.0 ** np.floor(ends[0] - 0.05), 10.0 ** np.ceil(ends[1] + 0.05))
    done = [record["converged"] for record in fitted.path_]
    return f"{sum(done)} of {len(done)} fits came within a relative distance of {display.tol:g}."


def coverage(ax: Any, fitted: Any, rows: np.ndarray, positive: np.ndarray) -> str | None:
    """Draw the distances of rows to the nearest landmark, if the model has landmarks."""
    ax.set_prop_cycle(color=[NEGATIVE, POSITIVE])
    names = np.where(positive, "positives", "negatives")
    try:
        display = LandmarkCoverageDisplay.from_estimator(fitted, rows, names, ax=ax)
    except ValueError:
        return None
    _percent(ax.yaxis)
    return (
        f"Distance of rows to the nearest of {display.n_landmarks:,} landmarks. For "
        f"{float((display.distances > 1.0).mean()):.1%} of the rows it is more than one bandwidth."
    )
