"""Bring a table into its normal form, and turn that form into numeric features.

The *normal form* (:func:`normal_frame`) has the columns that the model uses, in the order of the
training table. Numbers and booleans are Float32, with NaN for a missing value. Categories are text
without surrounding blanks, with "" for a missing value.

A ``ColumnTransformer`` with two parts makes features of it. Both are scikit-learn classes that a model
file and an ONNX graph can hold:

- "numbers" is ``SimpleImputer(strategy="median", add_indicator=True)``: a column with missing values
  in training gets a second feature that marks them;
- "categories" is a ``OneHotEncoder`` with explicit levels. If rare levels were pooled, the last level
  is :data:`RARE`. No value equals it; all levels that are not listed are encoded as it.

The preprocessor defines the features. :func:`features` computes the same numbers from its fitted parts
with polars, about ten times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from aucmax.reading.frames import RowError, TableError, check_names, quoted, shown
from aucmax.reading.text import as_boolean, as_number, clean_text, without_marks

RARE = " (rare)"  #: The level of all pooled values; no cleaned value starts with a blank.
Column = dict[str, Any]  #: The profile of one column: see ``columns_`` of TableModel.
_NUMERIC, _CATEGORY = ("number", "boolean"), ("category",)


def used(columns: Sequence[Column], kinds: Sequence[str] = _NUMERIC + _CATEGORY) -> list[Column]:
    """Select the columns that become features, all or those of some kinds."""
    return [column for column in columns if column["kind"] in kinds]


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
    names = [column["name"] for column in used(columns)]
    check_names(frame.columns, names, "the model was trained on")
    normal = [_normal_column(frame[column["name"]], column, first_row) for column in used(columns)]
    return pl.DataFrame(dict(zip(names, normal, strict=True)))


def _normal_column(series: pl.Series, column: Column, first_row: int) -> pl.Series:
    name, dtype = column["name"], series.dtype
    if column["kind"] == "category":
        return _level_text(series, column)
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


def _level_text(series: pl.Series, column: Column) -> pl.Series:
    dtype = series.dtype
    if dtype.is_temporal() or dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        raise TableError(
            f"Column {column['name']!r} is of type {dtype} here, and held the categories "
            f"{quoted(column['levels'])} in training; convert it to text."
        )
    if dtype.is_float():
        series = series.fill_nan(None)
        if (series.drop_nulls() % 1 == 0).all():
            series = series.cast(pl.Int64, strict=False)  # so that 1.0 is the level "1"
    return clean_text(series).fill_null("")


def reading_schema(columns: Sequence[Column]) -> dict[str, Any]:
    """Return the types in which to read a text file's columns, the same for every batch of it."""
    return {
        column["name"]: pl.Float64
        if column["kind"] == "number" and "written" not in column
        else pl.String
        for column in used(columns)
    }


def make_preprocessor(columns: Sequence[Column]) -> ColumnTransformer:
    """Make the scikit-learn preprocessor of profiled columns, for frames in normal form.

    It is fitted to a few synthetic rows with the medians, missing values and levels of the table. They
    are all that it learns, and fitting it to the whole table is slow.
    """
    numbers, categories = used(columns, _NUMERIC), used(columns, _CATEGORY)
    if not columns:
        raise TableError("The table has no column to learn from except the target.")
    if not numbers and not categories:
        reasons = "; ".join(f"{column['name']!r} is {column['treatment']}" for column in columns[:5])
        raise TableError(f"No column is left to learn from: {reasons}.")
    levels = [_encoder_levels(column) for column in categories]
    height = max([2, *map(len, levels)])
    table: dict[str, Any] = {}
    for column in numbers:
        values = np.full(height, column["median"], np.float32)
        values[0] = np.nan if column["missing"] else values[0]
        table[column["name"]] = values
    for column, named in zip(categories, levels, strict=True):
        seen = [level for level in named if level != RARE]
        table[column["name"]] = [seen[i % len(seen)] for i in range(height)]
    # Columns are selected by position: by name, scikit-learn would search the list of all for each.
    parts: list[tuple[str, Any, list[int]]] = []
    if numbers:
        imputer = SimpleImputer(strategy="median", add_indicator=True)
        parts.append(("numbers", imputer, list(range(len(numbers)))))
    if categories:
        encoder = OneHotEncoder(
            categories=levels,
            min_frequency=1,  # only RARE is less frequent: no row holds it
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
            dtype=np.float32,
        )
        parts.append(("categories", encoder, list(range(len(numbers), len(table)))))
    preprocessor = ColumnTransformer(parts, sparse_threshold=0.0, verbose_feature_names_out=False)
    return preprocessor.set_output(transform="default").fit(pl.DataFrame(table))


def _encoder_levels(column: Column) -> list[str]:
    """Return an encoder's categories: the levels, "" for missing values and RARE for pooled levels."""
    name, levels = column["name"], list(column["levels"])
    more = {f"{name} is missing": "", f"{name} is rare": RARE}
    return levels + [more[feature] for feature in column["features"][len(levels) :]]


def feature_names(columns: Sequence[Column]) -> list[str]:
    """Return the names of the preprocessor's outputs, in their order."""
    numbers = [column["features"] for column in used(columns, _NUMERIC)]
    categories = [column["features"] for column in used(columns, _CATEGORY)]
    firsts, rests = [names[:1] for names in numbers], [names[1:] for names in numbers]
    return [name for names in [*firsts, *rests, *categories] for name in names]


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
