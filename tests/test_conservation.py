"""What gradient flow leaves unchanged."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import MergedAttention, Regression, SeparateAttention
from iclab.attention import random_merged, random_separate
from iclab.theory.dynamics import conserved, merged_flow, separate_flow
from iclab.theory.population import moments, moments_from
from iclab.theory.tokens.mixture import interaction

LAW = moments(Regression(context_length=31))


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("heads", [1, 3])
def test_merged_flow_conserves_the_balance_of_all_pairs_of_heads(heads: int) -> None:
    start = random_merged(4, heads, scale=0.3, rng=np.random.default_rng(0))
    kept = conserved(merged_flow(LAW, start, np.linspace(0, 200, 50)).weights)
    assert kept.shape == (50, heads * (heads + 1) // 2)
    assert_allclose(kept - kept[0], 0, atol=1e-7)  # a hundred times the tolerance of the flow


@pytest.mark.parametrize(("heads", "rank"), [(3, 1), (2, 3)])
def test_separate_flow_conserves_value_against_key_and_key_against_query(heads: int, rank: int) -> None:
    factors = np.random.default_rng(1).standard_normal((2, 4, 4))
    inputs, tasks = factors @ factors.transpose(0, 2, 1) / 4
    law = moments_from(inputs, 8, task_covariance=tasks, noise=0.1)
    start = random_separate(4, heads, rank, scale=0.3, rng=np.random.default_rng(0))
    kept = conserved(separate_flow(law, start, np.linspace(0, 50, 50)).weights)
    assert kept.shape == (50, heads * (1 + rank * (rank + 1) // 2))
    assert_allclose(kept - kept[0], 0, atol=1e-7)


@pytest.mark.parametrize(
    "weights",
    [
        MergedAttention(normal(2, 4), normal(2, 4, 3)),
        MergedAttention(normal(2), normal(2, 3, 3)),
        SeparateAttention(normal(2, 4), normal(2, 2, 4), normal(2, 2, 3)),
        SeparateAttention(normal(2), normal(2, 2, 3), normal(2, 2, 3)),
    ],
)
def test_no_slope_of_any_sample_changes_what_is_conserved(weights) -> None:
    # Slopes of the loss of five drawn contexts by differences, unrestricted layers included: to first order
    # a step along them leaves each conserved quantity alone.
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 7, 3)), rng.standard_normal((5, 7))
    parts = {entry.name: np.asarray(getattr(weights, entry.name)) for entry in dataclasses.fields(weights)}

    def sample_loss(name: str, part: np.ndarray) -> float:
        return np.mean((y[:, -1] - prediction(type(weights)(**(parts | {name: part})), x, y)) ** 2)

    slopes = {}
    for name, part in parts.items():
        slopes[name] = np.zeros_like(part)
        for place in np.ndindex(part.shape):
            step = np.zeros_like(part)
            step[place] = 1e-5
            slopes[name][place] = (sample_loss(name, part + step) - sample_loss(name, part - step)) / 2e-5

    def moved(step: float) -> np.ndarray:
        return conserved(type(weights)(**{name: part - step * slopes[name] for name, part in parts.items()}))

    size = max(np.max(np.abs(slope)) for slope in slopes.values())
    step = 1e-4 / size
    assert_allclose((moved(step) - moved(-step)) / (2 * step * size), 0, atol=1e-7)  # differences of slopes


def prediction(weights, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """aᵀ M B x_q with M = XXᵀ/N over labeled tokens and the query (x_q, 0)."""
    if isinstance(weights, MergedAttention):
        maps = np.asarray(weights.key_query)
    else:
        maps = np.einsum("hri,hrj->hij", weights.key, weights.query)
    labels = np.concatenate([y[:, :-1], np.zeros((len(y), 1))], axis=1)
    tokens = np.concatenate([x, labels[..., None]], axis=-1)
    gram = np.einsum("pni,pnj->pij", tokens, tokens) / (x.shape[1] - 1)
    value = np.asarray(weights.value)
    if weights.restricted:
        return np.einsum("h,pi,hij,pj->p", value, gram[:, -1, :-1], maps, x[:, -1])
    return np.einsum("ha,pab,hbj,pj->p", value, gram, maps, x[:, -1])


def test_weight_decay_lets_the_balance_fall_twice_as_fast_as_a_weight() -> None:
    start = random_separate(4, 3, 2, scale=0.5, rng=np.random.default_rng(0))
    time = np.linspace(0, 30, 20)
    kept = conserved(separate_flow(LAW, start, time, decay=0.05).weights)
    assert_allclose(kept, kept[0] * np.exp(-2 * 0.05 * time)[:, None], atol=1e-8)


def test_time_constants_weigh_the_balance() -> None:
    # τ_v dv = …, τ_k dk = …: kept is τ_v v² − τ_k |k|² and τ_k K Kᵀ − τ_q Q Qᵀ
    start = random_separate(4, 3, 1, scale=0.5, rng=np.random.default_rng(0))
    constants = (2.0, 0.5, 3.0)
    flow = separate_flow(LAW, start, np.linspace(0, 100, 20), time_constants=constants).weights
    scaled = SeparateAttention(*(np.sqrt(c) * part for c, part in zip(constants, vars(flow).values(), strict=True)))
    kept = conserved(scaled)
    assert np.max(np.abs(conserved(flow) - conserved(flow)[0])) > 1e-3
    assert_allclose(kept - kept[0], 0, atol=1e-7)


@pytest.mark.parametrize("reading", [conserved, interaction])
def test_what_is_no_layer_is_refused(reading: Callable) -> None:
    with pytest.raises(ValueError, match="weights must be a MergedAttention or SeparateAttention; got ndarray"):
        reading(np.ones(3))
