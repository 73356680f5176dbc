"""A slice of the reliability checks of files, disks and memory."""

import sys
import warnings

import pytest

from reliability import disks, files, memory
from reliability.worker import run_case


def holds(check, number, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run_case(check, number, seed)
    assert not result["violation"], f"{result['name']}\n{result['violation']}"


def test_cases_of_files_follow_from_number_and_seed():
    names = {files.case(number, seed).name for number in range(60) for seed in (0, 1)}
    assert len(names) > 100
    assert files.case(5, 0).name == files.case(5, 0).name


@pytest.mark.parametrize("part", range(4))
def test_a_slice_of_mutated_files_holds(part):
    for number in range(part * 50, part * 50 + 50):
        holds(files, number, 11)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
@pytest.mark.parametrize("number", [0, 3, 7])
def test_a_slice_of_full_disks_holds(number):
    holds(disks, number, 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
@pytest.mark.parametrize("number", [9, 17])
def test_a_slice_of_limits_of_memory_holds(number):
    assert "aucmax" in memory.case(number, 1).name  # a command, whose limit is tight
    holds(memory, number, 1)
