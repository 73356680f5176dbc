"""Files that are written: whole or not at all, by one way, and never over something else."""

import errno
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from aucmax import LinearAUCClassifier
from aucmax.cli import main
from aucmax.persistence.model_file import load_model, save_model
from aucmax.runtime.output_files import OutputError, replacing, scratch_folder
from tests.searches import fit_table

X = np.random.default_rng(0).normal(size=(60, 3))
MODEL = LinearAUCClassifier().fit(X, X[:, 0] > 0)
SOURCE = Path(__file__).parent.parent / "src" / "aucmax"

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def names(folder):
    return sorted(each.name for each in folder.iterdir())


def put(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def interrupted(path, error):
    with replacing(path) as file:
        file.write(b"half")
        raise error


def listen(path):
    """Read a pipe to its end in another thread."""
    heard = []
    thread = threading.Thread(target=lambda: heard.append(path.read_bytes()), daemon=True)
    thread.start()
    return thread, heard


# What a path leads to


@linux
def test_a_pipe_is_written_into(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    thread, heard = listen(pipe)
    save_model(MODEL, pipe)
    thread.join(10)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    copy = tmp_path / "copy.aucmax"
    copy.write_bytes(heard[0])
    np.testing.assert_array_equal(load_model(copy).decision_function(X), MODEL.decision_function(X))


@linux
def test_nothing_reaches_a_pipe_before_all_is_there(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(RuntimeError):
        interrupted(pipe, RuntimeError)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.skipif(not hasattr(os, "mknod") or os.geteuid() != 0, reason="needs root")
def test_a_device_is_written_into(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.read_bytes()
    except OSError:
        pytest.skip("devices cannot be made or used here")
    save_model(MODEL, device)
    assert stat.S_ISCHR(device.stat().st_mode)
    assert names(tmp_path) == ["null"]


@linux
def test_a_device_that_takes_nothing_is_named(tmp_path):
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with pytest.raises(OutputError, match=r"cannot write .*full: No space left") as caught:
        put(link)
    assert caught.value.errno == errno.ENOSPC
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "m.aucmax", tmp_path / "m.aucmax"
    target.write_bytes(b"old")
    link.symlink_to("elsewhere/m.aucmax")
    save_model(MODEL, link)
    assert link.is_symlink()
    assert load_model(target).n_features_in_ == 3
    assert names(tmp_path / "elsewhere") == ["m.aucmax"]


def test_a_link_to_nothing_leads_to_the_new_file(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("new")
    put(link)
    assert link.is_symlink()
    assert (tmp_path / "new").read_bytes() == b"new"


def test_folders_and_sockets_are_refused(tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        put(tmp_path)
    with socket.socket(socket.AF_UNIX) as plug:
        monkeypatch.chdir(tmp_path)  # a socket's path may be no longer than about 100 bytes
        plug.bind("plug")
        with pytest.raises(OSError, match="is a socket"):
            put(tmp_path / "plug")
    assert stat.S_ISSOCK((tmp_path / "plug").stat().st_mode)


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OutputError, match="cannot write"):
        put(tmp_path / "a")


# The part file


def test_a_planted_link_is_not_followed(tmp_path):
    """Whatever lies at the name that part files had in version 0.1 is left alone."""
    victim, out = tmp_path / "victim", tmp_path / "m.aucmax"
    victim.write_bytes(b"precious")
    (tmp_path / ".m.aucmax.part").symlink_to(victim)
    save_model(MODEL, out)
    assert victim.read_bytes() == b"precious"
    assert load_model(out).n_features_in_ == 3


def test_part_files_are_new_private_to_their_writer_and_follow_the_umask(tmp_path):
    out = tmp_path / "out"
    before = os.umask(0o027)
    try:
        with replacing(out) as first, replacing(out) as second:
            parts = [name for name in names(tmp_path) if name.endswith(".part")]
            first.write(b"first")
            second.write(b"second")
    finally:
        os.umask(before)
    assert len(set(parts)) == 2
    assert out.read_bytes() == b"first"  # the last to be renamed
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    assert names(tmp_path) == ["out"]


def test_an_error_leaves_the_older_file_alone(tmp_path):
    out = tmp_path / "out"
    out.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        interrupted(out, KeyboardInterrupt)
    assert out.read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


def test_errors_of_the_system_become_one_sentence(tmp_path):
    with pytest.raises(OutputError, match=r"^cannot write .*out: No such file or directory") as caught:
        put(tmp_path / "nowhere" / "out")
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "out"):
        (tmp_path / "an input that is missing").read_bytes()  # no error of writing
    assert names(tmp_path) == []


def test_the_longest_names_have_part_files_too(tmp_path):
    out = tmp_path / ("n" * 255)
    put(out)
    assert out.read_bytes() == b"new"


@linux
def test_the_next_save_removes_what_a_killed_one_left(tmp_path):
    out = tmp_path / "out"
    code = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from aucmax.runtime.output_files import replacing, scratch_folder\n"
        "path = Path(sys.argv[1])\n"
        "with replacing(path) as file, scratch_folder(path) as folder:\n"
        "    (folder / 'batch').write_bytes(b'x')\n"
        "    file.write(b'half')\n    file.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(out)])
    assert done.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2
    put(tmp_path / "other")  # another output's leftovers are not its own
    assert len(names(tmp_path)) == 3
    with replacing(out) as file, scratch_folder(out):
        assert len(names(tmp_path)) == 3  # the dead run's are gone; these are ours, and live
        put(out, b"meanwhile")
        assert len(names(tmp_path)) == 4  # which another writer sees, and leaves
        file.write(b"new")
    assert names(tmp_path) == ["other", "out"]
    assert out.read_bytes() == b"new"


def test_writers_at_once_all_succeed(tmp_path):
    out, failed = tmp_path / "out", []

    def write(letter):
        try:
            for _ in range(30):
                put(out, letter * 50_000)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(set(out.read_bytes())) == 1
    assert names(tmp_path) == ["out"]


def test_there_is_one_way_to_write_an_output():
    """Whatever else opens a file for writing is no output, and is listed here with its reason."""
    others = {
        "runtime/output_files.py": "the one way",
        "paper/data/downloads.py": "a download that can be resumed keeps its name",
        "paper/store.py": "rows are appended",
        "rows/stored.py": "a temporary file of a fit",
        "operators/speeds.py": "a temporary file that is timed",
        "paper/runner.py": "the null device",
        "cli/table_inputs.py": "a temporary copy of standard input",
        "reading/encodings.py": "a temporary copy in UTF-8",
    }
    writes = re.compile(
        r"""open\([^)]*["'][rwax]?b?[wa+]|\.open\(["'][wax]|write_text\(|write_bytes\(|os\.replace|os\.rename"""
    )
    found = set()
    for path in SOURCE.rglob("*.py"):
        lines = [
            line for line in path.read_text().splitlines() if not re.match(r" *(>>>|\.\.\.) ", line)
        ]
        if any(writes.search(line) for line in lines):
            found.add(str(path.relative_to(SOURCE)))
    assert found <= set(others)


# The command


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table and a model of it."""
    import polars as pl

    folder = tmp_path_factory.mktemp("outputs")
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] > 0, "yes", "no")})
    table.write_csv(folder / "t.csv")
    model = fit_table(table, "y", n_landmarks=5, kernel="rbf", gammas=1, cv=2)
    save_model(model, folder / "m.aucmax")
    return folder


def run(folder, monkeypatch, *arguments):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["aucmax", *arguments])
    try:
        main()
    except SystemExit as end:
        return end.code
    return 0


OUTPUTS = [
    ("train t.csv --target y --landmarks 5 --preset paper --folds 2 -o", "new.aucmax"),
    ("predict m.aucmax t.csv -o", "scores.csv"),
    ("predict m.aucmax t.csv -o", "scores.parquet"),
    ("report m.aucmax -o", "page.html"),
    ("export m.aucmax --onnx", "m.onnx"),
]


@pytest.mark.parametrize(("command", "name"), OUTPUTS)
def test_an_existing_output_is_refused_before_any_work(place, monkeypatch, capsys, command, name):
    (place / name).write_bytes(b"old")
    words = command.replace("m.aucmax", "missing.aucmax").split()
    assert run(place, monkeypatch, *words, name) == 2
    error = capsys.readouterr().err
    assert error == f"aucmax: {name} exists: add --force to replace it, or name another output.\n"
    assert (place / name).read_bytes() == b"old"
    (place / name).unlink()


@pytest.mark.parametrize(("command", "name"), OUTPUTS[1:4])
def test_force_replaces_it(place, monkeypatch, capsys, command, name):
    (place / name).write_bytes(b"old")
    assert run(place, monkeypatch, *command.split(), name, "--force") == 0
    assert (place / name).read_bytes()[:3] != b"old"
    (place / name).unlink()
    assert names(place) == ["m.aucmax", "t.csv"]


def test_force_does_not_replace_what_is_read(place, monkeypatch, capsys):
    before = (place / "m.aucmax").read_bytes()
    assert run(place, monkeypatch, "report", "m.aucmax", "-o", "m.aucmax", "--force") == 2
    assert "is an input and would be overwritten" in capsys.readouterr().err
    assert (place / "m.aucmax").read_bytes() == before


@linux
@pytest.mark.parametrize("name", ["pipe.csv", "pipe.parquet"])
def test_predictions_go_into_a_pipe(place, tmp_path, monkeypatch, capsys, name):
    import polars as pl

    pipe = tmp_path / name
    os.mkfifo(pipe)
    thread, heard = listen(pipe)
    assert run(place, monkeypatch, "predict", "m.aucmax", "t.csv", "-o", str(pipe)) == 0
    thread.join(10)
    read = pl.read_csv if name.endswith("csv") else pl.read_parquet
    assert read(heard[0]).height == 60
    assert names(tmp_path) == [name]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
