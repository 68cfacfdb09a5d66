"""Studies of finite pretraining: learning curves in samples, context length and task diversity."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.pretraining import (  # fmt: skip
        context_length,
        double_descent,
        finite_size,
        forecast,
        links,
        non_monotone_context,
        panels,
        ridge,
        runs,
        sizes,
        structured,
        task_diversity,
    )

__all__ = [
    "context_length", "double_descent", "finite_size", "forecast", "links", "non_monotone_context", "panels",
    "ridge", "runs", "sizes", "structured", "task_diversity",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
