"""The machines of a blend: which are fitted after the first, and the sum of their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy.typing as npt

from aucmax.fitting.attributes import intercepts
from aucmax.fitting.context import Context
from aucmax.fitting.machines import Fitted, add_up
from aucmax.fitting.problem import Problem

Array = npt.NDArray[Any]
T = TypeVar("T")


def others(machines: Sequence[T], context: Context) -> Iterator[tuple[T, Context]]:
    """Yield all but the first, each with its own part of the checkpoint, until time is over."""
    for number, machine in enumerate(machines[1:], start=2):
        if context.deadline.over():
            context.say(f"The time is over: {number - 1} of {len(machines)} machines are used")
            return
        context.status.show(f"fitting machine {number} of {len(machines)}")
        yield machine, context.part(f"machine {number}")


def blended(
    fits: Sequence[Fitted], weights: Array, problem: Problem, name: str
) -> tuple[Array, dict[str, Any]]:
    """Return minus the thresholds of the scores added up, and held-out scores if the fits have any.

    A threshold is where it would be if the sum were the scores of one machine.
    """
    first = fits[0]
    if len(fits) == 1:
        return first.machine.intercept, {}
    intercept = intercepts(add_up([each.scores for each in fits], weights), problem, name)
    if "held_out_scores_" not in first.about:
        return intercept, {}
    # Held-out scores are (n,) for two classes, otherwise (n, k).
    own = [each.machine.intercept for each in fits] + [intercept]
    *ends, end = [each[0] if each.size == 1 else each for each in own]
    held = [each.about["held_out_scores_"] - own for each, own in zip(fits, ends, strict=True)]
    return intercept, {"held_out_scores_": add_up(held, weights) + end}
