"""The command reference, from the help of the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from aucmax.cli import app

SCHEMAS = Path(__file__).parents[1] / "schemas"


def markdown() -> str:
    """Return a section for each command, with its arguments, options, example and JSON schema."""
    root = get_command(app)
    parts = [section(command, path) for command, path in commands(root, ("aucmax",))]
    return "\n\n".join(parts)


def commands(group: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield every command below a group, with the words that call it."""
    for name, command in sorted(group.commands.items()):
        if not hasattr(command, "commands") or command.invoke_without_command:
            yield command, (*path, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))


def section(command: Any, path: tuple[str, ...]) -> str:
    """Return the Markdown of one command."""
    name = " ".join(path)
    context = command.make_context(name, [], resilient_parsing=True)
    usage = context.get_usage().removeprefix("Usage:").strip()
    lines = [f"## {name}", "", command.help.strip(), "", "```text", usage, "```"]
    for kind in ("argument", "option"):
        found = [each for each in command.params if each.param_type_name == kind]
        records = [each.get_help_record(context) for each in found]
        if any(records):
            lines += ["", *table(kind, [record for record in records if record])]
    if command.epilog:
        example = command.epilog.removeprefix("Example: ").strip()
        lines += ["", "Example:", "", "```sh", example, "```"]
    schema = SCHEMAS / ("-".join(path[1:]) + ".json")
    if schema.exists():
        lines += ["", f"[The schema of its JSON](schemas/{schema.name})"]
    return "\n".join(lines)


def table(kind: str, records: list[tuple[str, str]]) -> list[str]:
    """Return a table of parameters: what is written, and the help."""
    lines = ["````{list-table}", ":header-rows: 1", ":widths: 34 66", ":class: command-options", ""]
    lines += [f"* - {kind}", "  - meaning"]
    for name, text in records:
        shown = " ".join(text.split()).replace("[", "\\[").replace("<", "\\<")
        lines += [f"* - `{name}`", f"  - {shown}"]
    return [*lines, "````"]
