"""The server of the explorer: its page on this machine alone, and one run at a time on request."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.commands.serving import application, child, guard, runs, serve

__all__ = ["application", "child", "guard", "runs", "serve"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
