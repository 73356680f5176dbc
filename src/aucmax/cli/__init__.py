"""The ``aucmax`` command. Each command is a few lines over one library call, imported when run."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from aucmax import __version__
from aucmax.cli.datasets import datasets_app
from aucmax.cli.mistakes import Commands, UsageError, sentence
from aucmax.cli.models import models_app
from aucmax.runtime.memory import check_address_space, is_memory_error, named_memory_error

#: Address space that a command takes for its libraries, and for each core: polars ends the process if
#: it finds none. Measured: 1.8 GB on two cores.
_SPACE, _THREAD_SPACE = 1_700_000_000, 200_000_000

#: The exit code after Ctrl-C, by custom.
_STOPPED = 130

app = typer.Typer(
    name="aucmax",
    cls=Commands,
    help="Train models that rank: exact all-pairs AUC with kernels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(models_app)
app.add_typer(datasets_app, name="datasets")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aucmax {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version.")
    ] = False,
) -> None:
    needed = _SPACE + (os.cpu_count() or 1) * _THREAD_SPACE
    check_address_space(f"aucmax {context.invoked_subcommand}", needed)


@app.command(epilog="Example: aucmax demo --rows 60000 --picture roc.png")
def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Rows to make, a quarter for testing.")] = 80_000,
    landmarks: Annotated[int, typer.Option(min=10, help="Landmarks, or features, of each map.")] = 800,
    seed: Annotated[int, typer.Option(min=0, help="Seed of data and models.")] = 0,
    picture: Annotated[
        Path, typer.Option(help="Where to save the ROC curves; an earlier picture is replaced.")
    ] = Path("aucmax-demo.png"),
    as_json: Annotated[bool, typer.Option("--json", help="Print results as JSON.")] = False,
) -> None:
    """Rank a rare class with a nonlinear boundary, beside two scikit-learn models."""
    from aucmax.cli.demo import run_demo

    run_demo(rows, landmarks, seed, picture, as_json)


@app.command(epilog="Example: aucmax paper table2 --quick --data spambase --data magic04")
def paper(
    what: Annotated[str, typer.Argument(help="table1, table2, table3, table4, figure1 or all.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of results; paper-results, with -quick, by default.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with the data files; AUCMAX_DATA by default.")
    ] = None,
    data: Annotated[list[str] | None, typer.Option(help="A data set to run; may be repeated.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="A method to run; may be repeated.")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds of each cell; 5 for small data, else 3.")
    ] = None,
    time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds a cell may take.")] = 1200.0,
    landmarks: Annotated[
        int | None, typer.Option(min=2, help="Landmarks; the paper's 1600 by default.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small samples, to see it work in minutes.")] = False,
    run: Annotated[bool, typer.Option(help="Run what is missing, or only write tables.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Reproduce the paper's tables and figure; stopped anywhere, it goes on where it was."""
    from aucmax.cli.paper_run import run_paper

    run_paper(
        what,
        out=out,
        data_dir=data_dir,
        data=data or (),
        methods=method or (),
        seeds=seeds,
        time_limit=time_limit,
        landmarks=landmarks,
        quick=quick,
        run=run,
        as_json=as_json,
    )


def _show_warning(message: Warning | str, *_where: Any, **_more: Any) -> None:
    typer.echo(f"aucmax: {message}", err=True)


def main() -> None:
    """Run the command; a user's mistake is one sentence and exit code 2, a warning one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # typer's own way to tell of a mistake is a box with the usage
            code = app(prog_name="aucmax", standalone_mode=False)
    except UsageError as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # which has shown the help
            typer.echo(f"aucmax: {sentence(error)}", err=True)
        raise SystemExit(2) from None
    except (ValueError, MemoryError, OSError, ImportError, RuntimeError) as error:
        if is_memory_error(error):
            error = named_memory_error(error)
        elif isinstance(error, RuntimeError):
            raise
        typer.echo(f"aucmax: {error}", err=True)
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # typer makes an exit code of most of them
        code = _STOPPED
    if code == _STOPPED:
        typer.echo("Stopped.", err=True)
    if code:
        raise SystemExit(code)
