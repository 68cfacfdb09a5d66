"""Help, wrapped to the terminal: flags in groups, each with meaning, limits and default as it is typed."""

import re
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import MISSING

from iclab.commands.flags.table import Flag

__all__ = ["helptext", "listed", "wrapped"]

_COLUMN = 26  # at which meanings begin
_LINE = re.compile(r"\S.*?\S {2,}\S|\S.*: .*`?iclab |iclab ")  # a line that stands by itself: an example


def helptext(
    prog: str, about: str, groups: Mapping[str, Sequence[Flag]], *, examples: Sequence[str] = (), usage: str = ""
) -> str:
    """The whole help of a command: usage, what it is for, its flags by group, and examples one a line."""
    width = max(40, min(shutil.get_terminal_size().columns, 118))
    flags = [flag for group in groups.values() for flag in group]
    positional = [_placed(flag) for flag in flags if flag.positional]
    lines = [" ".join(["usage:", prog, *([usage] if usage else positional), "[FLAGS]"]), "", *wrapped(about, width)]
    for title, group in groups.items():
        if group:
            lines += ["", f"{title}:"]
            lines += [line for flag in group for line in _entry(flag, flags, width)]
    if examples:
        lines += ["", "examples:", *(f"  {line}" for line in examples)]
    return "\n".join(lines)


def listed(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Names with their meanings beside them, wrapped to the terminal."""
    width = max(40, min(shutil.get_terminal_size().columns, 118))
    return [line for name, meaning in rows for line in _beside(f"  {name}", meaning, width)]


def wrapped(text: str, width: int) -> list[str]:
    """Paragraphs of a docstring, wrapped; examples keep their lines."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", textwrap.dedent(text).strip()):
        rows = [row.strip() for row in paragraph.splitlines()]
        kept = len(rows) > 1 and all(_LINE.match(row) for row in rows)
        lines += ["", *(rows if kept else textwrap.wrap(" ".join(rows), width, break_on_hyphens=False))]
    return lines[1:]


def _entry(flag: Flag, flags: Sequence[Flag], width: int) -> list[str]:
    limits = " and ".join(map(str, flag.limits))
    notes = [*([limits] if limits else []), *([f"default: {flag.typed}"] if flag.typed and not flag.switch else [])]
    meaning = f"{flag.help} ({'; '.join(notes)})" if notes and flag.help else flag.help or "; ".join(notes)
    if flag.default is MISSING and not flag.positional:
        meaning += " (must be given)"
    if flag.positional:
        return _beside(f"  {_placed(flag)}", meaning, width)
    name = f"--no-{flag.name[2:]}" if flag.switch and flag.default is True else _shortest(flag, flags)
    meaning = f"do not {meaning}" if flag.switch and flag.default is True else meaning
    return _beside(f"  {name} {flag.value}".rstrip(), meaning, width)


def _shortest(flag: Flag, flags: Sequence[Flag]) -> str:
    """The last name where it is enough, as in `--[problem.]context-length`; else the whole one."""
    alone = sum(one.short == flag.short for one in flags) == 1
    return (
        f"--[{flag.name[2 : -len(flag.short[2:])]}]{flag.short[2:]}"
        if alone and flag.short != flag.name
        else flag.name
    )


def _placed(flag: Flag) -> str:
    name = flag.path[-1].upper().replace("_", "-")
    return f"[{name} ...]" if flag.several else name


def _beside(name: str, meaning: str, width: int) -> list[str]:
    """A name with its meaning in a column of its own, below it where the name is long."""
    first = f"{name:<{_COLUMN}}" if len(name) < _COLUMN - 1 else " " * _COLUMN
    above = [] if len(name) < _COLUMN - 1 else [name]
    text = textwrap.wrap(meaning, width - _COLUMN, break_on_hyphens=False) or [""]
    return [*above, (first + text[0]).rstrip(), *(" " * _COLUMN + line for line in text[1:])]
