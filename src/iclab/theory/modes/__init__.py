"""Training dynamics of the two-factor linear transformer, mode by mode: leading order in 1/N, and exact."""

from iclab.theory.modes.diagonal_tasks import DiagonalTasks
from iclab.theory.modes.exact import (
    balance_drift,
    exact_descent,
    exact_fixed_point,
    exact_flow,
    exact_gradient,
    exact_least_loss,
    exact_loss,
    exact_product_loss,
)
from iclab.theory.modes.leading_order import (
    balanced_law,
    decayed_limits,
    leading_order,
    leading_order_loss,
    limits,
    mode_law,
    paper_time,
    time_constants,
    time_to_fraction,
)
from iclab.theory.modes.matrix import matrix_flow, matrix_gradient, matrix_loss
from iclab.theory.modes.single_head import single_head_flow, single_head_limits, single_head_loss
from iclab.theory.modes.stability import descent_step, growth_rates, largest_step

__all__ = [
    "DiagonalTasks", "balance_drift", "balanced_law", "decayed_limits", "descent_step", "exact_descent",
    "exact_fixed_point", "exact_flow", "exact_gradient", "exact_least_loss", "exact_loss", "exact_product_loss",
    "growth_rates", "largest_step", "leading_order", "leading_order_loss", "limits", "matrix_flow", "matrix_gradient",
    "matrix_loss", "mode_law", "paper_time", "single_head_flow", "single_head_limits", "single_head_loss",
    "time_constants", "time_to_fraction",
]  # fmt: skip
