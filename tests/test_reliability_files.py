"""A slice of the reliability checks of files, disks and memory."""

import warnings

import pytest

from reliability import files
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
