"""Names as users type them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def known_name(kind: str, name: object, known: Iterable[str]) -> str:
    """The name as we spell it, whatever its case; an unknown one is refused with the nearest that is.

    >>> known_name("data set", "IJCNN1", ["ijcnn1", "usps"])
    'ijcnn1'
    """
    spelled = {each.lower(): each for each in known}
    wanted = str(name).lower()
    if wanted in spelled:
        return spelled[wanted]
    near = get_close_matches(wanted, spelled, n=1, cutoff=0.5)
    guess = f" Did you mean {spelled[near[0]]!r}?" if near else ""
    raise ValueError(f"there is no {kind} {name!r}.{guess} Known are {', '.join(spelled.values())}.")
