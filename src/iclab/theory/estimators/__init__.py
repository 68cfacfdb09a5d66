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
from iclab.theory.estimators.pool_gap import (
    PoolInformation,
    SampledGap,
    gap_bounds,
    gap_limit,
    pool_information,
    sampled_gap,
)

__all__ = [
    "PoolInformation", "SampledGap", "descended", "discrete_weights", "dmmse_errors", "effective_log_tasks",
    "gap_bounds", "gap_limit", "nearest_task_errors", "one_context", "one_step_loss", "one_step_preconditioner",
    "one_step_rate", "pool_dmmse_errors", "pool_information", "ridge_error", "sampled_gap", "spectral_integrals",
    "task_threshold",
]  # fmt: skip
