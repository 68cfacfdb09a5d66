"""Flags of the commands: found in forms, forgiven, explained, completed, and read."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.commands.flags import cases, forgiving, helptext, options, parsing, scripts, table

__all__ = ["cases", "forgiving", "helptext", "options", "parsing", "scripts", "table"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
