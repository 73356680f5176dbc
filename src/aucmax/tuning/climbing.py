"""Search C and gamma of a candidate, from the rules or from those of another candidate.

Each search takes a candidate and the result to start from. Of a small class a value replaces another if
it is better beyond noise, otherwise if it is better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aucmax.runtime.threads import side_by_side

if TYPE_CHECKING:
    from aucmax.tuning.trials import Candidate, Result

#: The grids, in steps of these factors, and their ends. C is that of a fit to all rows, at most so many
#: times the first one, or as much less; gamma is a multiple of the distance rule.
_C_STEP, _C_FACTOR = 4.0, 4.0**8
_GAMMA_STEP, _GAMMA_RANGE = 2.0, (2.0**-5, 2.0**5)


def best_c(candidate: Candidate, gamma: float, start: float, patience: int = 1) -> Result:
    """Return the best C: up from a start, and down if that was best.

    A direction ends after ``patience`` values that are no better.
    """
    if candidate.settings.C is not None:
        return candidate.at(gamma, candidate.settings.C)
    sample = candidate.sample
    first = best = candidate.at(gamma, start)
    for step in (_C_STEP, 1.0 / _C_STEP):
        worse, C = 0, start * step
        while worse < patience and 1.0 / _C_FACTOR <= C / sample.first_cost <= _C_FACTOR:
            result = candidate.at(gamma, C)
            worse = 0 if result.auc > best.auc else worse + 1
            best = max(best, result, key=lambda each: each.auc)
            C *= step
        if start != best.C:
            break
    return best if not sample.few or best.beats(first) else first


def from_rules(candidate: Candidate, _: Result | None = None) -> Result:
    """Return the best C and gamma, from the rules."""
    first = best_c(candidate, 1.0, candidate.sample.first_cost, patience=2)
    return _climb(candidate, first, 1.0 / _GAMMA_STEP, _GAMMA_STEP)


def climb(candidate: Candidate, near: Result) -> Result:
    """Return the best C and gamma near another candidate's.

    Gamma goes in the direction that helps more, as long as it helps.
    """
    return _climb(candidate, c_near(candidate, near), 1.0 / _GAMMA_STEP, _GAMMA_STEP)


def narrow(candidate: Candidate, near: Result) -> Result:
    """Return the best C near another candidate's, and a larger gamma as long as that helps."""
    return _climb(candidate, c_near(candidate, near), _GAMMA_STEP)


def c_near(candidate: Candidate, near: Result) -> Result:
    """Return the best C near another candidate's, at the same gamma."""
    return best_c(candidate, near.gamma, near.C)


def same(candidate: Candidate, near: Result) -> Result:
    """Return the result at the C and gamma of another candidate."""
    return candidate.at(near.gamma, near.C)


def nearby(candidate: Candidate, near: Result) -> Result:
    """Return the result at the C and gamma of another candidate, or with a narrower kernel."""
    C = near.C if candidate.settings.C is None else candidate.settings.C
    found = candidate.at(near.gamma, C)
    if candidate.kernel.fixed or near.gamma * _GAMMA_STEP > _GAMMA_RANGE[1]:
        return found
    narrower = candidate.at(near.gamma * _GAMMA_STEP, C)
    return narrower if narrower.gains_on(found) else found


def _climb(candidate: Candidate, best: Result, *steps: float) -> Result:
    if candidate.kernel.fixed:
        return best
    found = side_by_side(lambda step: _further(candidate.twin(), best, step), steps)
    step, result = max(zip(steps, found, strict=True), key=lambda each: each[1].auc)
    few = candidate.sample.few
    while result.gains_on(best) and (not few or result.beats(best)):
        best, result = result, _further(candidate, result, step)
    return best


def _further(candidate: Candidate, best: Result, step: float) -> Result:
    """Return the best C at a further gamma, or the same result at the end of the range."""
    gamma = best.gamma * step
    return best_c(candidate, gamma, best.C) if _GAMMA_RANGE[0] <= gamma <= _GAMMA_RANGE[1] else best
