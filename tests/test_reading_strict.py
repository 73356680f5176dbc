"""Every command reads a file with the same strictness, whichever columns it needs."""

import polars as pl
import pytest

from aucmax.reading import byte_streams
from aucmax.reading.read import read_table, table_batches
from aucmax.tables import TableError

HEAD, GOOD, MORE = "a,b,town,d,y\n", "1,2,Bath,4,0\n", "2,3,Hull,5,1\n"

#: What a model that needs neither the town nor the label reads.
NEEDED = {"a": pl.Float64, "b": pl.Float64, "d": pl.Float64}

SIX = r"Row 1 \(from 0; line 3 of .*\) has 6 values"

#: Files that train refuses, and what is said of each.
REFUSED = {
    "decimal comma": (GOOD + "1,5,2,Bath,4,0\n" + MORE, SIX),
    "comma at the end": (
        GOOD + "1,2,Bath,4,0,\n" + MORE,
        SIX,
    ),
    "too few": (GOOD + MORE + "1,2,Bath\n", r"Row 2 \(from 0; line 4 of .*\) has 3 values"),
    "needed ones alone": (GOOD + "1,2,Bath,4\n" + MORE, r"Row 1 \(from 0; line 3 of .*\) has 4 values"),
    "a line of blanks": (GOOD + "   \n" + MORE, r"Row 1 \(from 0; line 3 of .*\) has 1 value "),
    "open quote": (
        GOOD + '1,2,"Bath,4,0\n' + MORE,
        r"in row 1 \(from 0; line 3 of .*\) is not closed",
    ),
    "text after a quote": (GOOD + '1,2,"Ba"th,4,0\n' + MORE, "line 3 cannot be read"),
    "inches": (GOOD + '1,2,5" pipe,4,0\n' + MORE, r'quote \("\) in line 3 is part of its value'),
    "not UTF-8": (GOOD + "1,2,caf\xe9,4,0\n" + MORE, "line 3 has the byte 0xe9"),
}


def whole(path):
    return read_table(path)


def some_columns(path):
    return read_table(path, list(NEEDED))


def with_types(path):
    return read_table(path, schema={"town": pl.String})


def batches(path):
    return pl.concat(list(table_batches(path, columns=list(NEEDED), schema=NEEDED)))


def batches_without_types(path):
    return pl.concat(list(table_batches(path, columns=["b"])))


READERS = (whole, some_columns, with_types, batches, batches_without_types)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_train_refuses_is_refused_by_all(tmp_path, read, case):
    text, sentence = REFUSED[case]
    path = tmp_path / "t.csv"
    path.write_bytes((HEAD + text).encode("latin-1"))
    with pytest.raises(TableError, match=sentence):
        read(path)


@pytest.mark.parametrize("read", READERS)
def test_good_files_are_read_with_the_columns_wanted(tmp_path, read):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + GOOD + '7,8,"Rye, or\nso",,\n' + MORE)
    found = read(path)
    assert found["b"].to_list() == [2, 8, 3]
    if "d" in found.columns:
        assert found["d"].to_list() == [4, None, 5]


def test_a_bad_row_in_a_later_piece_is_counted_in_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr(byte_streams, "PIECE", 64)
    path = tmp_path / "t.csv"
    quoted = '1,2,"Rye,\nor so",4,0\n'  # a row on two lines
    path.write_text(HEAD + quoted + GOOD * 40 + "1,5,2,Bath,4,0\n" + MORE)
    with pytest.raises(TableError, match=r"Row 41 \(from 0; line 44 of .*t.csv\) has 6 values"):
        batches(path)
    path.write_text(HEAD + quoted + GOOD * 40 + "1,5,Bath,many,0\n" + MORE)
    with pytest.raises(TableError, match=r"Column 'd' holds 'many' in row 41 \(from 0; line 44 of"):
        batches(path)
