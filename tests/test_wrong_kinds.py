"""What is no number at all is refused by name too: text, None, ragged lists, complex numbers, lists for numbers."""

import inspect
from collections.abc import Callable

import numpy as np
import pytest

from iclab import Ratios, Regression
from iclab.planning import required
from iclab.theory import estimators, generalization, modes, population, sgd

FOUR, RATIOS, PROBLEM = (2.0, 1.0, 0.5, 0.25), Ratios(1.0, 0.5, 2.0, 0.1), Regression((0.6, 0.4), 8, 0.1)
NO_NUMBERS = ["x", b"x", None, {}, [[1.0, 2.0], [3.0]], 1j, np.nan, object()]
NOT_ONE = [*NO_NUMBERS, (1.0, 2.0), np.ones((2, 2))]
CALLS = [  # a call that answers, one of its arguments, what it must not be
    (lambda ridge: generalization.errors(RATIOS, ridge=ridge), 0.1, NO_NUMBERS),
    (lambda tau: generalization.critical_kappa(tau, 0.1), 2.0, NO_NUMBERS),
    (lambda kappa: generalization.best_alpha(kappa, 2.0, 0.1), 0.5, NO_NUMBERS),
    (lambda target: generalization.best_ridge(RATIOS, target=target), "icl", [*NO_NUMBERS, 1]),
    (lambda noise: estimators.task_threshold(1.0, noise), 0.1, NO_NUMBERS),
    (lambda alpha: estimators.dmmse_errors(alpha, 0.1, 0.5), 1.0, NO_NUMBERS),
    (lambda error: required("tau", error=error, alpha=2.0, kappa=2.0, noise=0.1), 0.9, NOT_ONE),
    (lambda ridge: required("tau", error=0.9, alpha=2.0, kappa=2.0, noise=0.1, ridge=ridge), 0.1, NOT_ONE),
    (lambda eigenvalues: modes.leading_order(eigenvalues, 8, start=(0.1, 0.1), time=[1.0]), FOUR, NO_NUMBERS),
    (lambda context_length: modes.limits(FOUR, context_length), 8, [*NOT_ONE, 1.5, True]),
    (lambda start: modes.exact_flow(FOUR, 8, start=start, time=[1.0]), (0.1, 0.1), [*NO_NUMBERS, (1, 2, 3), 1.0]),
    (lambda start: modes.head_flow(FOUR, 8, start=start, time=[1.0]), (0.1, 0.1), [*NO_NUMBERS, ([1.0], 1.0)]),
    (lambda noise: modes.exact_fixed_point(FOUR, 8, noise=noise), 0.1, NOT_ONE),
    (lambda strength: modes.exact_product_loss(strength, FOUR, 8), [0.1] * 4, [*NO_NUMBERS, [1.0], 1.0]),
    (lambda decay: modes.decayed_limits(FOUR, 8, decay=decay), 0.1, NOT_ONE),
    (lambda steps: modes.exact_descent(FOUR, 8, start=(1, 1), rate=0.1, steps=steps), 3, [*NOT_ONE, 2.5, True]),
    (lambda rate: sgd.expected_loss(PROBLEM, rate=rate, batch=4, steps=2), 0.1, NOT_ONE),
    (lambda batch: sgd.critical_rate(PROBLEM, batch=batch), 4, [*NOT_ONE, 1.5]),
    (lambda steps: sgd.small_noise_loss(PROBLEM, rate=0.1, batch=4, steps=steps, start=(1, 1)), 2, [*NOT_ONE, 2.5]),
    (lambda gamma: population.loss(population.moments(PROBLEM), gamma), np.eye(2), [*NO_NUMBERS, np.eye(3)]),
    (lambda noise: Regression((1.0,), 3, noise), 0.1, NOT_ONE),
    (lambda kappa: Ratios(1.0, kappa, 1.0, 0.0), 0.1, NO_NUMBERS),
]


@pytest.mark.parametrize(("call", "good", "wrong"), CALLS)
def test_what_is_no_number_is_refused_by_name(call: Callable, good: object, wrong: list) -> None:
    call(good)
    (name,) = inspect.signature(call).parameters
    for value in wrong:
        with pytest.raises(ValueError, match=f"^{name} must"):
            call(value)
