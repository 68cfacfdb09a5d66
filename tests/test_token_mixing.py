"""Inputs and labels as separate tokens: known losses, an explicit network, limits; the floor of pattern matching."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.theory.population import best_loss, moments_from
from iclab.theory.related.pattern_matching import matching_floor
from iclab.theory.tokens import mixing as token_mixing
from iclab.theory.tokens.mixing import attention_loss

PAPER = {"dimension": 5, "masked": True}


def network_squares(
    pairs: int, dimension: int, *, masked: bool, gain: float, values: tuple, readout: float, noise: float, draws: int
) -> np.ndarray:
    """Squared errors of two layers that handle every token: softmax with residual, then linear attention."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((draws, pairs + 1, dimension))
    task = rng.standard_normal((draws, dimension)) / np.sqrt(dimension)
    y = np.einsum("pnd,pd->pn", x, task) + np.sqrt(noise) * rng.standard_normal((draws, pairs + 1))
    tokens = np.zeros((draws, 2 * pairs, dimension + 1))
    tokens[:, ::2, :-1], tokens[:, 1::2, -1] = x[:, :-1], y[:, :-1]
    carried = tokens.copy()
    for k in range(2 * pairs):
        seen = range(k + 1) if masked else range(2 * pairs)
        score = np.array([np.log(gain) * (j // 2 == k // 2) for j in seen])
        share = np.exp(score) / np.exp(score).sum()
        attended = np.einsum("j,pjc->pc", share, tokens[:, list(seen)])
        carried[:, k] += attended * np.array([values[0]] * dimension + [values[1]])
    answer = readout * np.einsum("pd,pkd,pk->p", x[:, -1], carried[..., :-1], carried[..., -1])
    return (y[:, -1] - answer) ** 2


def test_known_losses_of_matched_tokens_and_of_the_construction() -> None:
    assert_allclose(token_mixing.matched_loss(30, dimension=5), 1 / 6, rtol=1e-12)
    uniform = token_mixing.attention_mixing(30, masked=True)
    assert_allclose(token_mixing.best_loss(*uniform, dimension=5), 0.7179979325, rtol=1e-8)
    published = token_mixing.loss(*uniform, dimension=5, readout=1 / np.log(30))
    assert_allclose(published, 3.062565726, rtol=1e-8)  # worse than answering 0
    assert_allclose(token_mixing.best_readout(*uniform, dimension=5), 0.0757, atol=5e-5)  # known to four decimals


@pytest.mark.parametrize(
    ("gain", "known"), [(1, 0.7179979325), (3, 0.4937043896), (10, 0.2603859288), (100, 0.1693750876)]
)
def test_known_losses_of_positions(gain: float, known: float) -> None:
    assert_allclose(attention_loss(30, dimension=5, masked=True, gain=gain), known, rtol=1e-8)


@pytest.mark.parametrize(("pairs", "known"), [(10, 0.649207), (30, 0.568977)])
def test_known_losses_at_the_best_values(pairs: int, known: float) -> None:
    x_value, y_value = token_mixing.best_value_scales(pairs, dimension=5, masked=True)
    assert_allclose(
        attention_loss(pairs, dimension=5, masked=True, x_value=x_value, y_value=y_value),
        known,
        rtol=1e-5,
    )


@pytest.mark.slow
def test_known_loss_at_the_best_values_of_a_hundred_pairs() -> None:
    x_value, y_value = token_mixing.best_value_scales(100, dimension=5, masked=True)
    assert_allclose(
        attention_loss(100, dimension=5, masked=True, x_value=x_value, y_value=y_value),
        0.499197,
        rtol=1e-5,
    )


@pytest.mark.parametrize("pairs", [3, 10, 30])
@pytest.mark.parametrize("values", [(1.0, 1.0), (2.0, -0.4), (-1.0, 1.0)])
def test_without_mask_and_positions_no_length_helps(pairs: int, values: tuple) -> None:
    found = attention_loss(pairs, dimension=5, masked=False, x_value=values[0], y_value=values[1])
    assert_allclose(found, 6 / 7, rtol=1e-10)  # (d + 1)/(d + 2)


@pytest.mark.parametrize("masked", [True, False])
def test_strong_positions_match_every_pair_with_or_without_mask(masked: bool) -> None:
    # masked, an x token sees no y of its own, but its y sees both; G is still a multiple of the identity
    assert_allclose(attention_loss(30, dimension=5, masked=masked, gain=1e12), 1 / 6, rtol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_matched_tokens_lose_what_linear_attention_on_joint_tokens_does(noise: float) -> None:
    joint = moments_from(np.eye(4), 12, task_covariance=np.eye(4) / 4, noise=noise)
    assert_allclose(token_mixing.matched_loss(12, dimension=4, noise=noise), best_loss(joint), rtol=1e-12)


@pytest.mark.parametrize(
    ("masked", "gain", "values"), [(True, 1.0, (1.0, 1.0)), (True, 10.0, (0.7, -0.3)), (False, 4.0, (1.0, 0.5))]
)
def test_losses_are_those_of_a_network_that_handles_every_token(masked: bool, gain: float, values: tuple) -> None:
    mixing = token_mixing.attention_mixing(8, masked=masked, gain=gain, x_value=values[0], y_value=values[1])
    readout = 0.8 * token_mixing.best_readout(*mixing, dimension=3, noise=0.2)
    squares = network_squares(8, 3, masked=masked, gain=gain, values=values, readout=readout, noise=0.2, draws=60_000)
    known = token_mixing.loss(*mixing, dimension=3, noise=0.2, readout=readout)
    assert abs(squares.mean() - known) < 4 * squares.std() / np.sqrt(len(squares))


def test_the_best_readout_has_no_slope() -> None:
    mixing = token_mixing.attention_mixing(12, masked=True, gain=2.0)
    best = token_mixing.best_readout(*mixing, dimension=3, noise=0.1)
    around = [token_mixing.loss(*mixing, dimension=3, noise=0.1, readout=best + step) for step in (-1e-3, 0, 1e-3)]
    assert_allclose(around[0], around[2], rtol=1e-12)  # a parabola about its least point
    assert around[1] < around[0]


def test_long_contexts_without_positions_gain_logarithmically() -> None:
    lengths = np.array([30, 200, 1000])
    exact = np.array([attention_loss(int(pairs), dimension=5, masked=True) for pairs in lengths])
    law = 1 / (1 + np.log(lengths) / 10)  # 1/(1 + log D/(2d)): tr G = log D + 0.31, |G|² ~ 2 log D
    assert_allclose(exact, law, rtol=0.05)  # corrections of relative order 1/log D
    assert exact[-1] > 0.5


def test_where_nothing_is_mixed_the_best_answer_is_none() -> None:
    nothing = np.zeros((4, 2))
    assert token_mixing.best_readout(nothing, nothing, dimension=3) == 0
    assert token_mixing.best_loss(nothing, nothing, dimension=3, noise=0.5) == 1.5


def test_known_floors_of_pattern_matching() -> None:
    # ½ (1 − α/2)^N
    found = matching_floor(np.array([0.8, 0.4, 0.1]), np.array([10, 20, 80]))
    assert_allclose(found, [0.0030233088, 0.0057646075, 0.0082576872], rtol=1e-8)


def test_the_floor_is_the_error_of_drawn_contexts_with_ideal_attention() -> None:
    rng = np.random.default_rng(0)
    kind = rng.choice(3, (200_000, 12), p=[0.15, 0.15, 0.7])  # the query's pattern, the other one, none of the two
    wrong = np.where(np.any(kind == 0, axis=1), 0.0, rng.random(200_000) < 0.5)
    assert abs(wrong.mean() - matching_floor(0.3, 12)) < 4 * wrong.std() / np.sqrt(200_000)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: token_mixing.best_loss(np.ones((4, 2)), np.ones((4, 3)), dimension=2),
            "x_mixing and y_mixing must be of one shape",
        ),
        (
            lambda: token_mixing.best_loss(np.ones((4, 2)), np.ones((4, 2)), dimension=0),
            "dimension must be a whole number >= 1; got 0",
        ),
        (
            lambda: token_mixing.best_loss(np.ones((4, 2)), np.ones((4, 2)), dimension=2, noise=-1.0),
            "noise must be finite and >= 0; got -1.0",
        ),
        (lambda: token_mixing.attention_mixing(0, masked=True), "pairs must be a whole number >= 1; got 0"),
        (lambda: token_mixing.attention_mixing(3, masked=True, gain=0.0), "gain must be finite and > 0; got 0.0"),
        (lambda: matching_floor(0.0, 10), "relevant must be > 0; got 0.0"),
        (lambda: matching_floor(1.1, 10), "relevant must be at most 1; got 1.1"),
        (lambda: matching_floor(0.5, 0), "context_length must be >= 1; got 0.0"),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
