"""How a layer acts: its Γ, its two kinds, its starts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.attention import MergedAttention, SeparateAttention, aligned_separate, random_merged, random_separate

RNG = np.random.default_rng(0)


def attend(tokens: np.ndarray, value: np.ndarray, key_query: np.ndarray) -> float:
    """The query's label by full linear attention, with whole value and key-query matrices (H, D+1, D+1)."""
    length = tokens.shape[1] - 1
    outputs = sum(v @ tokens @ tokens.T @ kq @ tokens / length for v, kq in zip(value, key_query, strict=True))
    return outputs[-1, -1]


def tokens_of(dimension: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = RNG.standard_normal((length, dimension)), RNG.standard_normal(length)
    query = RNG.standard_normal(dimension)
    tokens = np.zeros((dimension + 1, length + 1))
    tokens[:-1, :-1], tokens[-1, :-1], tokens[:-1, -1] = x.T, y, query
    return tokens, y @ x / length, query


def test_a_restricted_merged_layer_acts_as_its_gamma() -> None:
    layer = random_merged(3, 4, scale=1.0, rng=RNG)
    tokens, summary, query = tokens_of(3, 7)
    value, key_query = np.zeros((4, 4, 4)), np.zeros((4, 4, 4))
    value[:, -1, -1], key_query[:, :3, :3] = layer.value, layer.key_query
    assert_allclose(attend(tokens, value, key_query), summary @ layer.gamma() @ query, rtol=1e-12)


def test_a_restricted_separate_layer_acts_as_its_gamma() -> None:
    layer = random_separate(3, 4, 2, scale=1.0, rng=RNG)
    tokens, summary, query = tokens_of(3, 7)
    value, key_query = np.zeros((4, 4, 4)), np.zeros((4, 4, 4))
    value[:, -1, -1], key_query[:, :3, :3] = layer.value, layer.key.transpose(0, 2, 1) @ layer.query
    assert_allclose(attend(tokens, value, key_query), summary @ layer.gamma() @ query, rtol=1e-12)


@pytest.mark.parametrize(
    "layer", [random_merged(3, 2, scale=1.0, rng=RNG), random_separate(3, 2, scale=1.0, rng=RNG)]
)
def test_the_unrestricted_form_adds_zeros_and_nothing_else(layer: MergedAttention | SeparateAttention) -> None:
    free = layer.unrestricted()
    assert not free.restricted
    assert (free.heads, free.dimension) == (layer.heads, layer.dimension)
    assert_array_equal(free.value[:, -1], layer.value)
    assert np.count_nonzero(free.value) == np.count_nonzero(layer.value)
    with pytest.raises(ValueError, match="the layer must be restricted"):
        free.gamma()
    with pytest.raises(ValueError, match="the layer must be restricted"):
        free.unrestricted()


def test_a_time_axis_before_the_heads_is_carried_along() -> None:
    layer = random_separate(3, 4, 2, scale=1.0, rng=RNG)
    stacked = SeparateAttention(*(np.stack([part, 2 * part]) for part in (layer.value, layer.key, layer.query)))
    assert_allclose(stacked.gamma(), np.stack([layer.gamma(), 8 * layer.gamma()]), rtol=1e-12)
    assert (stacked.heads, stacked.rank, stacked.dimension) == (4, 2, 3)
    assert stacked.unrestricted().key.shape == (2, 4, 2, 4)


def test_an_aligned_layer_holds_the_cube_of_its_strength() -> None:
    assert_allclose(aligned_separate(np.array([2.0, 0.5])).gamma(), np.diag([8.0, 0.125]), rtol=1e-14)


def test_heads_of_a_random_separate_layer_are_balanced_on_average() -> None:
    layer = random_separate(4, 4000, 3, scale=0.1, rng=np.random.default_rng(1))
    value, key = np.mean(layer.value**2), np.mean(np.sum(layer.key**2, axis=(1, 2)))
    assert_allclose(value, 0.01, rtol=0.1)  # 4000 draws: standard error 2 %
    assert_allclose(key, 0.01 * 4 / 5, rtol=0.05)  # D of the D + 1 entries of the published start


@pytest.mark.parametrize(
    "shapes", [((2,), (2, 3, 4)), ((2,), (3, 4, 4)), ((2, 4), (2, 3, 3)), ((2, 3), (2, 4, 3)), ((2,), (2, 3))]
)
def test_merged_shapes_that_do_not_fit_are_refused(shapes: tuple) -> None:
    with pytest.raises(ValueError, match="value and key_query must have shapes"):
        MergedAttention(*map(np.zeros, shapes))


@pytest.mark.parametrize(
    "shapes",
    [
        ((2,), (2, 1, 3), (2, 2, 3)),
        ((2,), (2, 1, 3), (2, 1, 4)),
        ((3,), (2, 1, 3), (2, 1, 3)),
        ((2,), (2, 3), (2, 3)),
    ],
)
def test_separate_shapes_that_do_not_fit_are_refused(shapes: tuple) -> None:
    with pytest.raises(ValueError, match="value, key and query must have shapes"):
        SeparateAttention(*map(np.zeros, shapes))
