"""Score the rows of a table of any length, batch by batch, and write them to a file or a stream."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from aucmax.metrics.thresholds import Aim
from aucmax.reading.frames import RowError, check_names
from aucmax.reading.read import column_names, located, table_batches
from aucmax.runtime.output_files import replacing, scratch_folder
from aucmax.runtime.parameters import Number, check_value
from aucmax.runtime.threads import ahead
from aucmax.tables.drift import Drift, RowSample
from aucmax.tables.model import TableModel, sample_drift
from aucmax.tables.unseen_values import UnseenCounts, describe_unseen

_TEXT = (".csv", ".tsv", ".jsonl", ".ndjson")
_ENDINGS = (*_TEXT, ".parquet", ".arrow", ".feather")  #: Endings of an output file's name.
_RESULTS = ("score", "probability", "label", "rank")  #: Its columns after those that are copied.
_REASONS = ("raised_by", "lowered_by")  #: Its last columns, if scores are explained.
BATCH_ROWS = 100_000  #: Rows in memory at a time.
_EXPLAINED_ROWS = 10_000  #: The most rows in memory that are explained, so that progress is shown.


class Predicted(NamedTuple):
    """The number of rows, sentences on values that the training table did not have, and drift.

    ``repeated`` counts the rows whose copied columns all equal those of another row, so that they do
    not identify the row; without ranks and ``top`` it is 0, because it takes memory for each row.
    """

    rows: int
    unseen: list[str]
    drift: list[Drift]
    repeated: int = 0


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


@dataclass(frozen=True)
class Wanted:
    """What to write for each row besides score, probability and label."""

    keep: tuple[str, ...] = ()  #: columns to copy
    rank: bool = True
    top: Aim | None = None  #: how many rows to label positive; None is by the model's threshold
    explain: int = 0  #: how many raising and lowering columns to name

    @property
    def results(self) -> tuple[str, ...]:
        """Return the names of the columns after those that are copied."""
        return _RESULTS + (_REASONS if self.explain else ())


def parse_top(top: int | str | None) -> Aim | None:
    """Return how many rows to label positive: a number such as 500, or a share such as "5%".

    >>> parse_top(500), parse_top("5%")
    (Aim(kind='top', value=500.0, alarm=1.0), Aim(kind='share', value=0.05, alarm=1.0))
    """
    if top is None:
        return None
    try:
        aim = Aim.parse(f"top={top}")
    except ValueError:
        aim = None
    if aim is None or (aim.kind == "top" and aim.value != int(aim.value or 0)):
        raise ValueError(f"top must be a number of rows such as 500, or a share such as 5%; got {top}.")
    return aim


def predict_table(
    model: TableModel,
    table: str | Path,
    output: str | Path | IO[bytes],
    *,
    keep: Sequence[str] = (),
    rank: bool = True,
    top: int | str | None = None,
    explain: int = 0,
    batch_rows: int = BATCH_ROWS,
) -> Predicted:
    """Score the rows of a file of any length, and write score, probability, label and rank of each.

    Parameters
    ----------
    model : fitted TableModel
    table : path
        A file that ``read_table`` reads, with the model's columns.
    output : path or binary stream
        A file whose name ends in .csv, .tsv, .jsonl, .parquet, .arrow or .feather. An existing file is
        replaced when all rows have been written. A stream receives comma-separated text.
    keep : sequence of str, default=()
        Columns to copy before the scores.
    rank : bool, default=True
        Add the rank of each row, 1 for the highest score. This takes one score per row in memory, and
        disk space for the output, and so does ``top``.
    top : int or str, optional
        Label exactly this number of rows positive, or this share such as "5%", from the highest score
        down. Of equal scores, the first in the table count. By default the model's threshold decides.
    explain : int, default=0
        Name this many columns that raise the score of a row most, in the column raised_by, and as many
        that lower it, in lowered_by.
    batch_rows : int, default=100,000
        Rows in memory at a time.

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
    wanted = Wanted(tuple(dict.fromkeys(keep)), rank, parse_top(top), explain)
    return write_predictions(model, table, output, wanted, batch_rows=batch_rows)


def write_predictions(
    model: TableModel,
    table: str | Path,
    output: str | Path | IO[bytes],
    wanted: Wanted,
    *,
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
    expected_rows: int | None = None,
) -> Predicted:
    """Do what :func:`predict_table` does, and show the progress among about ``expected_rows``."""
    check_value("explain", wanted.explain, Number(0, closed=True, integer=True))
    if isinstance(output, str | Path):
        check_ending(output := Path(output))
    line: Progress = _Silent() if progress is None else progress
    unseen, sample, count, copied = UnseenCounts(), RowSample(), 0, list[pl.Series]()
    with _writer(output, line) as write:
        line.part("explaining" if wanted.explain else "scoring", expected_rows, of_rows=True)
        batches = _score(model, table, wanted, batch_rows, (unseen, sample), line)
        compares = bool(wanted.rank or wanted.top)
        if compares:
            batches = _compare_all(batches, model, wanted, output, line)
        with closing(batches) as parts:
            for part in parts:
                write(part)
                count += part.height
                if compares and wanted.keep:
                    copied.append(part.select(wanted.keep).hash_rows())
    repeated = int(pl.concat(copied).is_duplicated().sum()) if copied else 0
    sentences = describe_unseen(unseen, count, model.columns_)
    return Predicted(count, sentences, sample_drift(model, sample), repeated)


def _score(
    model: TableModel,
    table: str | Path,
    wanted: Wanted,
    rows: int,
    watch: tuple[UnseenCounts, RowSample],
    line: Progress,
) -> Generator[pl.DataFrame]:
    """Yield the columns to keep with score, probability, label and reasons, batch by batch."""
    (unseen, sample), keep = watch, list(wanted.keep)
    check_names(column_names(table), keep, "is to be copied")
    if taken := set(keep) & set(wanted.results):
        raise ValueError(f"{table} has a column {taken.pop()!r}, as the output: rename it to keep it.")
    needed = list(dict.fromkeys([*keep, *model.reading_schema]))
    schema = model.reading_schema | dict.fromkeys(keep, pl.String)  # copied exactly as written
    rows = min(rows, _EXPLAINED_ROWS) if wanted.explain else rows

    def prepared() -> Iterator[tuple[pl.DataFrame, np.ndarray]]:
        first = 0
        for batch in table_batches(table, rows, needed, schema=schema):
            with located(table):
                features = model.features(batch, first_row=first, unseen=unseen, sample=sample)
            yield batch, features
            first += batch.height

    done = 0
    for batch, features in ahead(prepared()):
        try:
            scores = model.model_.decision_function(features)
        except RowError as error:  # its row counts within the batch
            with located(table):
                raise error.moved(done + error.row) from None
        done += scores.size
        results = pl.DataFrame({"score": scores, "probability": model.calibrator_.predict(scores)})
        results = results.with_columns(label=_labels(model, scores >= model.threshold_.threshold))
        if wanted.explain:
            results = results.with_columns(_reasons(model, batch, wanted.explain))
        yield pl.DataFrame([*batch.select(keep), *results])
        line.done(scores.size)


def _labels(model: TableModel, positive: np.ndarray) -> pl.Expr:
    up, down = pl.lit(model.positive_label_), pl.lit(model.negative_label_)
    return pl.when(pl.lit(pl.Series(positive))).then(up).otherwise(down)


def _reasons(model: TableModel, batch: pl.DataFrame, most: int) -> list[pl.Series]:
    """Return the reasons for each score as text, the strongest first."""
    found = model.explain(batch).top(most)
    sides = ([row.raises for row in found], [row.lowers for row in found])
    return [
        pl.Series(name, ["; ".join(map(str, reasons)) for reasons in side], pl.String)
        for name, side in zip(_REASONS, sides, strict=True)
    ]


def _compare_all(
    parts: Iterator[pl.DataFrame],
    model: TableModel,
    wanted: Wanted,
    output: Path | IO[bytes],
    line: Progress,
) -> Generator[pl.DataFrame]:
    """Add the rank of each row among all; equal scores share the best rank. Label the first rows."""
    with scratch_folder(output if isinstance(output, Path) else None) as folder:
        files, kept = list[Path](), [np.zeros(0)]
        for part in parts:
            files.append(_store(part, folder, len(files)))
            kept.append(part["score"].to_numpy())
        scores = np.concatenate(kept)
        ranks = _ranks(scores) if wanted.rank else None
        first = None if wanted.top is None else _first_rows(scores, wanted.top)
        line.part("writing", scores.size, of_rows=True)
        begin = 0
        for file in files:
            part = pl.read_ipc(file)
            own = slice(begin, begin + part.height)
            if first is not None:
                part = part.with_columns(label=_labels(model, first[own]))
            if ranks is not None:
                part.insert_column(part.get_column_index("label") + 1, pl.Series("rank", ranks[own]))
            yield part
            begin += part.height
            line.done(part.height)
            file.unlink()


def _first_rows(scores: np.ndarray, top: Aim) -> np.ndarray:
    """Return which rows are among the first by score; of equal scores, the first in the table.

    >>> _first_rows(np.array([0.1, 0.9, 0.9, 0.9]), Aim("top", 2)).tolist()
    [False, True, True, False]
    """
    value = float(top.value or 0.0)
    count = int(value if top.kind == "top" else value * scores.size + 1e-9)
    chosen = np.zeros(scores.size, bool)
    chosen[np.argsort(-scores, kind="stable")[:count]] = True
    return chosen


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
        yield _text_writer(output, ".csv")
        output.flush()
        return
    ending = output.suffix.lower()
    with replacing(output) as file:
        if ending in _TEXT:
            yield _text_writer(file, ending)
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


def _text_writer(file: IO[bytes], ending: str) -> Callable[[pl.DataFrame], Any]:
    header, separator = chain([True], repeat(False)), "\t" if ending == ".tsv" else ","

    def text(part: pl.DataFrame) -> str:
        if ending in (".jsonl", ".ndjson"):
            return part.write_ndjson()
        return part.write_csv(include_header=next(header), separator=separator)

    # Python writes the text, because it distinguishes a closed pipe from other errors.
    return lambda part: file.write(text(part).encode())
