"""Drawn sequences, their law and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab import Regression
from iclab.simulation.keys import key_of
from iclab.simulation.linear import contexts as room
from iclab.simulation.linear.contexts import Contexts, assemble, draw
from iclab.theory.population import moments

MIXED = Regression(
    eigenvalues=(0.9, 0.4, 0.1), context_length=(2, 5, 12), noise=0.3, task_eigenvalues=(0.2, 1.0, 3.0)
)
COUNT = 30_000  # the same everywhere: every other number is compiled anew


def drawn(seed: int, problem: Regression = MIXED) -> Contexts:
    return draw(problem, COUNT, key=key_of(seed))


@pytest.mark.parametrize("problem", [Regression(), MIXED], ids=["plain", "mixed"])
def test_moments_of_drawn_contexts_are_those_of_the_law(problem: Regression) -> None:
    contexts, law = drawn(1, problem), moments(problem)
    summary = np.einsum("pn,pnd->pd", contexts.labels, contexts.inputs) / contexts.lengths[:, None]
    x, y = contexts.query, contexts.target
    for samples, expected in (
        (np.einsum("pi,pj->pij", summary, y[:, None] * x), law.cross),
        (np.einsum("pi,pj->pij", summary, summary), law.second),
        (np.einsum("pi,pj->pij", x, x), law.input_covariance),
        (y**2, law.null_loss),
    ):
        error = samples.std(axis=0) / np.sqrt(COUNT)
        assert np.all(np.abs(samples.mean(axis=0) - expected) < 4 * error)


def test_each_length_of_a_mixture_comes_as_often_as_the_others() -> None:
    lengths = drawn(2).lengths
    counts = np.array([np.sum(lengths == length) for length in MIXED.context_lengths])
    assert counts.sum() == COUNT
    assert np.all(np.abs(counts - COUNT / 3) < 4 * np.sqrt(COUNT * (1 / 3) * (2 / 3)))


def test_nothing_stands_beyond_the_length_of_a_context() -> None:
    contexts = drawn(3)
    beyond = np.arange(12) >= contexts.lengths[:, None]
    assert beyond.any()
    assert not contexts.inputs[beyond].any()
    assert not contexts.labels[beyond].any()
    assert np.all(contexts.labels[~beyond] != 0)
    assert_array_equal(contexts.divisor, contexts.lengths)


def test_without_noise_the_context_determines_the_label_of_the_query() -> None:
    contexts = drawn(4, replace(MIXED, noise=0.0, context_length=(6, 9, 12)))
    for tokens, target in zip(contexts.tokens[:50], contexts.target, strict=False):
        task = np.linalg.lstsq(tokens[:-1, :-1], tokens[:-1, -1], rcond=None)[0]
        assert_allclose(tokens[-1, :-1] @ task, target, atol=1e-12)


def test_a_seed_draws_the_same_again_and_other_seeds_draw_otherwise() -> None:
    first, again, other, high_bits = (drawn(seed) for seed in (5, 5, 6, 2**32 + 5))
    assert_array_equal(first.tokens, again.tokens)
    assert not np.any(first.target == other.target)
    assert not np.any(first.target == high_bits.target)


def test_a_direction_without_variance_holds_no_inputs() -> None:
    contexts = drawn(7, replace(MIXED, eigenvalues=(1.0, 0.5, 0.0)))
    assert not contexts.inputs[..., 2].any()
    assert contexts.query[:, :2].all()


def test_another_problem_of_the_same_size_compiles_nothing_anew() -> None:
    drawn(8)
    compiled = room._fresh._cache_size()
    drawn(9, Regression(eigenvalues=(0.9, 0.1, 0.0), context_length=(7, 12, 1)))
    assert room._fresh._cache_size() == compiled


@pytest.mark.parametrize("seed", [-1, 1.0, True, "1"])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number >= 0"):
        key_of(seed)  # type: ignore[arg-type]


def test_a_seed_that_fits_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match=r"seed must be below 2\*\*63"):
        key_of(2**63)


@pytest.mark.parametrize("sequences", [0, 2.5])
def test_a_whole_number_of_sequences_is_drawn(sequences: float) -> None:
    with pytest.raises(ValueError, match="sequences must be a whole number >= 1; got"):
        draw(Regression(), sequences, key=key_of(0))  # type: ignore[arg-type]


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
