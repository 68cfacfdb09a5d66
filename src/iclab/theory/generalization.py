"""Errors of pretrained linear attention in the proportional limit: D → ∞, N = αD, K = κD, n = τD²."""

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
    "TARGETS",
    "Peak",
    "Shift",
    "best_alpha",
    "best_ridge",
    "critical_kappa",
    "diversity_gap",
    "errors",
    "interpolation_peak",
    "structured_errors",
]  # fmt: skip
