"""Explain a mistake in the arguments of a command in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperGroup

from aucmax.runtime.spelling import nearest

#: What typer raises for wrong arguments; it exports only this subclass of it.
UsageError: type[Any] = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """A group of commands that suggests the nearest name for an unknown one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            ctx.fail(_unknown("command", args[0], self.commands, ctx))
        return super().resolve_command(ctx, args)


def sentence(error: Any) -> str:
    """Return what was wrong, and what to write instead."""
    context, param = error.ctx, getattr(error, "param", None)
    if hasattr(error, "possibilities"):
        known = [name for each in context.command.get_params(context) for name in _names(each)]
        return _unknown("option", error.option_name, known, context)
    if hasattr(error, "option_name"):
        excess = "not take" in error.message
        return f"{error.option_name} {'takes no value' if excess else 'needs a value after it'}."
    if param is not None and hasattr(error, "param_type"):
        text = (getattr(param, "help", None) or "").strip()
        about = text if text[1:2].isupper() else text[:1].lower() + text[1:]
        return f"{context.info_name} needs {_names(param)[0]}{': ' if about else '.'}{about}"
    if param is not None:
        return f"{_names(param)[0]}{_wrong_value(error)}."
    if found := re.search(r"extra argument.*\((.*)\)", error.message):
        return f"{context.info_name} does not take {found[1]!r}: see {context.command_path} --help."
    return str(error.message)


def _unknown(kind: str, name: str, known: Iterable[str], context: Any) -> str:
    bare = {each.lstrip("-"): each for each in known}
    near = nearest(name.lstrip("-"), bare)
    advice = f"did you mean {bare[near]}?" if near else f"see {context.command_path} --help."
    return f"No such {kind} {name}: {advice}"


def _names(param: Any) -> list[str]:
    """Return the names of an option, or the name of an argument in the help."""
    if param.param_type_name == "argument":
        return [param.metavar or param.name.upper()]
    return [*param.opts, *param.secondary_opts]


def _wrong_value(error: Any) -> str:
    """Return what was expected and what came; pydantic separates the two, click does not."""
    details: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if not details:
        return f": {error.message.rstrip('.')}"
    expected = details[0]["msg"].split(", unable")[0]
    came = f"; got {details[0]['input']!r}"
    if expected.startswith("Input should be "):
        return f" must be {expected.removeprefix('Input should be ')}{came}"
    return f": {expected}{came}"
