"""The command line: one module for each command, and their common input and output."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.commands import (
        compare,
        completion,
        explore,
        flags,
        inputs,
        inspect,
        main,
        plan,
        report,
        results,
        run,
        serving,
        studies,
        summary,
        sweeps,
        terminal,
        workers,
    )

__all__ = [
    "compare", "completion", "explore", "flags", "inputs", "inspect", "main", "plan", "report", "results",
    "run", "serving", "studies", "summary", "sweeps", "terminal", "workers",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
