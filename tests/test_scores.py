"""Scores of attention heads: attention to the token before, and to what once followed this token."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.spectra import scores

PATTERN = [[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.2, 0.7, 0.1, 0.0], [0.1, 0.6, 0.2, 0.1]]


def test_scores_of_a_head_are_the_known_ones() -> None:
    before, match = scores.previous(PATTERN), scores.matching(PATTERN, [0, 1, 0, 1])
    assert_allclose(before.score, 0.4666666666666666, rtol=1e-12)
    assert_allclose(before.level, (1 / 2 + 1 / 3 + 1 / 4) / 3, rtol=1e-12)
    assert_allclose([match.score, match.level], [0.22499999999999998, 0.14583333333333331], rtol=1e-12)


def test_even_attention_is_at_its_level_and_that_is_not_one_over_the_states() -> None:
    """Chains of three states, by loops over places; .39 to .40 is known for T = 32."""
    rng, length, levels = np.random.default_rng(0), 32, []
    even = np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]
    for _ in range(300):
        rows, tokens = rng.dirichlet(np.ones(3), 3), [int(rng.integers(3))]
        while len(tokens) < length:
            tokens.append(int(rng.choice(3, p=rows[tokens[-1]])))
        found = scores.matching(even, tokens)
        counted = [
            sum(even[t, s] for s in range(1, t + 1) if tokens[s - 1] == tokens[t])
            for t in range(length // 4 - 1, length)
        ]
        assert_allclose([found.score, found.level], np.mean(counted), rtol=1e-12)
        levels.append(found.level)
    assert 0.38 < np.mean(levels) < 0.42
    assert_allclose(scores.previous(even).score, scores.previous(even).level, rtol=1e-12)


def test_perfect_heads_score_one_and_places_choose_the_repeats() -> None:
    period, length = 5, 15
    tokens = np.tile(np.arange(period), 3)
    back, induction = np.eye(length, k=-1), np.eye(length, k=1 - period)
    back[0, 0] = 1
    induction[: period - 1, 0] = 1
    assert scores.previous(back).score == 1
    repeats = np.arange(period, length)
    assert scores.matching(induction, tokens, repeats).score == 1
    assert scores.matching(back, tokens, repeats).score == 0
    level = np.mean([(t // period) / (t + 1) for t in repeats])  # one match in every period before
    assert_allclose(scores.matching(back, tokens, repeats).level, level, rtol=1e-12)


def test_heads_and_contexts_are_leading_axes() -> None:
    rng = np.random.default_rng(1)
    pattern = np.tril(rng.random((3, 2, 6, 6)))
    pattern /= pattern.sum(axis=-1, keepdims=True)
    tokens = rng.integers(3, size=(3, 6))
    found = scores.matching(pattern, tokens[:, None])
    assert found.score.shape == found.level.shape == (3, 2)
    one = scores.matching(pattern[2, 1], tokens[2])
    assert_allclose([found.score[2, 1], found.level[2, 1]], [one.score, one.level])
    assert scores.previous(pattern).score.shape == (3, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scores.previous([[0.5, 0.5]]), "pattern must end in a square, (…, T, T); got shape (1, 2)"),
        (lambda: scores.previous([[1.0]]), "pattern must have two places or more; got 1"),
        (lambda: scores.previous([[1.0, 0.0], [0.5, 0.2]]), "pattern must hold laws, probabilities that add up to 1"),
        (lambda: scores.previous([[0.5, 0.5], [0.5, 0.5]]), "pattern must not attend to later places"),
        (
            lambda: scores.matching(PATTERN, [0, 1]),
            "tokens must have as many places as the pattern, 4; got shape (2,)",
        ),
        (
            lambda: scores.matching(PATTERN, [0, 1, 0, 1], [4]),
            "places must be whole numbers from 0 to 3, at least one",
        ),
        (
            lambda: scores.matching(PATTERN, [0, 1, 0, 1], []),
            "places must be whole numbers from 0 to 3, at least one",
        ),
    ],
)
def test_impossible_patterns_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
