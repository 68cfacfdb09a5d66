"""Which heads share a key, and which rows of a head are rotated by their position."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from iclab.numerics import require, whole_number
from iclab.spectra.circuits.weights import AttentionWeights, Rotary
from iclab.spectra.measures.factors import Array

Layers = Mapping[int, AttentionWeights] | Sequence[AttentionWeights]


def group_size(weights: AttentionWeights) -> int:
    """Query heads for each key and value head. Raises ValueError where they do not divide evenly."""
    heads, shared = len(weights.query), len(weights.key)
    require(
        shared > 0 and heads % shared == 0 and len(weights.value) == shared and len(weights.output) == heads,
        f"query heads must divide evenly among key heads, with a value head for each key head and an output for "
        f"each query head; got {heads} query, {shared} key, {len(weights.value)} value and {len(weights.output)} "
        "output heads. Check heads and kv_heads.",
    )
    return heads // shared


def layer_of(weights: Layers, layer: int) -> AttentionWeights:
    """The weights of one layer. Raises ValueError, which says what layers there are, for another one."""
    require(
        not isinstance(weights, AttentionWeights),
        "weights must hold layers: a list, or a mapping from their numbers; got one layer. Write [weights].",
    )
    there = list(weights) if isinstance(weights, Mapping) else range(len(weights))
    require(layer in there, f"layer must be one of {_listed(there)}; got {layer!r}.")
    return weights[layer]


def kv_head(weights: AttentionWeights, head: int) -> int:
    """The key and value head that a query head reads. Raises ValueError for a head that is not there."""
    group = group_size(weights)
    head = whole_number("head", head, least=0)
    require(head < len(weights.query), f"head must be below {len(weights.query)}, the query heads; got {head}.")
    return head // group


def rotary_rows(rotary: Rotary | None, dim: int) -> tuple[Int[Array, "pair"], Int[Array, "pair"], Int[Array, "rest"]]:
    """The first rows of the rotary pairs of a head of `dim` rows, the second rows, and the rows that stay.

    Raises ValueError for an odd number of rotated rows or more than there are.
    """
    rotated = 0 if rotary is None else whole_number("rotary.dimensions", rotary.dimensions, least=0)
    require(
        rotated % 2 == 0 and rotated <= dim,
        f"rotary.dimensions must be even and at most the head size {dim}; got {rotated}.",
    )
    rows = np.arange(rotated)
    if rotary is not None and rotary.pairing == "interleaved":
        return rows[::2], rows[1::2], np.arange(rotated, dim)
    return rows[: rotated // 2], rows[rotated // 2 :], np.arange(rotated, dim)


def rotated(rotary: Rotary | None, rows: Float[Array, "dim width"], offset: float) -> Float[Array, "dim width"]:
    """Rows of a head rotated by `offset` positions: (a, b) → (a cos − b sin, a sin + b cos) in each pair.

    Raises ValueError where there is no rotation or its frequencies are not known.
    """
    if rotary is None or rotary.frequencies is None:
        raise ValueError(
            "weights must have a rotary embedding with frequencies to be rotated by an offset; got none. Offset 0 "
            "needs neither: use query_key."
        )
    first, second, _ = rotary_rows(rotary, len(rows))
    angle = offset * np.asarray(rotary.frequencies, dtype=float)[:, None]
    require(
        len(angle) == len(first),
        f"rotary.frequencies must be one for each of {len(first)} pairs; got {len(angle)}.",
    )
    result = rows.copy()
    result[first] = np.cos(angle) * rows[first] - np.sin(angle) * rows[second]
    result[second] = np.sin(angle) * rows[first] + np.cos(angle) * rows[second]
    return result


def _listed(there: Sequence[int]) -> str:
    if len(there) > 8:
        return f"{there[0]!r} … {there[-1]!r} ({len(there)} layers)"
    return ", ".join(repr(one) for one in there) or "none"
