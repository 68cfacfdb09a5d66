"""Markov chains in context: losses of predictors, their limits, laws on one sequence, and the gap of a pool."""

import itertools
import re
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import comb, gammaln

from iclab.theory import sequences
from iclab.theory.estimators import gap_bounds
from iclab.theory.sequences import markov_limit, markov_loss, sampled_markov_loss
from iclab.theory.sequences.markov_types import markov_types

CHAINS = np.array(
    [
        [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.25, 0.25, 0.5]],
        [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]],
    ]
)
TWO = {  # positions 1, 2, 4, 8, 16, 32
    "bigram": [0.6931471805599453, 0.6648306744273791, 0.6042813145592724, 0.5594164073377184, 0.5276387333708458,
               0.5071146421865083],
    "order-free": [0.6931471805599453, 0.6648306744273791, 0.6297817056477116, 0.5978418135923457, 0.5760618676746778,
                   0.5631557772111597],
    "unigram": [0.752038698388137, 0.6735166746172148, 0.6415696701452349, 0.6119507003620177, 0.5909834251468553,
                0.5783307658719606],
}  # fmt: skip
THREE = {  # positions 1 to 10
    "bigram": [1.0986122886681096, 1.0789817827253791, 1.0477146558386565, 1.0279962780461553, 1.0111962721776375,
               0.9983824485719403, 0.9866116775440058, 0.976924681597532, 0.9681066489515953, 0.9604510152389933],
    "order-free": [1.0986122886681096, 1.0789817827253791, 1.0665923265937007, 1.0542092783918462, 1.0461878758884113,
                   1.0388663203022575, 1.0332403954512146, 1.028258061750008, 1.0240668912361472, 1.0203583740045055],
    "unigram": [1.1552453009332422, 1.1182704507405508, 1.1009285553853994, 1.0869423805730414, 1.0772255842866207,
                1.0682020103455592, 1.061208818167621, 1.055064155775299, 1.0497861287375596, 1.0451951790945204],
}  # fmt: skip


@pytest.mark.parametrize("predictor", sorted(TWO))
def test_losses_at_two_states_are_the_known_ones(predictor: str) -> None:
    found = markov_loss(predictor, states=2, length=32)
    assert_allclose(found[[0, 1, 3, 7, 15, 31]], TWO[predictor], rtol=1e-11)


@pytest.mark.parametrize("predictor", sorted(THREE))
def test_losses_at_three_states_are_the_known_ones(predictor: str) -> None:
    assert_allclose(markov_loss(predictor, states=3, length=10), THREE[predictor], rtol=1e-11)


def test_mean_losses_at_two_states_are_the_known_ones() -> None:
    mean = {name: markov_loss(name, states=2, length=32).mean() for name in TWO}
    assert_allclose(
        [mean["bigram"], mean["order-free"], mean["unigram"]],
        [0.5443062459569457, 0.5883156436437842, 0.6042875614218726],
        rtol=1e-11,
    )
    halves = [markov_loss(name, states=2, length=16, concentration=0.5).mean() for name in ("bigram", "unigram")]
    assert_allclose(halves, [0.46932806903767943, 0.5606279230573186], rtol=1e-11)
    assert_allclose(markov_loss("uniform", states=5, length=3), np.log(5))


@cache
def enumerated(states: int, length: int, alpha: float) -> dict[str, float]:
    """Losses after `length` tokens by a sum over all sequences, with the chance of each as a ratio of gammas."""
    losses = dict.fromkeys(("bigram", "unigram", "order-free"), 0.0)
    shared: dict[tuple, np.ndarray] = {}
    for tokens in itertools.product(range(states), repeat=length):
        counts = np.zeros((states, states))
        np.add.at(counts, (list(tokens[:-1]), list(tokens[1:])), 1)
        chance = np.array([_chance(counts + step, alpha) for step in _steps(states, tokens[-1])]) / states
        occurred = np.bincount(tokens, minlength=states)
        row = counts[tokens[-1]] + alpha
        losses["bigram"] -= chance @ np.log(row / row.sum())
        losses["unigram"] -= chance @ np.log((occurred + alpha) / (length + states * alpha))
        known = (*occurred, tokens[-1])
        shared[known] = shared.get(known, 0) + chance
    for chance in shared.values():
        losses["order-free"] -= chance @ np.log(chance / chance.sum())
    return losses


def _steps(states: int, last: int) -> list[np.ndarray]:
    return [np.outer(np.eye(states)[last], np.eye(states)[new]) for new in range(states)]


def _chance(counts: np.ndarray, alpha: float) -> float:
    states, total = len(counts), counts.sum(axis=1)
    rows = gammaln(states * alpha) - gammaln(states * alpha + total)
    return float(np.exp(np.sum(rows) + np.sum(gammaln(alpha + counts) - gammaln(alpha))))


@pytest.mark.parametrize(("states", "length", "alpha"), [(2, 9, 1.0), (3, 6, 0.4), (4, 4, 2.0)])
@pytest.mark.parametrize("predictor", ["bigram", "unigram", "order-free"])
def test_types_equal_enumeration(predictor: str, states: int, length: int, alpha: float) -> None:
    found = markov_loss(predictor, states=states, length=length, concentration=alpha)
    assert_allclose(found[-1], enumerated(states, length, alpha)[predictor], rtol=0, atol=1e-12)


def test_types_at_two_states_are_as_many_sequences_as_counted() -> None:
    *_, types = markov_types(2, 23, 0.7)
    (u, up), (down, v) = types.transitions.transpose(1, 2, 0)
    w = up + down
    many = comb(u + w // 2, u) * np.where(w > 0, comb(v + (w + 1) // 2 - 1, v), 1.0)
    assert many.sum() == 2**22
    assert_allclose(types.chance, many * np.exp(types.log_mixture()), rtol=1e-12)


def test_sampled_losses_are_the_exact_ones() -> None:
    for predictor in ("bigram", "unigram"):
        exact = markov_loss(predictor, states=3, length=16)
        found = sampled_markov_loss(predictor, states=3, length=16, sequences=8000)
        assert abs(found.mean - exact.mean()) < 3 * found.mean_error < 0.01
        assert np.all(abs(found.loss - exact)[1:] < 4 * found.error[1:])


@pytest.mark.slow
def test_mean_losses_at_three_states_are_the_known_ones() -> None:
    exact = [markov_loss(name, states=3, length=32).mean() for name in ("bigram", "unigram")]
    assert abs(exact[0] - 0.9442998921188408) < 0.0027  # tolerances: what is known was sampled
    assert abs(exact[1] - 1.0381374485182762) < 0.0043
    for predictor, known, tolerance in (("bigram", 0.9065878718, 0.0027), ("unigram", 1.0179919379, 0.0052)):
        assert abs(sampled_markov_loss(predictor, states=3, length=64).mean - known) < tolerance


def test_infinite_contexts_have_the_known_losses() -> None:
    assert_allclose(
        [markov_limit(name, states=2) for name in ("bigram", "unigram")],
        [0.4808892482467198, 0.5638273276957773],
        rtol=1e-9,
    )
    half = [markov_limit(name, states=2, concentration=0.5) for name in ("bigram", "unigram")]
    assert_allclose(half, [0.3544691304881708, 0.47309850881564824], atol=2e-4)  # those known are good to so much
    three = [markov_limit(name, states=3) for name in ("bigram", "unigram")]
    assert_allclose(three, [0.818994, 0.978674], atol=9e-4)  # three standard errors of 2.6e5 chains
    assert abs(three[0] - 5 / 6) > 0.013  # not the mean entropy of a row


def test_the_excess_over_the_limit_falls_as_one_over_the_length() -> None:
    excess = markov_loss("bigram", states=2, length=128) - markov_limit("bigram", states=2)
    scaled = np.array([8, 16, 32, 64, 128]) * excess[[7, 15, 31, 63, 127]]
    assert_allclose(scaled[:4], [0.628, 0.748, 0.839, 0.902], atol=5e-4)
    assert abs(scaled[-1] - 1) < abs(scaled[-2] - 1) < 0.12  # S(S − 1)/2 = 1
    assert abs(markov_loss("unigram", states=2, length=256)[-1] - markov_limit("unigram", states=2)) < 0.003


def test_four_predictors_on_one_sequence_are_the_known_ones() -> None:
    tokens = [0, 1, 1, 2, 0, 1]
    laws = [
        sequences.bigram_law(tokens, states=3),
        sequences.unigram_law(tokens, states=3),
        sequences.pool_bigram_law(tokens, CHAINS),
        sequences.pool_unigram_law(tokens, CHAINS),
    ]
    assert_allclose(
        [law[-1] for law in laws],
        [
            [0.2, 0.4, 0.4],
            [0.3333333333333333, 0.4444444444444444, 0.2222222222222222],
            [0.10761249577083568, 0.1304499830833427, 0.7619375211458216],
            [0.34637045725941323, 0.3463704572594134, 0.3072590854811733],
        ],
        rtol=1e-12,
    )
    assert_allclose(sequences.stationary_law(CHAINS[0]), [5 / 14, 5 / 14, 4 / 14], rtol=1e-12)
    batch = sequences.pool_bigram_law(np.array([tokens, tokens[::-1]]), CHAINS)
    assert_allclose(batch[0], laws[2], rtol=1e-14)


@pytest.mark.parametrize("predictor", ["bigram", "unigram"])
def test_laws_on_drawn_sequences_lose_the_exact_loss(predictor: str) -> None:
    rng, count, length = np.random.default_rng(6), 20_000, 8
    rows = rng.dirichlet(np.full(3, 0.6), (count, 3))
    tokens = np.empty((count, length), int)
    tokens[:, 0] = rng.integers(3, size=count)
    for t in range(1, length):
        below = rng.random((count, 1)) < np.cumsum(rows[np.arange(count), tokens[:, t - 1]], axis=1)
        tokens[:, t] = np.argmax(below, axis=1)
    law = getattr(sequences, f"{predictor}_law")(tokens, states=3, concentration=0.6)[:, -1]
    losses = -np.sum(rows[np.arange(count), tokens[:, -1]] * np.log(law), axis=1)
    error = losses.std() / np.sqrt(count)
    exact = markov_loss(predictor, states=3, length=length, concentration=0.6)[-1]
    assert abs(losses.mean() - exact) < 4 * error < 0.02


def test_the_gap_of_a_pool_of_chains_is_a_sum_over_all_sequences() -> None:
    length, total = 5, 0.0
    for tokens in itertools.product(range(3), repeat=length + 1):
        counts = np.zeros((3, 3))
        np.add.at(counts, (list(tokens[:-1]), list(tokens[1:])), 1)
        pool = np.mean(np.prod(CHAINS**counts, axis=(1, 2)))
        total += pool / 3 * np.log(pool / _chance(counts, 1.0))
    assert_allclose(sequences.markov_gap(CHAINS, length=length), total, rtol=1e-12)
    laws = _pool_losses(length)
    assert_allclose(laws, total, rtol=1e-12)


def _pool_losses(length: int) -> float:
    """Losses of the bigram law less those of the pool's, prediction by prediction, on sequences of the pool."""
    gap = 0.0
    for tokens in itertools.product(range(3), repeat=length + 1):
        chance = np.mean([np.prod([chain[i, j] for i, j in itertools.pairwise(tokens)]) for chain in CHAINS]) / 3
        known = sequences.pool_bigram_law(tokens, CHAINS)
        counted = sequences.bigram_law(tokens, states=3)
        places = np.arange(length), list(tokens[1:])
        gap += chance * np.sum(np.log(known[places]) - np.log(counted[places]))
    return gap


def test_chi_square_of_chains_is_a_sum_over_all_sequences() -> None:
    length, total = 5, 0.0
    for tokens in itertools.product(range(3), repeat=length + 1):
        counts = np.zeros((3, 3))
        np.add.at(counts, (list(tokens[:-1]), list(tokens[1:])), 1)
        total += _chance(2 * counts, 0.8) / _chance(counts, 0.8) / 3
    assert_allclose(sequences.markov_chi_square(3, length, 0.8), total - 1, rtol=1e-12)


def test_information_is_the_mean_gap_of_one_chain() -> None:
    point, weight = np.polynomial.legendre.leggauss(24)
    chance, weight = (point + 1) / 2, weight / 2
    gaps = [[sequences.markov_gap([[[1 - a, a], [b, 1 - b]]], length=6) for b in chance] for a in chance]
    assert_allclose(sequences.markov_information(2, 6), weight @ np.array(gaps) @ weight, rtol=1e-3)  # a ln a at 0


def test_information_and_chi_square_bound_the_gap_of_pools_of_chains() -> None:
    rng, length = np.random.default_rng(8), 16
    information = sequences.markov_information(2, length)
    chi_square = sequences.markov_chi_square(2, length)
    one = [sequences.markov_gap(rng.dirichlet(np.ones(2), (1, 2)), length=length) for _ in range(200)]
    assert abs(np.mean(one) - information) < 3.5 * np.std(one) / np.sqrt(200) < 0.25
    for tasks in (4, 64):
        gaps = [sequences.markov_gap(rng.dirichlet(np.ones(2), (tasks, 2)), length=length) for _ in range(20)]
        error = np.std(gaps, ddof=1) / np.sqrt(20)
        least, most = gap_bounds(information, chi_square, tasks)
        assert least - 3 * error <= np.mean(gaps) <= most + 3 * error
    assert_allclose(np.mean(gaps) * 2 * tasks / chi_square, 1, rtol=0.2)  # 64 is 13 times χ²; 20 pools


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: markov_loss("trigram", states=2, length=4), "predictor must be"),
        (
            lambda: markov_loss("bigram", states=2, length=4, first="stationary"),
            "first must be uniform for an exact loss; got 'stationary'. A first token from the stationary law tells",
        ),
        (lambda: markov_loss("bigram", states=2, length=0), "length must be a whole number >= 1; got 0"),
        (
            lambda: markov_loss("bigram", states=2, length=4, concentration=0.0),
            "concentration must be finite and > 0",
        ),
        (lambda: sampled_markov_loss("order-free", states=2, length=4), "predictor must not be order-free, a sum"),
        (lambda: markov_limit("order-free", states=2), "predictor must not be order-free, whose limit is not known"),
        (lambda: sequences.bigram_law([0, 3], states=3), "tokens must be whole numbers from 0 to states - 1 = 2"),
        (
            lambda: sequences.pool_bigram_law([0, 1], CHAINS[0]),
            "chains must have the shape (K, S, S), with K at least",
        ),
        (
            lambda: sequences.pool_bigram_law([0, 1], 2 * CHAINS),
            "chains must hold laws, probabilities that add up to",
        ),
        (lambda: sequences.stationary_law(np.eye(2)), "chains must have one stationary law each; got one that falls"),
    ],
)
def test_impossible_chains_are_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_sequences_of_too_many_types_are_refused_with_the_longest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iclab.theory.sequences.markov_types.MOST_COUNTS", 27 * 2000)
    assert len(markov_loss("bigram", states=3, length=10)) == 10
    with pytest.raises(
        ValueError,
        match=r"length must be below 12 for exact sums at 3 states, 2,492 types of sequences there; got 100\.",
    ):
        markov_loss("bigram", states=3, length=100)
