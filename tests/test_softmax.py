"""Softmax attention on tokens: its output, its slope, its linear limit and its stages."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab import MergedAttention, Regression
from iclab.attention import Layer, random_merged, random_separate
from iclab.numerics.curves import stages
from iclab.simulation.keys import key_of
from iclab.simulation.linear import loop, softmax
from iclab.simulation.linear.contexts import Contexts, draw

MIXED = Regression(eigenvalues=(0.7, 0.5, 0.2), context_length=(2, 6), noise=0.1)
ONE_LENGTH = Regression(eigenvalues=(0.7, 0.5, 0.2), context_length=6)
LAYERS = ["merged", "separate", "free merged", "free separate"]


def drawn(seed: int, problem: Regression = MIXED) -> Contexts:
    """Always twelve sequences, so that the tests share one compilation for each kind of layer."""
    return draw(problem, 12, key=key_of(seed))


def start_of(kind: str, seed: int = 0) -> Layer:
    """A layer of two heads; a "free" one is unrestricted with no entry zero."""
    rng = np.random.default_rng(seed)
    merged = "merged" in kind
    layer = random_merged(3, 2, scale=0.7, rng=rng) if merged else random_separate(3, 2, 2, scale=2.0, rng=rng)
    if "free" not in kind:
        return layer
    parts = vars(layer.unrestricted()).values()
    return type(layer)(*(part + 0.3 * rng.standard_normal(np.shape(part)) for part in parts))


def plain_loss(contexts: Contexts, layer: Layer) -> float:
    """Mean squared error of softmax attention, written out token by token."""
    layer = layer.unrestricted() if layer.restricted else layer
    merged = isinstance(layer, MergedAttention)
    key_query = layer.key_query if merged else np.swapaxes(layer.key, -1, -2) @ layer.query
    error = 0.0
    for tokens, target, length in zip(contexts.tokens, contexts.target, contexts.lengths, strict=True):
        seen = [*tokens[:length], tokens[-1]]
        output = 0.0
        for value, map_ in zip(layer.value, key_query, strict=True):
            weight = [np.exp(token @ map_ @ tokens[-1, :-1]) for token in seen]
            output += sum(w * (value @ token) for w, token in zip(weight, seen, strict=True)) / sum(weight)
        error += (output - target) ** 2
    return error / len(contexts.target)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_step_goes_down_the_slope_of_half_the_plain_loss(kind: str) -> None:
    contexts, start, rate, small = drawn(1), start_of(kind), 0.3, 1e-5
    run = softmax.on_tokens(contexts, start, rate=rate, steps=[0, 1])
    assert_allclose(run.loss[0], plain_loss(contexts, start), rtol=1e-12)
    for name, before in vars(start).items():
        step = getattr(run.weights, name)[1] - before
        for index in np.ndindex(before.shape):
            shift = np.zeros(before.shape)
            shift[index] = small
            ahead, behind = (
                plain_loss(contexts, replace(start, **{name: part})) for part in (before + shift, before - shift)
            )
            assert_allclose(step[index], -rate * (ahead - behind) / (4 * small), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["merged", "separate"])
def test_a_restricted_layer_predicts_the_same_with_the_entries_it_lacks(kind: str) -> None:
    contexts, start = drawn(2), start_of(kind)
    narrow, wide = (
        softmax.on_tokens(contexts, layer, rate=0.1, steps=[0, 1]).loss[0] for layer in (start, start.unrestricted())
    )
    assert_allclose(wide, narrow, rtol=1e-13)


def test_a_pair_of_heads_with_small_scores_is_linear_attention_on_centered_labels() -> None:
    # (v, B) and (−v, −B): means and second orders cancel, so the output is 2 v Σ (y − ȳ) x B x_q / (N+1) up to B³
    contexts = drawn(3, ONE_LENGTH)
    map_ = np.random.default_rng(0).standard_normal((3, 3))
    labels, inputs = contexts.tokens[..., -1], contexts.tokens[..., :-1]
    centered = labels - labels.mean(axis=1, keepdims=True)
    linear = 2 * np.einsum("pn,pni,ij,pj->p", centered, inputs, map_, contexts.query) / 7
    gaps = []
    for small in (0.1, 0.05):
        pair = MergedAttention(np.array([1, -1]) / small, small * np.stack([map_, -map_]))
        run = softmax.on_tokens(contexts, pair, rate=0.1, steps=[0, 1])
        gaps.append(abs(run.loss[0] - np.mean((linear - contexts.target) ** 2)))
    assert 3.5 < gaps[0] / gaps[1] < 4.5  # B³/ε: second order in ε


def test_the_divisor_of_the_contexts_plays_no_part() -> None:
    contexts, start = drawn(4), start_of("merged")
    other = replace(contexts, divisor=np.full(12, 7.0))
    first, second = (softmax.on_tokens(given, start, rate=0.1, steps=[0, 1]).loss for given in (contexts, other))
    assert_array_equal(first, second)


def test_a_start_trains_alike_alone_and_beside_another() -> None:
    contexts, starts = drawn(5), [start_of("merged", seed) for seed in (0, 1)]
    both = MergedAttention(*(np.stack([getattr(start, name) for start in starts]) for name in vars(starts[0])))
    together = softmax.on_tokens(contexts, both, rate=0.1, steps=[0, 50])
    for row, start in enumerate(starts):
        alone = softmax.on_tokens(contexts, start, rate=0.1, steps=[0, 50])
        assert_allclose(together.loss[row], alone.loss, rtol=1e-12)
        assert alone.loss[1] < alone.loss[0]


def test_the_second_call_compiles_nothing() -> None:
    softmax.on_tokens(drawn(6), start_of("merged"), rate=0.1, steps=[0, 1])
    compiled = loop._descend._cache_size()
    softmax.on_tokens(drawn(7, ONE_LENGTH), start_of("merged", 1), rate=0.2, steps=[2, 5])
    assert loop._descend._cache_size() == compiled


def test_starts_and_rates_that_do_not_fit_are_refused() -> None:
    contexts = drawn(0)
    with pytest.raises(ValueError, match="start must have the dimension of the contexts, 3; got 2"):
        softmax.on_tokens(contexts, MergedAttention(np.ones(2), np.ones((2, 2, 2))), rate=0.1, steps=[0, 1])
    with pytest.raises(ValueError, match="rate must be finite and > 0"):
        softmax.on_tokens(contexts, start_of("merged"), rate=0.0, steps=[0, 1])
    with pytest.raises(ArithmeticError, match="Use a smaller one"):
        softmax.on_tokens(contexts, start_of("merged"), rate=1e200, steps=[0, 9])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_merged_softmax_drops_once_and_separate_softmax_twice(seed: int) -> None:
    # Small inputs keep the scores small, and so the stages near those of linear attention.
    contexts = draw(Regression((0.008, 0.002), 31), 400, key=key_of(seed))
    rng = np.random.default_rng(seed)
    merged, separate = random_merged(2, 4, scale=0.01, rng=rng), random_separate(2, 4, scale=0.2, rng=rng)
    for start, last, drops in ((merged, 3000, 1), (separate, 5000, 2)):
        steps = np.unique(np.append(0, np.rint(np.geomspace(1, last, 120)).astype(int)))
        run = softmax.on_tokens(contexts, start, rate=800.0, steps=steps)
        assert len(stages(run.time, run.loss)) - 1 == drops
