"""What a file declares is checked before memory is taken for it."""

import bz2
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import polars as pl
import pytest

from aucmax import LinearAUCClassifier
from aucmax.fitting.checkpoint import Checkpoint
from aucmax.paper.data import formats
from aucmax.paper.data.formats import WrongFileError, read_rows
from aucmax.paper.data.registry import DataFile, Dataset
from aucmax.persistence.model_file import ModelFileError, load_model, save_model
from aucmax.reading import byte_streams as files
from aucmax.reading.frames import TableError
from aucmax.reading.read import column_names, read_table, table_batches
from aucmax.runtime import memory

X = np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture
def little(monkeypatch):
    """A machine with 50 MB left."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 50_000_000)


# LIBSVM


@pytest.mark.parametrize("index", [5_000_000_000, 2_000_000, 10**17, 10**30, int("9" * 4000)])
@pytest.mark.parametrize("use", [read_table, column_names, lambda path: list(table_batches(path))])
def test_a_libsvm_index_beyond_memory_is_refused_with_its_line(tmp_path, little, index, use):
    path = tmp_path / "a.libsvm"
    path.write_text("1 1:0.5 4:2\n" * 50 + f"-1 2:1 {index}:1\n" + "1 3:4\n" * 50)
    with pytest.raises(TableError, match=r"a\.libsvm: line 51 has the feature \d[\d,.]*") as caught:
        use(path)
    assert "load_svmlight_file" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_features_that_are_not_asked_for_take_no_memory(tmp_path, little):
    path = tmp_path / "a.libsvm"
    path.write_text("1 1:0.5 4:2\n-1 2:1 2000000:1\n")
    found = read_table(path, ["f4", "target", "f3000000", "f2", "f2000000"])
    assert found.rows() == [(2.0, 1, 0.0, 0.0, 0.0), (0.0, -1, 0.0, 1.0, 1.0)]


def test_a_libsvm_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    monkeypatch.setattr(files, "PIECE", 100)
    path = tmp_path / "a.libsvm"
    path.write_text("1 1:1\n" * 5 + " ".join(["1", *(f"{i}:1" for i in range(1, 900))]))
    with pytest.raises(TableError, match=r"a\.libsvm: line 6 is longer than 1 kB"):
        read_table(path)


def test_a_long_number_in_a_wrong_line_is_found_at_once(tmp_path):
    """With a pattern that tries every length of it this takes minutes."""
    path = tmp_path / "a.libsvm"
    path.write_text("1 1:" + "9" * 200_000 + "x\n")
    with pytest.raises(TableError, match="is not in the LIBSVM format"):
        read_table(path)


# Text


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow"])
def test_a_file_that_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch, pack, name):
    monkeypatch.setattr(files, "PIECE", 2**16)
    monkeypatch.setattr(memory, "available_bytes", lambda: 500_000)
    path = tmp_path / f"{name}.gz"
    path.write_bytes(pack(b"a,b\n" + b"1,2\n" * 100_000))
    with pytest.raises(
        TableError, match=r"unpacked and parsed, needs more than .* unpack it .* or read it in parts"
    ):
        read_table(path)


def test_a_text_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 100_000)
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3," + "x" * 300_000)
    monkeypatch.setattr(files, "PIECE", 1000)
    with pytest.raises(TableError, match=r"a\.csv: line 3 is longer than 100 kB"):
        list(table_batches(path))


# Parquet and Arrow


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_rows_beyond_memory_are_refused(tmp_path, monkeypatch, name):
    path, table = tmp_path / name, pl.DataFrame({"a": np.zeros(50_000), "b": ["x"] * 50_000})
    table.write_parquet(path) if name.endswith("parquet") else table.write_ipc(path)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1_000_000)
    with pytest.raises(
        TableError, match=rf"{name} declares 50,000 rows of 2 columns, .*1\.2 MB"
    ) as caught:
        read_table(path)
    assert "table_batches" in str(caught.value)
    assert read_table(path, ["a"]).height == 50_000
    assert sum(part.height for part in table_batches(path, 1000)) == 50_000


def test_a_panic_of_the_reader_is_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(path)

    def panic(*_args, **_more):
        raise pl.exceptions.PanicException("capacity overflow")

    monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    with pytest.raises(TableError, match=r"a\.parquet is not a valid Parquet file \(capacity"):
        read_table(path)


# Model files and checkpoints


def repacked(path, change):
    """Write a model file again with one array's header changed."""
    with zipfile.ZipFile(path) as file:
        manifest, data = json.loads(file.read("manifest.json")), file.read("model.skops")
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name.endswith(".npy") else old.read(name))
    import hashlib

    manifest["sha256"] = hashlib.sha256(out.getvalue()).hexdigest()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("manifest.json", json.dumps(manifest))
        file.writestr("model.skops", out.getvalue())


def npy(shape, dtype="<f8", values=b""):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue() + values


@pytest.mark.parametrize("shape", [(2_000_000_000,), (10**7, 10**7), (2**62, 2**62)])
def test_an_array_of_a_model_that_is_larger_than_its_file_is_refused(tmp_path, shape):
    path = save_model(LinearAUCClassifier().fit(X, X[:, 0] > 0), tmp_path / "m.aucmax")
    repacked(path, lambda _: npy(shape, values=b"\0" * 24))
    with pytest.raises(ModelFileError, match=r"declares .* and holds 24 bytes"):
        load_model(path)
    repacked(path, lambda _: b"\x93NUMPY\x01\x00\x05\x00{'}}}\n")
    with pytest.raises(ModelFileError, match=r"is no array \("):
        load_model(path)


@pytest.mark.parametrize("shape", [(2_000_000_000,), (10**7, 10**7)])
def test_an_array_of_a_checkpoint_that_is_larger_than_its_file_is_refused(tmp_path, shape):
    path = tmp_path / "c.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.npy", npy(shape, "|u1", b"{}"))
    with pytest.raises(ValueError, match="is not a checkpoint, or not a complete one"):
        Checkpoint(path)


def test_a_packed_checkpoint_is_refused(tmp_path):
    path = tmp_path / "c.npz"
    np.savez_compressed(path, header=np.zeros(10**6, np.uint8))
    with pytest.raises(ValueError, match="is not a checkpoint, or not a complete one"):
        Checkpoint(path)


# The files of data sets

TOY = Dataset(
    name="toy",
    format="libsvm",
    features=3,
    classes=("-1", "1"),
    positive=("1",),
    ratio=1.0,
    train=(DataFile("toy", "https://example.org/toy", 4, (2, 2)),),
)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda text: text])
def test_a_data_file_with_far_more_rows_than_published_is_refused(tmp_path, monkeypatch, pack):
    path = tmp_path / "toy"
    path.write_bytes(pack(b"1 1:2\n" * 50_000))
    monkeypatch.setattr(formats, "_parse_libsvm", lambda *_: pytest.fail("it was parsed"))
    with pytest.raises(WrongFileError, match=r"toy .*(more than|where toy has 4)"):
        read_rows(path, TOY, TOY.files[0])
