"""Expected loss of one-pass SGD: the noise that fresh batches add to the flow."""

from iclab.theory.sgd.dense import dense_expected_loss
from iclab.theory.sgd.expected import critical_rate, expected_loss
from iclab.theory.sgd.moments import Cost, dense_cost, diagonal_cost
from iclab.theory.sgd.small_noise import balance_step, expected_balance_step, small_noise_loss

__all__ = [
    "Cost", "balance_step", "critical_rate", "dense_cost", "dense_expected_loss", "diagonal_cost",
    "expected_balance_step", "expected_loss", "small_noise_loss",
]  # fmt: skip
