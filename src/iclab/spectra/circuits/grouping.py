"""Groups of query heads that share a key head, and rows of a head with rotary embedding."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from iclab.numerics import Validated, require, whole_number
from iclab.spectra.circuits.weights import AttentionWeights, Rotary

__all__ = ["Layers", "group_size", "kv_head", "layer_of", "rotary_rows", "rotated"]

Layers = Mapping[int, AttentionWeights] | Sequence[AttentionWeights]


def group_size(weights: AttentionWeights) -> int:
    """Number of query heads for each key and value head. Raises ValueError where they do not divide evenly."""
    heads, shared = len(weights.query), len(weights.key)
    require(
        shared > 0 and heads % shared == 0 and len(weights.value) == shared and len(weights.output) == heads,
        f"query heads must divide evenly among key heads, with a value head for each key head and an output for "
        f"each query head; got {heads} query, {shared} key, {len(weights.value)} value and {len(weights.output)} "
        "output heads. Check heads and kv_heads.",
    )
    return heads // shared


def layer_of(weights: Validated[Layers], layer: Validated[int]) -> AttentionWeights:
    """Weights of one layer. Raises ValueError, listing the layers, for one that does not exist."""
    require(
        not isinstance(weights, AttentionWeights),
        "weights must hold layers: a list, or a mapping from their numbers; got one layer. Write [weights].",
    )
    layers = list(weights) if isinstance(weights, Mapping) else range(len(weights))
    require(layer in layers, f"layer must be one of {_listed(layers)}; got {layer!r}.")
    return weights[layer]


def kv_head(weights: AttentionWeights, head: Validated[int]) -> int:
    """Key and value head of a query head. Raises ValueError for a head that does not exist."""
    group = group_size(weights)
    head = whole_number("head", head, least=0)
    require(head < len(weights.query), f"head must be below {len(weights.query)}, the query heads; got {head}.")
    return head // group


def rotary_rows(
    rotary: Rotary | None, dim: int
) -> tuple[Int[np.ndarray, "pair"], Int[np.ndarray, "pair"], Int[np.ndarray, "rest"]]:
    """First rows and second rows of the rotary pairs of a head of `dim` rows, and the rows without rotary embedding.

    Raises ValueError for a number of rotated rows that is odd or above `dim`.
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


def rotated(
    rotary: Rotary | None, rows: Float[np.ndarray, "dim width"], offset: int | float
) -> Float[np.ndarray, "dim width"]:
    """Rotary embedding of rows of a head by `offset` positions: (a, b) → (a cos − b sin, a sin + b cos) in each pair.

    Raises ValueError without a rotary embedding or its frequencies.
    """
    if rotary is None or rotary.frequencies is None:
        raise ValueError(
            "weights must have a rotary embedding with frequencies for an offset; got none. Offset 0 "
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


def _listed(layers: Sequence[int]) -> str:
    if len(layers) > 8:
        return f"{layers[0]!r} … {layers[-1]!r} ({len(layers)} layers)"
    return ", ".join(repr(one) for one in layers) or "none"
