"""The runner of the paper's experiments, on a tiny data set of its own."""

import bz2
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from importlib import import_module
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

import numpy as np
import pytest

from aucmax.paper import protocol, runner
from aucmax.paper import store as store_module
from aucmax.paper.methods import METHODS
from aucmax.paper.protocol import Cell, Settings
from aucmax.paper.results import notes_of
from aucmax.paper.runner import Progress, plan, run_cells
from aucmax.paper.store import FolderInUseError, Store, timed_again

TINY = Settings(20, 200, 300, None, 100, 80, (1, 2, 4), True)


def row_of(cell, settings=TINY, **more):
    return {**cell.identity(settings), "status": "done", "reason": "", "note": "", **more}


# The store


def test_rows_outlive_the_run(tmp_path):
    cell = Cell("spambase", "NBAUC", 0)
    with Store(tmp_path / "out").open() as store:
        store.append(row_of(cell, auc=0.9))
    assert Store(tmp_path / "out").get(cell.key(TINY))["auc"] == 0.9


def test_a_line_cut_short_is_dropped_and_later_rows_stand_alone(tmp_path):
    first, second = Cell("spambase", "NBAUC", 0), Cell("spambase", "NBAUC", 1)
    with Store(tmp_path).open() as store:
        store.append(row_of(first, auc=0.9))
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"data": "spamb')
    with Store(tmp_path).open() as store:
        assert len(store.rows) == 1
        store.append(row_of(second, auc=0.8))
    assert [row["auc"] for row in Store(tmp_path).rows] == [0.9, 0.8]


def test_a_whole_last_line_without_its_end_is_kept(tmp_path):
    first, second = Cell("spambase", "NBAUC", 0), Cell("spambase", "NBAUC", 1)
    (tmp_path / "rows.jsonl").write_text(json.dumps(row_of(first, auc=0.9)))
    with Store(tmp_path).open() as store:
        store.append(row_of(second, auc=0.8))
    assert [row["auc"] for row in Store(tmp_path).rows] == [0.9, 0.8]


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    (tmp_path / "rows.jsonl").write_text("{}\nnot json\n{}\n")
    with pytest.raises(ValueError, match=r"rows.jsonl, line 2 is not JSON"):
        Store(tmp_path)


def test_later_rows_take_the_place_of_earlier_ones(tmp_path):
    cell = Cell("spambase", "NBAUC", 0)
    with Store(tmp_path).open() as store:
        store.append({**row_of(cell), "status": "failed"})
        store.append(row_of(cell, auc=0.7))
    (row,) = Store(tmp_path).rows
    assert row["auc"] == 0.7


def test_a_second_run_on_the_folder_is_refused(tmp_path):
    with Store(tmp_path).open():
        code = (
            "import sys; from pathlib import Path; from aucmax.paper.store import Store\n"
            "with Store(Path(sys.argv[1])).open(): pass"
        )
        other = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
        assert "another run is writing to" in other.stderr
        with pytest.raises(FolderInUseError, match="--out"), Store(tmp_path).open():
            pass
    with Store(tmp_path).open():
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="cannot write results to"), Store(tmp_path / "out").open():
        pass


def test_a_file_in_the_folders_place(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(OSError, match="cannot write results to"), Store(tmp_path / "out").open():
        pass


# The plan


def test_experiments_share_cells():
    cells = plan(("batch", "stochastic"), ["ijcnn1", "covtype"], seeds=1)
    assert len(cells) == len(set(cells))
    assert cells.count(Cell("ijcnn1", "NBAUC", 0)) == 1  # 49,990 rows: Tables 2 and 4 are one
    assert Cell("covtype", "NBAUC", 0, "cap") in cells
    assert Cell("covtype", "NBAUC", 0, "all") in cells


def test_seeds_of_small_and_large_data():
    cells = plan(("batch",), ["spambase", "covtype"])
    seeds = {}
    for cell in cells:
        seeds.setdefault((cell.data, cell.method), []).append(cell.seed)
    assert seeds["spambase", "RBF-RankSVM"] == [0, 1, 2, 3, 4]
    assert seeds["covtype", "NBAUC"] == [0, 1, 2]
    assert seeds["covtype", "RBF-RankSVM"] == [0, 1, 2]
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)


def test_rows_go_to_each_experiment_they_belong_to():
    def experiments(*cell):
        return [row["experiment"] for row in protocol.tabulated(row_of(Cell(*cell)))]

    assert experiments("ijcnn1", "NBAUC", 0) == ["batch", "stochastic"]
    assert experiments("covtype", "NBAUC", 0, "cap") == ["batch"]
    assert experiments("covtype", "NBAUC", 0, "all") == ["stochastic"]
    assert experiments("covtype", "NSAUC", 0, "all", True) == ["epochs"]
    assert experiments("spambase", "NBAUC", 0) == ["batch"]
    assert experiments("spambase", "", 0) == ["data"]


# Cells


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A data set of two moons in a folder of its own."""
    from sklearn.datasets import make_moons

    from aucmax.paper.data.registry import DataFile, Dataset

    X, y = make_moons(500, noise=0.25, random_state=0)
    folder = tmp_path_factory.mktemp("data")
    lines = [f"{a:.5f},{b:.5f},{label}" for (a, b), label in zip(X, y, strict=True)]
    (folder / "tiny.data").write_text("\n".join(lines) + "\n")
    file = DataFile("tiny.data", "http://localhost/tiny.data", 500, (250, 250))
    return Dataset("tiny", "csv", 2, ("0", "1"), ("1",), 1.0, (file,)), str(folder)


ALL = [Cell("tiny", method, 0) for method in METHODS] + [
    Cell("tiny", method, 0, curve=True) for method in protocol.METHODS_OF["epochs"]
]


@pytest.mark.parametrize("cell", [Cell("tiny", "", 0), *ALL], ids=lambda cell: cell.title)
def test_every_cell_gives_a_row_that_says_how_it_came_about(cell, tiny):
    row = protocol.run_cell(cell, tiny[0], TINY, tiny[1])
    json.dumps(row, allow_nan=False)
    if not cell.method:
        assert (row["n_train"], row["n_test"], row["n_features"], row["ratio"]) == (400, 100, 2, 1.0)
        return
    assert row["auc_low"] < row["auc"] <= row["auc_high"]
    assert row["auc"] > 0.8
    assert (row["rows"], row["test_rows"]) == (300, 100)
    assert row["learning_seconds"] > 0
    assert row["params"]
    assert {"numpy", "aucmax"} <= set(row["versions"])
    if cell.curve:
        assert [point["epochs"] for point in row["curve_points"]] == [1, 2, 4]
        assert row["curve_points"][-1]["auc"] == pytest.approx(row["auc"])


def test_a_quick_run_reads_each_data_set_once(tiny, tmp_path, monkeypatch):
    cell = Cell("tiny", "Linear RankSVM", 0)
    read_again = protocol.run_cell(cell, tiny[0], TINY, tiny[1])
    first = protocol.run_cell(cell, tiny[0], TINY, tiny[1], samples=tmp_path)
    monkeypatch.setattr(protocol, "load_dataset", None)
    second = protocol.run_cell(cell, tiny[0], TINY, tiny[1], samples=tmp_path)
    assert read_again["auc"] == first["auc"] == second["auc"]
    assert (second["rows"], second["test_rows"], second["note"]) == (300, 100, "")
    assert [path.name for path in tmp_path.iterdir()] == ["tiny-0-all.npz"]


def test_a_run_by_epochs_is_the_run_of_so_many_epochs(tiny):
    """One run looked at on the way gives what runs of each length would."""
    known = {"alpha": 1e-5}
    long = protocol.run_cell(Cell("tiny", "NSVMSGD2", 0, curve=True), tiny[0], TINY, tiny[1], known)
    short = protocol.run_cell(
        Cell("tiny", "NSVMSGD2", 0, curve=True),
        tiny[0],
        Settings(20, 200, 300, None, 100, 80, (1, 2), True),
        tiny[1],
        known,
    )
    assert short["curve_points"][1]["auc"] == long["curve_points"][1]["auc"]


@pytest.mark.slow
def test_a_curve_takes_what_the_table_chose(tiny, tmp_path):
    cells = [Cell("tiny", "NSAUC", 0), Cell("tiny", "NSAUC", 0, curve=True)]
    with Store(tmp_path).open() as store:
        run_cells(Progress(cells, TINY, store, 60), {"tiny": tiny[0]}, tiny[1])
    plain, curve = (store.get(cell.key(TINY)) for cell in cells)
    assert curve["params"] == plain["params"]
    assert curve["search_seconds"] == 0.0


def test_the_curve_of_nsauc_is_that_of_the_front_door(tiny):
    twenty = Settings(20, 200, 300, None, 100, 80, (1, 20), True)
    known = {"C": 30.0}
    plain = protocol.run_cell(Cell("tiny", "NSAUC", 0), tiny[0], twenty, tiny[1], known)
    curve = protocol.run_cell(Cell("tiny", "NSAUC", 0, curve=True), tiny[0], twenty, tiny[1], known)
    # Their features differ by rounding, and with them the order in which rows are drawn.
    assert curve["curve_points"][-1]["auc"] == pytest.approx(plain["auc"], abs=5e-3)


def test_rows_of_a_substitute_are_not_those_of_the_data(tiny, tmp_path):
    cell = Cell("tiny", "NBAUC", 0)
    with Store(tmp_path).open() as store:
        store.append(row_of(Cell("tiny", "NBAUC", 0, substitute=True), auc=0.5))
        assert Progress([cell], TINY, store, 60).waiting() == [cell]
    with pytest.raises(ValueError, match="have changed since the run began"):
        protocol.run_cell(Cell("tiny", "NBAUC", 0, substitute=True), tiny[0], TINY, tiny[1])


def test_a_number_json_does_not_have_fails_its_cell_alone(tiny, tmp_path, monkeypatch):
    cells = [Cell("tiny", "NBAUC", 0), Cell("tiny", "NBAUC", 1)]

    def run(progress, *_):
        return row_of(progress.running, auc=float("nan") if progress.running.seed == 0 else 0.9)

    monkeypatch.setattr(runner, "_run_apart", run)
    with Store(tmp_path).open() as store:
        run_cells(Progress(cells, TINY, store, 60), {"tiny": tiny[0]})
        assert [row["status"] for row in store.rows] == ["failed", "done"]


def test_a_disk_that_fills_up_is_named(tmp_path, monkeypatch):
    with Store(tmp_path).open() as store:
        monkeypatch.setattr(os, "fsync", _full)
        with pytest.raises(OSError, match=r"cannot write results to .*rows.jsonl: No space left"):
            store.append(row_of(Cell("tiny", "NBAUC", 0), auc=0.9))


def _full(_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_limit_gives_a_dash_with_its_reason_and_more_time_another_try(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_TICK", 0.0)  # the limit is over before the first look
    cells = [Cell("tiny", "NBAUC", 0)]
    with Store(tmp_path).open() as store:
        run_cells(Progress(cells, TINY, store, 1e-6), {"tiny": tiny[0]}, tiny[1])
        row = store.get(cells[0].key(TINY))
        assert (row["status"], row["reason"]) == ("stopped", "over the limit of 1e-06 s")
        assert Progress(cells, TINY, store, 1e-6).waiting() == []
        assert Progress(cells, TINY, store, 60).waiting() == cells
        run_cells(Progress(cells, TINY, store, 60), {"tiny": tiny[0]}, tiny[1])
        assert store.get(cells[0].key(TINY))["status"] == "done"
        assert len(store.rows) == 1


def test_a_folder_of_temporary_files_with_a_long_path_does_no_harm(tmp_path, monkeypatch):
    far = tmp_path / ("d" * 90)
    far.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(far))
    assert runner._context().get_start_method() == "spawn"


def test_what_one_seed_has_shown_to_take_too_long_is_not_tried_with_another(tiny, tmp_path):
    cells = [Cell("tiny", "NBAUC", 0), Cell("tiny", "NBAUC", 1), Cell("tiny", "NOAM", 1)]
    with Store(tmp_path).open() as store:
        store.append({**row_of(cells[0]), "status": "stopped", "reason": "over", "time_limit": 9})
        assert Progress(cells, TINY, store, 9).waiting() == cells[2:]
        assert Progress(cells, TINY, store, 10).waiting() == cells
        run_cells(Progress(cells[:2], TINY, store, 0.01), {"tiny": tiny[0]}, tiny[1])
        assert len(store.rows) == 1


def test_a_disturbed_fit_is_timed_again_after_the_others(tmp_path, monkeypatch):
    full, shares = Settings(), iter([0.5, 0.0, 0.3, 0.4, 0.2])
    cells = [Cell("tiny", "NBAUC", 0), Cell("tiny", "NBAUC", 1), Cell("tiny", "NBAUC", 2)]
    calls = []

    def run(progress, *_):
        calls.append(progress.running.seed)
        share = next(shares)
        times = {"embedding_seconds": share, "learning_seconds": 10 * share, "company": share}
        return row_of(progress.running, full, auc=0.9, params={"C": len(calls)}, seconds=1.0, **times)

    monkeypatch.setattr(runner, "_run_apart", run)
    monkeypatch.setattr(store_module, "MOST_TIMINGS", 2)
    with Store(tmp_path).open() as store:
        run_cells(Progress(cells, full, store, 60), {"tiny": None})
        assert calls == [0, 1, 2, 0, 2]  # the second was alone
        first, _, last = (store.get(cell.key(full)) for cell in cells)
    assert (first["learning_seconds"], first["params"], first["timings"]) == (4.0, {"C": 1}, 2)
    assert (last["learning_seconds"], last["company"]) == (2.0, 0.2)
    assert notes_of(last) == ["NBAUC: timed beside other programs"]


def test_a_second_timing_that_is_more_disturbed_changes_nothing():
    before = {"status": "done", "company": 0.2, "learning_seconds": 3.0, "auc": 0.9}
    after = {"status": "done", "company": 0.4, "learning_seconds": 2.0, "auc": 0.9}
    assert timed_again(before, after) == {**before, "timings": 2}
    assert timed_again(before, {"status": "failed"}) == {**before, "timings": 2}


def test_a_second_timing_uses_the_values_chosen_before(tiny, tmp_path):
    cell = Cell("tiny", "NBAUC", 0)
    whole = Settings(20, 200, 300, None, 100, 80, (1, 2, 4), False)
    with Store(tmp_path).open() as store:
        disturbed = {"company": 2.0, "embedding_seconds": 9.0, "learning_seconds": 9.0, "auc": 0.5}
        store.append(row_of(cell, whole, params={"C": 3.0}, search_seconds=7.0, **disturbed))
        run_cells(Progress([cell], whole, store, 60), {"tiny": tiny[0]}, tiny[1])
        row = store.get(cell.key(whole))
    assert (row["params"], row["search_seconds"], row["auc"]) == ({"C": 3.0}, 7.0, 0.5)
    assert row["learning_seconds"] != 9.0


def test_what_fails_says_why_and_runs_again(tiny, tmp_path):
    cells = [Cell("tiny", "NBAUC", 0)]
    with Store(tmp_path / "out").open() as store:
        progress = Progress(cells, TINY, store, 60)
        run_cells(progress, {"tiny": tiny[0]}, str(tmp_path / "nowhere"))
        row = store.get(cells[0].key(TINY))
        assert row["status"] == "failed"
        assert "tiny.data" in row["reason"]
        assert progress.waiting() == []  # once a run
        assert Progress(cells, TINY, store, 60).waiting() == cells


def test_a_process_that_dies_is_told_of(tiny, tmp_path, monkeypatch):
    cells = [Cell("tiny", "RBF-RankSVM", 0)]
    progress = Progress(cells, TINY, Store(tmp_path), 60)
    killed = []

    def kill(_):
        import multiprocessing

        for child in multiprocessing.active_children():
            if not killed:
                killed.append(child.pid)
                os.kill(child.pid, signal.SIGKILL)

    monkeypatch.setattr(runner, "_TICK", 0.01)
    with progress.store.open():
        run_cells(progress, {"tiny": tiny[0]}, tiny[1], kill)
    row = progress.row(cells[0])
    assert row["status"] == "failed"
    assert "ended with code -9" in row["reason"]


def test_time_left_shrinks_as_cells_end(tiny, tmp_path):
    cells = [Cell("tiny", "NBAUC", seed) for seed in range(3)]
    with Store(tmp_path).open() as store:
        progress = Progress(cells, TINY, store, 60)
        before = progress.seconds_left()
        store.append(row_of(cells[0], seconds=10.0))
        assert before > 0
        assert progress.seconds_left() == pytest.approx(20.0)


KILLED = """
    import sys
    from pathlib import Path
    import pickle
    from aucmax.paper.protocol import Cell, Settings
    from aucmax.paper.runner import Progress, run_cells
    from aucmax.paper.store import Store

    if __name__ == "__main__":
        dataset, folder, cells, settings = pickle.loads(Path(sys.argv[2]).read_bytes())
        with Store(Path(sys.argv[1])).open() as store:
            run_cells(Progress(cells, settings, store, 60), {"tiny": dataset}, folder)
"""


@pytest.mark.slow
def test_a_run_killed_anywhere_goes_on_where_it_was(tiny, tmp_path):
    import pickle

    cells = [Cell("tiny", method, seed) for seed in (0, 1) for method in ("NBAUC", "NSAUC", "NOAM")]
    script, job, out = tmp_path / "run.py", tmp_path / "job", tmp_path / "out"
    script.write_text(textwrap.dedent(KILLED))
    job.write_bytes(pickle.dumps((*tiny, cells, TINY)))
    command = [sys.executable, str(script), str(out), str(job)]
    with subprocess.Popen(command, start_new_session=True) as run:
        until = time.monotonic() + 120
        while time.monotonic() < until and len(_lines(out)) < 2:
            time.sleep(0.02)
        run.kill()
    before = _lines(out)
    assert 2 <= len(before) < len(cells)
    subprocess.run(command, check=True, timeout=300)
    after = _lines(out)
    assert after[: len(before)] == before
    assert len(after) == len(cells)
    assert len(Store(out).rows) == len(cells)


def test_samples_of_a_killed_run_are_removed_by_the_next(tmp_path, monkeypatch):
    left = tmp_path / ".samples" / "spambase-0-all.npz"
    left.parent.mkdir()
    left.write_bytes(b"")
    cell = Cell("tiny", "NBAUC", 0)

    def run_apart(progress, dataset, data_dir, samples, tell):
        assert samples == left.parent
        assert not list(samples.iterdir())
        return row_of(cell, auc=0.9)

    monkeypatch.setattr(runner, "_run_apart", run_apart)
    with Store(tmp_path).open() as store:
        run_cells(Progress([cell], TINY, store, 60), {"tiny": None})
    assert not left.parent.exists()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_the_server_of_processes_starts_with_ctrl_c_blocked(monkeypatch):
    """It ignores Ctrl-C only after its imports, and would show a traceback before."""
    server, tracker = forkserver.ForkServer(), resource_tracker.ResourceTracker()
    monkeypatch.setattr(forkserver, "ensure_running", server.ensure_running)
    for name in ("ensure_running", "getfd"):
        monkeypatch.setattr(resource_tracker, name, getattr(tracker, name))
    try:
        runner._context()
        status = Path(f"/proc/{server._forkserver_pid}/status").read_text()
    finally:
        server._stop()
        tracker._stop()
    blocked = int(re.search(r"SigBlk:\s+(\w+)", status)[1], 16)
    assert blocked & 1 << (signal.SIGINT - 1)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def _lines(folder):
    path = folder / "rows.jsonl"
    return path.read_text().splitlines() if path.exists() else []


# The command


@pytest.fixture
def tiny_paper(tiny, tmp_path, monkeypatch):
    """The command with one data set, small, in the place of ijcnn1."""
    from dataclasses import replace

    from aucmax.paper.data import downloads as files

    command = import_module("aucmax.cli.paper_run")  # the function of that name hides it

    datasets = {"ijcnn1": replace(tiny[0], name="ijcnn1")}
    monkeypatch.setattr(command, "DATASETS", datasets)
    monkeypatch.setattr(files, "DATASETS", datasets)
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.chdir(tmp_path)
    return ["paper", "all", "--quick", "--data-dir", tiny[1]]


def invoke(*arguments):
    from typer.testing import CliRunner

    from aucmax.cli import app

    return CliRunner().invoke(app, list(arguments))


@pytest.mark.slow
def test_one_command_gives_every_table_and_the_figure(tiny_paper, tmp_path):
    result = invoke(*tiny_paper)
    assert result.exit_code == 0, result.output
    out = tmp_path / "paper-results-quick"
    made = {path.name for path in out.iterdir() if not path.name.startswith(".")}
    tables = {f"table{i}.{kind}" for i in (1, 2, 3, 4) for kind in ("md", "tex", "html")}
    assert made == tables | {"rows.jsonl", "tables.html", "results.md", "figure1.png", "figure1.pdf"}
    assert "QUICK" in (out / "table2.md").read_text()
    assert "[12/12]" in result.stderr
    # 1 of shape, 5 batch, 3 more of Table 4, which has NBAUC too, 3 curves
    rows = _lines(out)
    assert len(rows) == 12
    again = invoke(*tiny_paper, "--json")
    assert json.loads(again.stdout)["rows"] == [json.loads(line) for line in rows]
    assert _lines(out) == rows  # nothing was done twice


def write_libsvm(folder, name, labels, n_features, seed):
    """A bz2 file in LIBSVM's format, as its site has them: sparse rows, features from 1."""
    rng, lines = np.random.default_rng(seed), []
    for label in labels:
        chosen = np.sort(rng.choice(n_features, min(n_features, 12), replace=False))
        values = rng.normal(loc=float(label), size=chosen.size)
        pairs = zip(chosen + 1, values, strict=True)
        lines.append(" ".join([label, *(f"{k}:{value:.6g}" for k, value in pairs)]))
    (folder / f"{name}.bz2").write_bytes(bz2.compress("\n".join(lines).encode() + b"\n"))
    return lines


@pytest.mark.slow
def test_files_that_were_missing_fill_their_cells_once_they_are_there(tmp_path, monkeypatch):
    """acoustic, protein and cod-rna in their own formats, with fewer rows; the substitutes go."""
    from dataclasses import replace

    from aucmax.paper.data import DATASETS, downloads

    command = import_module("aucmax.cli.paper_run")
    labels = {"acoustic": "1 2 3 3", "protein": "0 1 2 0", "cod-rna": "-1 1 -1"}
    counts = {"train": 120, "test": 60}
    datasets, mirror = {}, tmp_path / "mirror"
    mirror.mkdir()
    for name, own in labels.items():
        published, parts = DATASETS[name], {}
        for part, rows in counts.items():
            files = []
            for number, file in enumerate(getattr(published, part)):
                cycle = [own.split()[i % len(own.split())] for i in range(rows)]
                lines = write_libsvm(mirror, file.name, cycle, published.features, number)
                files.append(replace(file, rows=len(lines), counts=()))
            parts[part] = tuple(files)
        stand_in = published.substitute and replace(published.substitute, files=parts["train"])
        datasets[name] = replace(published, **parts, substitute=stand_in)
    monkeypatch.setattr(command, "DATASETS", datasets)
    monkeypatch.setattr(downloads, "DATASETS", datasets)
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.chdir(tmp_path)
    run = ["paper", "table2", "--quick", "--method", "Linear RankSVM", "--data-dir", str(mirror)]

    test_file = mirror / "cod-rna.r.bz2"
    test_file.rename(tmp_path / "later.bz2")
    result = invoke(*run, "--json")
    assert result.exit_code == 0, result.output
    table = (tmp_path / "paper-results-quick" / "table2.md").read_text()
    assert "stands in for training on both" in table

    (tmp_path / "later.bz2").rename(test_file)
    rows = json.loads(invoke(*run, "--json").stdout)["rows"]
    own = {row["data"]: row for row in rows if row["method"] and not row["substitute"]}
    assert set(own) == set(labels)
    assert all(row["status"] == "done" and row["test_rows"] == 60 for row in own.values())
    table = (tmp_path / "paper-results-quick" / "table2.md").read_text()
    assert "no data" not in table
    assert "stands in" not in table


def test_tables_can_be_written_without_a_run(tiny_paper, tmp_path):
    result = invoke("paper", "table2", *tiny_paper[2:], "--no-run", "--out", "out")
    assert result.exit_code == 0, result.output
    assert "not run" in (tmp_path / "out" / "table2.md").read_text()
    assert _lines(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table5"], "Did you mean 'table"),
        (["all", "--data", "ijcnn2"], "Did you mean 'ijcnn1'"),
        (["all", "--method", "NBAUK"], "Did you mean 'NBAUC'"),
    ],
)
def test_unknown_names_suggest_the_nearest(tiny_paper, arguments, said):
    result = invoke("paper", *arguments, *tiny_paper[2:])
    assert said in str(result.exception)


def test_what_failed_is_told_at_the_end(tiny_paper, tmp_path):
    """A file of other rows."""
    (tmp_path / "tiny.data").write_text("1,2,0\n2,1,1\n")
    arguments = ["paper", "table2", "--quick", "--data-dir", str(tmp_path), "--method", "NBAUC"]
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert "1 of 1 cells failed; run again" in result.stderr
    assert "has 2 rows where tiny.data has 500" in result.stderr


def test_data_not_at_hand_is_said_and_shown(tiny_paper, tmp_path):
    result = invoke("paper", "table2", "--quick", "--data-dir", str(tmp_path), "--out", "out")
    assert result.exit_code == 0, result.output
    assert "ijcnn1: its data are missing; get them with: aucmax datasets fetch ijcnn1" in result.stderr
    assert "no data" in (tmp_path / "out" / "table2.md").read_text()


def test_ctrl_c_ends_the_cell_and_says_how_to_go_on(tiny_paper, monkeypatch):
    import multiprocessing

    command = import_module("aucmax.cli.paper_run")

    def interrupt(self, progress):
        if progress.running is not None and progress.running.method == "NBAUC":
            raise KeyboardInterrupt

    monkeypatch.setattr(command._Lines, "__call__", interrupt)
    result = invoke(*tiny_paper, "--method", "NBAUC")
    assert result.exit_code == 130
    assert "Stopped: 1 of 2 cells are in paper-results-quick; run again to continue." in result.stderr
    assert multiprocessing.active_children() == []


def test_the_board_shows_what_runs_and_what_is_done(tmp_path):
    from rich.console import Console

    from aucmax.cli.paper_run import board

    cells = [Cell("ijcnn1", method, seed) for seed in (0, 1) for method in ("NOAM", "NSAUC", "NBAUC")]
    with Store(tmp_path).open() as store:
        store.append(row_of(cells[0], auc=0.9, seconds=1.0))
        store.append({**row_of(cells[1]), "status": "stopped", "reason": "over", "time_limit": 9})
        progress = Progress(cells, TINY, store, 9, running=cells[2], since=time.monotonic() - 5)
        console = Console(width=100, record=True, file=io.StringIO())
        console.print(board(progress, 65.0))
    shown = console.export_text()
    assert "90.00 (1/2)" in shown
    assert "– " in shown
    assert "… 5 s" in shown
    assert "3 of 6 cells, 65 s elapsed, about" in shown  # NSAUC is not tried with its second seed
