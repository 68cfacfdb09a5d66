"""Predictors of Markov chains in context as laws of the next token, and the gap of a pool of chains.

Each returns the law of the next token after every token of every sequence. The bigram and the pool's bigram law are
Bayes, with a Dirichlet prior on rows and with a pool as the prior; both unigram laws are Bayes for nothing.
"""

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checked_laws, checked_number, numbers, require, whole_number
from iclab.theory.sequences.markov_types import markov_types

__all__ = ["bigram_law", "markov_gap", "pool_bigram_law", "pool_unigram_law", "stationary_law", "unigram_law"]


def bigram_law(
    tokens: Validated[Int[ArrayLike, "*batch T"]], *, states: Validated[int], concentration: Validated[float] = 1.0
) -> Float[np.ndarray, "*batch T S"]:
    """(n_ij + α)/(n_i + Sα), i the last token: exactly Bayes where the first token is uniform.

    Raises ValueError for tokens outside 0 … S − 1 and a concentration that is not positive.

    Source: edelman2024evolution, sec. 2; derived in docs/derivations/strategies.
    """
    now, alpha = _one_hot(tokens, states), _concentration(concentration)
    before = np.concatenate([np.zeros_like(now[..., :1, :]), now[..., :-1, :]], axis=-2)
    transitions = np.cumsum(before[..., :, None] * now[..., None, :], axis=-3)
    row = np.einsum("...ti,...tij->...tj", now, transitions) + alpha
    return row / row.sum(axis=-1, keepdims=True)


def unigram_law(
    tokens: Validated[Int[ArrayLike, "*batch T"]], *, states: Validated[int], concentration: Validated[float] = 1.0
) -> Float[np.ndarray, "*batch T S"]:
    """(n_j + α)/(t + Sα), from all tokens so far, the last one included.

    Raises ValueError as bigram_law does.

    Source: edelman2024evolution, sec. 2.
    """
    counts = np.cumsum(_one_hot(tokens, states), axis=-2) + _concentration(concentration)
    return counts / counts.sum(axis=-1, keepdims=True)


def pool_bigram_law(
    tokens: Validated[Int[ArrayLike, "*batch T"]], chains: Validated[Float[ArrayLike, "K S S"]]
) -> Float[np.ndarray, "*batch T S"]:
    """Rows of the chains of a pool, weighted by the posterior of each chain given the transitions so far.

    Raises ValueError for chains whose rows are no laws and for tokens outside 0 … S − 1.

    Source: park2024competition, sec. 3 (bigram retrieval).
    """
    pool = _chains(chains)
    now = _one_hot(tokens, pool.shape[-1])
    log_chance = np.einsum(
        "...ti,kij,...tj->...tk", now[..., :-1, :], np.log(np.maximum(pool, 1e-300)), now[..., 1:, :]
    )
    start = np.zeros((*log_chance.shape[:-2], 1, len(pool)))
    weights = _softmax(np.cumsum(np.concatenate([start, log_chance], axis=-2), axis=-2))
    return np.einsum("...tk,...ti,kij->...tj", weights, now, pool)


def pool_unigram_law(
    tokens: Validated[Int[ArrayLike, "*batch T"]], chains: Validated[Float[ArrayLike, "K S S"]]
) -> Float[np.ndarray, "*batch T S"]:
    """Stationary laws of the chains of a pool, weighted by the likelihood of the tokens as independent draws.

    Raises ValueError as pool_bigram_law does.

    Source: park2024competition, sec. 3 (unigram retrieval).
    """
    stationary = stationary_law(chains)
    now = _one_hot(tokens, stationary.shape[-1])
    weights = _softmax(np.cumsum(now @ np.log(np.maximum(stationary, 1e-300)).T, axis=-2))
    return weights @ stationary


def stationary_law(chains: Validated[Float[ArrayLike, "*K S S"]]) -> Float[np.ndarray, "*K S"]:
    """The law π with π P = π of each chain.

    Raises ValueError for rows that are no laws, and for a chain with more than one such law.

    Source: derived in docs/derivations/strategies.
    """
    found = np.asarray(checked_laws("chains", chains))
    s = found.shape[-1]
    require(found.shape[-2] == s, f"chains must be square, (…, S, S); got shape {found.shape}.")
    balance = np.swapaxes(found, -1, -2) - np.eye(s)
    balance[..., -1, :] = 1.0
    single = np.linalg.cond(balance) < 1e12
    require(bool(np.all(single)), "chains must have one stationary law each; got one that falls apart.")
    one = np.broadcast_to(np.eye(s)[-1][:, None], (*found.shape[:-2], s, 1))
    return np.linalg.solve(balance, one)[..., 0]


def markov_gap(
    chains: Validated[Float[ArrayLike, "K S S"]], *, length: Validated[int], concentration: Validated[float] = 1.0
) -> float:
    """Δ, the loss in nats that knowing the pool of chains saves in all `length` predictions of one of its sequences.

    An exact sum over types of sequences, with a uniform first token. Cost: types × K × S².

    Raises ValueError for chains whose rows are no laws, for a length below 1, a concentration that is not positive,
    and where the types have more than 4e7 counts.

    Source: derived in docs/derivations/strategies.
    """
    pool, alpha, count = _chains(chains), _concentration(concentration), whole_number("length", length)
    states = pool.shape[-1]
    *_, types = markov_types(states, count + 1, alpha)
    log_pool, gap = np.log(np.maximum(pool, 1e-300)), 0.0
    for first in range(states):
        names = np.arange(states)
        names[[0, first]] = names[[first, 0]]
        rows = types.transitions.reshape(len(types.last), -1)
        likelihood = rows @ log_pool[:, names][:, :, names].reshape(len(pool), -1).T
        ratio = likelihood - types.log_mixture()[:, None]
        top = ratio.max(axis=1)
        log_ratio = top + np.log(np.exp(ratio - top[:, None]).mean(axis=1))
        with np.errstate(over="ignore"):
            gap += float(types.chance @ (np.exp(log_ratio) * log_ratio)) / states
    return gap


def _one_hot(tokens: Validated[ArrayLike], states: int) -> Float[np.ndarray, "*batch T S"]:
    count, given = whole_number("states", states), numbers("tokens", tokens)
    whole = given.astype(int)
    require(
        bool(given.ndim > 0 and given.size > 0 and np.all(whole == given) and np.all((whole >= 0) & (whole < count))),
        f"tokens must be whole numbers from 0 to states - 1 = {count - 1}, in the shape (…, T); got "
        f"{f'{given.min():g} to {given.max():g}' if given.size else 'none'}.",
    )
    return np.eye(count)[whole]


def _chains(chains: ArrayLike) -> Float[np.ndarray, "K S S"]:
    found = np.asarray(checked_laws("chains", chains))
    require(
        found.ndim == 3 and found.shape[1] == found.shape[2],
        f"chains must have the shape (K, S, S), with K at least 1; got {found.shape}.",
    )
    return found


def _concentration(concentration: float) -> float:
    return checked_number("concentration", concentration, above=0.0, advice="It is the Dirichlet α of every state.")


def _softmax(logs: Float[np.ndarray, "*n K"]) -> Float[np.ndarray, "*n K"]:
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
