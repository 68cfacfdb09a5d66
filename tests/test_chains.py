"""Urns and Markov chains as data for networks, and attention with a learned number for each distance."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.simulation import networks
from iclab.simulation.keys import key_of
from iclab.simulation.networks import Transformer, snapshots
from iclab.simulation.networks.training import State
from iclab.simulation.sequences import MarkovSequences, UrnSequences
from iclab.spectra import checkpoints, layouts
from iclab.theory import sequences

NETWORK = Transformer(length=8, outputs=3, vocabulary=3, width=8, heads=2, positions="relative")


def test_chains_lose_what_theory_says_under_the_bigram_and_the_unigram_law() -> None:
    law = MarkovSequences(symbols=3, length=12, concentration=0.7, batch_size=20_000)
    batch = law.batch((), key_of(1))
    tokens, target = np.asarray(batch.tokens), np.asarray(batch.target)
    assert_array_equal(tokens[:, 1:], target[:, :-1])
    assert_allclose(np.bincount(tokens[:, 0]) / 20_000, 1 / 3, atol=0.015)
    for name in ("bigram", "unigram"):
        said = getattr(sequences, f"{name}_law")(tokens, states=3, concentration=0.7)
        losses = -np.log(np.take_along_axis(said, target[..., None], axis=-1)).mean(axis=(1, 2))
        error = losses.std() / np.sqrt(20_000)
        exact = sequences.markov_loss(name, states=3, length=12, concentration=0.7).mean()
        assert error < 0.005
        assert abs(losses.mean() - exact) < 4 * error


def test_urns_begin_with_a_token_of_their_own_and_have_the_exact_loss() -> None:
    law = UrnSequences(symbols=4, length=6, batch_size=20_000)
    batch = law.test((), key_of(2), 20_000)
    tokens, target = np.asarray(batch.tokens), np.asarray(batch.target)
    assert (tokens[:, 0] == 4).all()
    assert law.vocabulary == 5
    assert_array_equal(tokens[:, 1:], target[:, :-1])
    counts = 1 + np.cumsum(np.eye(5)[tokens], axis=1)[..., :4]
    said = counts / counts.sum(axis=-1, keepdims=True)
    losses = -np.log(np.take_along_axis(said, target[..., None], axis=-1))[..., 0]
    exact = sequences.urn_losses(np.full((1, 4), 0.25), length=6).generalizing.icl
    assert_allclose(losses.mean(axis=0), exact, atol=4 * losses.std() / np.sqrt(20_000))


def test_a_pool_is_drawn_once_and_its_tasks_are_as_frequent() -> None:
    law = MarkovSequences(symbols=2, length=200, tasks=2, batch_size=400)
    pool = np.asarray(law.fixed(key_of(3)))
    assert pool.shape == (2, 2, 2)
    batch = law.batch(pool, key_of(4))
    tokens, target = np.asarray(batch.tokens), np.asarray(batch.target)
    stays = np.array([(tokens == 0) & (target == 0)]).sum(axis=-1)[0] / (tokens == 0).sum(axis=-1)
    nearest = np.argmin(np.abs(stays[:, None] - pool[:, 0, 0]), axis=1)
    assert 0.4 < nearest.mean() < 0.6
    assert abs(np.median(stays[nearest == 1]) - pool[1, 0, 0]) < 0.05


def test_distances_start_at_zero_and_then_are_added_to_the_scores() -> None:
    tokens = np.array([[0, 2, 1, 1, 0, 2, 2, 1]])
    start = networks.initial(NETWORK, key=key_of(0))
    names = [f"layers.{layer}.attention.relative.weight" for layer in (0, 1)]
    assert all(start[name].shape == (2, 8) and not start[name].any() for name in names)
    without = {name: part for name, part in start.items() if name not in names}
    plain = networks.apply(replace(NETWORK, positions="none"), without, tokens)
    assert_allclose(networks.apply(NETWORK, start, tokens), plain, atol=1e-6)
    before = start | {names[0]: np.array([[0.0] * 8, [0, 30.0, 0, 0, 0, 0, 0, 0]], np.float32)}
    even, one = (networks.patterns(NETWORK, part, tokens) for part in (start, before))
    assert even.shape == (1, 2, 2, 8, 8)
    assert_allclose(even.sum(axis=-1), 1, atol=1e-5)
    assert_allclose(one[0, 0, 1][np.arange(1, 8), np.arange(7)], 1, atol=1e-5)  # all attention to the token before
    assert_allclose(one[0, 0, 0], even[0, 0, 0], atol=1e-6)


def test_distances_of_a_checkpoint_come_back_and_are_no_circuit(tmp_path: Path) -> None:
    start = networks.initial(NETWORK, key=key_of(0))
    told = {"network": NETWORK, "data": MarkovSequences(length=8), "optimizer": "adam 1e-2", "key": key_of(1)}
    snapshots.Folder(tmp_path, **told).save(0, State(step=0, parameters=start, optimizer=(), loss=1.0))
    plan = layouts.planned(checkpoints.read(tmp_path)[0].open())
    names = {f"layers.{layer}.attention.relative.weight" for layer in (0, 1)}
    assert names <= {entry.name for entry in plan.skipped}
    rebuilt, weights = snapshots.network_at(tmp_path / "step-000000")
    assert rebuilt == NETWORK
    assert_array_equal(weights["layers.1.attention.query.weight"], start["layers.1.attention.query.weight"])
    assert names <= weights.keys()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MarkovSequences(symbols=1), "symbols must be a whole number >= 2; got 1"),
        (lambda: UrnSequences(tasks=0), "tasks must be a whole number >= 1; got 0"),
        (lambda: UrnSequences(concentration=0.0), "concentration must be finite and > 0; got 0.0"),
        (lambda: replace(NETWORK, causal=False), "relative positions need causal; got causal = False"),
        (lambda: replace(NETWORK, last_only=True).patterns({}, np.zeros((1, 2))), "last_only must be False"),
    ],
)
def test_impossible_data_and_networks_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
