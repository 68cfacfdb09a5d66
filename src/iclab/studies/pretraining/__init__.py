"""Studies of finite pretraining: learning curves in samples, context length and task diversity."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.pretraining import context_length as context_length
    from iclab.studies.pretraining import double_descent as double_descent
    from iclab.studies.pretraining import finite_size as finite_size
    from iclab.studies.pretraining import forecast as forecast
    from iclab.studies.pretraining import non_monotone_context as non_monotone_context
    from iclab.studies.pretraining import ridge as ridge
    from iclab.studies.pretraining import runs as runs
    from iclab.studies.pretraining import sizes as sizes
    from iclab.studies.pretraining import structured as structured
    from iclab.studies.pretraining import task_diversity as task_diversity

__all__ = [
    "context_length",
    "double_descent",
    "finite_size",
    "forecast",
    "non_monotone_context",
    "ridge",
    "runs",
    "sizes",
    "structured",
    "task_diversity",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
