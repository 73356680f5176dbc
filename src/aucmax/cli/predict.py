"""``aucmax predict``: scores for the rows of a table of any length."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from aucmax.cli.model_arguments import check_output, naming, print_json, table_model, told
from aucmax.cli.status_line import Line, rows_expected, shown
from aucmax.reading.frames import RowError, check_names
from aucmax.reading.read import column_names, located
from aucmax.runtime.output_files import replacing, scratch_folder
from aucmax.runtime.threads import ahead
from aucmax.tables import TableModel, table_batches
from aucmax.tables.unseen_values import Surprises, tell_surprises

#: What is written to, by the ending of its name.
_ENDINGS = (".csv", ".tsv", ".parquet", ".arrow", ".feather")

#: The columns that are made, after those kept.
_MADE = ("score", "probability", "label", "rank")


def run_predict(
    path: Path,
    table: Path,
    output: Path | None,
    *,
    keep: Sequence[str],
    rank: bool,
    rows: int,
    force: bool,
    as_json: bool,
) -> None:
    """Score batch by batch. With ranks, batches wait on disk until all scores are known."""
    if output is not None:
        check_output(output, path, table, force=force)
        if output.suffix.lower() not in _ENDINGS:
            raise ValueError(
                f"{output} must end in one of {', '.join(_ENDINGS)}, to say what to write."
            )
    elif as_json:
        raise ValueError("--json tells of the run, and the scores need a file then: add --output.")
    model = table_model(path)
    keep = list(dict.fromkeys(keep))
    counted = 0
    surprises: Surprises = Counter()
    room = "the scores" if output is None else output
    mixed = output is None and sys.stdout.isatty()  # scores and progress on one terminal
    with naming(room), shown(quiet=mixed) as line, _written(output, line) as write:
        scored = _scored(model, table, keep, rows, surprises, line)
        with closing(_ranked(scored, output, line) if rank else scored) as parts:
            for part in parts:
                write(part)
                counted += part.height
    new = tell_surprises(surprises, counted, model.columns_)
    for sentence in new:
        told().print(sentence)
    if as_json:
        print_json({"output": output, "rows": counted, "surprises": new})
    elif output is not None:
        told().print(f"{counted:,} rows are in {output}.")


def _scored(
    model: TableModel,
    table: Path,
    keep: Sequence[str],
    rows: int,
    surprises: Surprises,
    line: Line,
) -> Generator[pl.DataFrame]:
    schema = model.reading_schema
    check_names(column_names(table), keep, "was to be kept (--id)")
    if taken := set(keep) & set(_MADE):
        raise ValueError(
            f"{table} has a column {taken.pop()!r}, as predict writes: rename it to keep it."
        )
    needed = list(dict.fromkeys([*keep, *schema]))
    schema = schema | dict.fromkeys(keep, pl.String)  # as they are written, were they numbers to us
    negative, positive = model.negative_label_, model.positive_label_

    def prepared() -> Iterator[tuple[pl.DataFrame, np.ndarray]]:
        first = 0
        for batch in table_batches(table, rows, needed, schema=schema):
            with located(table):
                made = model.features(batch, first_row=first, surprises=surprises)
            yield batch.select(keep), made
            first += batch.height

    line.part("scoring", rows_expected(table) if line.live else None, of_rows=True)
    done = 0
    for kept, features in ahead(prepared()):
        try:
            scores = model.model_.decision_function(features)
        except RowError as error:  # counted in the batch
            with located(table):
                raise error.moved(done + error.row) from None
        done += scores.size
        up = pl.lit(pl.Series(scores >= model.threshold_.threshold))
        label = pl.select(pl.when(up).then(pl.lit(positive)).otherwise(pl.lit(negative))).to_series()
        made = (pl.Series(scores), pl.Series(model.calibrator_.predict(scores)), label)
        named = [series.alias(name) for series, name in zip(made, _MADE, strict=False)]
        yield pl.DataFrame([*kept, *named])
        line.done(scores.size)


def _ranked(parts: Iterator[pl.DataFrame], output: Path | None, line: Line) -> Generator[pl.DataFrame]:
    """The same with the rank of each row among all; equal scores share the best one."""
    with scratch_folder(output) as held:
        files, scores = [], []
        for number, part in enumerate(parts):
            file = held / f"{number}.arrow"
            part.write_ipc(file)
            files.append(file)
            scores.append(part["score"].to_numpy())
        ranks = _ranks(np.concatenate(scores)) if scores else np.zeros(0, np.int64)
        line.part("writing", ranks.size, of_rows=True)
        begin = 0
        for file in files:
            part = pl.read_ipc(file)
            yield part.with_columns(pl.Series("rank", ranks[begin : begin + part.height]))
            begin += part.height
            line.done(part.height)
            file.unlink()


def _ranks(scores: np.ndarray) -> np.ndarray:
    """1 for the highest score.

    >>> _ranks(np.array([0.1, 0.9, 0.5, 0.9])).tolist()
    [4, 1, 3, 1]
    """
    order = np.argsort(-scores)
    fallen = np.diff(scores[order], prepend=np.inf) != 0
    ranks = np.empty(scores.size, np.int64)
    # The place of the first of its equals: no search, which would jump about in memory.
    ranks[order] = np.maximum.accumulate(np.where(fallen, np.arange(1, scores.size + 1), 0))
    return ranks


@contextmanager
def _written(output: Path | None, line: Line) -> Iterator[Any]:
    """Where batches go: standard output, or a file that has its name when it is whole."""
    if output is None:
        yield _text_writer(sys.stdout.buffer, ",")
        sys.stdout.buffer.flush()
        return
    ending = output.suffix.lower()
    with replacing(output) as file:
        if ending in (".csv", ".tsv"):
            yield _text_writer(file, "," if ending == ".csv" else "\t")
        else:
            with scratch_folder(output) as held:
                files: list[Path] = []
                yield partial(_write_batch, held, files)
                line.part("writing")
                _join(files, held / "joined", ending, file)


def _text_writer(file: IO[bytes], separator: str) -> Any:
    first = True

    def write(part: pl.DataFrame) -> None:
        nonlocal first
        text = part.write_csv(include_header=first, separator=separator)
        file.write(text.encode())  # by Python, which knows a reader that is gone from other errors
        first = False

    return write


def _write_batch(folder: Path, files: list[Path], part: pl.DataFrame) -> None:
    files.append(folder / f"{len(files)}.arrow")
    part.write_ipc(files[-1])


def _join(files: list[Path], joined: Path, ending: str, output: IO[bytes]) -> None:
    """Let polars join batches without having all in memory; it writes to a file that has a name."""
    batches = pl.scan_ipc(files)
    if ending == ".parquet":
        batches.sink_parquet(joined)
    else:
        batches.sink_ipc(joined)
    for each in files:
        each.unlink()  # for room
    with joined.open("rb") as file:
        shutil.copyfileobj(file, output, 2**20)
