"""What the studies of modes and of SGD noise compute themselves: gaps, balances, paths, and the cases they refuse."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.studies.modes import alignment, conservation, finite_context, mode_staging, phase_portrait, sgd_noise


def test_the_gap_of_the_leading_order_is_known_and_falls_with_the_context() -> None:
    # solved by another method (LSODA) on twice as many times; the times alone change the third digit
    gaps = [mode_staging.largest_gap(mode_staging.Case(), length) for length in (50, 200, 1000)]
    assert_allclose(gaps, [0.121, 0.0335, 0.00717], rtol=5e-3)


def test_leading_order_has_no_gap_for_one_mode() -> None:
    assert mode_staging.largest_gap(replace(mode_staging.Case(), eigenvalues=(1.0,)), 8) < 1e-8  # of the solver


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
