"""Score the rows of a table of any length, batch by batch, into a file or a stream."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, Protocol

import numpy as np
import polars as pl

from aucmax.reading.frames import RowError, check_names
from aucmax.reading.read import column_names, located, table_batches
from aucmax.runtime.output_files import replacing, scratch_folder
from aucmax.runtime.threads import ahead
from aucmax.tables.model import TableModel
from aucmax.tables.unseen_values import Surprises, tell_surprises

__all__ = ["ENDINGS", "Predicted", "predict_table"]

#: What can be written, by the ending of a file's name.
ENDINGS = (".csv", ".tsv", ".parquet", ".arrow", ".feather")

#: The columns that are made, after those kept.
_MADE = ("score", "probability", "label", "rank")

#: Rows in memory at a time.
BATCH_ROWS = 100_000


class Predicted(NamedTuple):
    """How many rows were scored, and sentences on values that training never had."""

    rows: int
    unseen: list[str]


class Progress(Protocol):
    """What is shown of the work: named parts, and how many rows of each are done."""

    def part(self, name: str, total: int | None = None, *, of_rows: bool = False) -> None: ...

    def done(self, more: int) -> None: ...


class _Silent:
    def part(self, name: str, total: int | None = None, *, of_rows: bool = False) -> None: ...

    def done(self, more: int) -> None: ...


def predict_table(
    model: TableModel,
    table: Path,
    output: Path | IO[bytes],
    *,
    keep: Sequence[str] = (),
    rank: bool = True,
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
    expected_rows: int | None = None,
) -> Predicted:
    """Score the rows of a file, in memory that does not grow with it.

    Parameters
    ----------
    model : TableModel
    table : path
    output : path or binary stream
        A file is written under its name when it is whole; its ending is one of ``ENDINGS``. A stream
        gets comma-separated text.
    keep : names of columns to copy before the scores
    rank : bool, default=True
        Add the rank of each row among all, 1 for the highest score. Batches then wait on disk until all
        scores are known.
    batch_rows : int, default=100,000
    progress : Progress, optional
    expected_rows : int, optional
        About how many rows there are, for ``progress``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars as pl
    >>> from aucmax import fit_table
    >>> from aucmax.tables.predict_table import predict_table
    >>> rows = pl.DataFrame({"a": range(200), "y": ["yes" if i > 150 else "no" for i in range(200)]})
    >>> rows = rows.with_columns(pl.col("a") + 0.5)
    >>> model = fit_table(rows, "y", preset="paper", n_landmarks=20, Cs=[1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows.write_csv(Path(folder) / "new.csv")
    ...     done = predict_table(model, Path(folder) / "new.csv", Path(folder) / "scored.csv")
    ...     columns = pl.read_csv(Path(folder) / "scored.csv").columns
    >>> done.rows, columns
    (200, ['score', 'probability', 'label', 'rank'])
    """
    line: Progress = _Silent() if progress is None else progress
    keep, counted = list(dict.fromkeys(keep)), 0
    surprises: Surprises = Counter()
    with _written(output, line) as write:
        line.part("scoring", expected_rows, of_rows=True)
        scored = _scored(model, table, keep, batch_rows, surprises, line)
        with closing(_ranked(scored, output, line) if rank else scored) as parts:
            for part in parts:
                write(part)
                counted += part.height
    return Predicted(counted, tell_surprises(surprises, counted, model.columns_))


def _scored(
    model: TableModel,
    table: Path,
    keep: Sequence[str],
    rows: int,
    surprises: Surprises,
    line: Progress,
) -> Generator[pl.DataFrame]:
    schema = model.reading_schema
    check_names(column_names(table), keep, "was to be kept (keep, or --id)")
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


def _ranked(
    parts: Iterator[pl.DataFrame], output: Path | IO[bytes], line: Progress
) -> Generator[pl.DataFrame]:
    """The same with the rank of each row among all; equal scores share the best one."""
    with scratch_folder(output if isinstance(output, Path) else None) as held:
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
def _written(output: Path | IO[bytes], line: Progress) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Where batches go: a stream, or a file that has its name when it is whole."""
    if not isinstance(output, Path):
        yield _text_writer(output, ",")
        output.flush()
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


def _text_writer(file: IO[bytes], separator: str) -> Callable[[pl.DataFrame], None]:
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
