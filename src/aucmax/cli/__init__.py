"""The ``aucmax`` command. Each command is a few lines over one library call, imported when run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aucmax import __version__

app = typer.Typer(
    name="aucmax",
    help="Train models that rank: exact all-pairs AUC with kernels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aucmax {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: aucmax demo --rows 60000 --picture roc.png")
def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Rows to make, a quarter for testing.")] = 80_000,
    landmarks: Annotated[int, typer.Option(min=10, help="Landmarks, or features, of each map.")] = 800,
    seed: Annotated[int, typer.Option(min=0, help="Seed of data and models.")] = 0,
    picture: Annotated[Path, typer.Option(help="Where to save the ROC curves.")] = Path(
        "aucmax-demo.png"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print results as JSON.")] = False,
) -> None:
    """Rank a rare class with a nonlinear boundary, beside two scikit-learn models."""
    from aucmax.cli.demo import run_demo

    run_demo(rows, landmarks, seed, picture, as_json)


def main() -> None:
    """Run the command; a user's mistake is one sentence and exit code 2."""
    try:
        app()
    except (ValueError, MemoryError, OSError) as error:
        typer.echo(f"aucmax: {error}", err=True)
        raise SystemExit(2) from None
