"""Functions of the related systems refuse what is no number, or one out of range, by the name of the argument."""

from collections.abc import Callable

import numpy as np
import pytest

from iclab.theory import softmax as softmax_window
from iclab.theory.estimators import gradient_steps
from iclab.theory.population import moments_from
from iclab.theory.related import rank_limited
from iclab.theory.related.pattern_matching import matching_floor
from iclab.theory.tokens import mixing as token_mixing
from tests import refusals
from tests.refusals import Row, check_refusals

INPUTS = np.diag([2.0, 1.0, 0.5])
LAW, TESTED = moments_from(INPUTS, 9), rank_limited.contexts(INPUTS, 9)
EVEN = np.array([0.5])
FIVE = {"dimension": 5, "context_length": 50}
GOOD = {**FIVE, "slope_variance": 1.0, "noise": 0.1}
MIXING = (np.ones((4, 2)), np.ones((4, 2)))
NO_NUMBERS = [*refusals.NO_NUMBERS, None, -np.inf]
NOT_ONE = [*refusals.NOT_ONE, -np.inf, np.inf, []]
NEGATIVE = [*NOT_ONE, -1.0]
NO_LENGTH = [*NOT_ONE, 0, -1, 2.5, 10**400]
NO_KERNEL = [None, 1.0, "x", np.ones(3), lambda _: None, lambda cosine: cosine * np.nan, lambda cosine: -cosine]
CALLS: list[Row] = [  # a call that answers, one of its arguments, what it must not be
    (lambda input_covariance: rank_limited.contexts(input_covariance, 9), INPUTS, [*NO_NUMBERS, np.ones(3), -INPUTS]),
    (lambda context_length: rank_limited.contexts(INPUTS, context_length), 9, NO_LENGTH),
    (
        lambda task_covariance: rank_limited.contexts(INPUTS, 9, task_covariance=task_covariance),
        INPUTS,
        ["x", 1j, {}],
    ),
    (
        lambda context_task: rank_limited.relabeled_contexts(
            INPUTS, 9, context_task=context_task, target_task=np.ones(3)
        ),
        np.ones(3),
        [*NOT_ONE, np.ones(2)],
    ),
    (lambda tested: rank_limited.test_loss(LAW, tested, rank=1, noise=0.1), TESTED, [None, 1.0, LAW]),
    (lambda tested: rank_limited.best_rank(LAW, tested), TESTED, [None, 1.0, LAW]),
    (lambda tested: rank_limited.critical_noise(LAW, tested), TESTED, [None, 1.0, LAW]),
    (lambda tested: rank_limited.crossover(LAW, tested, 1, 2), TESTED, [None, 1.0, LAW]),
    (lambda rank: rank_limited.test_loss(LAW, TESTED, rank=rank, noise=0.1), 1, [*NO_LENGTH, 4]),
    (lambda noise: rank_limited.test_loss(LAW, TESTED, rank=1, noise=noise), 0.1, [*NO_NUMBERS, -1.0, np.inf]),
    (lambda noise: rank_limited.best_rank(LAW, TESTED, noise), 0.1, [*NO_NUMBERS, -1.0, np.inf]),
    (lambda larger: rank_limited.crossover(LAW, TESTED, 1, larger), 2, [*NO_LENGTH, 4]),
    (
        lambda probabilities: rank_limited.parity_strengths(probabilities, 5),
        [0.5],
        [*NO_NUMBERS, [], 0.5, [-0.1], [2]],
    ),
    (lambda noise: rank_limited.parity_strengths(EVEN, 5, noise=noise), 0.1, NEGATIVE),
    (lambda heads: rank_limited.parity_loss(EVEN, 5, heads=heads), 1, [*NO_LENGTH, 2]),
    (
        lambda flip: rank_limited.parity_test_loss(EVEN, 5, test_length=5, heads=1, flip=flip),
        0.1,
        [*NO_NUMBERS, 1.1, np.inf],
    ),
    (
        lambda preconditioner: gradient_steps.descended(
            np.ones((2, 3)), np.ones(2), np.ones(3), preconditioner=preconditioner, steps=1
        ),
        np.eye(3),
        NOT_ONE,
    ),
    (lambda scale: softmax_window.affine_loss(scale, **GOOD), 3.0, [*NO_NUMBERS, 0.0, np.inf, 500.0, 1e300]),
    (
        lambda context_length: softmax_window.affine_loss(3.0, **GOOD | {"context_length": context_length}),
        50,
        [*NO_NUMBERS, 0, 2.5, np.inf, 10**30],
    ),
    (
        lambda dimension: softmax_window.affine_loss(3.0, **GOOD | {"dimension": dimension}),
        5,
        [*NO_LENGTH, 1, 10**30],
    ),
    (lambda noise: softmax_window.affine_loss(3.0, **GOOD | {"noise": noise}), 0.1, [*NO_NUMBERS, -1.0, np.inf]),
    (lambda kernel: softmax_window.kernel_loss(kernel, 3.0, **FIVE, noise=0.1), lambda cosine: cosine, NO_KERNEL),
    (
        lambda kernel: softmax_window.best_kernel_scale(kernel, **FIVE, noise=0.1),
        lambda cosine: cosine,
        [*NO_KERNEL, np.zeros_like],
    ),
    (
        lambda scale: softmax_window.kernel_loss(lambda cosine: cosine, scale, **FIVE, noise=0.1),
        3.0,
        [*NEGATIVE, 0.0, 1e300],
    ),
    (lambda noise: softmax_window.kernel_loss(lambda cosine: cosine, 3.0, **FIVE, noise=noise), 0.1, NEGATIVE),
    (
        lambda slope_variance: softmax_window.best_scale(**GOOD | {"slope_variance": slope_variance}),
        1.0,
        [*NEGATIVE, 0.0, 1e300, 1e-300],
    ),
    (lambda noise: softmax_window.best_scale(**GOOD | {"noise": noise}), 0.1, [*NEGATIVE, 1e300, 1e-300]),
    (
        lambda context_length: softmax_window.best_scale(**GOOD | {"context_length": context_length}),
        9,
        [*NO_LENGTH, 1],
    ),
    (lambda noise: softmax_window.scale_law(5, 50, 1.0, noise), 0.1, [*NO_NUMBERS, -1.0]),
    (lambda context_length: softmax_window.scale_law(5, context_length, 1.0, 0.1), 50, [*NO_NUMBERS, 0]),
    (lambda bias_power: softmax_window.scale_exponent(5, bias_power), 2.0, [*NEGATIVE, 0.0]),
    (lambda scale: softmax_window.long_context_loss(scale, **GOOD), 3.0, [*NO_NUMBERS, 0.0, np.inf, 1e300, 1e-300]),
    (
        lambda noise: softmax_window.linear_attention_loss(**GOOD | {"noise": noise}, offset_variance=1.0),
        0.1,
        NEGATIVE,
    ),
    (
        lambda cosine: softmax_window.kinked_kernel(cosine, dimension=5, slope_variance=1.0),
        0.5,
        [*NO_NUMBERS, 1.5, -2.0],
    ),
    (lambda matrix: softmax_window.gaussian_squared_weights(matrix, np.ones(3)), np.eye(3), NOT_ONE),
    (
        lambda matrix: softmax_window.gaussian_loss(
            matrix, np.ones((3, 1)), context_length=9, slope_variance=1.0, noise=0.1
        ),
        np.eye(3),
        [*NOT_ONE, 1e300 * np.eye(3)],
    ),
    (lambda x_mixing: token_mixing.loss(x_mixing, MIXING[1], dimension=3, readout=0.1), MIXING[0], NOT_ONE),
    (lambda readout: token_mixing.loss(*MIXING, dimension=3, readout=readout), 0.1, [*NOT_ONE, 1e300]),
    (lambda noise: token_mixing.best_loss(*MIXING, dimension=3, noise=noise), 0.1, NEGATIVE),
    (lambda pairs: token_mixing.attention_mixing(pairs, masked=True), 4, [*NO_LENGTH, 10**30]),
    (lambda masked: token_mixing.attention_mixing(4, masked=masked), True, ["x", None, 1, [True], np.ones(2)]),
    (lambda gain: token_mixing.attention_mixing(4, masked=True, gain=gain), 2.0, [*NEGATIVE, 0.0]),
    (lambda x_value: token_mixing.attention_mixing(4, masked=True, x_value=x_value), 2.0, NOT_ONE),
    (lambda noise: token_mixing.matched_loss(4, dimension=3, noise=noise), 0.1, NEGATIVE),
    (lambda relevant: matching_floor(relevant, 10), 0.5, [*NO_NUMBERS, 0.0, -0.1, 1.1]),
    (lambda context_length: matching_floor(0.5, context_length), 10, [*NO_NUMBERS, 0]),
]


@pytest.mark.parametrize(("call", "good", "wrong"), CALLS)
def test_what_cannot_be_is_refused_by_name(call: Callable, good: object, wrong: list) -> None:
    check_refusals(call, good, wrong)
