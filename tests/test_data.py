"""The data registry: formats, verification, finding, fetching, splits and the command."""

import bz2
import errno
import gzip
import io
import json
import lzma
import pickle
import re
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from aucmax.cli.datasets import datasets_app
from aucmax.paper.data import (
    DATASETS,
    DataMissingError,
    Dataset,
    Split,
    dataset_status,
    fetch,
    load_dataset,
)
from aucmax.paper.data import downloads as files
from aucmax.paper.data.formats import WrongFileError, read_rows
from aucmax.paper.data.registry import DataFile, Substitute
from aucmax.reading.byte_streams import unpacked
from aucmax.runtime.output_files import open_own

PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, request):
    """No test sees the user's own folders, save those that need the real data."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("AUCMAX_CACHE", str(folder))
    if "data" not in request.keywords:
        monkeypatch.delenv("AUCMAX_DATA", raising=False)
    monkeypatch.setattr(files, "_PAUSE", 0.0)
    return folder


def small(format="csv", name="toy", url="http://localhost:9/toy.data", **changes):
    """Four rows, two features (or one cell of three states), the last class twice."""
    dataset = Dataset(
        name=name,
        format=format,
        features=3 if format == "cells" else 2,
        classes=("1", "2", "3") if format in ("libsvm", "tsv") else ("a", "b", "c"),
        positive=("3",) if format in ("libsvm", "tsv") else ("c",),
        ratio=1.0,
        train=(DataFile("toy.data", url, 4, (1, 1, 2)),),
    )
    return replace(dataset, **changes)


TEXT = {
    "csv": b"1,2.5,a\n3,-4e1,c\n5,6,b\n7,8,c\n",
    "tsv": b"1\t2.5\t1\r\n3\t-4e1\t3\r\n5\t6\t2\r\n7\t8\t3",
    "libsvm": b"1 1:1 2:2.5\n3.0 1:3 2:-4e1\n2 1:5 2:6 \n+3 1:7 2:8\n",
    "cells": b"b,a\nx,c\no,b\nb,c\n",
}
NUMBERS = [[1, 2.5], [3, -40], [5, 6], [7, 8]]
ONE_HOT = [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]


def put(folder, content, name="toy.data"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


def read(path, dataset):
    return read_rows(path, dataset, dataset.train[0])


# --- the registry


def test_the_registry_holds_table_1_of_the_paper():
    published = {
        "spambase": (3680, 921, 57),
        "usps": (7291, 2007, 256),
        "magic04": (15216, 3804, 10),
        "protein": (17766, 6621, 357),
        "ijcnn1": (49990, 91701, 22),
        "connect-4": (54045, 13512, 126),
        "acoustic": (78823, 19705, 50),
        "skin": (196045, 49012, 3),
        "cod-rna": (331152, 157413, 8),
        "covtype": (464809, 116203, 54),
    }
    assert {name: (*d.rows, d.features) for name, d in DATASETS.items()} == published


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=DATASETS)
def test_an_entry_agrees_with_itself(dataset):
    assert pickle.loads(pickle.dumps(dataset)) == dataset
    assert set(dataset.positive) < set(dataset.classes)
    assert dataset.positive or dataset.name == "acoustic"
    for file in dataset.files:
        assert file.url.startswith("https://")
        assert file.url.rsplit("/", 1)[1].startswith(file.name)
        assert sum(file.counts) in (0, file.rows)
    if all(file.counts for file in dataset.files):
        counts = np.sum([file.counts for file in dataset.files], axis=0)
        positive = sum(counts[dataset.classes.index(label)] for label in dataset.positive)
        # The paper's figure is of its training part; ours is of all rows.
        assert (counts.sum() - positive) / positive == pytest.approx(dataset.ratio, rel=0.05)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"no data set 'covtyp'\. Did you mean 'covtype'\?"):
        load_dataset("covtyp")
    with pytest.raises(ValueError, match="Known are spambase, usps"):
        load_dataset("zzzzzz")


# --- formats


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("format", TEXT)
def test_each_format_is_read_however_it_is_packed(tmp_path, format, suffix):
    path = put(tmp_path, PACK[suffix](TEXT[format]), "toy.data" + suffix)
    X, codes = read(path, small(format))
    assert X.dtype == np.float32
    assert X.flags.c_contiguous
    np.testing.assert_array_equal(X, ONE_HOT if format == "cells" else NUMBERS)
    np.testing.assert_array_equal(codes, [0, 2, 1, 2])


def test_a_sparse_libsvm_row_has_zeros(tmp_path):
    path = put(tmp_path, b"1 2:5\n2\n3 1:1\n3 1:2 2:3")
    X, _ = read(path, small("libsvm"))
    np.testing.assert_array_equal(X, [[0, 5], [0, 0], [1, 0], [2, 3]])


def pack_lzw(text, widest=16, clear_at=None):
    """A plain .Z packer, as the Unix command writes it."""
    out, group, bits = bytearray(b"\x1f\x9d" + bytes([0x80 | widest])), [], 9

    def flush():
        nonlocal group
        number = sum(code << (bits * i) for i, code in enumerate(group))
        out.extend(number.to_bytes(-(-bits * len(group) // 8), "little"))
        group = []

    def pad():
        while 0 < len(group) < 8:
            group.append(0)
        flush()

    table, word, free = {bytes([i]): i for i in range(256)}, b"", 257
    emitted = 0

    def emit(code):
        nonlocal emitted
        group.append(code)
        emitted += 1
        if len(group) == 8:
            flush()

    seen = 257  # entries the reader has by now
    first = True
    for byte in text:
        longer = word + bytes([byte])
        if longer in table:
            word = longer
            continue
        emit(table[word])
        if not first and seen < 1 << widest:
            seen += 1
        first = False
        if free < 1 << widest:
            table[longer] = free
            free += 1
        word = bytes([byte])
        if seen == 1 << bits and bits < widest:
            pad()
            bits += 1
        if clear_at and emitted == clear_at:
            emit(256)
            pad()
            table, free, seen, first, bits = {bytes([i]): i for i in range(256)}, 257, 257, True, 9
    emit(table[word])
    flush()
    return bytes(out)


@pytest.mark.parametrize(("widest", "clear_at"), [(16, None), (12, None), (16, 700), (12, 300)])
def test_a_z_file_is_unpacked(tmp_path, widest, clear_at):
    rng = np.random.default_rng(0)
    text = bytes(rng.choice(list(b"box,\n"), 30_000, p=[0.5, 0.1, 0.1, 0.2, 0.1]).astype(np.uint8))
    packed = pack_lzw(text, widest, clear_at)
    with unpacked(put(tmp_path, packed, "toy.Z")) as stream:
        assert stream.read() == text
    try:
        known = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=False)
    except FileNotFoundError:
        return
    assert known.stdout == text  # the packer of this test is right, too


def test_a_z_file_of_a_data_set(tmp_path):
    X, _ = read(put(tmp_path, pack_lzw(TEXT["cells"]), "toy.data.Z"), small("cells"))
    np.testing.assert_array_equal(X, ONE_HOT)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_cut_off_file_is_named(tmp_path, suffix):
    packed = PACK[suffix](TEXT["csv"] * 500)
    path = put(tmp_path, packed[: len(packed) // 2], "toy.data" + suffix)
    with pytest.raises(WrongFileError, match=r"cut off or damaged .* datasets fetch toy") as e:
        read(path, small())
    assert str(path) in str(e.value)


def test_a_damaged_z_file_is_named(tmp_path):
    path = put(tmp_path, b"\x1f\x9d\x90" + b"\xff" * 40, "toy.data.Z")
    with pytest.raises(WrongFileError, match="cut off or damaged"):
        read(path, small("cells"))


BAD = [
    ("csv", b"1,2,a\n3,x,c\n5,6,b\n7,8,c", "line 2 has 'x', which is no number"),
    ("csv", b"1,2,a\n3,4,c\n5,b\n7,8,c", "line 3 has 2 fields instead of 3"),
    ("csv", b"1,2,a\n3,4,5,c\n5,6,b\n7,8,c", "line 2 has 4 fields instead of 3"),
    ("csv", b"1,2,a\n3,nan,c\n5,6,b\n7,8,c", "line 2 has a value that is not a finite number"),
    ("csv", b"1,2,a\n3,4,c\n5,6,z\n7,8,c", "line 3 has the label 'z', but toy knows only a, b, c"),
    ("csv", b"1,2,a\n3,4,c\n5,6,b", "has 3 rows where toy.data has 4"),
    ("csv", b"1,2,a\n3,4,c\n5,6,b\n7,8,b", "has 2 rows of class b where toy.data has 1"),
    ("csv", b"<!DOCTYPE html><html></html>", "it is a web page instead of toy.data"),
    ("csv", b"", "is empty"),
    ("cells", b"b,a\nq,c\no,b\nb,c", "line 2 has a value other than b, o, x"),
    (
        "libsvm",
        b"1 1:1\n2 3:1\n3 1:1\n3 1:1",
        "line 2 is not a label and features from 1 to 2 .'2 3:1'",
    ),
    ("libsvm", b"1 1:1\n2 1:y\n3 1:1\n3 1:1", "line 2 is not a label and features .* .'2 1:y'"),
    ("libsvm", b"1 1:1\n2 1:1\n4 1:1\n3 1:1", "line 3 has the label '4', but toy knows only 1, 2, 3"),
    ("libsvm", b"1 1:1\n2 1:1\nq 1:1\n3 1:1", "line 3 is not a label and features .* .'q 1:1'"),
]


@pytest.mark.parametrize(("format", "text", "sentence"), BAD)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path, format, text, sentence):
    path = put(tmp_path, text)
    with pytest.raises(WrongFileError, match=sentence) as error:
        read(path, small(format))
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


# --- finding and splitting


def test_the_mirror_comes_before_the_cache(tmp_path, cache, monkeypatch):
    put(cache, TEXT["csv"].replace(b"2.5", b"9"))
    assert load_dataset(small()).name == "toy"
    mirror = tmp_path / "mirror"
    put(mirror, gzip.compress(TEXT["csv"], mtime=0), "toy.data.gz")

    def all_values(split):
        return set(np.vstack([split.X_train, split.X_test]).ravel().tolist())

    assert 9 in all_values(load_dataset(small()))
    assert 9 not in all_values(load_dataset(small(), data_dir=mirror))
    monkeypatch.setenv("AUCMAX_DATA", str(mirror))
    assert 9 not in all_values(load_dataset(small()))
    assert 9 in all_values(load_dataset(small(), data_dir=tmp_path))  # an argument beats the variable


def test_a_missing_file_is_named_with_the_command_that_fetches_it(tmp_path, cache):
    with pytest.raises(DataMissingError, match="run aucmax datasets fetch toy") as error:
        load_dataset(small(), data_dir=tmp_path / "nowhere")
    for part in ("toy.data", f"{tmp_path / 'nowhere'} (no such folder)", str(cache)):
        assert part in str(error.value)


def test_a_random_split_is_80_20_by_seed(cache):
    n = 50
    rows = b"\n".join(b"%d,%d,%s" % (i, -i, b"ab"[i % 2 :][:1]) for i in range(n))
    put(cache, rows)
    toy = small(
        classes=("a", "b"),
        positive=("b",),
        train=(DataFile("toy.data", "", n, (25, 25)),),
    )
    split = load_dataset(toy, seed=7)
    order = np.random.default_rng(7).permutation(n)
    np.testing.assert_array_equal(split.X_train[:, 0], order[:40])
    np.testing.assert_array_equal(split.X_test[:, 0], order[40:])
    np.testing.assert_array_equal(split.y_train, order[:40] % 2)
    head = split.head(10, seed=3)
    keep = np.random.default_rng(3).permutation(40)[:10]
    np.testing.assert_array_equal(head.X_train, split.X_train[keep])
    np.testing.assert_array_equal(head.y_train, split.y_train[keep])
    assert head.X_test is split.X_test
    assert split.head(40) is split


def two_parts(**changes):
    train = DataFile("toy.data", "http://localhost:9/toy.data", 4, (1, 1, 2))
    test = DataFile("toy.t", "http://localhost:9/toy.t", 4, (1, 1, 2))
    return small("libsvm", train=(train,), test=(test,), **changes)


def test_a_given_split_is_kept(cache):
    put(cache, TEXT["libsvm"])
    put(cache, bz2.compress(TEXT["libsvm"].replace(b"2.5", b"9")), "toy.t.bz2")
    split = load_dataset(two_parts(), seed=5)
    np.testing.assert_array_equal(split.X_train, NUMBERS)
    assert split.X_test[0, 1] == 9
    assert split.y_train.tolist() == split.y_test.tolist() == [0, 1, 0, 1]
    assert split.substitute == ""


def test_a_positive_class_can_be_found_by_the_papers_ratio(cache):
    put(cache, TEXT["libsvm"])
    put(cache, TEXT["libsvm"], "toy.t")
    split = load_dataset(two_parts(positive=(), ratio=1.05))
    assert split.y_train.tolist() == [0, 1, 0, 1]


def test_a_substitute_stands_in_and_says_so(cache):
    toy = two_parts()
    toy = replace(toy, substitute=Substitute(toy.train, "a random split of toy.data stands in"))
    with pytest.raises(DataMissingError, match=r"the file toy\.data"):
        load_dataset(toy)
    put(cache, TEXT["libsvm"])
    split = load_dataset(toy)
    assert split.substitute == "a random split of toy.data stands in"
    assert split.head(1).substitute == split.substitute
    assert (len(split.y_train), len(split.y_test)) == (3, 1)
    put(cache, TEXT["libsvm"], "toy.t")
    assert load_dataset(toy).substitute == ""


def test_status_tells_present_from_substitute_and_missing(tmp_path):
    mirror = tmp_path / "mirror"
    put(mirror, b"12345", "spambase.data.gz")
    put(mirror, b"123", "protein.val.bz2")
    put(mirror, b"1", "ijcnn1.bz2")  # without its test part
    status = {entry.name: entry for entry in dataset_status(mirror)}
    assert list(status) == list(DATASETS)
    assert (status["spambase"].state, status["spambase"].size) == ("present", 5)
    assert status["spambase"].paths == (mirror / "spambase.data.gz",)
    assert (status["protein"].state, status["protein"].size) == ("substitute", 3)
    assert (status["ijcnn1"].state, status["ijcnn1"].size) == ("missing", 1)
    assert status["covtype"].state == "missing"


# --- fetching, from a site on this machine


class Site:
    """Serves one body; ``cuts`` are the bytes after which it breaks off, request by request."""

    def __init__(self):
        self.body, self.cuts, self.etag = b"", [], '"one"'
        self.honours_range, self.status, self.asked = True, 200, []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.answer(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/toy.data.gz"

    def answer(self, request):
        asked = request.headers.get("Range")
        self.asked.append(asked)
        if self.status != 200:
            request.send_error(self.status)
            return
        body, start = self.body, 0
        same = request.headers.get("If-Range") == self.etag
        if asked and self.honours_range and same:
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            request.send_response(200)
        request.send_header("Content-Length", str(len(body) - start))
        if self.etag:
            request.send_header("ETag", self.etag)
        request.end_headers()
        cut = self.cuts.pop(0) if self.cuts else len(body)
        request.wfile.write(body[start : start + cut])
        request.close_connection = True

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def site():
    site = Site()
    site.body = gzip.compress(TEXT["csv"], mtime=0)
    yield site
    site.close()


def left(folder):
    """What lies in a folder, but for the locks."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_a_file_is_fetched_once_and_found_afterwards(site, cache, capfd):
    toy = small(url=site.url)
    assert fetch(toy) == (cache / "toy.data.gz",)
    assert fetch(toy) == (cache / "toy.data.gz",)
    assert load_dataset(toy).name == "toy"
    assert len(site.asked) == 1
    assert left(cache) == ["toy.data.gz"]
    assert capfd.readouterr() == ("", "")  # no bar where there is no terminal


def test_loading_downloads_only_if_told_to(site, cache):
    with pytest.raises(DataMissingError):
        load_dataset(small(url=site.url))
    assert not site.asked
    assert isinstance(load_dataset(small(url=site.url), download=True), Split)


def test_fetch_puts_files_into_a_folder_of_choice(site, cache, tmp_path):
    assert fetch(small(url=site.url), data_dir=tmp_path / "here") == (
        tmp_path / "here" / "toy.data.gz",
    )
    assert not cache.exists()


def test_a_broken_transfer_is_resumed(site, cache):
    site.cuts = [10, 7]
    fetch(small(url=site.url))
    assert site.asked == [None, "bytes=10-", "bytes=17-"]
    assert (cache / "toy.data.gz").read_bytes() == site.body
    assert left(cache) == ["toy.data.gz"]


def test_a_site_that_ignores_ranges_is_asked_for_all_again(site, cache):
    site.honours_range, site.cuts = False, [10]
    fetch(small(url=site.url))
    assert (cache / "toy.data.gz").read_bytes() == site.body


def test_a_site_without_tags_is_asked_for_all_again(site, cache):
    site.etag, site.cuts = "", [10]
    fetch(small(url=site.url))
    assert site.asked == [None, None]
    assert (cache / "toy.data.gz").read_bytes() == site.body


def test_what_came_of_a_transfer_that_keeps_breaking_is_resumed_next_time(site, cache):
    site.cuts = [5] * 4
    with pytest.raises(OSError, match=r"broke off 4 times \(20 of .* bytes came\).* again to resume"):
        fetch(small(url=site.url))
    assert left(cache) == [".toy.data.gz.part", ".toy.data.gz.part.tag"]
    assert dataset_status()[0].state == "missing"
    fetch(small(url=site.url))
    assert site.asked[-1] == "bytes=20-"
    assert left(cache) == ["toy.data.gz"]


def test_a_file_that_changed_meanwhile_is_downloaded_from_the_start(site, cache):
    site.cuts = [5] * 4
    with pytest.raises(OSError, match="broke off"):
        fetch(small(url=site.url))
    site.body, site.etag = gzip.compress(TEXT["csv"].replace(b"2.5", b"9"), mtime=0), '"two"'
    fetch(small(url=site.url))
    assert (cache / "toy.data.gz").read_bytes() == site.body


def test_a_kept_part_longer_than_the_file_is_downloaded_from_the_start(site, cache, monkeypatch):
    put(cache, b"x" * 500, ".toy.data.gz.part")
    put(cache, b'"one"', ".toy.data.gz.part.tag")
    answer = site.answer

    def refuse_beyond(request):
        if request.headers.get("Range") == "bytes=500-":
            request.send_error(416)
        else:
            answer(request)

    monkeypatch.setattr(site, "answer", refuse_beyond)
    fetch(small(url=site.url))
    assert (cache / "toy.data.gz").read_bytes() == site.body


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>moved</html>", "it is a web page"),
        (gzip.compress(b"1,2,a\n", mtime=0), "it has 1 rows where toy.data has 4"),
        (gzip.compress(TEXT["csv"] * 99, mtime=0)[:-9], "it is cut off or damaged"),
    ],
)
def test_a_wrong_file_is_removed(site, cache, body, why):
    site.body = body
    with pytest.raises(OSError, match=f"did not give toy.data: {why}") as error:
        fetch(small(url=site.url))
    assert site.url in str(error.value)
    assert left(cache) == []


def test_a_file_that_is_not_there(site, cache):
    site.status = 404
    with pytest.raises(OSError, match=r"answers 404 Not Found; the file may have moved"):
        fetch(small(url=site.url))
    assert len(site.asked) == 1
    assert left(cache) == []


def test_a_site_in_trouble_is_asked_again(site, cache):
    site.status = 503
    with pytest.raises(OSError, match=r"broke off 4 times .the site answers 503"):
        fetch(small(url=site.url))
    assert len(site.asked) == 4


def test_no_network(site, cache):
    url = site.url
    site.server.server_close()  # nobody listens at this port any more
    with pytest.raises(OSError, match=r"cannot reach 127\.0\.0\.1.*check the network") as error:
        fetch(small(url=url))
    assert "\n" not in str(error.value)
    assert left(cache) == []


def test_without_network_a_substitute_at_hand_is_used(cache):
    put(cache, TEXT["libsvm"])
    toy = two_parts()
    test = replace(toy.test[0], url="http://127.0.0.1:9/toy.t")
    toy = replace(toy, test=(test,), substitute=Substitute(toy.train, "a stand-in"))
    assert load_dataset(toy, download=True).substitute == "a stand-in"


def test_a_full_disk(site, cache, monkeypatch):
    class FullDisk(io.BytesIO):
        def write(self, chunk):
            raise OSError(errno.ENOSPC, "No space left on device")

    def open_part(path, mode):
        return FullDisk() if path.suffix == ".part" else open_own(path, mode)

    site.body = bytes(300_000)
    monkeypatch.setattr(files, "open_own", open_part)
    with pytest.raises(OSError, match=r"is full; toy\.data\.gz needs 0\.3 MB: free some space"):
        fetch(small(url=site.url))
    assert left(cache) == []


def test_a_folder_that_cannot_be_written(site, tmp_path):
    place = put(tmp_path, b"", "a-file")
    with pytest.raises(OSError, match=r"cannot write into .*AUCMAX_CACHE"):
        fetch(small(url=site.url), data_dir=place)


def test_two_fetches_at_once_ask_once(site, cache):
    toy = small(url=site.url)
    results = []
    threads = [threading.Thread(target=lambda: results.append(fetch(toy))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(cache / "toy.data.gz",)] * 4
    assert len(site.asked) == 1
    assert left(cache) == ["toy.data.gz"]


def test_two_processes_at_once(site, cache):
    body = "1,2.5,a\n3,-4e1,c\n5,6,b\n7,8,c\n"
    site.body = gzip.compress(body.encode(), mtime=0)
    code = (
        "import sys\n"
        "from aucmax.paper.data import Dataset, fetch\n"
        "from aucmax.paper.data.registry import DataFile\n"
        "file = DataFile('toy.data', sys.argv[1], 4, (1, 1, 2))\n"
        "fetch(Dataset('toy', 'csv', 2, ('a', 'b', 'c'), ('c',), 1.0, (file,)))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, site.url]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    assert (cache / "toy.data.gz").read_bytes() == site.body
    assert len(site.asked) == 1


# --- the command


def run(*arguments):
    app = typer.Typer()
    app.add_typer(datasets_app, name="datasets")
    return CliRunner().invoke(app, ["datasets", *arguments])


def test_the_command_lists_every_data_set(tmp_path):
    put(tmp_path, b"123", "protein.val.bz2")
    result = run("--data-dir", str(tmp_path))
    assert result.exit_code == 0
    for name in DATASETS:
        assert name in result.stdout
    rows = {row["name"]: row for row in json.loads(run("--json", "--data-dir", str(tmp_path)).stdout)}
    assert list(rows) == list(DATASETS)
    assert rows["protein"]["state"] == "substitute"
    assert "stands in" in rows["protein"]["substitute"]
    assert rows["covtype"] == {
        "name": "covtype",
        "train_rows": 464809,
        "test_rows": 116203,
        "features": 54,
        "ratio": 10.65,
        "state": "missing",
        "bytes": 0,
        "files": [],
        "note": "Positive: the cover types 4 to 7.",
        "substitute": "",
    }


def test_the_command_fetches(site, cache, monkeypatch):
    monkeypatch.setitem(DATASETS, "toy", small(url=site.url))
    result = run("fetch", "toy")
    assert result.exit_code == 0
    assert result.stdout == f"toy: {cache / 'toy.data.gz'} ({len(site.body)} B)\n"


def test_the_command_goes_on_after_a_failure(site, monkeypatch):
    monkeypatch.setitem(DATASETS, "gone", small(name="gone", url="http://127.0.0.1:9/gone.data"))
    monkeypatch.setitem(DATASETS, "toy", small(url=site.url))
    alone = run("fetch", "gone")
    assert isinstance(alone.exception, OSError)  # which the main command turns into a sentence
    result = run("fetch", "gone", "toy")
    assert result.exit_code == 2
    assert result.stderr.startswith("aucmax: gone: cannot reach 127.0.0.1:9")
    assert result.stdout.startswith("toy: ")


def test_the_command_knows_names_and_has_help():
    assert "Did you mean 'usps'?" in str(run("fetch", "upsp").exception)
    for arguments in (("--help",), ("fetch", "--help")):
        assert "Example: aucmax datasets fetch ijcnn1 usps" in run(*arguments).stdout


def test_importing_the_registry_loads_nothing_heavy():
    code = (
        "import sys, aucmax.paper.data, aucmax.cli.datasets\n"
        "print([m for m in ('sklearn', 'polars', 'numba', 'scipy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# --- the real files


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if sum(data.rows) < 20_000 else pytest.mark.slow)
        for name, data in DATASETS.items()
    ],
)
def test_the_real_files_are_as_published(name):
    try:
        split = load_dataset(name)  # verifies rows and class counts of each file
    except DataMissingError as missing:
        pytest.skip(str(missing))
    dataset = DATASETS[name]
    if split.substitute:
        assert dataset.substitute
        rows = len(split.y_train) + len(split.y_test)
        assert rows == sum(file.rows for file in dataset.substitute.files)
    else:
        assert (len(split.y_train), len(split.y_test)) == dataset.rows
    for X in (split.X_train, split.X_test):
        assert X.shape[1] == dataset.features
        assert X.dtype == np.float32
        assert X.flags.c_contiguous
    y = np.concatenate([split.y_train, split.y_test])
    if name != "protein" or not split.substitute:
        assert (1 - y).sum() / y.sum() == pytest.approx(dataset.ratio, rel=0.02)
