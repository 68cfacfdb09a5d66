"""Losses of what predicts Markov chains in context, exact at finite length, sampled, and for infinite contexts.

Chains have rows P_i ~ Dirichlet(α, …, α) and a uniform first token. Losses are in nats for each prediction; position
t is that of the token after t tokens, and the first token is not predicted. Predictors:

* uniform: 1/S;
* unigram: (n_j + α)/(t + Sα), from counts of all t tokens so far, the Bayes law of nothing;
* order-free: the best law given all counts and the last token but not their order, a bound for what sees no order;
* bigram: (n_ij + α)/(n_i + Sα), i the last token: the Bayes law.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats
from scipy.special import betaln, digamma, entr, expit, log_expit

from iclab.numerics import FIXED_STREAM, Validated, checked_number, one_of, require, whole_number
from iclab.theory.sequences.markov_predictors import stationary_law
from iclab.theory.sequences.markov_types import MarkovTypes, markov_types

__all__ = [
    "PREDICTORS", "SampledLoss", "markov_chi_square", "markov_information", "markov_limit", "markov_loss",
    "sampled_markov_loss",
]  # fmt: skip

PREDICTORS = ("uniform", "unigram", "order-free", "bigram")
_CHAINS = 2**18  # of a mean over chains


@dataclass(frozen=True)
class SampledLoss:
    """Losses at positions 1 … T as means over drawn sequences, their standard errors, and those of the mean loss."""

    loss: Float[np.ndarray, "T"]
    error: Float[np.ndarray, "T"]
    mean: float
    mean_error: float


def markov_loss(
    predictor: Validated[str],
    *,
    states: Validated[int],
    length: Validated[int],
    concentration: Validated[float] = 1.0,
    first: Validated[str] = "uniform",
) -> Float[np.ndarray, "T"]:
    """Exact loss in nats of a predictor at positions 1 … `length`.

    A sum over types of sequences: at two states hundreds of tokens, at three some thirty, at four a dozen.

    Raises ValueError for another predictor or first token, for sizes below 1, a concentration that is not positive,
    and where the types have more than 4e7 counts.

    Source: edelman2024evolution, sec. 2 (unigram, bigram); whittle1955some (types); derived in
    docs/derivations/strategies.
    """
    s, t, alpha = _sizes(predictor, states, length, concentration)
    require(
        first == "uniform",
        f"first must be uniform for an exact loss; got {first!r}. A first token from the stationary law tells of the "
        "transition matrix, so that the bigram law is not Bayes.",
    )
    if predictor == "uniform":
        return np.full(t, np.log(s))
    return np.array([_type_loss(predictor, types) for types in markov_types(s, t, alpha)])


def sampled_markov_loss(
    predictor: Validated[str],
    *,
    states: Validated[int],
    length: Validated[int],
    concentration: Validated[float] = 1.0,
    sequences: Validated[int] = 20_000,
) -> SampledLoss:
    """Loss in nats of a predictor at positions 1 … `length`, at any size, from a fixed stream of sequences.

    Tokens are drawn from the bigram law, that of the mixture of all chains, and the loss of the next token is a mean
    over that law. Cost: sequences × length × S.

    Raises ValueError as markov_loss does, for fewer than two sequences, and for the order-free predictor, which is a
    sum over all sequences.

    Source: edelman2024evolution, sec. 2; derived in docs/derivations/strategies.
    """
    s, t, alpha = _sizes(predictor, states, length, concentration)
    require(
        predictor != "order-free", "predictor must not be order-free, a sum over all sequences; take markov_loss."
    )
    count, stream = whole_number("sequences", sequences, least=2), np.random.default_rng(FIXED_STREAM)
    rows, every = np.full((count, s, s), alpha), np.arange(count)
    last = stream.integers(s, size=count)
    tokens = np.full((count, s), alpha)
    losses = np.empty((t, count))
    for position in range(t):
        tokens[every, last] += 1
        law = rows[every, last] / rows[every, last].sum(axis=1, keepdims=True)
        said = {"uniform": np.full((1, s), 1 / s), "unigram": tokens / tokens.sum(axis=1, keepdims=True)}
        losses[position] = -np.sum(law * np.log(said.get(predictor, law)), axis=1)
        now = np.argmax(stream.random((count, 1)) < np.cumsum(law, axis=1), axis=1)
        rows[every, last, now] += 1
        last = now
    means, root = losses.mean(axis=0), np.sqrt(count)
    return SampledLoss(
        losses.mean(axis=1),
        losses.std(axis=1, ddof=1) / root,
        float(means.mean()),
        float(means.std(ddof=1) / root),
    )


def markov_limit(
    predictor: Validated[str], *, states: Validated[int], concentration: Validated[float] = 1.0
) -> float:
    """Loss in nats of a predictor in an infinitely long context.

    Of the bigram law the entropy rate E Σ π_i H(P_i), not the mean entropy of a row: rows with less entropy are
    visited more. Of the unigram law E H(π). At two states an integral, to ten digits; at more a mean over 2.6e5
    drawn chains, with a standard error of 3e-4 at three states.

    Raises ValueError for another predictor, for the order-free one, a size below 1 and a concentration that is not
    positive, or below .02 at two states.

    Source: edelman2024evolution, sec. 2; derived in docs/derivations/strategies.
    """
    s, _, alpha = _sizes(predictor, states, 1, concentration)
    require(
        predictor != "order-free", "predictor must not be order-free, whose limit is not known; take markov_loss."
    )
    if predictor == "uniform" or s == 1:
        return float(np.log(s))
    if s == 2:
        require(alpha >= 0.02, f"concentration must be at least 0.02 in the limit of two states; got {alpha:g}.")
        return _two_states_limit(predictor, alpha)
    return _drawn_limit(predictor, s, alpha)


def markov_information(
    states: Validated[int], length: Validated[int], concentration: Validated[float] = 1.0
) -> float:
    """I(P; x) in nats of a sequence of `length` transitions about its chain; the first token tells nothing.

    Raises ValueError as markov_loss does.

    Source: derived in docs/derivations/strategies.
    """
    s, t, alpha = _sizes("bigram", states, length, concentration)
    return float(sum(_type_loss("bigram", types) - types.row_entropy() for types in markov_types(s, t, alpha)))


def markov_chi_square(states: Validated[int], length: Validated[int], concentration: Validated[float] = 1.0) -> float:
    """χ² of a sequence of `length` transitions: a pool of K chains has a mean gap of at most ln(1 + χ²/K).

    Raises ValueError as markov_loss does.

    Source: derived in docs/derivations/strategies.
    """
    s, t, alpha = _sizes("bigram", states, length, concentration)
    *_, types = markov_types(s, t + 1, alpha)
    return float(types.chance @ np.exp(types.log_mixture(2) - 2 * types.log_mixture()) - 1)


def _sizes(predictor: str, states: int, length: int, concentration: float) -> tuple[int, int, float]:
    one_of("predictor", predictor, PREDICTORS)
    alpha = checked_number("concentration", concentration, above=0.0, advice="It is the Dirichlet α of every state.")
    return whole_number("states", states), whole_number("length", length), alpha


def _type_loss(predictor: str, types: MarkovTypes) -> float:
    """Loss of the next token, the true law of which is the bigram one."""
    law, s, alpha = types.next_law(), types.states, types.concentration
    if predictor == "order-free":
        return _order_free_loss(types)
    tokens = types.tokens() + alpha
    said = law if predictor == "bigram" else tokens / tokens.sum(axis=1, keepdims=True)
    return float(-types.chance @ np.sum(law * np.log(said), axis=1)) if s > 1 else 0.0


def _order_free_loss(types: MarkovTypes) -> float:
    """Loss of the next token given the counts of tokens and the last one, after any first token."""
    s, tokens, joint = types.states, types.tokens(), types.chance[:, None] * types.next_law() / types.states
    keys, laws = [], []
    for first in range(s):
        names = np.arange(s)
        names[[0, first]] = names[[first, 0]]  # the token that is called 0 is now called first
        keys.append(np.column_stack([tokens[:, names], names[types.last]]))
        laws.append(joint[:, names])
    _, place = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    place = place.ravel()
    total = np.column_stack([np.bincount(place, weights=column) for column in np.concatenate(laws).T])
    return float(-np.sum(total * np.log(total / total.sum(axis=1, keepdims=True))))


def _two_states_limit(predictor: str, alpha: float) -> float:
    """A sum over the logits of the chances to leave each state, even steps of which converge exponentially."""
    step = 0.25 / max(1.0, np.sqrt(alpha))
    logit = np.arange(-np.ceil(36 / alpha / step), np.ceil(36 / alpha / step) + 1) * step
    leave, stay = expit(logit), expit(-logit)
    weight = np.exp(alpha * (log_expit(logit) + log_expit(-logit)) - betaln(alpha, alpha)) * step
    first = leave / (leave[:, None] + leave)  # of being in the state that is left with the chance of the row
    if predictor == "unigram":
        return float(weight @ (entr(first) + entr(first.T)) @ weight)
    return float(2 * (weight * (entr(leave) + entr(stay))) @ first @ weight)


def _drawn_limit(predictor: str, states: int, alpha: float) -> float:
    """A mean over drawn chains, in which the mean entropy of a row is exact."""
    stream = np.random.default_rng(FIXED_STREAM)
    chains = stream.dirichlet(np.full(states, alpha), (_CHAINS, states))
    visits = stationary_law(chains)
    if predictor == "unigram":
        return float(np.mean(stats.entropy(visits, axis=1)))
    rows = stats.entropy(chains, axis=2)
    known = digamma(states * alpha + 1) - digamma(alpha + 1)
    return float(known + np.mean(np.sum((visits - 1 / states) * rows, axis=1)))
