"""Tables from files and frames, and what is done to their columns."""

import bz2
import gzip
import io
import lzma
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from aucmax.reading import byte_streams
from aucmax.reading.frames import as_frame, frame_hash
from aucmax.reading.read import column_names
from aucmax.tables import TableError, read_table, table_batches
from aucmax.tables.columns import features, make_preprocessor, normal_frame
from aucmax.tables.profile import profile_columns

PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def small(rows: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "pay": rng.normal(size=rows).round(3),
            "job": rng.choice(["cook", "smith, jr", 'the "best"', "day\nnight"], rows),
            "old": rng.random(rows) < 0.5,
        }
    ).with_columns(pl.when(pl.col("age") > 60).then(None).otherwise(pl.col("pay")).alias("pay"))


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# --- reading


@pytest.mark.parametrize("packing", ["", ".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".arrow", ".feather"])
def test_every_format_gives_the_same_table_bare_and_packed(tmp_path, ending, packing):
    table, buffer = small(), io.BytesIO()
    if ending == ".parquet":
        table.write_parquet(buffer)
    elif ending == ".feather":
        table.write_ipc_stream(buffer)
    elif ending == ".arrow":
        table.write_ipc(buffer)
    else:
        table.write_csv(buffer, separator="," if ending == ".csv" else "\t")
    content = PACK[packing](buffer.getvalue()) if packing else buffer.getvalue()
    path = write(tmp_path / f"table{ending}{packing}", content)
    assert_frame_equal(read_table(path), table)
    assert_frame_equal(read_table(path, ["old", "age"]), table.select("old", "age"))
    parts = list(table_batches(path, rows=25))
    assert [part.height for part in parts] == [25, 25, 10]
    assert_frame_equal(pl.concat(parts), table)
    assert column_names(path) == table.columns


def test_a_zst_file_is_read(tmp_path):
    table = small().drop("job")
    table.write_csv(tmp_path / "plain.csv")
    try:
        table.lazy().sink_csv(tmp_path / "t.csv.zst", compression="zstd")
    except TypeError:
        pytest.skip("this version of polars writes no compressed text")
    assert (tmp_path / "t.csv.zst").read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    assert_frame_equal(read_table(tmp_path / "t.csv.zst"), table)
    assert_frame_equal(pl.concat(list(table_batches(tmp_path / "t.csv.zst", rows=7))), table)


def test_pieces_end_where_lines_end_and_not_within_quotes(tmp_path, monkeypatch):
    table = small(500)
    table.write_csv(tmp_path / "t.csv")
    monkeypatch.setattr(byte_streams, "PIECE", 64)
    schema = {"age": pl.Int64, "pay": pl.Float64, "old": pl.Boolean}
    parts = list(table_batches(tmp_path / "t.csv", rows=100, schema=schema))
    assert_frame_equal(pl.concat(parts), table)


def test_a_libsvm_file_has_a_target_and_numbered_features(tmp_path):
    path = write(tmp_path / "a.libsvm", "+1 1:0.5 4:2\n-1 2:1 # note\n+1 3:4\n")
    expected = pl.DataFrame(
        {"target": [1, -1, 1], "f1": [0.5, 0, 0], "f2": [0, 1, 0], "f3": [0, 0, 4], "f4": [2, 0, 0]},
        schema={"target": pl.Int64, **{f"f{i}": pl.Float32 for i in range(1, 5)}},
    )
    assert_frame_equal(read_table(path), expected)
    assert_frame_equal(pl.concat(list(table_batches(path, rows=2))), expected)
    wider = read_table(path, ["f6", "f1"])
    assert wider["f6"].to_list() == [0, 0, 0]
    assert wider["f1"].to_list() == [0.5, 0, 0]
    write(path, "1 1:2\n1 2:x\n")
    with pytest.raises(TableError, match=r"Row 1 \(from 0; line 2 of .* the LIBSVM format \('1 2:x'\)"):
        read_table(path)
    with pytest.raises(TableError, match="indices rise from 1"):
        read_table(write(path, "1 0:2 1:3\n"))
    with pytest.raises(TableError, match=r"Row 70 \(from 0; line 71 of .* \('1 3:1 2:1'\)"):
        read_table(write(path, "1 1:2\n" * 70 + "1 3:1 2:1\n" + "1 1:2\n" * 70))
    with pytest.raises(TableError, match="is empty"):
        read_table(write(path, ""))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b\n1;x\n", {"a": [1], "b": ["x"]}),
        ("\ufeffa|b\n1|x\n", {"a": [1], "b": ["x"]}),
        ("a , b\r\n1,?\r\nNA,2\r\n", {"a": [1, None], "b": [None, 2]}),
        (",a\n0,5\n1,6\n", {"column 1": [0, 1], "a": [5, 6]}),
        ("a\n1\n\n3\n", {"a": [1, None, 3]}),
        ("\n\na,b\n\n1,2\n", {"a": [None, 1], "b": [None, 2]}),
        ("a,b\r\n1,2\r\n2,3\r\n\r\n\r\n", {"a": [1, 2], "b": [2, 3]}),
        ("\ufeffsep=;\r\na,x;b\r\n1;2\r\n", {"a,x": [1], "b": [2]}),  # as Excel has it
    ],
)
def test_the_dialect_is_told_from_the_first_line(tmp_path, text, expected):
    path = write(tmp_path / "t.csv", text)
    assert read_table(path).to_dict(as_series=False) == expected
    (part,) = table_batches(path)
    assert part.to_dict(as_series=False) == expected


@pytest.mark.parametrize("piece", [5000, 2**24])
def test_a_table_read_in_parts_is_the_table_read_whole(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(byte_streams, "PIECE", piece)
    rows = [
        "1.5,x",
        "nan,y",
        "",
        "3,z",
        '4,"blank\n\nlines"',
    ] * 10_000
    path = write(tmp_path / "t.csv", "a,b\n" + "\n".join(rows) + "\n\n\n")
    whole = read_table(path)
    assert whole.height == 50_000
    assert whole["a"].null_count() == 20_000
    assert_frame_equal(pl.concat(list(table_batches(path))), whole)


def test_a_number_column_may_turn_to_decimals_or_text_late(tmp_path):
    rows = ["1,2"] * 12_000 + ["1.5,x"]
    frame = read_table(write(tmp_path / "t.csv", "a,b\n" + "\n".join(rows)))
    assert frame.dtypes == [pl.Float64, pl.String]
    assert frame.row(-1) == (1.5, "x")


BAD_FILES = {
    "empty": ("t.csv", "", "is empty"),
    "header and blanks": ("t.csv", "a,b\n\n\n", "has a header and no rows"),
    "ragged after blanks": (
        "t.csv",
        "\n\na,b\n1,2,3\n",
        r"Row 0 \(from 0; line 4 of .*\) has 3 values",
    ),
    "blank": ("t.csv", "\n\n", "is empty"),
    "header only": ("t.csv", "a,b\n", "has a header and no rows"),
    "too many values": (
        "t.csv",
        "a,b\n1,2\n3,4,5\n",
        r"Row 1 \(from 0; line 3 of .*\) has 3 values where the header has 2 columns",
    ),
    "too few values": ("t.csv", "a,b\n1,2\n\n3\n5,6\n", r"Row 2 \(from 0; line 4 of .* has 1 value "),
    "too few, quoted": (
        "t.csv",
        'a,b\n"1\n",2\n"3"\n5,6\n',
        r"Row 1 \(from 0; line 4 of .*\) has 1 value ",
    ),
    "open quote": (
        "t.csv",
        'a,b\n1,2\n"3,4\n5,6\n',
        r"in row 1 \(from 0; line 3 of .*\) is not closed",
    ),
    "open quote, long": (
        "t.csv",
        'a,b\n1,2\n"3,4\n' + "x,y\n" * 40_000,
        r"line 3 .*quote \(\"\) that is not closed",
    ),
    "old Mac": ("t.csv", "a,b\r1,2\r3,4\r", "line ends of an old Mac"),
    "latin-1": (
        "t.csv",
        "a,b\n1,x\n2,é\n".encode("latin-1"),
        r"UTF-8 text: line 3 has the byte 0xe9.*--encoding latin-1",
    ),
    "latin-1 header": ("t.csv", "a,é\n1,x\n".encode("latin-1"), "line 1 has the byte 0xe9"),
    "utf-16": ("t.csv", "a,b\n1,x\n".encode("utf-16"), "is UTF-16 text"),
    "duplicate names": ("t.csv", "a,b,a \n1,2,3\n", "more than one column named 'a'"),
    "no header": ("t.csv", "1,2\n3,4\n", "begins with a row of numbers"),
    "parquet by another name": ("t.csv", b"PAR1xxxx", "is a Parquet file"),
    "excel by another name": ("t.csv", b"PK\x03\x04xxxx", "Excel"),
    "unknown ending": ("t.sav", b"PK", r"no ending of a known format.*\.csv"),
    "cut off": ("t.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 9000)[:-20], "cut off or damaged"),
    "cut off zst": ("t.csv.zst", b"\x28\xb5\x2f\xfd\x00\x01", "cut off or damaged"),
    "no parquet": ("t.parquet", b"no such thing", "is not a valid Parquet file"),
    "empty parquet": ("t.parquet", b"", "is empty"),
    "no arrow": ("t.arrow", b"no such thing", "is not a valid Arrow file"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_named_with_its_fault(tmp_path, case):
    name, content, sentence = BAD_FILES[case]
    path = write(tmp_path / name, content)
    for read in (read_table, lambda path: list(table_batches(path))):
        with pytest.raises(TableError, match=sentence) as caught:
            read(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    write(tmp_path / "people.csv", "a\nx\n")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*Did you mean .*people\.csv"):
        read_table(tmp_path / "peple.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_table(tmp_path)


def test_a_quote_within_a_value_is_named_with_its_line(tmp_path):
    rows = [f"{i},pipe,yes" for i in range(300)]
    rows[100] = '0,5" pipe,yes'
    path = write(tmp_path / "t.csv", "a,b,c\n" + "\n".join(rows))
    with pytest.raises(TableError, match="in line 102 is part of its value, double it"):
        read_table(path)


def test_a_value_of_another_type_is_named_with_its_row(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n" + "1,2\n" * 70 + " 3 ,2\nthree,2\n")
    with pytest.raises(
        TableError,
        match=r"Column 'a' holds 'three' in row 71 \(from 0; line 73 of .* a number",
    ):
        list(table_batches(path, schema={"a": pl.Float64}))
    with pytest.raises(TableError, match="'three'"):
        read_table(path, schema={"a": pl.Float64})
    path = write(tmp_path / "t.csv", "a,b\n 1,2\n-,2\n")
    assert read_table(path, schema={"a": pl.Float64})["a"].to_list() == [1.0, None]
    (part,) = table_batches(path, schema={"a": pl.Float64})
    assert part["b"].to_list() == ["2", "2"]  # not named in the schema: text
    with pytest.raises(TableError, match=r"no column 'bb', which is needed\. Did you mean 'b'"):
        read_table(path, ["bb"])


# --- frames


def test_pandas_and_polars_frames_are_the_same_table():
    table = pd.DataFrame(
        {
            "number": [1.5, np.nan, 2.0],
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "text": ["a", None, "b"],
            "level": pd.Categorical(["x", "y", None]),
            "mixed": ["a", 1, None],
            "yes": [True, False, True],
            "maybe": [True, None, False],
            7: [1, 2, 3],
        }
    )
    expected = pl.DataFrame(
        {
            "number": [1.5, None, 2.0],
            "whole": [1, None, 3],
            "text": ["a", None, "b"],
            "level": ["x", "y", None],
            "mixed": ["a", "1", None],
            "yes": [True, False, True],
            "maybe": [True, None, False],
            "7": [1, 2, 3],
        },
        schema_overrides={"level": pl.Categorical},
    )
    assert_frame_equal(as_frame(table), expected)
    assert_frame_equal(as_frame(expected.lazy()), expected)
    with pytest.raises(TableError, match="more than one column named 'a'"):
        as_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(TableError, match=r"got ndarray of shape \(2, 2\)"):
        as_frame(np.zeros((2, 2)))


def test_the_hash_tells_tables_apart_and_not_their_chunks():
    table = small()
    assert frame_hash(pl.concat([table[:20], table[20:]], rechunk=False)) == frame_hash(table)
    others = [
        table.rename({"age": "years"}),
        table.with_columns(pl.col("age").cast(pl.Int32)),
        table.with_columns(pl.col("pay").fill_null(0.0)),
        table.with_columns(pl.col("job").str.to_uppercase()),
        table[1:],
    ]
    assert len({frame_hash(each) for each in [table, *others]}) == 6


# --- columns


def profile(rare: int = 5, **columns: object) -> dict[str, dict]:
    return {each["name"]: each for each in profile_columns(pl.DataFrame(columns), rare_level=rare)}


def test_columns_that_tell_nothing_are_dropped_with_a_reason():
    rng = np.random.default_rng(0)
    found = profile(
        names=[f"customer {i}" for i in range(100)],
        running=range(1, 101),
        gaps=[i + i // 10 for i in range(100)],
        user_id=rng.choice(10**8, 100, replace=False),
        same=[3.0] * 100,
        same_text=["x"] * 100,
        nothing=[None] * 100,
        blank=["", "?", "NA", " "] * 25,
        all_rare=[f"v{i // 2}" for i in range(100)],
        number=rng.permutation(100) + 0.5,
    )
    kinds = {name: column["kind"] for name, column in found.items()}
    assert kinds.pop("number") == "number"
    assert set(kinds.values()) == {"dropped"}
    sentences = {
        "names": r"dropped as an identifier: 100 of 100 values are different \(for example 'customer",
        "running": "dropped as a row number: its values run from 1 to 100",
        "gaps": "its values run from 0 to 108",
        "user_id": "dropped as an identifier: all values are unique",
        "same": "every value is 3",
        "same_text": "every value is 'x'",
        "nothing": "every value is missing",
        "blank": "every value is missing",
        "all_rare": "none of its 50 different values has 5 rows",
    }
    for name, sentence in sentences.items():
        assert re.search(sentence, found[name]["treatment"]), name
    assert found["blank"]["missing"] == 100


def test_numbers_that_came_as_text_are_read_as_numbers():
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 10**6, 200)
    found = profile(
        thousands=[f"{value:,}" for value in whole],
        comma=[f"{value / 7:.2f}".replace(".", ",") for value in whole],
        dots=[f"{value:,}".replace(",", ".") + ",50" for value in whole],
        marked=["-" if i % 9 == 0 else f" {value} " for i, value in enumerate(whole)],
        yes=["Yes", "no", "?", "YES"] * 50,
    )
    assert {name: column["kind"] for name, column in found.items()} == {
        "thousands": "number",
        "comma": "number",
        "dots": "number",
        "marked": "number",
        "yes": "boolean",
    }
    frame = pl.DataFrame(
        {
            "thousands": ["1,234"],
            "comma": ["0,5"],
            "dots": ["-1.234,5"],
            "marked": ["None"],
            "yes": ["NO"],
        }
    )
    assert normal_frame(frame, list(found.values())).row(0)[:3] == (1234.0, 0.5, -1234.5)
    assert np.isnan(normal_frame(frame, list(found.values()))["marked"][0])
    assert found["marked"]["missing"] == 23
    assert found["yes"]["missing"] == 50
    with pytest.raises(
        TableError, match=r"'x' is read as numbers, but holds 'many' in row 150 \(from 0\)"
    ):
        profile(x=["many" if i == 150 else str(value) for i, value in enumerate(whole)])


def test_rare_levels_are_pooled_and_missing_is_a_level():
    values = ["a"] * 30 + ["b"] * 20 + ["c"] * 2 + ["d"] + [None] * 7
    found = profile(x=values)["x"]
    assert found["levels"] == ["a", "b"]
    assert found["pooled"] == ["c", "d"]
    assert found["features"] == ["x = a", "x = b", "x is missing", "x is rare"]
    assert found["treatment"] == (
        "one-hot, 2 levels and a feature for 7 missing values; one more feature for 2 rare levels, and "
        "for levels unseen in training"
    )
    many = profile(x=[f"v{i % 70}" for i in range(1400)])["x"]
    assert len(many["features"]) == 50
    assert len(many["pooled"]) == 21
    one = profile(x=["a"] * 30 + ["b"])["x"]
    assert "one more feature for 1 rare level, and for" in one["treatment"]
    whole = profile(x=["a"] * 30 + ["b"] * 20)["x"]
    assert whole["features"] == ["x = a", "x = b"]


def test_by_default_a_level_needs_ten_rows_or_a_thousandth():
    def pooled(rows: int, count: int) -> list[str]:
        table = pl.DataFrame({"x": ["a"] * (rows - count) + ["b"] * count})
        return profile_columns(table)[0]["pooled"]

    assert pooled(500, 9) == ["b"]
    assert pooled(500, 10) == []
    assert pooled(20_000, 19) == ["b"]
    assert pooled(20_000, 20) == []


def test_what_has_no_place_in_a_table_is_refused():
    with pytest.raises(TableError, match=r"Column 'x' is of type List\(Int64\)"):
        profile(x=[[1], [2, 3]])
    with pytest.raises(TableError, match=r"Column 'x' holds -inf in row 1 \(from 0\)"):
        profile(x=[1.0, float("-inf"), 2.0])
    with pytest.raises(TableError, match=r"holds 1e\+?60 in row 0"):
        profile(x=[1e60, 2.0])
    with pytest.raises(TableError, match="No column is left to learn from: 'x' is dropped"):
        make_preprocessor(list(profile(x=[1, 1]).values()))


def mixed(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "x": rng.normal(size=rows),
            "few": rng.integers(0, 3, rows),
            "flag": rng.random(rows) < 0.4,
            "job": rng.choice(["cook", "smith", "clerk", "king"], rows, p=[0.5, 0.3, 0.19, 0.01]),
            "town": rng.choice(["A", "B"], rows),
        }
    ).with_columns(
        pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("x", "flag", "job")
    )


def test_features_are_what_the_preprocessor_gives_for_seen_and_unseen_values():
    table = mixed()
    columns = profile_columns(table)
    assert [column["kind"] for column in columns] == [
        "number",
        "number",
        "boolean",
        "category",
        "category",
    ]
    preprocessor = make_preprocessor(columns)
    new = pl.DataFrame(
        {
            "x": [None, 1.0, 2.0],
            "few": [None, 1, 7],
            "flag": [True, None, False],
            "job": ["pirate", None, "cook"],
            "town": [None, "C", "A"],
        }
    )
    for frame in (table, new, table[:0]):
        normal = normal_frame(frame, columns)
        ours = features(preprocessor, normal)
        assert ours.dtype == np.float32
        assert ours.flags.c_contiguous
        if frame.height:
            np.testing.assert_array_equal(ours, preprocessor.transform(normal))
    names = ("x", "few", "flag", "x is missing")
    named = dict(zip(names, features(preprocessor, normal_frame(new, columns)).T, strict=False))
    assert named["x"][0] == pytest.approx(table["x"].median(), rel=1e-6)
    assert named["x is missing"].tolist() == [1, 0, 0]


def test_the_normal_form_forgives_order_extras_and_types_that_can_be_cast():
    table = mixed()
    columns = profile_columns(table)
    normal = normal_frame(table, columns)
    other = table.select(
        pl.lit("extra").alias("more"),
        "town",
        pl.col("job").cast(pl.Categorical),
        pl.col("flag").cast(pl.Int8),
        pl.col("few").cast(pl.String),
        pl.col("x").cast(pl.String),
    )
    assert_frame_equal(normal_frame(other, columns), normal)
    codes = profile_columns(pl.DataFrame({"code": ["1", "2", "x"] * 20}))
    assert normal_frame(pl.DataFrame({"code": [1.0, None]}), codes)["code"].to_list() == ["1", ""]


def test_the_normal_form_refuses_what_cannot_be_cast_with_its_row():
    table = mixed()
    columns = profile_columns(table)
    with pytest.raises(TableError, match=r"no column 'job', which the model .*Did you mean 'Jobs'"):
        normal_frame(table.rename({"job": "Jobs"}), columns)
    text = table.with_columns(pl.col("few").cast(pl.String)).with_columns(
        pl.when(pl.int_range(pl.len()) == 3).then(pl.lit("lots")).otherwise("few").alias("few")
    )
    with pytest.raises(TableError, match=r"Column 'few' holds 'lots' in row 103 \(from 0\)"):
        normal_frame(text, columns, first_row=100)
    with pytest.raises(TableError, match=r"Column 'flag' holds 'x1' in row 0 .*true or false"):
        normal_frame(table.with_columns(pl.lit("x1").alias("flag")), columns)
    with pytest.raises(TableError, match="Column 'town' is of type Date here"):
        normal_frame(table.with_columns(pl.lit(1).cast(pl.Date).alias("town")), columns)
