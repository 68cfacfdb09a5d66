"""Drawn sequences, their law and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab import Regression
from iclab.simulation import contexts as room
from iclab.simulation.contexts import Contexts, assemble, draw
from iclab.simulation.keys import key_of
from iclab.theory.population import moments

MIXED = Regression(
    eigenvalues=(0.9, 0.4, 0.1), context_length=(2, 5, 12), noise=0.3, task_eigenvalues=(0.2, 1.0, 3.0)
)


def summaries(contexts: Contexts) -> np.ndarray:
    return np.einsum("pn,pnd->pd", contexts.labels, contexts.inputs) / contexts.lengths[:, None]


@pytest.mark.parametrize("problem", [Regression(), MIXED], ids=["plain", "mixed"])
def test_moments_of_drawn_contexts_are_those_of_the_law(problem: Regression) -> None:
    drawn, law = draw(problem, 100_000, key=key_of(1)), moments(problem)
    h, x, y = summaries(drawn), drawn.query, drawn.target
    for samples, expected in (
        (np.einsum("pi,pj->pij", h, y[:, None] * x), law.cross),
        (np.einsum("pi,pj->pij", h, h), law.second),
        (np.einsum("pi,pj->pij", x, x), law.input_covariance),
        (y**2, law.null_loss),
    ):
        error = samples.std(axis=0) / np.sqrt(len(samples))
        assert np.all(np.abs(samples.mean(axis=0) - expected) < 4 * error)


def test_each_length_of_a_mixture_comes_as_often_as_the_others() -> None:
    lengths = draw(MIXED, 30_000, key=key_of(2)).lengths
    counts = np.array([np.sum(lengths == length) for length in MIXED.context_lengths])
    assert counts.sum() == 30_000
    assert np.all(np.abs(counts - 10_000) < 4 * np.sqrt(30_000 * (1 / 3) * (2 / 3)))


def test_nothing_stands_beyond_the_length_of_a_context() -> None:
    drawn = draw(MIXED, 200, key=key_of(3))
    beyond = np.arange(12) >= drawn.lengths[:, None]
    assert beyond.any()
    assert not drawn.inputs[beyond].any()
    assert not drawn.labels[beyond].any()
    assert np.all(drawn.labels[~beyond] != 0)
    assert_array_equal(drawn.divisor, drawn.lengths)


def test_without_noise_the_context_determines_the_label_of_the_query() -> None:
    drawn = draw(Regression(context_length=9), 50, key=key_of(4))
    for inputs, labels, query, target in zip(drawn.inputs, drawn.labels, drawn.query, drawn.target, strict=True):
        task = np.linalg.lstsq(inputs, labels, rcond=None)[0]
        assert_allclose(query @ task, target, atol=1e-12)


def test_a_seed_draws_the_same_again_and_other_seeds_draw_otherwise() -> None:
    first, again, other = (draw(MIXED, 20, key=key_of(seed)) for seed in (5, 5, 6))
    assert_array_equal(first.tokens, again.tokens)
    assert not np.any(first.target == other.target)


def test_a_direction_without_variance_holds_no_inputs() -> None:
    drawn = draw(Regression(eigenvalues=(1.0, 0.0)), 10, key=key_of(0))
    assert not drawn.inputs[..., 1].any()
    assert drawn.inputs[..., 0].all()


def test_another_problem_of_the_same_size_compiles_nothing_anew() -> None:
    draw(Regression(eigenvalues=(0.6, 0.4), context_length=5), 32, key=key_of(0))
    compiled = room._fresh._cache_size()
    other = Regression(eigenvalues=(0.9, 0.1), context_length=5, noise=0.5, task_eigenvalues=(1.0, 2.0))
    draw(other, 32, key=key_of(1))
    assert room._fresh._cache_size() == compiled


def test_seeds_that_differ_in_their_high_bits_are_different_seeds() -> None:
    low, high = (draw(Regression(), 4, key=key_of(seed)) for seed in (1, 2**32 + 1))
    assert not np.any(low.target == high.target)


@pytest.mark.parametrize("seed", [-1, 1.0, True, "1", 2**63])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number"):
        key_of(seed)  # type: ignore[arg-type]


def test_at_least_one_sequence_is_drawn() -> None:
    with pytest.raises(ValueError, match="sequences must be at least 1; got 0"):
        draw(Regression(), 0, key=key_of(0))


def test_arrays_that_do_not_fit_are_refused() -> None:
    x, y, q, t = np.ones((6, 4, 2)), np.ones((6, 4)), np.ones((6, 2)), np.ones(6)
    assert assemble(x, y, q, t).dimension == 2
    for parts, message in (
        ((x, y[:, 1:], q, t), r"must have shapes \(P, N, D\), \(P, N\), \(P, D\)"),
        ((x, y, q[:, :1], t), r"must have shapes \(P, N, D\)"),
        ((x, y, q, t[1:]), "target must be one number for each of 6 sequences"),
        ((x, np.full_like(y, np.nan), q, t), "tokens must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            assemble(*parts)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("lengths", np.array([0, 3]), "lengths must be between 1 and N = 3; got 0 to 3"),
        ("lengths", np.array([1, 4]), "lengths must be between 1 and N = 3; got 1 to 4"),
        ("divisor", np.array([1.0, 0.0]), "divisor must be positive"),
        ("target", np.array([1.0, np.inf]), "target must be finite"),
        ("tokens", np.ones((2, 4, 3)), "tokens must end in a query with label 0"),
        ("tokens", np.ones((2, 1, 3)), "tokens must have shape"),
    ],
)
def test_impossible_contexts_are_refused_by_name(field: str, value: np.ndarray, message: str) -> None:
    good = assemble(np.ones((2, 3, 2)), np.ones((2, 3)), np.ones((2, 2)), np.ones(2))
    with pytest.raises(ValueError, match=message):
        replace(good, **{field: value})
