"""The figures of a report, as SVG to be put into a page.

Colours leave matplotlib as hex codes and become CSS variables, so that the page decides on them (and
may have a dark side). Blue and orange with a difference in lightness can be told apart by everyone.
No text of the user's is ever drawn: names and labels stay in the page, where they are escaped.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucmax.inspection.displays import ConvergenceDisplay, CVPathDisplay, LandmarkCoverageDisplay
from aucmax.metrics.evaluation import CalibrationBin
from aucmax.report.curves import Band, Cuts, Histogram

#: Our colours while matplotlib draws, and the page's names for them.
INK, MUTED, RULE = "#1c2630", "#5c6873", "#d9dfe5"
POSITIVE, NEGATIVE = "#1463a5", "#d07a1d"
_COLOURS = {INK: "ink", MUTED: "muted", RULE: "rule", POSITIVE: "positive", NEGATIVE: "negative"}
_LINES = ("#1463a5", "#d07a1d", "#2f8f6b", "#8a5fb0", "#5c6873")

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 8.5,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "path.simplify_threshold": 0.2,
    "patch.linewidth": 0.0,
}
_SIZE = (4.0, 2.95)


@dataclass(frozen=True)
class Figure:
    """An SVG, what it shows in words, and where its axes lie, for a marker the page moves."""

    svg: str
    described: str
    box: tuple[float, float, float, float]  #: left, top, right, bottom, in units of the SVG
    limits: tuple[float, float, float, float]  #: of the data: left, top, right, bottom


class _Canvas:
    """A matplotlib figure in our style, and in the end its SVG."""

    def __init__(self, name: str) -> None:
        from matplotlib.figure import Figure as MatplotlibFigure

        self.name = name
        # The same margins in all, so that axes line up across the page.
        self.figure = MatplotlibFigure(figsize=_SIZE)
        self.figure.subplots_adjust(left=0.178, right=0.948, bottom=0.145, top=0.97)
        self.ax = self.figure.add_subplot()
        self.ax.grid(True)
        self.ax.set_prop_cycle(color=list(_LINES))
        self.described = ""

    def done(self) -> Figure:
        buffer = io.StringIO()
        self.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        width, height = 72.0 * self.figure.get_size_inches()
        place = self.ax.get_position()
        box = (place.x0 * width, (1 - place.y1) * height, place.x1 * width, (1 - place.y0) * height)
        (left, right), (low, high) = self.ax.get_xlim(), self.ax.get_ylim()
        limits = (float(left), float(high), float(right), float(low))
        rounded = tuple(round(float(edge), 2) for edge in box)
        return Figure(_for_page(buffer.getvalue(), self.name), self.described, rounded, limits)  # type: ignore[arg-type]


@contextmanager
def _canvas(name: str) -> Iterator[_Canvas]:
    try:
        import matplotlib
    except ImportError:
        raise ImportError('A report needs matplotlib: pip install "aucmax[report]".') from None
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        yield _Canvas(name)


def _for_page(svg: str, name: str) -> str:
    """The bare svg element: ids of its own, colours and fonts of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    for colour, variable in _COLOURS.items():
        svg = svg.replace(colour, f"var(--{variable})")
    svg = svg.replace("#000000", "var(--ink)").replace("#808080", "var(--muted)")
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font)", svg)
    svg = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true">', svg, count=1)
    return re.sub(r"\n\s*", "\n", svg).strip()


def _percent(ax: Any, *which: str) -> None:
    for axis in which:
        getattr(ax, f"{axis}axis").set_major_formatter(lambda value, _: f"{100 * value:.6g} %")


def roc(cuts: Cuts, band: Band) -> Figure:
    """The ROC curve with its band."""
    with _canvas("roc") as canvas:
        ax = canvas.ax
        ax.plot([0, 1], [0, 1], color=MUTED, lw=0.8, ls=(0, (2, 2)))
        ax.fill_between(band.fpr, band.low, band.high, color=POSITIVE, alpha=0.18)
        ax.plot(cuts.fpr, cuts.recall, color=POSITIVE)
        ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="false-positive rate", ylabel="true-positive rate")
        _percent(ax, "x", "y")
        at = {rate: float(np.interp(rate, cuts.fpr, cuts.recall)) for rate in (0.01, 0.05, 0.1)}
        canvas.described = "ROC curve. " + " ".join(
            f"At a false-positive rate of {rate:.0%} the true-positive rate is {value:.1%}."
            for rate, value in at.items()
        )
        return canvas.done()


def precision_recall(cuts: Cuts, average_precision: float) -> Figure:
    """Precision against recall, and the share of positives that a random order would have."""
    with _canvas("pr") as canvas:
        ax = canvas.ax
        ax.axhline(cuts.base_rate, color=MUTED, lw=0.8, ls=(0, (2, 2)))
        ax.plot(cuts.recall[1:], cuts.precision[1:], color=POSITIVE)
        ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
        _percent(ax, "x", "y")
        canvas.described = (
            f"Precision against recall. Average precision is {average_precision:.3f}; a random order "
            f"would have a precision of {cuts.base_rate:.1%} throughout."
        )
        return canvas.done()


def gain(cuts: Cuts) -> Figure:
    """Share of positives among the first rows of the ranking."""
    with _canvas("gain") as canvas:
        ax = canvas.ax
        base = cuts.base_rate
        ax.plot([0, 1], [0, 1], color=MUTED, lw=0.8, ls=(0, (2, 2)), label="random order")
        ax.plot([0, base, 1], [0, 1, 1], color=NEGATIVE, lw=1.0, label="perfect order")
        ax.plot(cuts.called, cuts.recall, color=POSITIVE, label="this model")
        ax.set(
            xlim=(0, 1), ylim=(0, 1.02), xlabel="rows, highest scores first", ylabel="positives found"
        )
        _percent(ax, "x", "y")
        ax.legend(loc="lower right")
        found = {share: float(np.interp(share, cuts.called, cuts.recall)) for share in (0.05, 0.1, 0.2)}
        canvas.described = "Gain. " + " ".join(
            f"The first {share:.0%} of the rows hold {value:.1%} of the positives."
            for share, value in found.items()
        )
        return canvas.done()


def lift(cuts: Cuts) -> Figure:
    """How many times as many positives as in a random order, by share of rows taken."""
    with _canvas("lift") as canvas:
        ax = canvas.ax
        seen = cuts.called > 0
        share, times = cuts.called[seen], cuts.recall[seen] / cuts.called[seen]
        ax.axhline(1.0, color=MUTED, lw=0.8, ls=(0, (2, 2)))
        ax.plot(share, times, color=POSITIVE)
        first = float(np.clip(share[0], 1e-4, 0.5))
        ax.set(xscale="log", xlim=(first, 1.0), xlabel="rows, highest scores first", ylabel="lift")
        ax.set_ylim(0.0, 1.08 * float(times[share >= first].max(initial=1.0)))
        _percent(ax, "x")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
        at = float(np.interp(0.05, share, times))
        canvas.described = (
            f"Lift against the share of rows taken, on a logarithmic scale: {at:.1f} times as many "
            "positives as in a random order among the first 5 % of rows."
        )
        return canvas.done()


def scores(histogram: Histogram) -> Figure:
    """Distribution of the scores of either class."""
    with _canvas("scores") as canvas:
        ax = canvas.ax
        for values, colour, label in (
            (histogram.negative, NEGATIVE, "negatives"),
            (histogram.positive, POSITIVE, "positives"),
        ):
            ax.stairs(values, histogram.edges, fill=True, color=colour, alpha=0.28)
            ax.stairs(values, histogram.edges, color=colour, lw=1.4, label=label)
        ax.set(xlabel="score", ylabel="share of the class")
        ax.set_xlim(histogram.edges[0], histogram.edges[-1])
        ax.set_ylim(bottom=0.0)
        _percent(ax, "y")
        ax.legend()
        middle = 0.5 * (histogram.edges[1:] + histogram.edges[:-1])
        up, down = (middle[shares.argmax()] for shares in (histogram.positive, histogram.negative))
        canvas.described = (
            "Histograms of the scores of either class: the most frequent score of positives is about "
            f"{up:.2g}, of negatives {down:.2g}."
        )
        return canvas.done()


def calibration(bins: Sequence[CalibrationBin]) -> Figure:
    """Observed share of positives against predicted probability; intervals as bars."""
    with _canvas("calibration") as canvas:
        ax = canvas.ax
        x = np.array([each.mean_probability for each in bins])
        y = np.array([each.observed for each in bins])
        low = np.array([each.observed_low for each in bins])
        high = np.array([each.observed_high for each in bins])
        top = float(min(1.0, 1.08 * max(x.max(), high.max())))
        ax.plot([0, top], [0, top], color=MUTED, lw=0.8, ls=(0, (2, 2)))
        ax.vlines(x, low, high, color=POSITIVE, lw=1.2, alpha=0.55)
        ax.plot(x, y, color=POSITIVE, marker="o", markersize=4, lw=1.2)
        ax.set(xlim=(0, top), ylim=(0, top))
        ax.set(xlabel="predicted probability", ylabel="observed share of positives")
        _percent(ax, "x", "y")
        inside = int(((low <= x) & (x <= high)).sum())
        canvas.described = (
            f"Calibration: in {inside} of {len(bins)} groups of rows the predicted probability lies "
            "within the interval of the observed share."
        )
        return canvas.done()


def cv_path(search: Any) -> Figure:
    """Cross-validated AUC along C."""
    with _canvas("path") as canvas:
        ax = canvas.ax
        CVPathDisplay.from_estimator(search, ax=ax)
        ax.set_ylabel("cross-validated AUC")
        best = f"the best is {search.best_score_:.4f}, at C = {search.C_:.3g}"
        canvas.described = f"Cross-validated AUC against C: {best}."
        return canvas.done()


def convergence(fitted: Any) -> Figure | None:
    """The solver's distance to the minimum; None where it keeps no account of it."""
    with _canvas("convergence") as canvas:
        ax = canvas.ax
        try:
            display = ConvergenceDisplay.from_estimator(fitted, panels=("gap",), axes=[ax])
        except ValueError:
            return None
        assert display.gap is not None
        # Whole decades: ticks between them would need labels wider than the margin.
        ends = np.log10([np.nanmin(display.gap), np.nanmax(display.gap)])
        ax.set_ylim(10.0 ** np.floor(ends[0] - 0.05), 10.0 ** np.ceil(ends[1] + 0.05))
        done = [record["converged"] for record in fitted.path_]
        canvas.described = (
            f"{sum(done)} of {len(done)} fits along C came within a distance of {display.tol:g} of the "
            "minimum."
        )
        return canvas.done()


def coverage(fitted: Any, rows: np.ndarray, positive: np.ndarray) -> Figure | None:
    """Distances to the nearest landmark; None for a model without landmarks."""
    with _canvas("coverage") as canvas:
        ax = canvas.ax
        ax.set_prop_cycle(color=[NEGATIVE, POSITIVE])
        names = np.where(positive, "positives", "negatives")
        try:
            display = LandmarkCoverageDisplay.from_estimator(fitted, rows, names, ax=ax)
        except ValueError:
            return None
        _percent(ax, "y")
        beyond = float((display.distances > 1.0).mean())
        canvas.described = (
            f"Distance of rows to their nearest landmark: {beyond:.1%} are further away than one "
            f"bandwidth, with {display.n_landmarks:,} landmarks."
        )
        return canvas.done()
