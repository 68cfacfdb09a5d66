"""Answers of given layers on drawn contexts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Regression
from iclab.attention import random_merged, random_separate
from iclab.simulation.keys import key_of
from iclab.simulation.linear.contexts import draw
from iclab.simulation.linear.predictions import predict

MIXED = Regression((0.6, 0.4), (2, 5), noise=0.1)


def layers():
    rng = np.random.default_rng(0)
    return [random_merged(2, 3, scale=1.0, rng=rng), random_separate(2, 3, 2, scale=1.0, rng=rng)]


@pytest.mark.parametrize("layer", layers())
def test_an_answer_is_the_summary_times_gamma_times_the_query(layer) -> None:
    drawn = draw(MIXED, 20, key=key_of(0))
    summary = np.einsum("pn,pnd->pd", drawn.labels, drawn.inputs) / drawn.lengths[:, None]
    by_hand = np.einsum("pi,ij,pj->p", summary, layer.gamma(), drawn.query)
    assert_allclose(predict(drawn, layer), by_hand, rtol=1e-12)
    assert_allclose(predict(drawn, layer.unrestricted()), by_hand, rtol=1e-12)


def test_an_unrestricted_answer_is_attention_over_all_tokens() -> None:
    rng, drawn = np.random.default_rng(1), draw(MIXED, 20, key=key_of(1))
    layer = layers()[1].unrestricted()
    layer = type(layer)(rng.standard_normal(layer.value.shape), rng.standard_normal(layer.key.shape), layer.query)
    by_hand = np.zeros(20)
    for value, keys, queries in zip(layer.value, layer.key, layer.query, strict=True):
        scores = (drawn.tokens @ keys.T) @ (queries @ drawn.query.T).T[..., None]
        by_hand += np.sum(scores[..., 0] * (drawn.tokens @ value), axis=1)
    assert_allclose(predict(drawn, layer), by_hand / drawn.lengths, rtol=1e-12)


def test_layers_along_leading_axes_answer_as_each_alone() -> None:
    rng, drawn = np.random.default_rng(2), draw(MIXED, 7, key=key_of(2))
    one, two = (random_separate(2, 3, scale=1.0, rng=rng) for _ in range(2))
    both = type(one)(
        *(np.stack(parts) for parts in zip(*(vars(layer).values() for layer in (one, two)), strict=True))
    )
    assert_allclose(predict(drawn, both), [predict(drawn, one), predict(drawn, two)], rtol=1e-12)
    assert_allclose(both[1].gamma(), two.gamma(), rtol=0)
