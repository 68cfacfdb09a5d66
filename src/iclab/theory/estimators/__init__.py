"""Reference estimators for attention: ridge regression, posterior mean over a pool, gradient descent in context."""

from iclab.theory.estimators import one_context
from iclab.theory.estimators.bayes import (
    discrete_weights,
    dmmse_errors,
    effective_log_tasks,
    nearest_task_errors,
    pool_dmmse_errors,
    ridge_error,
    spectral_integrals,
    task_threshold,
)
from iclab.theory.estimators.gradient_steps import descended, one_step_loss, one_step_preconditioner, one_step_rate

__all__ = [
    "descended", "discrete_weights", "dmmse_errors", "effective_log_tasks", "nearest_task_errors",
    "one_context", "one_step_loss", "one_step_preconditioner", "one_step_rate", "pool_dmmse_errors", "ridge_error",
    "spectral_integrals", "task_threshold",
]  # fmt: skip
