"""Urns: sequences of independent symbols whose law is drawn from a Dirichlet law, or from a pool of K laws.

Two strategies predict the next symbol. The memorizing one is the Bayes law whose prior is the pool, the generalizing
one that whose prior is the Dirichlet law. On contexts of the pool the first cannot be beaten, and their losses differ
by a divergence; summed over the T predictions of a sequence these are the divergence Δ of both laws of sequences.
Losses are in nats for each prediction, Δ and the information in nats for each sequence. Symbols are exchangeable, so
that every sum over sequences is one over their counts.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln

from iclab.numerics import Validated, checked_laws, checked_number, require, whole_number
from iclab.outcomes import EstimatorErrors

__all__ = ["MOST_TERMS", "UrnLosses", "urn_chi_square", "urn_gap", "urn_information", "urn_losses"]

MOST_TERMS = 3e8  # terms of a sum over count vectors and tasks; some ten seconds
_CHUNK = 2**22  # terms at once, 32 MiB each
_SPEED = 3e7  # terms a second


@dataclass(frozen=True)
class UrnLosses:
    """Losses of both strategies before each draw, each on new tasks (icl) and on tasks of the pool (idg)."""

    memorizing: EstimatorErrors
    generalizing: EstimatorErrors


def urn_information(symbols: Validated[int], length: Validated[int], concentration: Validated[float] = 1.0) -> float:
    """I(θ; x), the information in nats of `length` draws about the law θ ~ Dirichlet(α, …, α) of the symbols.

    −E ln q(x) − T E H(θ), with q the mixture of all laws. At any number of symbols and draws: a symbol's count is
    beta-binomial, and ln q is a sum over symbols.

    Raises ValueError for sizes below 1 and a concentration that is not positive.

    Source: derived in docs/derivations/strategies.
    """
    s, t, alpha = _sizes(symbols, length, concentration)
    if s == 1:
        return 0.0
    count, rest, mean = np.arange(t + 1), (s - 1) * alpha, t / s
    log_chance = _log_binomial(t, count) + _log_beta(count + alpha, t - count + rest)
    chance = np.exp(log_chance - log_chance.max())
    above = gammaln(alpha + count) - gammaln(alpha + mean) - digamma(alpha + mean) * (count - mean)  # of its tangent
    each = gammaln(alpha + mean) - gammaln(alpha) + float(chance @ above) / chance.sum()
    log_mixture = gammaln(s * alpha) - gammaln(s * alpha + t) + s * each
    return float(-log_mixture - t * (digamma(s * alpha + 1) - digamma(alpha + 1)))


def urn_chi_square(symbols: Validated[int], length: Validated[int], concentration: Validated[float] = 1.0) -> float:
    """χ² = E_θ Σ_x P_θ(x)²/q(x) − 1 of `length` draws: a pool of K tasks has a mean gap of at most ln(1 + χ²/K).

    Σ over counts n of [T!/Π n!] q(2n)/q(n) − 1, as the T-th coefficient of the S-th power of one series, whose terms
    are all positive. Cost: T² ln S.

    Raises ValueError for sizes below 1, for more than 5000 draws and a concentration that is not positive;
    ArithmeticError where it exceeds the range of numbers.

    Source: derived in docs/derivations/strategies.
    """
    s, t, alpha = _sizes(symbols, length, concentration)
    require(t <= 5000, f"length must be at most 5000 here; got {t}. The gap of so long contexts is I − ln K at most.")
    if s == 1:
        return 0.0
    count = np.arange(t + 1)
    series = gammaln(alpha + 2 * count) - gammaln(alpha + count) - gammaln(count + 1)
    log_all = gammaln(t + 1) + gammaln(s * alpha + t) - gammaln(s * alpha + 2 * t) + _log_power(series, s)[t]
    if log_all > 700:
        raise ArithmeticError(f"chi_square must be a number of double precision; got exp({log_all:.6g}).")
    return float(np.expm1(log_all))


def urn_gap(
    pool: Validated[Float[ArrayLike, "K S"]], *, length: Validated[int], concentration: Validated[float] = 1.0
) -> float:
    """Δ, the loss in nats that knowing the pool saves in all `length` predictions of a sequence of the pool.

    The divergence of the pool's mixture of sequences from the Dirichlet mixture. Cost: C(T + S − 1, S − 1) K terms.

    Raises ValueError for rows that are no laws, for a length below 1, a concentration that is not positive, and for
    more than 3e8 terms.

    Source: derived in docs/derivations/strategies.
    """
    laws = checked_laws("pool", pool)
    _, t, alpha = _sizes(laws.shape[1], length, concentration)
    _require_terms(len(laws), laws.shape[1], t)
    counts, gap = _count_vectors(laws.shape[1], t), 0.0
    for rows in _chunks(counts, len(laws)):
        log_many, log_pool = _log_orders(rows), _log_of_pool(rows, laws)
        gap += float(np.exp(log_many + log_pool) @ (log_pool - _log_mixture(rows, alpha)))
    return gap


def urn_losses(
    pool: Validated[Float[ArrayLike, "K S"]], *, length: Validated[int], concentration: Validated[float] = 1.0
) -> UrnLosses:
    """Losses of both strategies before draws 1 … `length`, (T,) nats, on new tasks (icl) and on the pool (idg).

    On the pool the memorizing strategy is best, on new tasks the generalizing one; there a pool law that lacks a
    symbol loses without bound. Cost: C(T + S − 1, S) K S terms.

    Raises ValueError as urn_gap does.

    Source: derived in docs/derivations/strategies; wurgaft2025rational, sec. 3 (both strategies).
    """
    laws = checked_laws("pool", pool)
    _, t, alpha = _sizes(laws.shape[1], length, concentration)
    _require_terms(len(laws) * laws.shape[1], laws.shape[1], t)
    found = np.array([_losses_after(drawn, laws, alpha) for drawn in range(t)]).T
    return UrnLosses(EstimatorErrors(found[0], found[1]), EstimatorErrors(found[2], found[3]))


def _losses_after(drawn: int, laws: Float[np.ndarray, "K S"], alpha: float) -> Float[np.ndarray, "4"]:
    """Losses of the next draw: memorizing on new tasks and on the pool, generalizing on both."""
    losses = np.zeros(4)
    for rows in _chunks(_count_vectors(laws.shape[1], drawn), laws.size):
        log_many, likelihood = _log_orders(rows), _log_likelihood(rows, laws)
        top = likelihood.max(axis=1, keepdims=True)
        weight = np.exp(likelihood - top)
        known = weight @ laws / weight.sum(axis=1, keepdims=True)
        counted = (rows + alpha) / (drawn + laws.shape[1] * alpha)
        pooled = np.exp(log_many + top[:, 0]) * weight.mean(axis=1)
        fresh = np.exp(log_many + _log_mixture(rows, alpha))
        with np.errstate(divide="ignore"):
            log_known, log_counted = np.log(known), np.log(counted)
        losses += [
            _cross_entropy(*pair) for pair in ((fresh, counted, log_known), (pooled, known, log_known),
                                               (fresh, counted, log_counted), (pooled, known, log_counted))
        ]  # fmt: skip
    return losses


def _cross_entropy(
    chance: Float[np.ndarray, "n"], law: Float[np.ndarray, "n S"], log_prediction: Float[np.ndarray, "n S"]
) -> float:
    with np.errstate(invalid="ignore"):
        terms = np.where(law > 0, law * log_prediction, 0.0)
    return float(-np.sum(np.where(chance[:, None] > 0, chance[:, None] * terms, 0.0)))


def _count_vectors(symbols: int, draws: int) -> Int[np.ndarray, "n S"]:
    """All ways to distribute so many draws over the symbols, C(T + S − 1, S − 1) rows."""
    rows = np.arange(draws + 1)[:, None] if symbols > 1 else np.array([[draws]])
    for _ in range(2, symbols):
        left = draws - rows.sum(axis=1)
        repeated = np.repeat(rows, left + 1, axis=0)
        first = np.repeat(np.cumsum(left + 1) - (left + 1), left + 1)
        rows = np.column_stack([repeated, np.arange(len(repeated)) - first])
    return np.column_stack([rows, draws - rows.sum(axis=1)]) if symbols > 1 else rows


def _sizes(symbols: int, length: int, concentration: float) -> tuple[int, int, float]:
    alpha = checked_number("concentration", concentration, above=0.0, advice="It is the Dirichlet α of every symbol.")
    return whole_number("symbols", symbols), whole_number("length", length), alpha


def _require_terms(tasks: int, symbols: int, length: int) -> None:
    terms = float(np.exp(_log_binomial(length + symbols - 1, symbols - 1))) * tasks
    require(
        terms <= MOST_TERMS,
        f"the sum over counts and tasks must have at most {MOST_TERMS:.0e} terms; got {terms:.2g}, about "
        f"{terms / _SPEED:.0f} s. Take fewer tasks, symbols or draws, or gap_bounds, which hold at any size.",
    )


def _chunks(rows: Int[np.ndarray, "n S"], width: int) -> list[Int[np.ndarray, "_ S"]]:
    return np.array_split(rows, max(1, -(-len(rows) * width // _CHUNK)))


def _log_likelihood(rows: Int[np.ndarray, "n S"], laws: Float[np.ndarray, "K S"]) -> Float[np.ndarray, "n K"]:
    return rows @ np.log(np.maximum(laws, 1e-300)).T  # symbols that a law lacks: 0 after exp, and no 0 · inf


def _log_of_pool(rows: Int[np.ndarray, "n S"], laws: Float[np.ndarray, "K S"]) -> Float[np.ndarray, "n"]:
    likelihood = _log_likelihood(rows, laws)
    top = likelihood.max(axis=1)
    return top + np.log(np.exp(likelihood - top[:, None]).mean(axis=1))


def _log_mixture(rows: Int[np.ndarray, "n S"], alpha: float) -> Float[np.ndarray, "n"]:
    """ln q of one sequence with these counts."""
    total = rows.shape[1] * alpha
    drawn = rows[0].sum()
    return gammaln(total) - gammaln(total + drawn) + (gammaln(alpha + rows) - gammaln(alpha)).sum(axis=1)


def _log_orders(rows: Int[np.ndarray, "n S"]) -> Float[np.ndarray, "n"]:
    return gammaln(rows.sum(axis=1) + 1) - gammaln(rows + 1).sum(axis=1)


def _log_binomial(n: int | float, k: Validated[ArrayLike]) -> np.floating | Float[np.ndarray, "*k"]:
    k = np.asarray(k)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _log_beta(a: ArrayLike, b: ArrayLike) -> Float[np.ndarray, "*a"]:
    a, b = np.asarray(a), np.asarray(b)
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def _log_power(log_series: Float[np.ndarray, "n"], power: int) -> Float[np.ndarray, "n"]:
    """Logarithms of the coefficients of a power of a series with positive coefficients, by repeated squaring."""
    result = np.where(np.arange(len(log_series)) == 0, 0.0, -np.inf)
    base = log_series
    while power:
        result = _log_product(result, base) if power % 2 else result
        power //= 2
        base = _log_product(base, base) if power else base
    return result


def _log_product(one: Float[np.ndarray, "n"], other: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    return np.array([_log_sum(one[: n + 1] + other[n::-1]) for n in range(len(one))])


def _log_sum(logs: Float[np.ndarray, "n"]) -> float:
    top = logs.max()
    return top + np.log(np.sum(np.exp(logs - top))) if top > -np.inf else top
