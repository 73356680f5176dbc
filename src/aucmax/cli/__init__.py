"""The ``aucmax`` command. Each command is a few lines over one library call, imported when it runs."""

from __future__ import annotations

import os
import warnings
from typing import Annotated, Any

import typer

from aucmax import __version__
from aucmax.cli.commands import commands_app
from aucmax.cli.datasets import datasets_app
from aucmax.cli.mistakes import Commands, UsageError, sentence
from aucmax.runtime.memory import check_address_space, is_memory_error, named_memory_error

#: The address space of a command's libraries, in all and for each core: polars ends the process without
#: it. Measured: 1.8 GB on two cores.
_SPACE, _THREAD_SPACE = 1_700_000_000, 200_000_000

_STOPPED = 130  # the customary exit code after Ctrl-C

app = typer.Typer(
    name="aucmax",
    cls=Commands,
    help="Train models that rank: exact all-pairs AUC with kernels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(commands_app)
app.add_typer(datasets_app, name="datasets")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aucmax {__version__}")
        raise typer.Exit


_Version = typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")


@app.callback()
def _root(context: typer.Context, version: Annotated[bool, _Version] = False) -> None:
    needed = _SPACE + (os.cpu_count() or 1) * _THREAD_SPACE
    check_address_space(f"aucmax {context.invoked_subcommand}", needed)


def _show_warning(message: Warning | str, *_where: Any, **_more: Any) -> None:
    typer.echo(f"aucmax: {message}", err=True)


def main() -> None:
    """Run the command; a mistake is printed as one sentence, with exit code 2, and so is a warning."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # In standalone mode typer would print a mistake as a box with the usage.
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
    except KeyboardInterrupt:  # typer turns most of them into an exit code
        code = _STOPPED
    if code == _STOPPED:
        typer.echo("Stopped.", err=True)
    if code:
        raise SystemExit(code)
