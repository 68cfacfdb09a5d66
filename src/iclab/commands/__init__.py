"""The command line: one module for each command, and their common input and output."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.commands import (
        completion,
        flags,
        inspect,
        main,
        plan,
        report,
        results,
        run,
        studies,
        summary,
        terminal,
        workers,
    )

__all__ = [
    "completion", "flags", "inspect", "main", "plan", "report", "results", "run", "studies", "summary", "terminal",
    "workers",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
