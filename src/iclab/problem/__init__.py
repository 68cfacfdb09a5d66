"""Problems: the law of a context, its proportional limit, finite pretraining, laws of tasks."""

from iclab.problem.pretraining import Pretraining
from iclab.problem.ratios import Ratios
from iclab.problem.regression import Lengths, Regression, checked_lengths, checked_mixture
from iclab.problem.tasks import (
    ContextLaw,
    NormalTasks,
    Pool,
    SphereTasks,
    TaskMoments,
    Tasks,
    require_tasks,
    sphere_law,
    symmetric_root,
)

__all__ = [
    "ContextLaw", "Lengths", "NormalTasks", "Pool", "Pretraining", "Ratios", "Regression", "SphereTasks",
    "TaskMoments", "Tasks", "checked_lengths", "checked_mixture", "require_tasks", "sphere_law", "symmetric_root",
]  # fmt: skip
