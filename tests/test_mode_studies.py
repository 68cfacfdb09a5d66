"""What the studies of modes and of SGD noise compute themselves: gaps, balances, paths, and the cases they refuse."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Regression
from iclab.simulation.keys import key_of
from iclab.simulation.linear.scalar_sgd import drawn_squares
from iclab.studies.modes import (
    alignment,
    conservation,
    finite_context,
    mode_staging,
    phase_portrait,
    sgd_noise,
    training,
)
from iclab.theory import modes, population


def largest_gap(case: mode_staging.Case, length: int) -> float:
    """Largest |Δa|/a∞ between leading order and exact flow over modes and times up to 40 τ."""
    laws, time = (modes.leading_order, modes.exact_flow), np.linspace(0, 40, 201)
    leading, exact = (mode_staging.strengths(law, case, [length], time)[0] for law in laws)
    return float(np.max(abs(leading - exact) / modes.limits(modes.DiagonalTasks(case.eigenvalues, length))))


def test_the_gap_of_the_leading_order_is_known_and_falls_with_the_context() -> None:
    # solved by another method (LSODA) on twice as many times; the times alone change the third digit
    gaps = [largest_gap(mode_staging.Case(), length) for length in (50, 200, 1000)]
    assert_allclose(gaps, [0.121, 0.0335, 0.00717], rtol=5e-3)


def test_leading_order_has_no_gap_for_one_mode() -> None:
    assert largest_gap(replace(mode_staging.Case(), eigenvalues=(1.0,)), 8) < 1e-8  # of the solver


def test_the_leading_order_is_judged_where_it_is_off_most_and_at_long_contexts() -> None:
    theory = mode_staging.theory(mode_staging.Case())
    off = theory["leading_end"].strength / theory["exact_end"].strength
    assert np.unravel_index(np.argmax(off), off.shape) == (0, 3)
    assert_allclose(off[0, 3], 6.1, rtol=0.02)  # docs/derivations/modes
    assert np.max(abs(theory["leading_long"].strength / theory["exact_long"].strength - 1)) < 0.03


def test_short_contexts_and_noise_switch_modes_off_in_the_exact_fixed_point_alone() -> None:
    case = finite_context.Case()
    exact = finite_context.exact_strengths(case, np.array([4])).strength
    leading = finite_context.leading_strengths(case, np.array([4])).strength
    assert np.all(exact[0] > 0)
    assert exact[1, 0, -1] == 0
    assert np.all(leading > 0)
    assert_allclose(leading[0], leading[1], atol=0)


def test_paths_of_one_mode_keep_their_balance_and_end_at_rest_or_at_the_saddle() -> None:
    case = phase_portrait.Case()
    fan, back = (
        phase_portrait.closed_paths(case, starts, np.array([0.0, 40.0]))
        for starts in (phase_portrait.FAN, phase_portrait.BACK)
    )
    assert_allclose(fan.balance[:, 1], fan.balance[:, 0], atol=1e-12)
    assert_allclose(fan.value[:, 1] * fan.key_query[:, 1], case.limit, rtol=1e-9)
    assert_allclose(case.limit, 0.8, rtol=1e-14)  # N/((N + 1) s + s) at N = 8, s = 1
    assert_allclose(back.value[:, 1], 0, atol=1e-12)


def test_balances_of_all_weights_count_those_off_the_diagonals() -> None:
    value, key_query = np.array([[[2.0, 5.0], [5.0, 1.0]]]), np.array([[[1.0, 7.0], [6.0, 3.0]]])
    found = conservation.balances({"time": [0.0]}, value, key_query)
    assert_allclose(found.total, [4 + 25 + 25 + 1 - (1 + 49 + 36 + 9)], atol=0)
    assert_allclose(found.balance, [[3.0, -8.0]], atol=0)


def test_flows_from_drawn_contexts_are_those_of_their_examples_together() -> None:
    problem, time = Regression((1.0, 0.5), 6), np.linspace(0, 8, 5)
    p, q = training.drawn_flow(problem, 200_000, start=(0.2, 0.2), time=time, key=key_of(0))
    known = modes.exact_flow(modes.DiagonalTasks((1.0, 0.5), 6), start=(0.2, 0.2), time=time)
    assert_allclose(np.einsum("taa,taa->ta", p, q), known.strength, atol=0.02)  # four errors
    few, _ = training.drawn_flow(problem, 1, start=(0.2, 0.2), time=time, key=key_of(0))
    assert few.shape == (5, 2, 2)


def test_followed_losses_begin_at_that_of_no_weights() -> None:
    case = replace(sgd_noise.Case(), contexts=20_000, steps=20)
    drawn = drawn_squares(case.problem, case.contexts, key=key_of(0))
    losses = drawn.followed(case.steps, rate=0.01, batch=8)[case.records]
    assert losses.shape == (11,)
    assert_allclose(losses[0], 2.3, rtol=0.02)  # 1.5 + .6 + .2
    assert np.all(np.diff(losses) < 0)
    given = np.stack([np.zeros((2, 2)), np.diag([0.3, 0.2])])
    law = population.moments(case.problem)
    assert_allclose(drawn.losses_of(given), [losses[0], population.loss(law, given[1])], rtol=0.01)  # drawn moments


def test_balances_of_modes_are_those_of_the_diagonals() -> None:
    value, key_query = np.array([[[2.0, 5.0], [5.0, 1.0]]]), np.array([[[1.0, 7.0], [7.0, 3.0]]])
    assert_allclose(conservation.mode_balances(value, key_query), [[3.0, -8.0]], atol=0)  # 4 − 1, 1 − 9


def test_starts_of_alignment_are_the_same_for_every_seed_and_scale_with_their_size() -> None:
    case = alignment.Case()
    assert case.matrices.shape == (2, case.starts, 3, 3)
    assert_allclose(replace(case, initial=0.6).matrices, 2 * case.matrices, rtol=1e-14)


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        (mode_staging.Case(), {"steps": 1510}, "steps must be a multiple of 50"),
        (mode_staging.Case(), {"steps": 0}, "steps must be a whole number >= 50; got 0"),
        (mode_staging.Case(), {"context_lengths": (0,)}, "got 0. Count the label"),
        (mode_staging.Case(), {"batches": (8,)}, "batches must be as many as context_lengths, 3"),
        (finite_context.Case(), {"noises": ()}, "noises must hold at least one"),
        (finite_context.Case(), {"noises": (-1.0,)}, "noises must be finite and >= 0"),
        (sgd_noise.Case(), {"rates": (0.1,)}, "rates must be as many as batches, 2"),
        (sgd_noise.Case(), {"runs": 1}, "runs must be a whole number >= 2"),
        (phase_portrait.Case(), {"eigenvalue": 0.0}, "eigenvalue must be finite and > 0"),
        (conservation.Case(), {"transformer_steps": 601}, "transformer_steps must be a multiple of 15"),
        (alignment.Case(), {"initial": -1.0}, "initial must be finite and > 0"),
    ],
)
def test_impossible_cases_are_refused_by_name(case, change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(case, **change)
