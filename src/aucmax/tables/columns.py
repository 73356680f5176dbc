"""Frames in the form that was learnt from, and the scikit-learn preprocessor that takes them.

A frame is first brought to its *normal form* (:func:`normal_frame`): the columns in use, in the order
of the training table; numbers and booleans as Float32 with NaN where a value is missing; categories as
text without blanks around it, "" where a value is missing.

From there on only three scikit-learn classes are used, so that a model file and an ONNX graph can hold
them: a ``ColumnTransformer`` of

- ``SimpleImputer(strategy="median", add_indicator=True)`` over numbers and booleans, named "numbers": a
  column with holes in training gets a second feature that says where they were;
- ``OneHotEncoder`` over categories, named "categories", with the levels kept given by name. Where rare
  levels were pooled, :data:`RARE` is the last of them: no value can be equal to it, and every level not
  kept, an unseen one as well, is encoded as it.

The preprocessor is the specification. :func:`features` computes the same numbers from its fitted parts
by polars, about ten times as fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from aucmax.reading.frames import RowError, TableError, check_names, quoted, shown
from aucmax.reading.text import as_boolean, as_number, clean_text, without_marks

__all__ = ["RARE", "features", "make_preprocessor", "normal_frame", "reading_schema"]

#: The pooled rare levels among an encoder's categories; the blank in front keeps it apart from values.
RARE = " (rare)"

#: What is known of a column: see ``columns_`` of TableModel.
Column = dict[str, Any]


# --- the normal form


def to_float(series: pl.Series, name: str, first_row: int = 0) -> pl.Series:
    """A number or boolean column as Float32 with nulls; infinity is refused with its row."""
    values = series.cast(pl.Float32, strict=False)
    array = values.to_numpy()  # by NumPy: a call of polars takes ten times as long on few rows
    if np.isinf(array).any():
        row = int(np.isinf(array).argmax())
        raise RowError(
            f"Column {name!r} holds {series[row]} in row {RowError.ROW}, and numbers must be "
            "finite and at most 3.4e38; mend it or leave it empty.",
            first_row + row,
        )
    if np.isnan(array).sum() > values.null_count():
        values = values.fill_nan(None)
    return values


def normal_frame(frame: pl.DataFrame, columns: Sequence[Column], *, first_row: int = 0) -> pl.DataFrame:
    """A frame as the preprocessor takes it: columns of training, in its order, of its types.

    Other columns are left aside. A column of another type is cast where every value allows it, and
    refused with row and value where one does not; ``first_row`` is the number of the frame's first
    row, for such errors.
    """
    used = [column for column in columns if column["kind"] != "dropped"]
    check_names(frame.columns, [column["name"] for column in used], "the model was trained on")
    return pl.DataFrame(
        {column["name"]: _normal_column(frame[column["name"]], column, first_row) for column in used}
    )


def _normal_column(series: pl.Series, column: Column, first_row: int) -> pl.Series:
    name, kind = column["name"], series.dtype
    if column["kind"] == "category":
        if (
            kind.is_float()
            and (series.is_null() | (series.fill_nan(None) % 1 == 0).fill_null(True)).all()
        ):
            series = series.fill_nan(None).cast(pl.Int64, strict=False)  # 1.0 for the level 1
        elif kind.is_temporal() or kind.is_nested() or kind in (pl.Binary, pl.Object):
            raise TableError(
                f"Column {name!r} is of type {kind} here, and held the categories "
                f"{quoted(column['levels'])} in training; make it text."
            )
        return clean_text(series).fill_null("")
    if kind == pl.Null:
        return pl.Series(name, np.full(len(series), np.nan, np.float32))
    if kind == pl.Boolean or kind.is_numeric():
        values = to_float(series, name, first_row)
    else:
        text = (
            clean_text(series)
            if kind in (pl.String, pl.Categorical, pl.Enum)
            else series.cast(pl.String)
        )
        if column["kind"] == "boolean":
            read = as_boolean(text)
        else:
            text = without_marks(text)
            read = as_number(text, column.get("written", "plain"))
        bad = text.is_not_null() & read.is_null()
        if bad.any():
            row = int(bad.arg_max() or 0)
            what = "true or false" if column["kind"] == "boolean" else "a number"
            raise RowError(
                f"Column {name!r} holds {shown(text[row])} in row {RowError.ROW}, where training had "
                f"{what}; mend it or leave it empty.",
                first_row + row,
            )
        values = to_float(read, name, first_row)
    return (values.fill_null(float("nan")) if values.null_count() else values).alias(name)


def reading_schema(columns: Sequence[Column]) -> dict[str, Any]:
    """Types to read a text file's columns in, the same for every batch of it."""
    return {column["name"]: pl.String for column in columns if column["kind"] != "dropped"} | {
        column["name"]: pl.Float64
        for column in columns
        if column["kind"] == "number" and "written" not in column
    }


# --- the preprocessor


def make_preprocessor(columns: Sequence[Column]) -> ColumnTransformer:
    """The scikit-learn preprocessor of columns studied, over frames in normal form.

    It is fitted to a few made rows with the medians, holes and levels of the table: they are all it
    learns, and its own way to them is slow.
    """
    numbers = [column for column in columns if column["kind"] in ("number", "boolean")]
    categories = [column for column in columns if column["kind"] == "category"]
    if not columns:
        raise TableError("There is no column to learn from beside the target.")
    if not numbers and not categories:
        raise TableError(
            "No column is left to learn from: "
            + "; ".join(f"{column['name']!r} is {column['treatment']}" for column in columns[:5])
            + "."
        )
    kept = [_encoder_levels(column) for column in categories]
    height = max([2, *map(len, kept)])
    made: dict[str, Any] = {}
    for column in numbers:
        values = np.full(height, column["median"], np.float32)
        values[0] = np.nan if column["missing"] else values[0]
        made[column["name"]] = values
    for column, levels in zip(categories, kept, strict=True):
        seen = [level for level in levels if level != RARE]
        made[column["name"]] = [seen[i % len(seen)] for i in range(height)]
    # By position: scikit-learn looks up each name in the list of all.
    parts: list[tuple[str, Any, list[int]]] = []
    if numbers:
        imputer = SimpleImputer(strategy="median", add_indicator=True)
        parts.append(("numbers", imputer, list(range(len(numbers)))))
    if categories:
        encoder = OneHotEncoder(
            categories=kept,
            min_frequency=1,  # below it is only RARE, which no row holds
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
            dtype=np.float32,
        )
        parts.append(("categories", encoder, list(range(len(numbers), len(made)))))
    preprocessor = ColumnTransformer(parts, sparse_threshold=0.0, verbose_feature_names_out=False)
    return preprocessor.set_output(transform="default").fit(pl.DataFrame(made))


def _encoder_levels(column: Mapping[str, Any]) -> list[str]:
    """An encoder's categories: the levels kept, "" for missing, and the pool, as features are named."""
    name, levels = column["name"], list(column["levels"])
    rest = column["features"][len(levels) :]
    levels += [""] if f"{name} is missing" in rest else []
    return levels + ([RARE] if f"{name} is rare" in rest else [])


def feature_names(columns: Sequence[Column]) -> list[str]:
    """Names of the preprocessor's outputs, in its order."""
    numbers = [column for column in columns if column["kind"] in ("number", "boolean")]
    categories = [column for column in columns if column["kind"] == "category"]
    return [
        *(column["features"][0] for column in numbers),
        *(column["features"][1] for column in numbers if len(column["features"]) > 1),
        *(name for column in categories for name in column["features"]),
    ]


def features(preprocessor: ColumnTransformer, frame: pl.DataFrame) -> np.ndarray:
    """What ``preprocessor.transform`` makes of a frame in normal form, as float32 in C order."""
    names_in = preprocessor.feature_names_in_
    parts = {
        name: (part, [each if isinstance(each, str) else names_in[each] for each in columns])
        for name, part, columns in preprocessor.transformers_
        if name != "remainder"
    }
    made: list[np.ndarray] = []
    if "numbers" in parts:
        imputer, names = parts["numbers"]
        numbers = pl.DataFrame([frame[name] for name in names]).to_numpy(order="c", writable=True)
        missing = np.isnan(numbers)
        np.copyto(numbers, imputer.statistics_.astype(np.float32), where=missing)
        made.append(numbers)
        if imputer.indicator_.features_.size:
            made.append(missing[:, imputer.indicator_.features_].astype(np.float32))
    if "categories" in parts:
        encoder, names = parts["categories"]
        made.append(_one_hot(frame, names, encoder.categories_))
    return made[0] if len(made) == 1 else np.hstack(made)


def _one_hot(frame: pl.DataFrame, names: Sequence[str], categories: Sequence[Any]) -> np.ndarray:
    made: list[pl.Expr] = []
    for name, levels in zip(names, categories, strict=True):
        kept = [level for level in levels if level != RARE]
        made += [pl.col(name) == level for level in kept]
        if len(kept) < len(levels):
            made.append(~pl.col(name).is_in(kept))
    named = [expression.cast(pl.Float32).alias(str(i)) for i, expression in enumerate(made)]
    return frame.select(named).to_numpy(order="c")
