"""``aucmax datasets``: what is at hand of the paper's data, and fetching the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from aucmax.cli.mistakes import Commands
from aucmax.runtime.memory import format_bytes

datasets_app = typer.Typer(
    cls=Commands,
    help="The paper's data sets: list what is at hand, fetch what is not.",
    epilog="Example: aucmax datasets fetch ijcnn1 usps",
    invoke_without_command=True,
)
_Folder = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder to look in first (else AUCMAX_DATA).")
]


@datasets_app.callback()
def list_datasets(
    context: typer.Context,
    data_dir: _Folder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """The paper's data sets: list what is at hand, fetch what is not."""
    if context.invoked_subcommand is not None:
        return
    rows = _rows(data_dir)
    if as_json:
        import json

        typer.echo(json.dumps(rows))
        return
    from rich.console import Console

    Console().print(_table(rows))


@datasets_app.command(epilog="Example: aucmax datasets fetch ijcnn1 usps")
def fetch(
    names: Annotated[list[str], typer.Argument(help="Names of data sets, or all.")],
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder to put the files into, instead of the cache.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the files as JSON.")] = False,
) -> None:
    """Download data sets from their official sites into the cache, verified."""
    from aucmax.paper.data.downloads import fetch as fetch_dataset
    from aucmax.paper.data.registry import DATASETS, find_dataset

    wanted = list(DATASETS.values()) if "all" in names else [find_dataset(name) for name in names]
    files: list[dict[str, Any]] = []
    failures: list[dict[str, str]] = []
    for dataset in wanted:
        try:
            for path in fetch_dataset(dataset, data_dir=data_dir):
                size = path.stat().st_size
                files.append({"name": dataset.name, "path": str(path), "bytes": size})
                if not as_json:
                    typer.echo(f"{dataset.name}: {path} ({format_bytes(size)})")
        except OSError as error:
            if len(wanted) == 1:
                raise
            typer.echo(f"aucmax: {dataset.name}: {error}", err=True)
            failures.append({"name": dataset.name, "reason": str(error)})
    if as_json:
        import json

        typer.echo(json.dumps({"files": files, "failed": failures}))
    if failures:
        raise typer.Exit(2)


def _rows(data_dir: Path | None) -> list[dict[str, Any]]:
    from aucmax.paper.data.downloads import dataset_status
    from aucmax.paper.data.registry import DATASETS

    rows = []
    for status in dataset_status(data_dir):
        dataset = DATASETS[status.name]
        train, test = dataset.rows
        stand_in = status.state == "substitute" and dataset.substitute
        rows.append(
            {
                "name": status.name,
                "train_rows": train,
                "test_rows": test,
                "features": dataset.features,
                "ratio": dataset.ratio,
                "state": status.state,
                "bytes": status.size,
                "files": [str(path) for path in status.paths],
                "note": dataset.note,
                "substitute": stand_in.sentence if stand_in else "",
            }
        )
    return rows


def _table(rows: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(title="Data sets of the paper")
    for heading in ("name", "training + test × features", "ratio", "state", "size", "place"):
        table.add_column(
            heading,
            justify="left" if heading in ("name", "state", "place") else "right",
            overflow="fold",
            no_wrap=heading == "name",
        )
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['train_rows']:,} + {row['test_rows']:,} × {row['features']}",
            f"{row['ratio']:.2f}",
            row["state"],
            format_bytes(row["bytes"]) if row["bytes"] else "",
            ", ".join(sorted({str(Path(file).parent) for file in row["files"]})),
        )
    return table
