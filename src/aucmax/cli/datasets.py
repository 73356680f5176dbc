"""Run ``aucmax datasets``: list the paper's data sets, and fetch those that are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from aucmax.cli.mistakes import Commands
from aucmax.runtime.memory import format_bytes

_EXAMPLE = "Example: aucmax datasets fetch ijcnn1 usps"

datasets_app = typer.Typer(cls=Commands, epilog=_EXAMPLE, invoke_without_command=True)


@datasets_app.callback()
def list_datasets(
    context: typer.Context,
    data_dir: Annotated[Path | None, Option(help="Folder to look in before AUCMAX_DATA.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the paper's data sets, or fetch those that are missing."""
    if context.invoked_subcommand is not None:
        return
    from aucmax.cli.inputs_outputs import print_json, print_table

    rows = _status(data_dir)
    if as_json:
        print_json(rows)
        return
    lines = (
        (
            row["name"],
            row["state"],
            ", ".join(sorted({str(Path(file).parent) for file in row["files"]})),
            f"{row['train_rows']:,} + {row['test_rows']:,} × {row['features']}",
            f"{row['ratio']:.2f}",
            format_bytes(row["bytes"]) if row["bytes"] else "",
        )
        for row in rows
    )
    print_table(
        ("name", "state", "folder", "training + test × features", "ratio", "size"), lines, left=3
    )


@datasets_app.command(epilog=_EXAMPLE)
def fetch(
    names: Annotated[list[str], Argument(help="Names of data sets, or all.")],
    data_dir: Annotated[Path | None, Option(help="Folder for the files, instead of the cache.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print the files as JSON.")] = False,
) -> None:
    """Download data sets from their official sites into the cache, and verify them."""
    from aucmax.cli.inputs_outputs import print_json
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
        print_json({"files": files, "failed": failures})
    if failures:
        raise typer.Exit(2)


def _status(data_dir: Path | None) -> list[dict[str, Any]]:
    from aucmax.paper.data.downloads import dataset_status
    from aucmax.paper.data.registry import DATASETS

    return [
        {
            "name": status.name,
            "train_rows": dataset.rows[0],
            "test_rows": dataset.rows[1],
            "features": dataset.features,
            "ratio": dataset.ratio,
            "state": status.state,
            "bytes": status.size,
            "files": [str(path) for path in status.paths],
            "note": dataset.note,
            "substitute": dataset.substitute.sentence
            if dataset.substitute and status.state == "substitute"
            else "",
        }
        for status in dataset_status(data_dir)
        for dataset in (DATASETS[status.name],)
    ]
