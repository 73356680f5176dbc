"""What commands do before they import the library: remarks, and a look at the output's place."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console

from aucmax.runtime.output_files import check_folder, find_target

DRIFTED = 3  #: The exit code if columns differ from training and that was asked to be a failure.


def say(sentence: str) -> None:
    """Print a remark to standard error; standard output is for results only."""
    Console(stderr=True, markup=False, highlight=False, soft_wrap=True).print(sentence)


def check_output(path: Path, *inputs: Path | None, force: bool) -> None:
    """Refuse, before any work, an output that is an input, exists already or cannot be written."""
    target = find_target(path)
    if target is None:  # a device or a pipe
        if not os.access(path, os.W_OK):
            raise PermissionError(f"{path} is write-protected: name another output.")
        return
    check_folder(target)
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"the folder {target.parent} is write-protected: name another output.")
    for each in inputs:
        if each is not None and each.exists() and path.exists() and path.samefile(each):
            raise ValueError(f"{path} is an input and would be overwritten: name another output.")
    if target.exists() and not force:
        raise FileExistsError(f"{path} exists: add --force to replace it, or name another output.")
