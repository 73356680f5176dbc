"""Fits that are stopped and go on: to the same answer, or with a sentence."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import KFold

from aucmax import (
    KernelAUCClassifier,
    LinearAUCClassifier,
    SGDAUCClassifier,
    load_model,
    save_model,
)
from aucmax.fitting import checkpoint as module
from aucmax.fitting import kernel_search as search_module
from aucmax.fitting.checkpoint import Checkpoint, describe_fit
from aucmax.rows.stored import FileRows, StoredRows
from tests.searches import kernel_search, linear_search

TIGHT = {"tol": 1e-12}
GRID = {"Cs": [0.1, 1.0, 10.0], **TIGHT}
KERNEL = {"n_landmarks": 30, "random_state": 0}

NEWTON = {
    "kernel": KernelAUCClassifier(preset="paper", **KERNEL, **TIGHT),
    "fourier": KernelAUCClassifier(preset="paper", feature_map="fourier", **KERNEL, **TIGHT),
    "a large C": KernelAUCClassifier(preset="paper", C=1e5, kernel="linear", **KERNEL, **TIGHT),
    "linear": LinearAUCClassifier(**TIGHT),
    "not standardised": LinearAUCClassifier(standardize=False, **TIGHT),
    "linear search": linear_search(**GRID),
    "search": kernel_search(**GRID, **KERNEL),
    "search over gammas": kernel_search(gammas=3, **GRID, **KERNEL),
    "maps per fold": kernel_search(map_per_fold=True, gammas=2, **GRID, **KERNEL),
}
EPOCHS = {
    "sgd": SGDAUCClassifier(epochs=6, random_state=0),
    "early stopping": SGDAUCClassifier(epochs=30, early_stopping=True, tol=1e-3, random_state=0),
    "last iterate": SGDAUCClassifier(epochs=6, average=False, trace="train", random_state=0),
    "kernel sgd": KernelAUCClassifier(preset="paper", solver="sgd", max_iter=6, **KERNEL),
    "sgd search": kernel_search(Cs=2, solver="sgd", max_iter=3, gammas=2, n_jobs=2, **KERNEL),
}


class KilledError(Exception):
    """Stands for a signal that no program can catch."""


@pytest.fixture(scope="module")
def problem():
    return make_classification(1500, 5, n_informative=4, n_redundant=0, weights=[0.8], random_state=0)


@pytest.fixture
def every_step(monkeypatch):
    """However short a step is, it is written."""
    monkeypatch.setattr(module, "SHARE", np.inf)


@pytest.fixture
def killed(every_step, monkeypatch):
    """Runs a fit that dies right after so many writes; False if it came to its end before."""
    write = Checkpoint.write

    def run(model, X, y, writes, **more):
        left = [writes]

        def write_and_die(self):
            write(self)
            left[0] -= 1
            if left[0] <= 0:
                raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "write", write_and_die)
            try:
                model.fit(X, y, **more)
            except KilledError:
                return True
        return False

    return run


def weights(model):
    return getattr(model, "coef_", getattr(model, "dual_coef_", None))


def checkpointed(model):
    """The name of the parameter; a search has that of the estimator it holds."""
    return "estimator__checkpoint" if hasattr(model, "estimator") else "checkpoint"


def fit_with_deaths(model, killed, path, X, y, writes=2):
    """A fit that dies again and again, and how often it did."""
    model, deaths = clone(model).set_params(**{checkpointed(model): path}), 0
    while killed(model, X, y, writes):
        deaths += 1
        assert deaths < 500
        assert path.exists()
        assert not hasattr(model, "intercept_")
    assert not path.exists()
    assert os.listdir(path.parent) == []
    return model, deaths


@pytest.mark.parametrize("name", NEWTON)
def test_a_fit_killed_every_other_step_comes_to_the_same_model(name, problem, killed, tmp_path):
    X, y = problem
    whole = clone(NEWTON[name]).fit(X, y)
    model, deaths = fit_with_deaths(NEWTON[name], killed, tmp_path / "fit", X, y)
    assert deaths >= 2
    scale = np.abs(weights(whole)).max()
    np.testing.assert_allclose(weights(model), weights(whole), atol=1e-6 * scale)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=1e-6)
    if hasattr(whole, "scores_"):
        np.testing.assert_allclose(model.scores_, whole.scores_, atol=1e-6)
        np.testing.assert_allclose(model.held_out_scores_, whole.held_out_scores_, atol=1e-5)
        assert (model.best_params_, len(model.path_)) == (whole.best_params_, len(whole.path_))
    else:
        assert [step["iteration"] for step in model.history_] == list(range(1, model.n_iter_ + 1))
        assert abs(model.n_iter_ - whole.n_iter_) <= 2


@pytest.mark.parametrize("name", EPOCHS)
def test_epochs_go_on_to_the_bit(name, problem, killed, tmp_path):
    X, y = problem
    whole = clone(EPOCHS[name]).fit(X, y)
    model, deaths = fit_with_deaths(EPOCHS[name], killed, tmp_path / "fit", X, y)
    assert deaths >= 2
    assert (weights(model) == weights(whole)).all()
    assert (model.intercept_ == whole.intercept_).all()
    assert model.n_iter_ == whole.n_iter_
    if hasattr(whole, "scores_"):
        assert (model.scores_ == whole.scores_).all()
    elif hasattr(whole, "learners_"):  # a stream goes on alike, too
        assert [step["auc"] for step in model.history_] == [step["auc"] for step in whole.history_]
        again = [each.partial_fit(X[:50], y[:50]).coef_ for each in (model, whole)]
        assert (again[0] == again[1]).all()


@pytest.mark.parametrize("kind", ["three classes", "weights", "sparse", "float32"])
def test_rows_of_every_kind_go_on(kind, problem, killed, tmp_path):
    X, y = problem
    path = tmp_path / "fit"
    model, more = KernelAUCClassifier(preset="paper", checkpoint=path, **KERNEL, **TIGHT), {}
    if kind == "three classes":
        y = np.array(["a", "b", "c"], dtype=object)[np.where(X[:, 0] > 1, 2, y)]
    elif kind == "weights":
        more["sample_weight"] = np.random.default_rng(0).integers(3, size=len(y))
    elif kind == "sparse":
        X = sparse.csr_array(np.maximum(X, 0))
    else:
        X, model = X.astype(np.float32), model.set_params(tol=1e-6)
    whole = clone(model).set_params(checkpoint=None).fit(X, y, **more)
    assert killed(model, X, y, 4, **more)
    assert killed(model, X, y, 1, **more)
    model.fit(X, y, **more)
    atol = 1e-6 if kind != "float32" else 1e-2
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=atol)


SCRIPT = """
import os, signal, sys
import numpy as np
from sklearn.datasets import make_classification
from aucmax import *
from aucmax.fitting import checkpoint

checkpoint.SHARE, left, write = np.inf, int(sys.argv[2]), checkpoint.Checkpoint.write

def write_and_die(self):
    global left
    write(self)
    left -= 1
    if left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.Checkpoint.write = write_and_die
model = eval(sys.argv[1])
name = "estimator__checkpoint" if hasattr(model, "estimator") else "checkpoint"
model.set_params(**{name: sys.argv[3]})
model.fit(*make_classification(
    1500, 5, n_informative=4, n_redundant=0, weights=[0.8], random_state=0
))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    "model",
    [
        NEWTON["kernel"],
        pytest.param(NEWTON["linear search"], marks=pytest.mark.slow),
        pytest.param(EPOCHS["sgd"], marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_a_killed_process_is_gone_on_from_by_another(model, problem, tmp_path):
    X, y = problem
    path = tmp_path / "fit"
    command = [sys.executable, "-c", SCRIPT, repr(model), "6", str(path)]
    assert subprocess.run(command, capture_output=True).returncode == -signal.SIGKILL
    assert path.exists()
    resumed = clone(model).set_params(**{checkpointed(model): path})
    recalled = Checkpoint.recall
    names = set()

    def recall(self, name):
        found = recalled(self, name)
        names.update([name] if found is not None else [])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "recall", recall)
        resumed.fit(X, y)
    assert names & {"newton", "C path", "epochs"}
    whole = clone(model).fit(X, y)
    atol = 0 if isinstance(model, SGDAUCClassifier) else 1e-6
    np.testing.assert_allclose(weights(resumed), weights(whole), rtol=0, atol=atol)
    assert not path.exists()


def test_without_a_seed_landmarks_are_those_of_before(problem, killed, tmp_path):
    X, y = problem
    model = kernel_search(gammas=2, n_landmarks=20, landmarks="uniform", **GRID)
    model.set_params(estimator__checkpoint=tmp_path / "fit")
    assert killed(model, X, y, 12)
    shutil.copy(tmp_path / "fit", tmp_path / "copy")
    first = model.fit(X, y)
    other = clone(model).set_params(estimator__checkpoint=tmp_path / "copy").fit(X, y)
    assert (first.feature_map_.landmarks_ == other.feature_map_.landmarks_).all()
    np.testing.assert_allclose(weights(first), weights(other), atol=1e-6 * np.abs(weights(first)).max())


def test_values_of_c_that_are_done_are_not_solved_again(problem, killed, tmp_path, monkeypatch):
    X, y = problem
    model = linear_search(**GRID, checkpoint=tmp_path / "fit")
    monkeypatch.setattr("aucmax.estimators.search.choose", lambda *_: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            model.fit(X, y)
    monkeypatch.undo()

    def never(*_):
        raise AssertionError("solved again")

    monkeypatch.setattr("aucmax.estimators.search.solve_path", never)
    model.fit(X, y)
    assert len(model.path_) == 3


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"C": 2.0}, r"its C is 'auto', here 2\.0\."),
        ({"n_landmarks": 31}, "its n_landmarks is 30, here 31"),
        ({"random_state": 1}, "its random_state is 0, here 1"),
        ({"landmarks": np.eye(5)}, r"its landmarks is 'auto', here 5 x 5 float64 \(hash"),
    ],
)
def test_other_parameters_are_refused_by_name(change, named, problem, killed, tmp_path):
    X, y = problem
    model = KernelAUCClassifier(preset="paper", **KERNEL, checkpoint=tmp_path / "fit")
    assert killed(model, X, y, 3)
    before = (tmp_path / "fit").read_bytes()
    with pytest.raises(
        ValueError, match=f"belongs to another fit: {named}.*remove the file to start again"
    ):
        clone(model).set_params(**change).fit(X, y)
    assert (tmp_path / "fit").read_bytes() == before
    assert not hasattr(model, "intercept_")


def test_what_does_not_bear_on_the_result_may_change(problem, killed, tmp_path, capsys):
    X, y = problem
    model = KernelAUCClassifier(preset="paper", **KERNEL, checkpoint=tmp_path / "fit")
    assert killed(model, X, y, 6)
    model.set_params(max_memory="1GB", verbose=1).fit(X, y)
    told = capsys.readouterr().err
    assert told.startswith("Resuming from ")
    assert "Newton step 1:" not in told


def test_other_data_is_refused_by_name(problem, killed, tmp_path):
    X, y = problem
    model = linear_search(**GRID, checkpoint=tmp_path / "fit")
    assert killed(model, X, y, 3)
    other = X.copy()
    other[-1, -1] += 1e-9
    swapped = y.copy()
    swapped[[np.argmin(y), np.argmax(y)]] = 1, 0
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    for named, rows, labels, more in (
        ("X is 1,500 x 5 float64 .*, here 1,499 x 5", X[:-1], y[:-1], {}),
        ("X is 1,500 x 5 float64 .*, here 1,500 x 5 float64", other, y, {}),
        ("X is 1,500 x 5 float64 .*, here 1,500 x 5 float32", X.astype(np.float32), y, {}),
        ("y is", X, swapped, {}),
        ("y is", X, y + 1, {}),
        ("sample_weight is", X, y, {"sample_weight": np.arange(1, 1501)}),
    ):
        with pytest.raises(ValueError, match=f"belongs to another fit: its {named}"):
            model.fit(rows, labels, **more)
    with pytest.raises(ValueError, match="belongs to another fit: its cv is"):
        clone(model).set_params(cv=folds).fit(X, y)
    with pytest.raises(ValueError, match="its class is LinearAUCClassifierCV, here Linear"):
        LinearAUCClassifier(checkpoint=tmp_path / "fit").fit(X, y)


def test_other_rows_to_trace_are_refused(problem, killed, tmp_path):
    X, y = problem
    model = SGDAUCClassifier(epochs=3, checkpoint=tmp_path / "fit")
    assert killed(model, X, y, 3, X_val=X[:500], y_val=y[:500])
    with pytest.raises(ValueError, match=r"its X_val is 500 x 5 .*, here 400 x 5"):
        model.fit(X, y, X_val=X[:400], y_val=y[:400])
    model.fit(X, y, X_val=X[:500], y_val=y[:500])


def test_rows_in_a_file_are_hashed_as_those_in_memory(problem, tmp_path, monkeypatch):
    X, _ = problem
    X.tofile(tmp_path / "rows")
    rows = StoredRows(FileRows(tmp_path / "rows", X.shape, X.dtype), X.dtype)
    model = LinearAUCClassifier()
    whole = describe_fit(model, {"X": (X,)})
    monkeypatch.setattr(module, "_HASH_ROWS", 100)
    assert describe_fit(model, {"X": (rows,)}) == whole


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused(share, problem, killed, tmp_path):
    X, y = problem
    path = tmp_path / "fit"
    model = LinearAUCClassifier(checkpoint=path)
    assert killed(model, X, y, 3)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ValueError, match=r"fit' is not a checkpoint, or not a complete one"):
        model.fit(X, y)


def test_a_file_of_another_kind_is_refused_and_left_alone(problem, tmp_path):
    X, y = problem
    np.savez(tmp_path / "a.npz", X=X)
    np.save(tmp_path / "b.npy", X)
    (tmp_path / "c.csv").write_text("a,b\n1,2\n")
    header = np.frombuffer(b'{"format": 99, "fit": {}, "seconds": 0, "state": {}}', dtype=np.uint8)
    np.savez(tmp_path / "d.npz", header=header)
    for path in sorted(tmp_path.iterdir()):
        before = path.read_bytes()
        message = "another version of aucmax" if path.name == "d.npz" else "is not a checkpoint"
        with pytest.raises(ValueError, match=message):
            LinearAUCClassifier(checkpoint=path).fit(X, y)
        assert path.read_bytes() == before


def test_places_that_cannot_be_written_to_are_known_at_once(problem, tmp_path, monkeypatch):
    X, y = problem
    with pytest.raises(ValueError, match="is a folder: name a file in it"):
        LinearAUCClassifier(checkpoint=tmp_path).fit(X, y)
    with pytest.raises(OSError, match=r"cannot be written \(No such file.*\); choose an existing"):
        LinearAUCClassifier(checkpoint=tmp_path / "none" / "fit").fit(X, y)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(np, "savez", refuse)  # root may write everywhere
    with pytest.raises(OSError, match=r"cannot be written \(Permission denied\)"):
        LinearAUCClassifier(checkpoint=tmp_path / "fit").fit(X, y)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_later_does_not_end_the_fit(problem, every_step, tmp_path, monkeypatch):
    X, y = problem
    write, calls = np.savez, []

    def fill_up(file, **arrays):
        calls.append(1)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        write(file, **arrays)

    monkeypatch.setattr(np, "savez", fill_up)
    with pytest.warns(UserWarning, match="No space left on device.*The fit continues"):
        LinearAUCClassifier(checkpoint=tmp_path / "fit").fit(X, y)
    assert len(calls) == 3  # and not at every step again
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_the_checkpoint(problem, every_step, tmp_path, monkeypatch):
    X, y = problem
    path, write = tmp_path / "fit", np.savez
    held = []

    def interrupt(file, **arrays):
        write(file, **arrays)
        held.append(1)
        if len(held) == 5:  # in the middle of a write
            raise KeyboardInterrupt

    model = KernelAUCClassifier(preset="paper", checkpoint=path, **KERNEL, **TIGHT)
    monkeypatch.setattr(np, "savez", interrupt)
    with pytest.raises(KeyboardInterrupt, match=r"Fit again to resume from its checkpoint '.*fit'"):
        model.fit(X, y)
    monkeypatch.setattr(np, "savez", write)
    assert os.listdir(tmp_path) == ["fit"]
    whole = clone(model).set_params(checkpoint=None).fit(X, y)
    np.testing.assert_allclose(weights(model.fit(X, y)), weights(whole), atol=1e-5)


def test_quick_steps_are_not_all_written(problem, tmp_path, monkeypatch):
    X, y = problem
    write, written = np.savez, []

    def slow(file, **arrays):
        written.append(1)
        time.sleep(0.2)
        write(file, **arrays)

    monkeypatch.setattr(np, "savez", slow)
    LinearAUCClassifier(checkpoint=tmp_path / "fit", **TIGHT).fit(X, y)
    assert len(written) == 1  # the next would come after four seconds


def test_time_spent_before_counts(tmp_path, every_step):
    first = Checkpoint(tmp_path / "fit", {})
    first.before = 100.0
    first.note("x", np.float32(1.5))
    again = Checkpoint(tmp_path / "fit", {})
    assert 100.0 <= again.before < 101.0
    assert type(again.recall("x")) is np.float32


def test_a_search_whose_time_is_over_keeps_what_was_found(problem, every_step, tmp_path, monkeypatch):
    X, y = problem
    model = kernel_search(gammas=3, Cs=[0.1, 1.0], checkpoint=tmp_path / "fit", **KERNEL)
    solve, calls = search_module._solve, []

    def die_at_the_third(*args, **more):
        calls.append(1)
        if len(calls) == 3:
            raise KilledError
        return solve(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(search_module, "_solve", die_at_the_third)
        with pytest.raises(KilledError):
            model.fit(X, y)
    model.set_params(estimator__time_budget=1e-9).fit(X, y)
    assert np.isfinite(model.scores_mean_).sum() == 4


def test_a_model_with_a_checkpoint_is_saved_with_its_path_as_text(problem, tmp_path):
    X, y = problem
    model = LinearAUCClassifier(checkpoint=tmp_path / "fit").fit(X, y)
    loaded = load_model(save_model(model, tmp_path / "model.aucmax"))
    assert loaded.checkpoint == str(tmp_path / "fit")
    # What one fit needs leaves nothing on the estimator but parameters and learnt attributes.
    left = set(vars(model)) - set(model.get_params())
    assert [name for name in left if not name.endswith("_")] == []
