"""Heads with one parity each: a solvable model of limited rank on binary inputs.

A context has one of several parities χ_t with probability p_t and labels y = χ_t(x) + noise. A head h predicts
(1/N) Σ y χ_h(x) χ_h(x_q) times a strength. Our own model; the published theorem is about another one.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, Values, checked, checked_number, require, whole_number

__all__ = ["parity_loss", "parity_strengths", "parity_test_loss"]


def parity_strengths(
    probabilities: Validated[Float[ArrayLike, "parity"]],
    context_length: Validated[int],
    *,
    noise: Validated[float] = 0.0,
) -> Float[np.ndarray, "parity"]:
    """Best strength of the head of each parity: N p/((N − 1) p + 1 + noise).

    Heads do not interact: each strength is independent of the other heads.

    Raises ValueError for probabilities that are negative or sum to more than 1, a length below 1, negative noise.

    Source: derived in docs/derivations/rank_limited.
    """
    p, length, variance = _checked(probabilities, context_length, noise)
    return length * p / ((length - 1) * p + 1 + variance)


def parity_loss(
    probabilities: Validated[Float[ArrayLike, "parity"]],
    context_length: Validated[int],
    *,
    heads: Validated[int],
    noise: Validated[float] = 0.0,
) -> float:
    """Least loss with a number of heads, on the most probable parities; noise of the query's label included.

    Raises ValueError as parity_strengths, and for heads outside 1..number of parities.

    Source: derived in docs/derivations/rank_limited.
    """
    p, _, variance = _checked(probabilities, context_length, noise)
    gains = p * parity_strengths(p, context_length, noise=noise)
    return float(1 + variance - np.sum(np.sort(gains)[::-1][: _heads(heads, p)]))


def parity_test_loss(
    probabilities: Validated[Float[ArrayLike, "parity"]],
    context_length: Validated[int],
    *,
    test_length: Validated[int],
    heads: Validated[int],
    flip: Validated[ArrayLike],
) -> Values:
    """Loss of the best heads, pretrained without noise, where labels of the test context flip with a probability.

    The query's label is not flipped. `flip` may be an array.

    Raises ValueError as parity_loss, for a test_length below 1 and for a flip outside 0..1.

    Source: derived in docs/derivations/rank_limited.
    """
    each, _, _ = _checked(probabilities, context_length, 0.0)
    chance, length = np.asarray(checked("flip", flip, at_least=0.0)), whole_number("test_length", test_length)
    require(bool(np.all(chance <= 1)), f"flip must be between 0 and 1; got {flip!r}.")
    held = np.argsort(-each, kind="stable")[: _heads(heads, each)]
    p, u = each[held], parity_strengths(each, context_length)[held]
    c = 1 - 2 * chance[..., None]
    own = u**2 * (c**2 + (1 - c**2) / length) - 2 * u * c
    return (1 + np.sum(p * own + (1 - p) * u**2 / length, axis=-1))[()]


def _checked(
    probabilities: Validated[Float[ArrayLike, "parity"]], context_length: Validated[int], noise: Validated[float]
) -> tuple[Float[np.ndarray, "parity"], int, float]:
    p = np.asarray(checked("probabilities", probabilities, at_least=0.0))
    require(
        p.ndim == 1 and p.size > 0 and p.sum() <= 1 + 1e-12,
        f"probabilities must be a list of numbers >= 0 that sum to 1 at most; got {probabilities!r}.",
    )
    length = whole_number("context_length", context_length)
    return p, length, checked_number("noise", noise, at_least=0.0, advice="It is a variance.")


def _heads(heads: Validated[int], p: Float[np.ndarray, "parity"]) -> int:
    whole = whole_number("heads", heads)
    require(whole <= len(p), f"heads must be at most the {len(p)} parities; got {heads!r}.")
    return whole
