"""Scores of attention heads: how much a head attends to the token before, and to what once followed this token.

A pattern holds the attention of place t to places s in its row t, from 0; heads and contexts are leading axes.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checked_laws, numbers, require

__all__ = ["Score", "matching", "previous"]


@dataclass(frozen=True)
class Score:
    """A score of every head, and the level that it has at even attention to all places up to its own."""

    score: np.floating | Float[np.ndarray, "*heads"]
    level: np.floating | Float[np.ndarray, "*heads"]


def previous(pattern: Validated[Float[ArrayLike, "*heads T T"]]) -> Score:
    """Mean attention of a place to the one before it, over all places but the first.

    The level is the mean of 1/t over t = 2 … T.

    Raises ValueError for a pattern that is not square, of one place, or whose rows do not add up to 1.

    Source: olsson2022context, previous-token heads.
    """
    found = _pattern(pattern)
    length = found.shape[-1]
    require(length > 1, f"pattern must have two places or more; got {length}.")
    score = np.mean(np.diagonal(found, offset=-1, axis1=-2, axis2=-1), axis=-1)
    return Score(score, np.full_like(score, np.mean(1 / np.arange(2, length + 1))))


def matching(
    pattern: Validated[Float[ArrayLike, "*heads T T"]],
    tokens: Validated[Int[ArrayLike, "*heads T"]],
    places: Validated[Int[ArrayLike, "place"] | None] = None,
) -> Score:
    """Attention of a place to all places that follow an earlier occurrence of its token, the induction score.

    Summed over s ≤ t whose predecessor s − 1 < t holds the token of t, and averaged over `places`, counted from 0;
    without a match a place counts 0. Places default to those from a quarter of the sequence on, t ≥ T/4 − 1; for
    sequences that repeat give the places of the repeats. The level at even attention is not 0, and above one over the
    number of states: common tokens ask more often. Tokens broadcast against the leading axes of the pattern.

    Raises ValueError for a pattern that is not square or whose rows do not add up to 1, for tokens of another length,
    and for places outside the sequence, or none.

    Source: olsson2022context, prefix matching; edelman2024evolution, sec. 4.
    """
    found, given = _pattern(pattern), numbers("tokens", tokens)
    length = found.shape[-1]
    require(
        given.shape[-1:] == (length,),
        f"tokens must have as many places as the pattern, {length}; got shape {given.shape}.",
    )
    kept = _places(places, length)
    match = _follows(given)[..., kept, :]
    even = match / (kept + 1)[:, None]
    score = np.mean(np.sum(found[..., kept, :] * match, axis=-1), axis=-1)
    return Score(score, np.broadcast_to(np.mean(np.sum(even, axis=-1), axis=-1), score.shape))


def _follows(tokens: Float[np.ndarray, "*n T"]) -> Bool[np.ndarray, "*n T T"]:
    """True at (t, s) where s ≤ t and the token before s is that of t."""
    same = tokens[..., :, None] == tokens[..., None, :-1]
    none = np.zeros((*same.shape[:-1], 1), bool)
    return np.tril(np.concatenate([none, same], axis=-1))


def _places(places: ArrayLike | None, length: int) -> Int[np.ndarray, "place"]:
    if places is None:
        return np.arange(max(0, int(np.ceil(length / 4 - 1))), length)
    given = numbers("places", places)
    kept = given.astype(int)
    require(
        bool(kept.ndim == 1 and kept.size and np.all(kept == given) and np.all((kept >= 0) & (kept < length))),
        f"places must be whole numbers from 0 to {length - 1}, at least one; got {places}.",
    )
    return kept


def _pattern(pattern: ArrayLike) -> Float[np.ndarray, "*heads T T"]:
    found = numbers("pattern", pattern)
    require(
        found.ndim >= 2 and found.shape[-1] == found.shape[-2],
        f"pattern must end in a square, (…, T, T); got shape {found.shape}.",
    )
    found = checked_laws("pattern", found)
    require(
        not np.any(np.triu(found, 1) > 1e-6),
        "pattern must not attend to later places; got attention above its diagonal. Rows are the places that attend.",
    )
    return found
