"""Pages that are made from the package when the site is built, so that they cannot differ from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import command_reference

ROOT = Path(__file__).parents[2]


def fill(app: Any, docname: str, source: list[str]) -> None:
    """Replace the marker of a page by its generated text."""
    if docname == "commands":
        marker = "<!-- commands -->"
        if marker not in source[0]:
            raise ValueError(f"docs/commands.md has no marker {marker}")
        source[0] = source[0].replace(marker, command_reference.markdown())
    if docname.startswith("paper/table"):  # written by `aucmax paper`, with a caption and no title
        name, _, caption = source[0].partition(". ")
        source[0] = f"# {name}\n\n{caption}"


def skip_members(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what an estimator inherits from scikit-learn, which documents it."""
    home = getattr(obj, "__module__", None) or getattr(getattr(obj, "fget", None), "__module__", None)
    if what == "class" and home and not home.startswith("aucmax"):
        return True
    return None


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", fill)
    app.connect("autodoc-skip-member", skip_members)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
