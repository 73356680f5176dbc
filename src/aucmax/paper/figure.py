"""The paper's Figure 1 from result rows: test AUC against the number of epochs."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from aucmax.paper import published
from aucmax.paper.result_tables import QUICK, Rows, is_done, notes_of, seeds_of, why_no_data
from aucmax.runtime.output_files import replacing

#: Colours of Okabe and Ito, told apart by the colour-blind; shapes and dashes tell them apart in grey.
_LOOKS: dict[str, dict[str, Any]] = {
    "NSAUC": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "NSVMSGD2": {"color": "#D55E00", "marker": "^", "linestyle": "--"},
    "NSOLAM": {"color": "#009E73", "marker": "s", "linestyle": ":"},
}

_TICKS = (1, 10, 100, 400)

Curve = list[dict[str, float]]


def curves(rows: Rows, data: str, method: str) -> list[Curve]:
    """The curve of each seed that ended."""
    return [
        list(row["curve"])
        for row in seeds_of(rows, "epochs", data, method)
        if is_done(row) and row.get("curve")
    ]


def mean_curve(of_seeds: list[Curve]) -> list[tuple[int, float, float]]:
    """Epochs, mean AUC in percent, and its standard deviation over seeds (0 for one seed).

    >>> one = {"epochs": 1, "auc": 0.5, "seconds": 1.0}
    >>> other = one | {"auc": 0.75}
    >>> [(epochs, mean, round(spread, 2)) for epochs, mean, spread in mean_curve([[one], [other]])]
    [(1, 62.5, 17.68)]
    """
    by_epochs: dict[int, list[float]] = {}
    for curve in of_seeds:
        for point in curve:
            by_epochs.setdefault(int(point["epochs"]), []).append(100.0 * point["auc"])
    return [
        (epochs, statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0)
        for epochs, values in sorted(by_epochs.items())
    ]


def seconds_per_epoch(of_seeds: list[Curve]) -> tuple[float, float] | None:
    """Mean and standard deviation over the segments of the epoch grid, of all seeds.

    A segment runs from one epoch count of the curve to the next, the first from the start.

    >>> first = {"epochs": 1, "auc": 0.9, "seconds": 2.0}
    >>> last = {"epochs": 3, "auc": 0.9, "seconds": 8.0}
    >>> [round(value, 3) for value in seconds_per_epoch([[first, last]])]
    [2.5, 0.707]
    """
    paces = []
    for curve in of_seeds:
        epochs, seconds = 0.0, 0.0
        for point in sorted(curve, key=lambda point: point["epochs"]):
            paces.append((point["seconds"] - seconds) / (point["epochs"] - epochs))
            epochs, seconds = point["epochs"], point["seconds"]
    if not paces:
        return None
    return statistics.fmean(paces), statistics.stdev(paces) if len(paces) > 1 else 0.0


def need_matplotlib() -> None:
    """Refuse to go on without it, before any work is done."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ValueError(
            'The figure needs matplotlib, which is not installed: pip install "aucmax[plot]".'
        ) from None


def figure1(rows: Rows, path: str | Path) -> Path:
    """Draw Figure 1 to a .png, .svg or .pdf file.

    The file is written beside and renamed: a crash leaves an older one whole.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise ValueError(f"The figure's file must end in .png, .svg or .pdf, not {path.name!r}.")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {path.parent} to save {path.name} in: make it first."
        )
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    # What differs from run to run is left out of the file: the same rows make the same picture.
    stamp = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    settings: Any = {
        "font.size": 8,
        "axes.linewidth": 0.6,
        "svg.hashsalt": "aucmax",
        "pdf.fonttype": 42,
    }
    with matplotlib.rc_context(settings), replacing(path) as file:
        _draw(rows, Figure()).savefig(file, format=kind, dpi=200, metadata=stamp)
    return path


def _draw(rows: Rows, figure: Any) -> Any:
    """Six panels, and beneath them what they show."""
    from matplotlib.ticker import FixedLocator, NullLocator

    notes = {data: _notes(rows, data) for data in published.LARGE_DATASETS}
    under = _explanation(rows, notes)
    text = 0.15 * len(under)  # inches
    height = 5.1 + text
    figure.set_size_inches(7.6, height)
    bottom = (0.55 + text) / height
    figure.subplots_adjust(left=0.085, right=0.985, top=0.95, bottom=bottom, wspace=0.27, hspace=0.32)
    panels = figure.subplots(2, 3)
    for k, (data, axes) in enumerate(zip(published.LARGE_DATASETS, panels.flat, strict=True)):
        axes.set_title(f"({'abcdef'[k]}) {data}{'*' if notes[data] else ''}", fontsize=9)
        if not _panel(rows, data, axes):
            missing = "not run" if why_no_data(rows, data) is None else "no data"
            axes.text(
                0.5, 0.5, missing, transform=axes.transAxes, ha="center", va="center", color="#777777"
            )
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color("#cccccc")
            continue
        axes.set_xscale("log")
        axes.set_xlim(0.85, max(_TICKS) * 1.2)
        axes.xaxis.set_major_locator(FixedLocator(_TICKS))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticklabels([str(tick) for tick in _TICKS])
        axes.ticklabel_format(axis="y", useOffset=False, style="plain")
        axes.grid(axis="y", color="#e4e4e4", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        if k >= 3 or not curves_exist(rows, published.LARGE_DATASETS[k + 3]):
            axes.set_xlabel("epochs")
        if k % 3 == 0:
            axes.set_ylabel("test AUC, %")
    figure.align_ylabels(panels[:, 0])
    figure.text(
        0.02,
        (0.06 + text) / height,
        "\n".join(under),
        va="top",
        fontsize=7.2,
        linespacing=1.35,
        parse_math=False,  # a reason may hold any sign
    )
    return figure


def curves_exist(rows: Rows, data: str) -> bool:
    """Whether a data set has any curve."""
    return any(curves(rows, data, method) for method in published.EPOCH_METHODS)


def _panel(rows: Rows, data: str, axes: Any) -> bool:
    """The curves of a data set; False where there are none."""
    low, high = float("inf"), float("-inf")
    for method in published.EPOCH_METHODS:
        of_seeds = curves(rows, data, method)
        points, pace = mean_curve(of_seeds), seconds_per_epoch(of_seeds)
        if pace is None:
            continue
        epochs, means, spreads = (list(values) for values in zip(*points, strict=True))
        label = f"{method} ({_seconds(*pace)} s)"
        axes.plot(epochs, means, label=label, linewidth=1.3, markersize=3.4, **_LOOKS[method])
        below = [mean - spread for mean, spread in zip(means, spreads, strict=True)]
        above = [mean + spread for mean, spread in zip(means, spreads, strict=True)]
        if len(of_seeds) > 1:
            axes.fill_between(
                epochs, below, above, color=_LOOKS[method]["color"], alpha=0.18, linewidth=0
            )
        low, high = min(low, *below), max(high, *above)
    if high < low:
        return False
    span = max(high - low, 0.02)
    # Room beneath the curves for the legend.
    axes.set_ylim(low - 0.55 * span, high + 0.08 * span)
    axes.legend(
        loc="lower center",
        fontsize=6.4,
        facecolor="white",
        edgecolor="none",
        framealpha=1.0,
        handlelength=2.6,
        labelspacing=0.25,
    )
    return True


def _seconds(mean: float, spread: float) -> str:
    """As many decimals as the mean's size asks for."""
    decimals = sum(mean < bound for bound in (100, 10, 0.1, 0.01))
    return f"{mean:.{decimals}f} ± {spread:.{decimals}f}"


def _notes(rows: Rows, data: str) -> list[str]:
    """What was done otherwise for a data set."""
    used = seeds_of(rows, "data", data)
    for method in published.EPOCH_METHODS:
        used = used + seeds_of(rows, "epochs", data, method)
    return list(dict.fromkeys(text for row in used for text in notes_of(row)))


def _explanation(rows: Rows, notes: dict[str, list[str]]) -> list[str]:
    """The lines under the figure."""
    import textwrap

    used = [row for data in published.LARGE_DATASETS for m in published.EPOCH_METHODS
            for row in seeds_of(rows, "epochs", data, m)]  # fmt: skip
    seeds = len({row["seed"] for row in used if is_done(row)})
    text = (
        "Figure 1. Test AUC of the stochastic methods against the number of epochs. In parentheses: "
        "learning seconds per epoch without the embedding, mean ± standard deviation over the segments "
        "of the epoch grid."
    )
    if seeds > 1:
        text += f" Lines are means over up to {seeds} seeds, bands ± one standard deviation."
    landmarks = {row.get("landmarks") or published.LANDMARKS for row in used}
    if landmarks - {published.LANDMARKS}:
        text += (
            f" With {' and '.join(f'{n:,}' for n in sorted(landmarks))} landmarks (the paper: 1,600)."
        )
    paragraphs = [text]
    if any(row.get("quick") for row in used):
        paragraphs.insert(0, f"{QUICK}.")
    told: dict[str, list[str]] = {}
    for data, texts in notes.items():
        for each in texts:
            told.setdefault(each, []).append(data)
    if told:
        paragraphs.append(
            "* " + "; ".join(f"{', '.join(on)}: {each}" for each, on in told.items()) + "."
        )
    return [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, 142)]
