"""Score the rows of a table of any length, batch by batch, and write them to a file or a stream."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from aucmax.reading.frames import RowError, check_names
from aucmax.reading.read import column_names, located, table_batches
from aucmax.runtime.output_files import replacing, scratch_folder
from aucmax.runtime.threads import ahead
from aucmax.tables.drift import Drift, RowSample
from aucmax.tables.model import TableModel, sample_drift
from aucmax.tables.unseen_values import UnseenCounts, describe_unseen

_ENDINGS = (".csv", ".tsv", ".parquet", ".arrow", ".feather")  #: Endings of an output file's name.
_RESULTS = ("score", "probability", "label", "rank")  #: Its columns after those that are copied.
BATCH_ROWS = 100_000  #: Rows in memory at a time.


class Predicted(NamedTuple):
    """The number of rows, sentences on values that the training table did not have, and drift."""

    rows: int
    unseen: list[str]
    drift: list[Drift]


class Progress(Protocol):
    """Shows the name of the current part of the work, and the rows done in it."""

    def part(self, name: str, total: int | None = None, *, of_rows: bool = False) -> None:
        return

    def done(self, more: int) -> None:
        return


class _Silent(Progress):
    """Show nothing."""


def check_ending(output: Path) -> None:
    """Refuse an output file whose name does not end in that of a format we write."""
    if output.suffix.lower() not in _ENDINGS:
        raise ValueError(f"{output} must end in one of {', '.join(_ENDINGS)}.")


def predict_table(
    model: TableModel,
    table: str | Path,
    output: str | Path | IO[bytes],
    *,
    keep: Sequence[str] = (),
    rank: bool = True,
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
    expected_rows: int | None = None,
) -> Predicted:
    """Score the rows of a file of any length, and write score, probability, label and rank of each.

    Parameters
    ----------
    model : fitted TableModel
    table : path
        A file that ``read_table`` reads, with the model's columns.
    output : path or binary stream
        A file whose name ends in .csv, .tsv, .parquet, .arrow or .feather. An existing file is replaced
        when all rows have been written. A stream receives comma-separated text.
    keep : sequence of str, default=()
        Columns to copy before the scores.
    rank : bool, default=True
        Add the rank of each row, 1 for the highest score. This takes one score per row in memory, and
        disk space for the output.
    batch_rows : int, default=100,000
        Rows in memory at a time.
    progress, expected_rows : optional
        For the command line: where to show the progress, and about how many rows there are.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> from aucmax import KernelAUCClassifier, fit_table, predict_table
    >>> rows = pl.DataFrame({"a": [i / 10 for i in range(200)], "y": ["no"] * 150 + ["yes"] * 50})
    >>> model = fit_table(rows, "y", estimator=KernelAUCClassifier(preset="paper", n_landmarks=20))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows.write_csv(f"{folder}/new.csv")
    ...     done = predict_table(model, f"{folder}/new.csv", f"{folder}/ranked.csv")
    ...     done.rows, pl.read_csv(f"{folder}/ranked.csv").columns
    (200, ['score', 'probability', 'label', 'rank'])
    """
    if isinstance(output, str | Path):
        check_ending(output := Path(output))
    line: Progress = _Silent() if progress is None else progress
    unseen, sample = UnseenCounts(), RowSample()
    columns, count = list(dict.fromkeys(keep)), 0
    with _writer(output, line) as write:
        line.part("scoring", expected_rows, of_rows=True)
        batches = _score(model, table, columns, batch_rows, (unseen, sample), line)
        with closing(_add_ranks(batches, output, line) if rank else batches) as parts:
            for part in parts:
                write(part)
                count += part.height
    sentences = describe_unseen(unseen, count, model.columns_)
    return Predicted(count, sentences, sample_drift(model, sample))


def _score(
    model: TableModel,
    table: str | Path,
    keep: Sequence[str],
    rows: int,
    watch: tuple[UnseenCounts, RowSample],
    line: Progress,
) -> Generator[pl.DataFrame]:
    """Yield the columns to keep with score, probability and label, batch by batch."""
    unseen, sample = watch
    check_names(column_names(table), keep, "keep or --id names")
    if taken := set(keep) & set(_RESULTS):
        raise ValueError(f"{table} has a column {taken.pop()!r}, as the output: rename it to keep it.")
    needed = list(dict.fromkeys([*keep, *model.reading_schema]))
    schema = model.reading_schema | dict.fromkeys(keep, pl.String)  # copied exactly as written

    def prepared() -> Iterator[tuple[pl.DataFrame, np.ndarray]]:
        first = 0
        for batch in table_batches(table, rows, needed, schema=schema):
            with located(table):
                features = model.features(batch, first_row=first, unseen=unseen, sample=sample)
            yield batch.select(keep), features
            first += batch.height

    done = 0
    for copied, features in ahead(prepared()):
        try:
            scores = model.model_.decision_function(features)
        except RowError as error:  # its row counts within the batch
            with located(table):
                raise error.moved(done + error.row) from None
        done += scores.size
        up = pl.lit(pl.Series(scores >= model.threshold_.threshold))
        positive, negative = pl.lit(model.positive_label_), pl.lit(model.negative_label_)
        results = pl.DataFrame({"score": scores, "probability": model.calibrator_.predict(scores)})
        results = results.with_columns(label=pl.when(up).then(positive).otherwise(negative))
        yield pl.DataFrame([*copied, *results])
        line.done(scores.size)


def _add_ranks(
    parts: Iterator[pl.DataFrame], output: Path | IO[bytes], line: Progress
) -> Generator[pl.DataFrame]:
    """Add the rank of each row among all; equal scores share the best rank."""
    with scratch_folder(output if isinstance(output, Path) else None) as folder:
        files, scores = list[Path](), [np.zeros(0)]
        for part in parts:
            files.append(_store(part, folder, len(files)))
            scores.append(part["score"].to_numpy())
        ranks = _ranks(np.concatenate(scores))
        line.part("writing", ranks.size, of_rows=True)
        begin = 0
        for file in files:
            part = pl.read_ipc(file)
            yield part.with_columns(pl.Series("rank", ranks[begin : begin + part.height]))
            begin += part.height
            line.done(part.height)
            file.unlink()


def _store(part: pl.DataFrame, folder: Path, number: int) -> Path:
    file = folder / f"{number}.arrow"
    part.write_ipc(file)
    return file


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Rank scores, 1 for the highest.

    >>> _ranks(np.array([0.1, 0.9, 0.5, 0.9])).tolist()
    [4, 1, 3, 1]
    """
    descending = np.argsort(-scores)
    falls = np.diff(scores[descending], prepend=np.inf) != 0
    ranks = np.empty(scores.size, np.int64)
    # Equal scores take the position of their first: a search would jump about in memory.
    ranks[descending] = np.maximum.accumulate(np.where(falls, np.arange(1, scores.size + 1), 0))
    return ranks


@contextmanager
def _writer(output: Path | IO[bytes], line: Progress) -> Iterator[Callable[[pl.DataFrame], Any]]:
    """Yield a function that writes batches to a stream, or to a file that appears once complete."""
    if not isinstance(output, Path):
        yield _text_writer(output, ",")
        output.flush()
        return
    ending = output.suffix.lower()
    with replacing(output) as file:
        if ending in (".csv", ".tsv"):
            yield _text_writer(file, "," if ending == ".csv" else "\t")
            return
        with scratch_folder(output) as folder:
            files: list[Path] = []
            yield lambda part: files.append(_store(part, folder, len(files)))
            line.part("writing")
            # Polars joins batches without holding all in memory, but only into a file with a name.
            batches, joined = pl.scan_ipc(files), folder / "joined"
            (batches.sink_parquet if ending == ".parquet" else batches.sink_ipc)(joined)
            for each in files:
                each.unlink()  # to free the disk
            with joined.open("rb") as whole:
                shutil.copyfileobj(whole, file, 2**20)


def _text_writer(file: IO[bytes], separator: str) -> Callable[[pl.DataFrame], Any]:
    header = chain([True], repeat(False))
    # Python writes the text, because it distinguishes a closed pipe from other errors.
    return lambda part: file.write(
        part.write_csv(include_header=next(header), separator=separator).encode()
    )
