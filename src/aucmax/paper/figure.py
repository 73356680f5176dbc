"""The paper's Figure 1 from result rows: test AUC by the number of epochs."""

from __future__ import annotations

import itertools
import statistics
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from aucmax.paper import results
from aucmax.paper.published import EPOCHS, LANDMARKS, LARGE_DATASETS
from aucmax.paper.results import Row, Rows, is_done, seeds_of
from aucmax.runtime.installing import extra_command
from aucmax.runtime.output_files import replacing

#: Colours of Okabe and Ito, which the colour-blind can distinguish; shapes and dashes do it in grey.
_LOOKS: dict[str, dict[str, Any]] = {
    "NSAUC": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "NSVMSGD2": {"color": "#D55E00", "marker": "^", "linestyle": "--"},
    "NSVMSGD2, own λ": {"color": "#CC79A7", "marker": "v", "linestyle": "-."},
    "NSOLAM": {"color": "#009E73", "marker": "s", "linestyle": ":"},
}

_TICKS = (1, 10, 100, EPOCHS[-1])

Curve = list[dict[str, float]]


def curves(rows: Rows, data: str, line: str) -> list[Curve]:
    """Return a line of the figure for each seed that ended.

    "NSVMSGD2" is the last iterate of NSAUC's run, so the two differ by the average alone.
    """
    method = {"NSVMSGD2": "NSAUC", "NSVMSGD2, own λ": "NSVMSGD2"}.get(line, line)
    seeds = seeds_of(rows, "epochs", data, method)
    found = [list(row["curve"]) for row in seeds if is_done(row) and row.get("curve")]
    if line != "NSVMSGD2":
        return found
    both = [curve for curve in found if all(point.get("last_auc") is not None for point in curve)]
    return [[{**point, "auc": point["last_auc"]} for point in curve] for curve in both]


def _mean_and_spread(values: list[float]) -> tuple[float, float]:
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def mean_curve(of_seeds: list[Curve]) -> list[tuple[int, float, float]]:
    """Return epochs, mean AUC in percent, and its standard deviation over seeds (0 for one seed).

    >>> mean_curve([[{"epochs": 1, "auc": 0.25}], [{"epochs": 1, "auc": 0.75}]])
    [(1, 50.0, 35.35533905932738)]
    """
    by_epochs: dict[int, list[float]] = {}
    for curve in of_seeds:
        for point in curve:
            by_epochs.setdefault(int(point["epochs"]), []).append(100.0 * point["auc"])
    return [(epochs, *_mean_and_spread(values)) for epochs, values in sorted(by_epochs.items())]


def seconds_per_epoch(of_seeds: list[Curve]) -> tuple[float, float] | None:
    """Return mean and standard deviation over the segments between epoch counts, of all seeds.

    >>> seconds_per_epoch([[{"epochs": 1, "seconds": 2.0}, {"epochs": 3, "seconds": 8.0}]])
    (2.5, 0.7071067811865476)
    """
    paces = []
    for curve in of_seeds:
        epochs, seconds = 0.0, 0.0
        for point in sorted(curve, key=lambda point: point["epochs"]):
            paces.append((point["seconds"] - seconds) / (point["epochs"] - epochs))
            epochs, seconds = point["epochs"], point["seconds"]
    return _mean_and_spread(paces) if paces else None


def need_matplotlib() -> None:
    """Raise an error if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ValueError(
            f"The figure needs matplotlib, which is not installed. Install it: {extra_command('plot')}"
        ) from None


def figure1(rows: Rows, path: str | Path) -> Path:
    """Draw Figure 1 to a .png, .svg or .pdf file; an older file is replaced as a whole."""
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    # The date of a file is left out, so that the same rows give the same bytes.
    stamps: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    if kind not in stamps:
        raise ValueError(f"The figure's file must end in .png, .svg or .pdf, not {path.name!r}.")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} for {path.name}: make it first.")
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    settings: Any = {"font.size": 8, "axes.linewidth": 0.6, "pdf.fonttype": 42}
    settings["svg.hashsalt"] = "aucmax"  # no random names
    with matplotlib.rc_context(settings), replacing(path) as file:
        _draw(rows, Figure()).savefig(file, format=kind, dpi=200, metadata=stamps[kind])
    return path


def _draw(rows: Rows, figure: Any) -> Any:
    """Draw six panels, with an explanation under them."""
    used = results.rows_of(rows, "epochs")
    by_data = [
        [*seeds_of(rows, "data", d), *(r for r in used if r["data"] == d)] for d in LARGE_DATASETS
    ]
    notes = results.by_note(itertools.chain(*by_data))
    under = _explanation(used, notes)
    text = 0.15 * len(under)  # inches
    height = 5.1 + text
    figure.set_size_inches(7.6, height)
    bottom = (0.55 + text) / height
    figure.subplots_adjust(left=0.085, right=0.985, top=0.95, bottom=bottom, wspace=0.27, hspace=0.32)
    panels = figure.subplots(2, 3)
    noted = {row["data"] for each in notes.values() for row in each}
    drawn = []
    for k, (data, axes) in enumerate(zip(LARGE_DATASETS, panels.flat, strict=True)):
        axes.set_title(f"({'abcdef'[k]}) {data}{'*' if data in noted else ''}", fontsize=9)
        drawn.append(_panel(rows, data, axes))
        if k % 3 == 0 and drawn[k]:
            axes.set_ylabel("test AUC, %")
    for k, axes in enumerate(panels.flat):  # epochs are labelled on the lowest panel of each column
        if drawn[k] and (k >= 3 or not drawn[k + 3]):
            axes.set_xlabel("epochs")
    figure.align_ylabels(panels[:, 0])
    look: Any = {"va": "top", "fontsize": 7.2, "linespacing": 1.35}
    # A reason may contain a dollar sign.
    figure.text(0.02, (0.06 + text) / height, "\n".join(under), parse_math=False, **look)
    return figure


def _panel(rows: Rows, data: str, axes: Any) -> bool:
    """Draw the curves of a data set, and return whether there are any."""
    low, high = float("inf"), float("-inf")
    for method in _LOOKS:
        of_seeds = curves(rows, data, method)
        points, pace = mean_curve(of_seeds), seconds_per_epoch(of_seeds)
        if pace is None:
            continue
        epochs, means, spreads = np.transpose(points)
        label = f"{method} ({_seconds(*pace)} s)"
        axes.plot(epochs, means, label=label, linewidth=1.3, markersize=3.4, **_LOOKS[method])
        below, above = means - spreads, means + spreads
        if len(of_seeds) > 1:
            colour = _LOOKS[method]["color"]
            axes.fill_between(epochs, below, above, color=colour, alpha=0.18, linewidth=0)
        low, high = min(low, *below), max(high, *above)
    if high < low:
        look: Any = {"ha": "center", "va": "center", "color": "#777777"}
        axes.text(0.5, 0.5, results.absent(rows, data), transform=axes.transAxes, **look)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("#cccccc")
        return False
    span = max(high - low, 0.02)
    axes.set(xscale="log", xlim=(0.85, max(_TICKS) * 1.2))
    axes.set_ylim(low - 0.55 * span, high + 0.08 * span)  # the legend is beneath the curves
    axes.set_xticks(_TICKS, [str(tick) for tick in _TICKS])
    axes.set_xticks([], minor=True)
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    box: Any = {"facecolor": "white", "edgecolor": "none", "framealpha": 1.0}
    axes.legend(
        loc="lower center", fontsize=6.2, handlelength=2.4, labelspacing=0.25, borderpad=0.2, **box
    )
    return True


def _seconds(mean: float, spread: float) -> str:
    """Show seconds with more decimals the smaller they are."""
    decimals = sum(mean < bound for bound in (100, 10, 0.1, 0.01))
    return f"{mean:.{decimals}f} ± {spread:.{decimals}f}"


def _explanation(used: Rows, notes: dict[str, list[Row]]) -> list[str]:
    """Return the lines under the figure."""
    seeds = len({row["seed"] for row in used if is_done(row)})
    text = (
        "Figure 1. Test AUC of the stochastic methods against the number of epochs. In parentheses: "
        "learning seconds per epoch without the embedding, mean ± standard deviation over the segments "
        "of the epoch grid. NSVMSGD2 is the last iterate of NSAUC's run, which averages its iterates; "
        "with its own λ, that parameter is tuned for it."
    )
    if seeds > 1:
        text += f" Lines are means over up to {seeds} seeds, bands ± one standard deviation."
    if numbers := results.other_landmarks(used):
        text += f" With {numbers} landmarks (the paper: {LANDMARKS:,})."
    paragraphs = [text]
    if any(row.get("quick") for row in used):
        paragraphs.insert(0, f"{results.QUICK_WARNING}.")
    listed = [f"{results.names_of(noted)}: {note}" for note, noted in notes.items()]
    if listed:
        paragraphs.append("* " + "; ".join(listed) + ".")
    return [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, 142)]
