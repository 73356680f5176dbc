"""Bring a table into its normal form, and turn that form into numeric features.

The *normal form* (:func:`normal_frame`) has the columns that the model uses, in the order of the
training table. Numbers and booleans are Float32, with NaN for a missing value. Categories are text
without surrounding blanks, with "" for a missing value. A date is several numbers: see
``tables/date_columns.py``.

A ``ColumnTransformer`` with up to three parts makes features of it. A model file need not hold it, as
it follows from ``columns_`` and ``encodings_``; an ONNX graph can compute it:

- "numbers" is ``SimpleImputer(strategy="median", add_indicator=True)``: a column with missing values
  in training gets one more feature that marks them;
- "categories" is a ``OneHotEncoder`` with explicit levels. If rare levels were pooled, the last level
  is :data:`RARE`. No value equals it; all levels that are not listed are encoded as it;
- "means" is :class:`~aucmax.tables.target_encoding.LevelMeans`, for categories with very many levels.

The preprocessor defines the features. :func:`features` computes the same numbers from its fitted parts
with polars, about ten times as fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from aucmax.reading.dates import as_quantity
from aucmax.reading.frames import RowError, TableError, check_names, quoted, shown
from aucmax.reading.numerals import as_number
from aucmax.reading.text import as_boolean, clean_text, without_marks
from aucmax.tables.date_columns import date_parts, part_names, read_dates
from aucmax.tables.target_encoding import Encoding, LevelMeans, encoded_columns

RARE = " (rare)"  #: The level of all pooled values; no cleaned value starts with a blank.
Column = dict[str, Any]  #: The profile of one column: see ``columns_`` of TableFeatures.
_NUMERIC, _CATEGORY = ("number", "boolean", "date"), ("category",)


def used(columns: Sequence[Column], kinds: Sequence[str] = _NUMERIC + _CATEGORY) -> list[Column]:
    """Select the columns that become features, all or those of some kinds."""
    return [column for column in columns if column["kind"] in kinds]


def normal_name(column: Column) -> str:
    """Return the name of a column in normal form; of a date, that of its days."""
    name: str = column["name"]
    return part_names(name, column["parts"])[0] if column["kind"] == "date" else name


def to_float(series: pl.Series, name: str, first_row: int = 0) -> pl.Series:
    """Convert a number or boolean column to Float32 with nulls; refuse infinity and name its row."""
    values = series.cast(pl.Float32, strict=False)
    array = values.to_numpy()  # NumPy, because a polars call takes ten times as long on few rows
    if np.isinf(array).any():
        row = int(np.isinf(array).argmax())
        raise RowError(
            f"Column {name!r} holds {series[row]} in row {RowError.ROW}; numbers must be finite and at "
            "most 3.4e38. Correct the value or leave it empty.",
            first_row + row,
        )
    return values.fill_nan(None) if np.isnan(array).sum() > values.null_count() else values


def normal_frame(frame: pl.DataFrame, columns: Sequence[Column], *, first_row: int = 0) -> pl.DataFrame:
    """Bring a table into the normal form that the preprocessor takes.

    Extra columns are ignored. A column of another type is cast, and an error names the first value that
    cannot be cast; ``first_row`` is the number of the frame's first row.
    """
    check_names(frame.columns, [column["name"] for column in used(columns)], "the model was trained on")
    normal: dict[str, Any] = {}
    for column in used(columns):
        series = frame[column["name"]]
        if column["kind"] == "date":
            dates = read_dates(series, column, first_row)
            names = part_names(column["name"], column["parts"])
            made: dict[str, Any] = dict(zip(names, date_parts(dates, column), strict=True))
        else:
            made = {column["name"]: _normal_column(series, column, first_row)}
        if taken := normal.keys() & made.keys():
            raise TableError(f"Two features are named {taken.pop()!r}; rename the column of that name.")
        normal |= made
    return pl.DataFrame(normal)


def _normal_column(series: pl.Series, column: Column, first_row: int) -> pl.Series:
    name = column["name"]
    if column["kind"] == "category":
        return level_text(series, quoted(column["levels"])).fill_null("")
    if series.dtype in (pl.Duration, pl.Time):
        series = as_quantity(series)
    dtype = series.dtype
    if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        text = clean_text(series)
        if column["kind"] == "boolean":
            expected, series = "true or false", as_boolean(text)
        else:
            text = without_marks(text)
            expected, series = "a number", as_number(text, column.get("written", "plain"))
        bad = text.is_not_null() & series.is_null()
        if bad.any():
            row = int(bad.arg_max() or 0)
            raise RowError(
                f"Column {name!r} holds {shown(text[row])} in row {RowError.ROW}, but {expected} in "
                "training. Correct the value or leave it empty.",
                first_row + row,
            )
    values = to_float(series, name, first_row)
    return (values.fill_null(float("nan")) if values.null_count() else values).alias(name)


def level_text(series: pl.Series, levels: str = "") -> pl.Series:
    """Convert a column to the text of its levels, with null for a missing value."""
    dtype = series.dtype
    if dtype.is_temporal() or dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        held = f", and held the categories {levels} in training" if levels else ""
        raise TableError(
            f"Column {series.name!r} is of type {dtype} here{held}; convert it to text to use it as a "
            "category."
        )
    if dtype.is_float():
        series = series.fill_nan(None)
        if (series.drop_nulls() % 1 == 0).all():
            series = series.cast(pl.Int64, strict=False)  # so that 1.0 is the level "1"
    return clean_text(series)


def reading_schema(columns: Sequence[Column]) -> dict[str, Any]:
    """Return the types in which to read a text file's columns, the same for every batch of it."""
    return {
        column["name"]: pl.Float64
        if column["kind"] == "number" and "written" not in column
        else pl.String
        for column in used(columns)
    }


class _Number(NamedTuple):
    """A numeric column of the normal form; ``marked`` says whether missing values get a mark."""

    name: str
    median: float
    marked: bool


def _numbers(columns: Sequence[Column]) -> list[_Number]:
    found: list[_Number] = []
    for column in used(columns, _NUMERIC):
        names, medians = [column["name"]], [column.get("median", 0.0)]
        if column["kind"] == "date":
            names, medians = part_names(column["name"], column["parts"]), column["medians"]
        marked = [bool(column["missing"])] + [False] * (len(names) - 1)  # one mark for each column
        found += map(_Number, names, medians, marked)
    return found


def make_preprocessor(
    columns: Sequence[Column], encodings: Mapping[str, Encoding] | None = None
) -> ColumnTransformer:
    """Make the preprocessor of profiled columns, for frames in normal form.

    It is fitted to a few synthetic rows with the medians, missing values and levels of the table. They
    are all that it learns, and fitting it to the whole table is slow.
    """
    numbers, categories = _numbers(columns), used(columns, _CATEGORY)
    if not columns:
        raise TableError("The table has no column to learn from except the target.")
    if not numbers and not categories:
        reasons = "; ".join(f"{column['name']!r} is {column['treatment']}" for column in columns[:5])
        raise TableError(f"No column is left to learn from: {reasons}.")
    levels = {column["name"]: _encoder_levels(column) for column in categories}
    height = max([2, *map(len, levels.values())])
    table: dict[str, Any] = {}
    for number in numbers:
        table[number.name] = np.full(height, number.median, np.float32)
        table[number.name][0] = np.nan if number.marked else number.median
    for name, named in levels.items():
        seen = [level for level in named if level != RARE] or [""]
        table[name] = [seen[i % len(seen)] for i in range(height)]
    # Columns are selected by position: by name, scikit-learn would search the list of all for each.
    places = {name: i for i, name in enumerate(table)}
    parts: list[tuple[str, Any, list[int]]] = []
    if numbers:
        imputer = SimpleImputer(strategy="median", add_indicator=True)
        parts.append(("numbers", imputer, list(range(len(numbers)))))
    if listed := {name: named for name, named in levels.items() if named}:
        encoder = OneHotEncoder(
            categories=list(listed.values()),
            min_frequency=1,  # only RARE is less frequent: no row holds it
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
            dtype=np.float32,
        )
        parts.append(("categories", encoder, [places[name] for name in listed]))
    if encoded := list(encoded_columns(columns)):
        means = LevelMeans([(encodings or {})[name] for name in encoded])
        parts.append(("means", means, [places[name] for name in encoded]))
    preprocessor = ColumnTransformer(parts, sparse_threshold=0.0, verbose_feature_names_out=False)
    return preprocessor.set_output(transform="default").fit(pl.DataFrame(table))


def _encoder_levels(column: Column) -> list[str]:
    """Return an encoder's categories: the levels, "" for missing values and RARE for pooled levels."""
    name, levels = column["name"], list(column["levels"])
    more = {f"{name} is missing": "", f"{name} is rare": RARE, column.get("encoded"): None}
    marks = [more[feature] for feature in column["features"][len(levels) :]]
    return levels + [mark for mark in marks if mark is not None]


def feature_names(columns: Sequence[Column]) -> list[str]:
    """Return the names of the preprocessor's outputs, in their order."""
    numbers, marks, levels = list[str](), list[str](), list[str]()
    for column in used(columns, _NUMERIC):
        width = len(column["parts"]) if column["kind"] == "date" else 1
        numbers += column["features"][:width]
        marks += column["features"][width:]
    for column in used(columns, _CATEGORY):
        levels += [name for name in column["features"] if name != column.get("encoded")]
    return numbers + marks + levels + list(encoded_columns(columns).values())


def features(preprocessor: ColumnTransformer, frame: pl.DataFrame) -> np.ndarray:
    """Compute ``preprocessor.transform`` of a frame in normal form, as float32 in C order."""
    names_in = preprocessor.feature_names_in_
    parts: list[np.ndarray] = []
    for part_name, part, columns in preprocessor.transformers_:
        names = [each if isinstance(each, str) else names_in[each] for each in columns]
        if part_name == "numbers":
            numbers = pl.DataFrame([frame[name] for name in names]).to_numpy(order="c", writable=True)
            missing = np.isnan(numbers)
            np.copyto(numbers, part.statistics_.astype(np.float32), where=missing)
            parts.append(numbers)
            if part.indicator_.features_.size:
                parts.append(missing[:, part.indicator_.features_].astype(np.float32))
        elif part_name == "categories":
            parts.append(_one_hot(frame, names, part.categories_))
        elif part_name == "means":
            parts.append(part.transform(frame.select(names)))
    return parts[0] if len(parts) == 1 else np.hstack(parts)


def _one_hot(frame: pl.DataFrame, names: Sequence[str], categories: Sequence[Any]) -> np.ndarray:
    tests: list[pl.Expr] = []
    for name, levels in zip(names, categories, strict=True):
        seen = [level for level in levels if level != RARE]
        tests += [pl.col(name) == level for level in seen]
        if len(seen) < len(levels):
            tests.append(~pl.col(name).is_in(seen))
    return frame.select(test.cast(pl.Float32).alias(str(i)) for i, test in enumerate(tests)).to_numpy(
        order="c"
    )
