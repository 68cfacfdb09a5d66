"""Problems: the law of a context, its proportional limit, finite pretraining, laws of tasks."""

from iclab.problem.input_files import read_inputs
from iclab.problem.inputs import SHRINKAGES, InputSample, given_covariance, measured_inputs
from iclab.problem.pools import orthogonal_pool
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
    "SHRINKAGES", "ContextLaw", "InputSample", "Lengths", "NormalTasks", "Pool", "Pretraining", "Ratios",
    "Regression", "SphereTasks", "TaskMoments", "Tasks", "checked_lengths", "checked_mixture", "given_covariance",
    "measured_inputs", "orthogonal_pool", "read_inputs", "require_tasks", "sphere_law", "symmetric_root",
]  # fmt: skip
