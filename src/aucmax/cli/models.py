"""The commands for people with a table; the work of each is in the module of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

models_app = typer.Typer()

Model = Annotated[Path, typer.Argument(help="A model file, as train writes it.", metavar="MODEL")]
Table = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet, Arrow or LIBSVM; .gz, .bz2, .xz and .zst too.", metavar="TABLE"
    ),
]
Target = Annotated[
    str | None, typer.Option(help="The column with the labels; the model's own by default.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


@models_app.command(epilog="Example: aucmax train customers.csv --target churned -o churn.aucmax")
def train(
    table: Table,
    target: Annotated[str, typer.Option(help="The column that says yes or no.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")] = Path(
        "model.aucmax"
    ),
    positive: Annotated[
        str | None, typer.Option(help="The label to rank high; the rarer by default.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; may be repeated.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="A column with the weight of each row.")] = None,
    group: Annotated[
        str | None, typer.Option(help="A column whose equal values are held out together.")
    ] = None,
    landmarks: Annotated[
        int | None, typer.Option(min=2, help="Landmarks of the kernel; by the rows by default.")
    ] = None,
    solver: Annotated[
        str, typer.Option(help='"newton" is exact, "sgd" quick on very many rows.')
    ] = "newton",
    kernel: Annotated[
        str, typer.Option(help="rbf, laplacian, rbf+laplacian, polynomial or linear; tuned by default.")
    ] = "auto",
    gammas: Annotated[
        int | None,
        typer.Option(min=1, help="Widths of the kernel to cross-validate; tuned by default."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help='"paper" tries nothing out: its settings, and C by folds.')
    ] = None,
    effort: Annotated[
        float, typer.Option(min=0.01, help="Work allowed for tuning: 4 takes longer, 0.1 is quick.")
    ] = 1.0,
    folds: Annotated[int, typer.Option(min=2, help="Folds of cross-validation.")] = 3,
    time_budget: Annotated[
        float | None,
        typer.Option(min=1.0, help="Seconds for reading, tuning and fitting: then the best so far."),
    ] = None,
    calibration: Annotated[
        str, typer.Option(help="How scores become probabilities: sigmoid or isotonic.")
    ] = "sigmoid",
    aim: Annotated[
        str | None,
        typer.Option(
            help="What the threshold is for: cost=5, precision=0.8, recall=0.9, fpr=0.05, top=5%."
        ),
    ] = None,
    max_memory: Annotated[
        str | None,
        typer.Option(help="Memory for the solve, such as 4GB; four fifths of what is free by default."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds and landmarks.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be kept where and how long it takes.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn to rank the rows of a table, and save the model."""
    from aucmax.cli.train import run_train

    run_train(
        table,
        target,
        output,
        force=force,
        as_json=as_json,
        dry_run=dry_run,
        positive=positive,
        drop=drop or (),
        weight=weight,
        group=group,
        n_landmarks="auto" if landmarks is None else landmarks,
        solver=solver,
        kernel=kernel,
        gammas=3 if gammas is None and (solver == "sgd" or kernel == "polynomial") else gammas,
        preset=preset,
        effort=effort,
        cv=folds,
        time_budget=time_budget,
        calibration=calibration,
        aim=aim,
        max_memory=max_memory,
        random_state=seed,
    )


@models_app.command(epilog="Example: aucmax predict churn.aucmax new.csv --id customer -o ranked.csv")
def predict(
    model: Model,
    table: Table,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="CSV, TSV, Parquet or Arrow to write; else CSV is printed."
        ),
    ] = None,
    id_column: Annotated[
        list[str] | None, typer.Option("--id", help="A column to keep; may be repeated.")
    ] = None,
    rank: Annotated[
        bool,
        typer.Option(help="Number the rows from the highest score; it keeps all scores in memory."),
    ] = True,
    rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = 100_000,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Score the rows of a table, of any length: score, probability, label and rank."""
    from aucmax.cli.predict import run_predict

    run_predict(
        model, table, output, keep=id_column or (), rank=rank, rows=rows, force=force, as_json=as_json
    )


@models_app.command(epilog="Example: aucmax evaluate churn.aucmax later.csv --json")
def evaluate(model: Model, table: Table, target: Target = None, as_json: Json = False) -> None:
    """Measure a model on rows with known labels: AUC, lift, calibration, the threshold."""
    from aucmax.cli.evaluate import run_evaluate

    run_evaluate(model, table, target, as_json)


@models_app.command(
    epilog="Example: aucmax compare churn.aucmax lightgbm later.csv --train customers.csv"
)
def compare(
    first: Annotated[str, typer.Argument(help="A model file, or a rival (see --train).")],
    second: Annotated[str, typer.Argument(help="The other.")],
    table: Table,
    train_table: Annotated[
        Path | None,
        typer.Option(
            "--train",
            help="What a rival learns from: logistic, nystroem, forest, lightgbm or xgboost.",
        ),
    ] = None,
    target: Target = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rival.")] = 0,
    as_json: Json = False,
) -> None:
    """Two models on the same rows, by DeLong's paired test."""
    from aucmax.cli.evaluate import run_compare

    run_compare(first, second, table, train_table, target, seed, as_json)


@models_app.command(epilog="Example: aucmax report churn.aucmax later.csv -o churn.html")
def report(
    model: Model,
    table: Annotated[
        Path | None,
        typer.Argument(help="Rows with labels; the training's held-out scores by default."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    target: Target = None,
    permutation: Annotated[
        bool, typer.Option(help="Shuffle each column to see what it is worth; takes longer.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """One HTML page on a model: curves, threshold, columns that matter, mistakes."""
    from aucmax.cli.evaluate import run_report

    run_report(
        model, table, output, target=target, permutation=permutation, force=force, as_json=as_json
    )


@models_app.command(epilog="Example: aucmax info churn.aucmax")
def info(model: Model, as_json: Json = False) -> None:
    """What is in a model file."""
    from aucmax.cli.info import run_info

    run_info(model, as_json)


@models_app.command(epilog="Example: aucmax export churn.aucmax --onnx churn.onnx")
def export(
    model: Model,
    onnx: Annotated[Path, typer.Option(help="The ONNX file to write.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a model, with its preparation of columns, for other programs to run."""
    from aucmax.cli.info import run_export

    run_export(model, onnx, force, as_json)
