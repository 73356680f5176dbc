"""The arguments of every command. A command imports what it needs when it runs: help is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

commands_app = Typer()

Text = str | None
Number = int | None
Amount = float | None
File = Path | None
Names = list[str] | None
Model = Annotated[Path, Argument(help="A model file written by aucmax train.", metavar="MODEL")]
_FORMATS = "A CSV, TSV, JSON lines, Parquet, Arrow, LIBSVM or Excel file; - is standard input."
_SEVERAL = f"{_FORMATS} Several files, or a pattern in quotes, need the same columns."
Table = Annotated[Path, Argument(help=_FORMATS, metavar="TABLE")]
Tables = Annotated[list[Path], Argument(help=_SEVERAL, metavar="TABLE")]
Encoding = Annotated[Text, Option(help="Encoding of text that is not UTF-8, such as latin-1.")]
Sheet = Annotated[Text, Option(help="The sheet of an Excel file, if it has several.")]
Labels = Annotated[str, Option(help="The column with the labels.")]
_POSITIVE = "The label to rank high; by default 1 of 0 and 1, else the rarer one."
Positive = Annotated[Text, Option(help=_POSITIVE)]
Drop = Annotated[Names, Option(help="A column to leave out; may be repeated.")]
Category = Annotated[Names, Option(help="A column of categories; may be repeated.")]
Numbers = Annotated[Names, Option(help="A column of numbers; may be repeated.")]
Dates = Annotated[Names, Option(help="A column of dates; may be repeated.")]
_IDS = "A column that identifies rows, to leave out; may be repeated."
Ids = Annotated[Names, Option("--id", help=_IDS)]
_LEVELS = "The most one-hot features of a category; rarer levels are pooled."
Levels = Annotated[int, Option(min=2, help=_LEVELS)]
Weight = Annotated[Text, Option(help="A column with the weight of each row.")]
Group = Annotated[Text, Option(help="A column with groups of rows to hold out together.")]
Time = Annotated[Text, Option(help="A column with times: the latest quarter of the rows is held out.")]
Target = Annotated[Text, Option(help="The column with the labels; by default the model's target.")]
Force = Annotated[bool, Option("--force", help="Replace the output if it exists.")]
Json = Annotated[bool, Option("--json", help="Print the results as JSON.")]
_KERNELS = "rbf, laplacian, rbf+laplacian, polynomial or linear; by default tuned."
_LANDMARKS = "Number of landmarks; by default it grows with the rows."
_WIDTHS = "Number of kernel widths to cross-validate; by default tuned."
_TIME = "Seconds for reading, tuning and fitting; then the best model so far is saved."
_AIMS = "Aim of the threshold: cost=5, cost=500:20, precision=0.8, recall=0.9, fpr=0.05 or top=5%."
_MEMORY = "Memory for fitting, such as 4GB; by default four fifths of what is free."
_TOP = "Label exactly this many rows positive, such as 500 or 5%, from the highest score down."
_EXPLAIN = "Name this many columns that raise and that lower each score most."
CostMiss = Annotated[Amount, Option(min=0.0, help="What a missed positive costs.")]
CostAlarm = Annotated[Amount, Option(min=0.0, help="What a false alarm costs; by default 1.")]
CostColumn = Annotated[Text, Option(help="A column with the cost of missing each row.")]
_SCORES = "A CSV, TSV, JSON lines, Parquet or Arrow file; by default, and for -, CSV is printed."
_FAIL = "End with exit code 3 if columns differ from the training table."
FailOnDrift = Annotated[bool, Option("--fail-on-drift", help=_FAIL)]
_RIVAL = "A model file, or a rival: logistic, nystroem, forest, lightgbm or xgboost."


@commands_app.command(epilog="Example: aucmax check customers.csv --target churned")
def check(
    table: Tables,
    target: Labels,
    positive: Positive = None,
    drop: Drop = None,
    category: Category = None,
    number: Numbers = None,
    date: Dates = None,
    id_column: Ids = None,
    max_levels: Levels = 50,
    weight: Weight = None,
    group: Group = None,
    time: Time = None,
    folds: Annotated[int, Option(min=2, help="Folds of cross-validation.")] = 3,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: Json = False,
) -> None:
    """Show what train will do with a table: columns, problems, warnings and time."""
    from aucmax.cli.check import run_check

    said = {"drop": drop, "category": category, "number": number, "date": date, "id": id_column}
    run_check(
        table,
        target,
        named={"weight": weight, "group": group, "time": time},
        encoding=encoding,
        sheet=sheet,
        as_json=as_json,
        positive=positive,
        **{option: names or () for option, names in said.items()},
        max_levels=max_levels,
        cv=folds,
    )


@commands_app.command(epilog="Example: aucmax train customers.csv --target churned -o churn.aucmax")
def train(
    table: Tables,
    target: Labels,
    output: Annotated[Path, Option("--output", "-o", help="The file to write.")] = Path("model.aucmax"),
    positive: Positive = None,
    drop: Drop = None,
    category: Category = None,
    number: Numbers = None,
    date: Dates = None,
    id_column: Ids = None,
    max_levels: Levels = 50,
    weight: Weight = None,
    group: Group = None,
    time: Time = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    landmarks: Annotated[Number, Option(min=2, help=_LANDMARKS)] = None,
    solver: Annotated[str, Option(help="newton is exact, sgd is faster on very many rows.")] = "newton",
    kernel: Annotated[str, Option(help=_KERNELS)] = "auto",
    gammas: Annotated[Number, Option(min=1, help=_WIDTHS)] = None,
    preset: Annotated[Text, Option(help="paper: use the paper's settings, and tune only C.")] = None,
    effort: Annotated[float, Option(min=0.01, help="Effort of tuning: 4 thorough, 0.1 quick.")] = 1.0,
    folds: Annotated[int, Option(min=2, help="Folds of cross-validation.")] = 3,
    time_budget: Annotated[float | None, Option(min=1.0, help=_TIME)] = None,
    calibration: Annotated[str, Option(help="Method of calibration: sigmoid or isotonic.")] = "sigmoid",
    aim: Annotated[Text, Option(help=_AIMS)] = None,
    max_memory: Annotated[Text, Option(help=_MEMORY)] = None,
    seed: Annotated[int, Option(min=0, help="Seed of folds and landmarks.")] = 0,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show the memory and time needed.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Train a model to rank the rows of a table, and save it."""
    from aucmax.cli.train import run_train

    named = {"drop": drop, "category": category, "number": number, "date": date, "id": id_column}
    machine = {"solver": solver, "kernel": kernel, "preset": preset, "effort": effort}
    machine |= {"time_budget": time_budget, "max_memory": max_memory}
    machine["n_landmarks"] = "auto" if landmarks is None else landmarks
    run_train(
        table,
        target,
        output,
        reading={"encoding": encoding, "sheet": sheet},
        force=force,
        as_json=as_json,
        dry_run=dry_run,
        positive=positive,
        **{option: names or () for option, names in named.items()},
        max_levels=max_levels,
        weight=weight,
        group=group,
        time=time,
        gammas=3 if gammas is None and (solver == "sgd" or kernel == "polynomial") else gammas,
        machine=machine,
        cv=folds,
        calibration=calibration,
        aim=aim,
        random_state=seed,
    )


@commands_app.command(
    epilog="Example: aucmax predict churn.aucmax new.csv --id customer --explain 3 -o ranked.csv"
)
def predict(
    model: Model,
    table: Table,
    output: Annotated[File, Option("--output", "-o", help=_SCORES)] = None,
    id_column: Annotated[Names, Option("--id", help="A column to copy; may be repeated.")] = None,
    rank: Annotated[bool, Option(help="Add ranks, which needs all scores in memory.")] = True,
    top: Annotated[Text, Option(help=_TOP)] = None,
    explain: Annotated[int, Option(min=0, help=_EXPLAIN)] = 0,
    rows: Annotated[int, Option(min=1, help="Rows in memory at a time.")] = 100_000,
    encoding: Encoding = None,
    sheet: Sheet = None,
    fail_on_drift: FailOnDrift = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Score the rows of a table of any length: score, probability, label and rank."""
    from aucmax.cli.predict import PredictOptions, run_predict
    from aucmax.tables.predict_table_file import Wanted, parse_top

    wanted = Wanted(tuple(dict.fromkeys(id_column or ())), rank, parse_top(top), explain)
    options = PredictOptions(rows, force, as_json, fail_on_drift)
    run_predict(model, table, output, wanted, {"encoding": encoding, "sheet": sheet}, options)


@commands_app.command(epilog="Example: aucmax evaluate churn.aucmax later.csv --by region --json")
def evaluate(
    model: Model,
    table: Table,
    target: Target = None,
    by: Annotated[Text, Option(help="A column with groups to measure and compare.")] = None,
    cost_miss: CostMiss = None,
    cost_alarm: CostAlarm = None,
    cost_column: CostColumn = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    fail_on_drift: FailOnDrift = False,
    as_json: Json = False,
) -> None:
    """Measure a model on rows with known labels: AUC, lift, calibration, threshold and costs."""
    from aucmax.cli.decisions import CostOptions
    from aucmax.cli.evaluate import run_evaluate

    costs = CostOptions(cost_miss, cost_alarm, cost_column)
    run_evaluate(
        model,
        table,
        target,
        by=by,
        costs=costs,
        reading={"encoding": encoding, "sheet": sheet},
        fail_on_drift=fail_on_drift,
        as_json=as_json,
    )


@commands_app.command(epilog="Example: aucmax threshold churn.aucmax --aim recall=0.9 -o keen.aucmax")
def threshold(
    model: Model,
    table: Annotated[
        File, Argument(help="Rows with labels to choose on; by default the held-out training rows.")
    ] = None,
    output: Annotated[File, Option("--output", "-o", help="The model file to write.")] = None,
    aim: Annotated[Text, Option(help=_AIMS)] = None,
    cost_miss: CostMiss = None,
    cost_alarm: CostAlarm = None,
    cost_column: CostColumn = None,
    target: Target = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    force: Annotated[
        bool, Option("--force", help="Replace the output; without --output, the model itself.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Choose another threshold for a saved model, for an aim or for costs, without training."""
    from aucmax.cli.decisions import CostOptions, ThresholdOptions, choose_aim, run_threshold

    costs = CostOptions(cost_miss, cost_alarm, cost_column)
    options = ThresholdOptions(choose_aim(aim, costs), costs, force, as_json)
    run_threshold(model, table, output, target, {"encoding": encoding, "sheet": sheet}, options)


@commands_app.command(
    epilog="Example: aucmax compare churn.aucmax lightgbm later.csv --train customers.csv"
)
def compare(
    first: Annotated[str, Argument(help=_RIVAL)],
    second: Annotated[str, Argument(help="The other model file or rival.")],
    table: Table,
    train: Annotated[File, Option("--train", help="The table to fit a rival to.")] = None,
    target: Target = None,
    seed: Annotated[int, Option(min=0, help="Seed of the rival.")] = 0,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: Json = False,
) -> None:
    """Compare two models on the same rows by DeLong's paired test."""
    from aucmax.cli.evaluate import run_compare

    reading = {"encoding": encoding, "sheet": sheet}
    run_compare((first, second), table, train, target, seed, reading, as_json)


@commands_app.command(epilog="Example: aucmax report churn.aucmax later.csv -o churn.html")
def report(
    model: Model,
    table: Annotated[
        File, Argument(help="Rows with labels; by default the held-out training rows.")
    ] = None,
    output: Annotated[Path, Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    target: Target = None,
    id_column: Annotated[Text, Option("--id", help="The column that names rows in the report.")] = None,
    permutation: Annotated[bool, Option(help="Measure columns by shuffling them; slower.")] = False,
    encoding: Encoding = None,
    sheet: Sheet = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write an HTML page on a model: curves, threshold, important columns and mistakes."""
    from aucmax.cli import inputs_outputs as io
    from aucmax.cli.status_line import status_line, watched
    from aucmax.cli.table_inputs import optional_table
    from aucmax.report import write_report

    io.check_output(output, model, table, force=force)
    loaded = io.table_model(model)
    with (
        optional_table(table, encoding=encoding, sheet=sheet) as file,
        io.naming_full_disk(output),
        status_line() as line,
    ):
        line.part("measuring" if table is None else f"reading {table.name}")
        seen = watched(loaded, line, permutation=permutation)
        write_report(seen, file, output, target=target, id=id_column, permutation=permutation)
    if as_json:
        io.print_json({"report": output, "bytes": output.stat().st_size})
    else:
        io.say(f"The report is in {output}: open it in a browser.")


@commands_app.command(epilog="Example: aucmax info churn.aucmax --card > churn.md")
def info(
    model: Model,
    card: Annotated[bool, Option("--card", help="Print a model card in Markdown.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a model file holds."""
    from aucmax.cli import inputs_outputs as io
    from aucmax.persistence.model_card import model_card
    from aucmax.persistence.model_file import read_manifest

    manifest = read_manifest(model)
    if card:
        if as_json:
            raise ValueError("--card prints Markdown only: leave out --json.")
        print(model_card(io.table_model(model), manifest, model.name))
        return
    if as_json:
        io.print_json(manifest)
        return

    def text(value: object) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{key} {text(each)}" for key, each in value.items())
        return f"{value:.4f}" if isinstance(value, float) else str(value)

    columns = manifest.pop("columns", None)
    io.print_table(("entry", ""), [(name, text(value)) for name, value in manifest.items()], left=2)
    if columns:
        print()
        io.print_columns(columns, "name", "type", "kind", "treatment")


@commands_app.command(epilog="Example: aucmax export churn.aucmax --onnx churn.onnx")
def export(
    model: Model,
    onnx: Annotated[Path, Option(help="The ONNX file to write.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a model, with its preparation of columns, as an ONNX graph for other programs."""
    from aucmax.cli import inputs_outputs as io
    from aucmax.persistence.onnx_export import to_onnx
    from aucmax.runtime.memory import format_bytes

    io.check_output(onnx, model, force=force)
    to_onnx(io.table_model(model), onnx)
    size = onnx.stat().st_size
    if as_json:
        io.print_json({"onnx": onnx, "bytes": size})
    else:
        io.say(f"{onnx}: {format_bytes(size)}, including the preparation of columns.")


@commands_app.command(epilog="Example: aucmax demo --rows 60000 --picture roc.png")
def demo(
    rows: Annotated[int, Option(min=1000, help="Rows to make; a quarter is for testing.")] = 80_000,
    landmarks: Annotated[int, Option(min=10, help="Landmarks of each kernel model.")] = 800,
    seed: Annotated[int, Option(min=0, help="Seed of data and models.")] = 0,
    picture: Annotated[Path, Option(help="The picture of ROC curves to write.")] = Path(
        "aucmax-demo.png"
    ),
    as_json: Json = False,
) -> None:
    """Rank a rare class in synthetic data, and compare with two scikit-learn models."""
    from aucmax.cli.demo import run_demo

    run_demo(rows, landmarks, seed, picture, as_json)


@commands_app.command(epilog="Example: aucmax paper table2 --quick --data spambase --data magic04")
def paper(
    what: Annotated[str, Argument(help="table1, table2, table3, table4, figure1 or all.")],
    out: Annotated[File, Option(help="Folder of results; by default paper-results[-quick].")] = None,
    data_dir: Annotated[File, Option(help="Folder of data files; by default AUCMAX_DATA.")] = None,
    data: Annotated[Names, Option(help="A data set to run; may be repeated.")] = None,
    method: Annotated[Names, Option(help="A method to run; may be repeated.")] = None,
    seeds: Annotated[Number, Option(min=1, help="Number of seeds; 5 for small data, else 3.")] = None,
    time_limit: Annotated[float, Option(min=0.1, help="Time limit of a cell in seconds.")] = 7200.0,
    landmarks: Annotated[Number, Option(min=2, help="Number of landmarks; by default 1600.")] = None,
    quick: Annotated[bool, Option(help="Use small samples, for a first look in minutes.")] = False,
    run: Annotated[bool, Option(help="Run missing cells before writing the tables.")] = True,
    as_json: Json = False,
) -> None:
    """Reproduce the paper's tables and figure; a run that was stopped continues from there."""
    from aucmax.cli.paper_run import choose, run_paper

    chosen = choose(what, data or (), method or (), landmarks, quick)
    out = out or Path("paper-results-quick" if quick else "paper-results")
    run_paper(chosen, out, data_dir, seeds, time_limit, run, as_json)
