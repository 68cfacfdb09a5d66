"""Finite pretraining: errors in the proportional limit, and predictions at finite dimension for a given pool."""

from iclab.theory.pretraining.predictions import leverage_errors, pool_errors
from iclab.theory.pretraining.proportional import (
    Peak,
    best_alpha,
    best_ridge,
    critical_kappa,
    diversity_gap,
    errors,
    interpolation_peak,
)
from iclab.theory.pretraining.response import Shift
from iclab.theory.pretraining.structured import structured_errors

__all__ = [
    "Peak", "Shift", "best_alpha", "best_ridge", "critical_kappa", "diversity_gap", "errors",
    "interpolation_peak", "leverage_errors", "pool_errors", "structured_errors",
]  # fmt: skip
