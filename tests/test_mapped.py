"""Mapped arrays are read from the mapping, which is what their owner sees."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification

from aucmax import KernelAUCClassifier, LinearAUCClassifier
from aucmax.rows import sources
from aucmax.rows.stored import MappedRows


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(600, 5, n_informative=3, weights=[0.8], random_state=0)
    return X, y


MODELS = {
    "linear": LinearAUCClassifier(tol=1e-8),
    "kernel": KernelAUCClassifier(preset="paper", n_landmarks=30, tol=1e-8, random_state=0),
}


def same_as_in_memory(model, mapped, y):
    X = np.array(mapped)
    expected = model.fit(X, y).decision_function(X)
    scores = model.fit(mapped, y).decision_function(mapped)
    np.testing.assert_allclose(scores, expected, atol=1e-3 * np.ptp(expected))


@pytest.mark.parametrize("name", MODELS)
def test_what_was_changed_in_memory_counts_and_not_the_file(problem, tmp_path, name):
    X, y = problem
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=X.shape))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="c")
    mapped[:] = X
    same_as_in_memory(MODELS[name], mapped, y)


def test_a_file_that_was_replaced_after_mapping_is_not_looked_at(problem, tmp_path):
    X, y = problem
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "other.npy", np.zeros_like(X))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    os.replace(tmp_path / "other.npy", tmp_path / "X.npy")
    same_as_in_memory(MODELS["linear"], mapped, y)


@pytest.mark.parametrize("dtype", ["int8", "bool", ">f8", "float16", "float32"])
@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_any_numbers_are_read_as_from_an_array(problem, tmp_path, dtype, mode):
    X, y = problem
    np.save(tmp_path / "X.npy", X > 0 if dtype == "bool" else (10 * X).astype(dtype))
    same_as_in_memory(MODELS["linear"], np.load(tmp_path / "X.npy", mmap_mode=mode), y)


@pytest.mark.parametrize(
    "part",
    [np.s_[100:], np.s_[::-1], np.s_[:, 1:4], np.s_[::2]],
    ids=["tail", "back", "columns", "half"],
)
def test_parts_of_a_mapping_are_read_as_they_are_seen(problem, tmp_path, part):
    X, y = problem
    np.save(tmp_path / "X.npy", X)
    rows = part if not isinstance(part, tuple) else part[0]
    same_as_in_memory(MODELS["linear"], np.load(tmp_path / "X.npy", mmap_mode="r")[part], y[rows])


def test_complex_numbers_in_a_mapping_are_refused(problem, tmp_path):
    X, y = problem
    np.save(tmp_path / "X.npy", X.astype(complex))
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        MODELS["linear"].fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)


def test_a_missing_value_in_rows_to_score_is_named_by_its_row(problem, tmp_path, monkeypatch):
    X, y = problem
    model = LinearAUCClassifier().fit(X, y)
    X = X.copy()
    X[470, 2] = np.nan
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(sources, "BLOCK_ROWS", 100)
    with pytest.raises(ValueError, match=r"[Cc]olumn 2.*row 470"):
        model.decision_function(np.load(tmp_path / "X.npy", mmap_mode="r"))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's count of pages")
def test_pages_of_a_mapping_do_not_stay_in_memory(tmp_path):
    size = 2**25
    np.save(tmp_path / "X.npy", np.ones((size // 800, 100)))
    rows = MappedRows(np.load(tmp_path / "X.npy", mmap_mode="r"))

    def shared_bytes():
        return int(Path("/proc/self/statm").read_text().split()[2]) * os.sysconf("SC_PAGE_SIZE")

    before = shared_bytes()
    for start in range(0, rows.shape[0], 4096):
        assert (rows[start : start + 4096] == 1.0).all()
    assert shared_bytes() - before < size / 4
