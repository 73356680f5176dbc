"""Find the name that a user meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name most like this one, ignoring case; None if none is similar."""
    spelled = {each.lower(): each for each in known}
    near = get_close_matches(str(name).lower(), spelled, n=1, cutoff=cutoff)
    return spelled[near[0]] if near else None


def known_name(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the name in our spelling; refuse an unknown one and suggest the nearest known one.

    >>> known_name("data set", "IJCNN1", ["ijcnn1", "usps"])
    'ijcnn1'
    """
    known = list(known)
    guess = nearest(name, known, cutoff=0.5)
    if guess is not None and guess.lower() == str(name).lower():
        return guess
    hint = f" Did you mean {guess!r}?" if guess else ""
    raise ValueError(f"there is no {kind} {name!r}.{hint} Known are {', '.join(known)}.")
