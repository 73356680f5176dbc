"""Sources of rows other than arrays: mapped arrays, files, folders of Parquet files, blocks.

A source is read once, block by block. Its numbers are checked and written to a temporary file, from
which any rows can be read again; labels and weights stay in memory. A second reading, which might
differ from the first, does not happen.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aucmax.rows.interface import slices
from aucmax.rows.stored import MappedRows, RowWriter, StoredRows
from aucmax.rows.validation import frame_names, refuse_odd

Array = npt.NDArray[Any]

#: The names of the features, the features, labels and weights of some rows.
LabelledBlock = tuple[list[str] | None, Array, Array | None, Array | None]

#: Rows that are read at a time.
BLOCK_ROWS = 65_536

_NO_ROWS = "X has no block of rows: there is nothing to learn from."

#: Endings of the files in a folder of files.
_PARTS = ("*.parquet", "*.pq")


@dataclass(frozen=True)
class Source:
    """Rows that stay in a file, with their labels, weights (or None) and column names (or None)."""

    rows: StoredRows
    y: Any
    weight: Any
    names: list[str] | None


def is_source(X: Any) -> bool:
    """Return whether X is a file, a mapped array or an iterable of blocks, not an array or frame."""
    if isinstance(X, str | Path | np.memmap):
        return True
    return isinstance(X, Iterable) and not hasattr(X, "__array__") and not hasattr(X, "__len__")


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection, by its class's module: Dask may not be installed."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr")


@contextmanager
def open_source(X: Any, y: Any, sample_weight: Any) -> Iterator[Source]:
    """Read a source; the temporary file it may need is removed afterwards."""
    if isinstance(X, np.memmap):
        rows = StoredRows(_mapped(X))
        for part, block in rows.blocks(BLOCK_ROWS):
            _check_finite(block, part.start, None)
        yield Source(rows, y, sample_weight, None)
        return
    from aucmax.reading.read import located

    with tempfile.TemporaryDirectory(prefix="aucmax-") as folder:
        one_file = isinstance(X, str | Path) and Path(X).is_file()
        with located(X if one_file else None):
            source = _written(X, y, sample_weight, Path(folder) / "rows")
        yield source


def _mapped(X: np.memmap[Any, Any]) -> MappedRows:
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns; its shape is {X.shape}.")
    if X.dtype.kind not in "biuf":
        what = "complex" if X.dtype.kind == "c" else f"of dtype {X.dtype}"
        raise ValueError(f"X must hold real numbers; the mapped array is {what}.")
    return MappedRows(X)


def row_blocks(
    source: Any, target: str | None = None, *, weight: str | None = None, rows: int = BLOCK_ROWS
) -> Iterator[tuple[Array, ...]]:
    """Read a file or folder in blocks of rows, for ``partial_fit`` or a loop of your own.

    Parameters
    ----------
    source : path
        A file as ``aucmax train`` reads it (CSV, Parquet and so on; numbers only), or a folder of
        Parquet files.
    target : str, optional
        The column of labels. Without it, blocks hold features alone.
    weight : str, optional
        The column of weights.
    rows : int, default=65536
        Rows in a block.

    Yields
    ------
    X, or X and y, or X, y and weights
        Arrays; X has all other columns, as float32 or float64.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aucmax import SGDAUCClassifier, row_blocks
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "rows.csv"
    >>> _ = path.write_text("a,b,y\\n0,1,no\\n1,0,yes\\n2,1,yes\\n0,0,no\\n")
    >>> model = SGDAUCClassifier(random_state=0)
    >>> for X, y in row_blocks(path, "y", rows=2):
    ...     model = model.partial_fit(X, y, classes=["no", "yes"])
    >>> model.n_features_in_
    2
    >>> folder.cleanup()
    """
    for _, *block in _file_blocks(Path(source), target, weight, None, rows):
        yield tuple(part for part in block if part is not None)


def source_blocks(X: Any, names: list[str] | None) -> Iterator[Array]:
    """Read the features of a source block by block, to score them."""
    if isinstance(X, np.memmap):
        rows = _mapped(X)
        for part in slices(X.shape[0], BLOCK_ROWS):
            block = rows[part]
            _check_finite(block, part.start, names)
            yield block
    elif isinstance(X, str | Path):
        for _, block, _, _ in _file_blocks(Path(X), None, None, names, BLOCK_ROWS):
            yield block
    else:
        for block in X:
            yield block[0] if isinstance(block, tuple) else block


def _written(X: Any, y: Any, sample_weight: Any, path: Path) -> Source:
    """Copy the features of a source to a file of numbers."""
    blocks = _blocks(X, y, sample_weight)
    if (first := next(blocks, None)) is None:
        raise ValueError(_NO_ROWS)
    names, count = first[0], 0
    labels: list[Any] = []
    weights: list[Any] = []
    with RowWriter(path, first[1].dtype) as writer:
        for number, block in enumerate(chain([first], blocks)):
            _check_block(f"Block {number} (from row {count})", block, names, writer.width)
            _, rows, y_part, weight_part = block
            _check_finite(rows, count, names)
            writer.write(rows)
            labels.append(y_part)
            weights.append(weight_part)
            count += len(rows)
    if not count:
        raise ValueError(_NO_ROWS)
    if len({part is None for part in weights}) > 1:
        raise ValueError("Some blocks have weights and some do not: give weights to all, or to none.")
    weight = None if weights[0] is None else np.concatenate(weights)
    return Source(StoredRows(writer.rows()), np.concatenate(labels), weight, names)


def _blocks(X: Any, y: Any, sample_weight: Any) -> Iterator[LabelledBlock]:
    if not isinstance(X, str | Path):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "Blocks bring their own labels: pass (X, y) or (X, y, weight) in each block, and leave "
                "y and sample_weight of fit None."
            )
        return _checked_blocks(X)
    if not isinstance(y, str):
        raise ValueError(
            f"y must be the name of the column of labels when X is a file; got {type(y).__name__}. "
            f'Use fit({str(X)!r}, "target").'
        )
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ValueError(
            "sample_weight must be the name of a column of weights, or None, when X is a file; got "
            f"{type(sample_weight).__name__}."
        )
    return _file_blocks(Path(X), y, sample_weight, None, BLOCK_ROWS)


def _check_block(where: str, block: LabelledBlock, names: list[str] | None, width: int) -> None:
    own, rows, y, weight = block
    if y is None or len(y) != len(rows):
        has = "no labels" if y is None else f"{len(y)} labels"
        raise ValueError(f"{where} has {len(rows)} rows and {has}: each row needs one.")
    if weight is not None and len(weight) != len(rows):
        raise ValueError(f"{where} has {len(rows)} rows and {len(weight)} weights: each row needs one.")
    if width not in (0, rows.shape[1]):
        raise ValueError(f"{where} has {rows.shape[1]} columns, but the blocks before it have {width}.")
    if own != names:
        raise ValueError(f"{where} has the columns {own}, but the blocks before it have {names}.")


def _check_finite(block: Array, first: int, names: list[str] | None) -> None:
    """Refuse missing and infinite values by column and row; the first row here is number ``first``."""
    finite = np.isfinite(block)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        name = column if names is None else repr(names[column])
        from aucmax.reading.frames import RowError

        raise RowError(
            f"Column {name} is {block[row, column]} in row {RowError.ROW}: fill or drop missing and "
            "infinite values first (fit_table does so for tables).",
            first + row,
        )


def _checked_blocks(X: Iterable[Any]) -> Iterator[LabelledBlock]:
    for number, block in enumerate(X):
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise ValueError(
                f"Block {number} must be (X, y) or (X, y, weight); it is a {type(block).__name__}."
            )
        rows, y, *rest = block
        for name, values in zip(("X", "y", "weight"), block, strict=False):
            refuse_odd(f"{name} of block {number}", values)
        try:
            numbers = np.asarray(rows)
            if numbers.dtype not in (np.float32, np.float64):
                numbers = numbers.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"X of block {number} must hold numbers only.") from None
        if numbers.ndim != 2:
            raise ValueError(f"Block {number} must have two dimensions; its shape is {numbers.shape}.")
        weight = np.asarray(rest[0], dtype=np.float64) if rest else None
        yield frame_names(rows), numbers, np.asarray(y), weight


def _file_blocks(
    path: Path, target: str | None, weight: str | None, names: list[str] | None, rows: int
) -> Iterator[LabelledBlock]:
    """Read the files of a path; all must have the same columns, or at least those in ``names``."""
    import polars as pl

    from aucmax.reading.frames import check_names
    from aucmax.reading.read import column_names, table_batches

    first, others = names, [name for name in (target, weight) if name is not None]
    for file in _files(path):
        known = column_names(file)
        check_names(known, others, "is named as the target or weight", f"{file}")
        wanted = [name for name in known if name not in others]
        first = wanted if first is None else first
        _check_columns(file, wanted, first, names is not None)
        for batch in table_batches(file, rows, [*first, *others]):
            for name in first:
                if not (batch.schema[name].is_numeric() or batch.schema[name] == pl.Boolean):
                    raise ValueError(
                        f"Column {name!r} of {file} must hold numbers; it is of type "
                        f"{batch.schema[name]}. Drop it, or use fit_table, which handles text, "
                        "categories and missing values."
                    )
            features = batch.select(pl.col(first).cast(pl.Float64)).to_numpy()
            labels = None if target is None else batch[target].to_numpy()
            own = None if weight is None else batch[weight].cast(pl.Float64).to_numpy()
            yield first, features, labels, own


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for ending in _PARTS for file in path.rglob(ending))
    if not files:
        raise FileNotFoundError(f"there is no Parquet file in the folder {path}.")
    return files


def _check_columns(file: Path, found: list[str], first: list[str], more_are_fine: bool) -> None:
    missing = [name for name in first if name not in found]
    extra = [] if more_are_fine else [name for name in found if name not in first]
    if missing or extra:
        what = f"lacks the column {missing[0]!r}" if missing else f"has a column {extra[0]!r}"
        others = "which the files before it have" if missing else "which the files before it lack"
        raise ValueError(f"{file} {what}, {others}: all must have the same columns.")
