"""Attention weights of one layer, head by head, in one form for all stored layouts."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Shaped

from iclab.numerics import Validated

__all__ = ["AttentionWeights", "InputNorm", "QueryKeyNorm", "Rotary"]


@dataclass(frozen=True)
class Rotary:
    """Rotary embedding of queries and keys.

    The first `dimensions` of each head are rotated, in pairs (f, f + dimensions/2) when the pairing
    is "half" and (2f, 2f + 1) when it is "interleaved"; the others are unchanged.
    """

    dimensions: int
    pairing: Literal["half", "interleaved"]
    frequencies: Shaped[np.ndarray, "pair"] | None = None  # radians per position


@dataclass(frozen=True)
class QueryKeyNorm:
    """Gains of a norm between the query and key projections and the score.

    With `across_heads` the norm is taken over all heads together, else head by head.
    """

    query: Shaped[np.ndarray, "..."]
    key: Shaped[np.ndarray, "..."]
    across_heads: bool = False


@dataclass(frozen=True)
class InputNorm:
    """The norm whose output attention takes: its gain, its bias; `centered` where it subtracts the mean."""

    gain: Shaped[np.ndarray, "width"]
    bias: Shaped[np.ndarray, "width"] | None
    centered: bool


@dataclass(frozen=True)
class AttentionWeights:
    """One attention layer: x is a row vector, a head's query is query[h] @ x + query_bias[h].

    Arrays keep the dtype they were stored in and may be views of a mapped file: computations cast one head at a time,
    and check that the shapes fit each other. Query head h uses key and value head h // (heads / kv_heads). The output
    of head h is output[h] @ (value of the head).
    """

    query: Validated[Shaped[np.ndarray, "head dim width"]]
    key: Validated[Shaped[np.ndarray, "kv_head dim width"]]
    value: Validated[Shaped[np.ndarray, "kv_head value_dim width"]]
    output: Validated[Shaped[np.ndarray, "head width_out value_dim"]]
    query_bias: Validated[Shaped[np.ndarray, "head dim"] | None] = None
    key_bias: Validated[Shaped[np.ndarray, "kv_head dim"] | None] = None
    value_bias: Validated[Shaped[np.ndarray, "kv_head value_dim"] | None] = None
    rotary: Rotary | None = None
    query_key_norm: QueryKeyNorm | None = None
    input_norm: InputNorm | None = None
