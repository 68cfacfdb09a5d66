"""The published code's units against runs in its own conventions."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.attention import random_merged, random_separate
from iclab.published import (
    Units,
    context_length,
    eigenvalues,
    merged_start,
    merged_units,
    separate_start,
    separate_units,
    small_separate_start,
    token_units,
)
from iclab.simulation.linear.contexts import Contexts, assemble
from iclab.simulation.linear.descent import on_tokens

MERGED, SEPARATE = merged_units(0.001, context_length(32)), separate_units(0.02, context_length(32))
EPOCHS = 12


def published_run(
    predict: Callable[[list[np.ndarray]], np.ndarray], target: np.ndarray, weights: list[np.ndarray], rate: float
) -> list[float]:
    """Losses of gradient descent on the full mean square; slopes by complex steps, exact for polynomials."""
    losses = []
    for _ in range(EPOCHS):
        losses.append(np.mean((predict(weights) - target) ** 2).real)
        slopes = [np.zeros(part.shape) for part in weights]
        for part, slope in zip(weights, slopes, strict=True):
            for index in np.ndindex(part.shape):
                original, part[index] = part[index], part[index] + 1e-30j
                slope[index] = np.mean((predict(weights) - target) ** 2).imag / 1e-30
                part[index] = original
        weights = [part - rate * slope for part, slope in zip(weights, slopes, strict=True)]
    return losses


@pytest.mark.parametrize("rank", [None, 2])
def test_a_run_without_one_over_n_overlays_ours_epoch_by_epoch(rank: int | None) -> None:
    dimension, heads, learning_rate, length = 2, 2, 0.003, 5
    rng = np.random.default_rng(1)
    contexts = assemble(*(rng.standard_normal(shape) for shape in ((6, length, 2), (6, length), (6, 2), 6)))
    if rank is None:
        units, theirs = merged_units(learning_rate, length), random_merged(2, heads, scale=0.4, rng=rng)
    else:
        units, theirs = separate_units(learning_rate, length), random_separate(2, heads, rank, scale=0.6, rng=rng)
    whole = theirs.unrestricted()
    value = np.zeros((heads, dimension + 1, dimension + 1), complex)  # all of each matrix, as the code has it
    value[:, -1] = whole.value
    rest = [np.array(part, complex) for part in list(vars(whole).values())[1:]]
    rest[-1] = np.concatenate([rest[-1], np.full((*rest[-1].shape[:-1], 1), 0.2)], axis=-1)  # never read

    def predict(weights: list[np.ndarray]) -> np.ndarray:
        v, *kq = weights
        product = kq[0] if rank is None else kq[0].swapaxes(-1, -2) @ kq[1]
        x = contexts.tokens
        output = np.einsum("hij,pnj,pnk,hkl,pml->pmi", v, x, x, product, x, optimize=True)
        return output[:, -1, -1]

    losses = published_run(predict, contexts.target, [value, *rest], learning_rate)
    ours = on_tokens(contexts, units.ours(whole), rate=units.rate, steps=range(EPOCHS))
    assert losses[-1] < 0.99 * losses[0]
    assert_allclose(ours.loss, losses, rtol=1e-12)
    assert_allclose(ours.time, units.time(np.arange(EPOCHS)), rtol=1e-14)


def test_a_run_divided_by_its_tokens_overlays_ours() -> None:
    rng, units = np.random.default_rng(3), token_units(0.03)
    start, tokens = random_merged(2, 2, scale=0.5, rng=rng), rng.standard_normal((6, 5, 3))
    tokens[:, -1, -1] = 0  # the query shows no label
    tokens[3:, 1:-1] = 0  # three contexts of four examples, three of one
    lengths = np.repeat([4, 1], 3)
    contexts = Contexts(tokens, rng.standard_normal(6), lengths, lengths + 1.0)

    def predict(weights: list[np.ndarray]) -> np.ndarray:
        value, key_query = weights
        outputs = []
        for tokens, length in zip(contexts.tokens, contexts.lengths, strict=True):
            sequence = np.concatenate([tokens[:length], tokens[-1:]])
            scores = np.einsum("hkl,l->hk", key_query, sequence[-1, :-1]) @ sequence[:, :-1].T
            outputs.append(np.sum(value[:, None] * scores * sequence[:, -1]) / len(sequence))
        return np.array(outputs)

    losses = published_run(
        predict, contexts.target, [np.array(part, complex) for part in vars(start).values()], units.learning_rate
    )
    assert_allclose(
        on_tokens(contexts, units.ours(start), rate=units.rate, steps=range(EPOCHS)).loss, losses, rtol=1e-12
    )


def test_time_per_epoch_is_that_of_the_published_settings() -> None:
    # 2 · .001 · 31 and 2 · .02 · 31^(2/3)
    assert_allclose([MERGED.time(1.0), SEPARATE.time(1.0)], [0.062, 0.3947308961], atol=1e-10)
    assert_allclose(MERGED.epochs(MERGED.time(np.arange(3.0))), np.arange(3.0), rtol=1e-15)


def test_rounded_rates_are_those_of_stored_cases() -> None:
    assert [units.rounded_rate for units in (MERGED, SEPARATE, merged_units(0.0005, 31))] == [
        0.062,
        0.3947308961,
        0.031,
    ]


def test_a_layer_returns_from_published_units_unchanged() -> None:
    layer = random_separate(3, 2, 2, scale=0.1, rng=np.random.default_rng(0))
    back = SEPARATE.published(SEPARATE.ours(layer))
    for name, part in vars(layer).items():
        assert_allclose(getattr(back, name), part, rtol=1e-15)


def test_the_published_spectrum_has_trace_one() -> None:
    assert_allclose(eigenvalues(4), (0.4, 0.3, 0.2, 0.1), rtol=1e-15)
    assert_allclose(np.array(eigenvalues(8)) * 36, np.arange(8, 0, -1), rtol=1e-15)


def test_published_starts_have_the_published_sizes() -> None:
    # In published units: merged 1e-6; separate .01 and .01/√(R(D+1)); since December 2025 each over the root of
    # the number of entries of its stacked weight, H(D+1)² for values and HR(D+1) for keys and queries.
    dimension, heads, rank, rng = 4, 500, 2, np.random.default_rng(0)
    merged = MERGED.published(merged_start(dimension, heads, initial=1e-6, units=MERGED, rng=rng))
    figures, today = (
        SEPARATE.published(draw_start(dimension, heads, rank, initial=0.01, units=SEPARATE, rng=rng))
        for draw_start in (separate_start, small_separate_start)
    )
    for part, expected in (
        (merged.value, 1e-6),
        (merged.key_query, 1e-6),
        (figures.value, 0.01),
        (figures.key, 0.01 / np.sqrt(10)),
        (figures.query, 0.01 / np.sqrt(10)),
        (today.value, 0.01 / np.sqrt(500 * 25)),
        (today.key, 0.01 / np.sqrt(500 * 10)),
        (today.query, 0.01 / np.sqrt(500 * 10)),
    ):
        error = expected / np.sqrt(2 * np.size(part))
        assert abs(np.std(part) - expected) < 4 * error
        assert abs(np.mean(part)) < 4 * expected / np.sqrt(np.size(part))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: merged_units(-0.1, 31), "learning_rate must be finite and > 0"),
        (lambda: merged_units(0.1, 0), "weight_scale must be finite and > 0"),
        (lambda: Units(np.nan, 1.0), "learning_rate must be finite and > 0"),
        (lambda: context_length(1), "sequence_length must be a whole number >= 2; got 1"),
        (lambda: eigenvalues(2.5), "dimension must be a whole number >= 1; got 2.5"),
    ],
)
def test_impossible_units_are_refused_by_name(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
