"""A slice of the checks that kill programs and break clusters; ``python -m reliability`` has more."""

import tempfile
from pathlib import Path

import pytest

from reliability import cluster, kills
from reliability.worker import run_case

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")

SEED = 7


@pytest.fixture(scope="module", autouse=True)
def own_folder(tmp_path_factory):
    """Where the runs that nobody stops keep their answers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("kills")))
        yield
    kills.launcher().close()


@pytest.mark.parametrize("number", [8, 12])
def test_what_is_killed_comes_to_the_same_answer(number):
    result = run_case(kills, number, SEED)
    assert not result["violation"], f"{result['name']}\n{result['violation']}"


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3, 7, 33, 37])
def test_what_is_killed_comes_to_the_same_answer_in_longer_programs(number):
    result = run_case(kills, number, SEED)
    assert not result["violation"], f"{result['name']}\n{result['violation']}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask warns of dead workers
@pytest.mark.parametrize("number", [4, 11])
def test_a_fit_on_a_broken_cluster_ends(number):
    pytest.importorskip("distributed")
    result = run_case(cluster, number, SEED)
    assert not result["violation"], f"{result['name']}\n{result['violation']}"


@pytest.mark.parametrize("check", [kills, cluster])
def test_cases_follow_from_number_and_seed(check):
    assert check.case(5, 0).name == check.case(5, 0).name
    assert len({check.case(number, seed).name for number in range(10) for seed in (0, 1)}) == 20
