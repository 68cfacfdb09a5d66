"""Errors of pretrained linear attention in the proportional limit: D → ∞, N = αD, K = κD, n = τD²."""

from iclab.theory.pretraining.alignment import test_costs
from iclab.theory.pretraining.chosen import chosen_pool_errors
from iclab.theory.pretraining.gradient import design_gradient
from iclab.theory.pretraining.low_rank import LowRankErrors, low_rank_errors
from iclab.theory.pretraining.mixed_lengths import mixed_lengths_error
from iclab.theory.pretraining.other_inputs import other_inputs_error
from iclab.theory.pretraining.proportional import (
    TARGETS,
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
    "TARGETS", "LowRankErrors", "Peak", "Shift", "best_alpha", "best_ridge", "chosen_pool_errors", "critical_kappa",
    "design_gradient", "diversity_gap", "errors", "interpolation_peak", "low_rank_errors", "mixed_lengths_error",
    "other_inputs_error", "structured_errors", "test_costs",
]  # fmt: skip
