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
from iclab.theory.estimators.law_fits import FAMILIES, Cells, FittedLaw, fitted_law
from iclab.theory.estimators.pool_gap import (
    PoolInformation,
    SampledGap,
    gap_bounds,
    gap_limit,
    pool_information,
    sampled_gap,
)
from iclab.theory.estimators.shares import MixtureShares, Standing, mixture_shares, share
from iclab.theory.estimators.strategy_law import (
    StrategyLaw,
    crossing_steps,
    pool_bits,
    strategy_log_odds,
    strategy_share,
)

__all__ = [
    "FAMILIES", "Cells", "FittedLaw", "MixtureShares", "PoolInformation", "SampledGap", "Standing", "StrategyLaw",
    "crossing_steps", "descended", "discrete_weights", "dmmse_errors", "effective_log_tasks", "fitted_law",
    "gap_bounds", "gap_limit", "mixture_shares", "nearest_task_errors", "one_context", "one_step_loss",
    "one_step_preconditioner", "one_step_rate", "pool_bits", "pool_dmmse_errors", "pool_information",
    "ridge_error", "sampled_gap", "share", "spectral_integrals", "strategy_log_odds", "strategy_share",
    "task_threshold",
]  # fmt: skip
