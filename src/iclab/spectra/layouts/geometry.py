"""Geometry of attention: heads and their size, rotary embeddings and norms, which shapes alone do not determine."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from iclab.numerics import Validated, checks_its_fields, require, share, whole_number
from iclab.spectra.circuits.weights import Rotary

__all__ = ["LARGEST", "Geometry", "first", "rotary", "sizes"]

LARGEST = 2**20  # heads, or dimensions of a head, that are accepted from a config


@checks_its_fields
@dataclass(frozen=True)
class Geometry:
    """Sizes of attention, and the rotary embeddings, norms and scales around its projections.

    A head of unknown size is as large as the query's rows allow. `rotaries` has one entry for all layers or
    one for each; `scale` multiplies the scores, in place of 1/√(head size); `softcap` c bounds them, c·tanh(s/c).
    """

    heads: int
    kv_heads: int
    head_dim: int | None = None
    rotaries: tuple[Rotary | None, ...] = (None,)
    scale: float | None = None
    softcap: float | None = None
    norm_gain: str = "weight"  # or "1+weight"
    norm_centered: bool = True  # True where the input norm subtracts the mean
    norm_across_heads: bool = False  # True where the norm of queries and keys is over all heads together
    tied: bool = False  # True where the unembedding is the embedding

    def __post_init__(self) -> None:
        for name, value in (("heads", self.heads), ("kv_heads", self.kv_heads), ("head_dim", self.head_dim or 1)):
            require(whole_number(name, value) <= LARGEST, f"{name} must be at most {LARGEST:,}; got {value:,}.")
        require(
            self.heads % self.kv_heads == 0,
            f"kv_heads must divide heads; got {self.heads} heads and {self.kv_heads} key/value heads.",
        )
        for name, value in (("query_pre_attn_scalar", self.scale), ("attn_logit_softcapping", self.softcap)):
            require(
                value is None or (isinstance(value, int | float) and 0 < value < math.inf),
                f"{name} must be positive and finite, if given.",
            )
        require(
            self.norm_gain in ("weight", "1+weight"),
            f'norm_gain must be "weight" or "1+weight"; got {self.norm_gain!r}.',
        )

    def rotary(self, layer: int) -> Rotary | None:
        """Rotary embedding of a layer. Raises ValueError for a layer that the config lacks."""
        if len(self.rotaries) == 1:
            return self.rotaries[0]
        require(
            layer < len(self.rotaries), f"the config must describe layer {layer}; it has {len(self.rotaries)} layers."
        )
        return self.rotaries[layer]


def first(config: Mapping[str, Any], *names: str) -> Any:
    """First of these entries that exists and is not null, or None."""
    return next((config[name] for name in names if config.get(name) is not None), None)


def sizes(config: Mapping[str, Any], **other: Any) -> Geometry:
    """Geometry of a config in the names of any family; `other` goes to Geometry.

    Raises ValueError naming the entry that is missing or no whole number.
    """
    heads = first(config, "num_attention_heads", "n_head", "n_heads", "num_heads", "heads")
    require(heads is not None, "the config must give the number of heads as num_attention_heads; it does not.")
    heads = whole_number("num_attention_heads", heads)
    kv_heads = other.pop("kv_heads", None) or first(config, "num_key_value_heads", "kv_heads") or heads
    head_dim = first(config, "head_dim")
    width = first(config, "hidden_size", "n_embd", "d_model")
    if head_dim is None and width is not None:
        width = whole_number("hidden_size", width)
        require(width % heads == 0, f"hidden_size must be a multiple of the heads; got {width} and {heads} heads.")
        head_dim = width // heads
    tied = bool(other.pop("tied", config.get("tie_word_embeddings", False)))
    return Geometry(heads, whole_number("num_key_value_heads", kv_heads), head_dim, tied=tied, **other)


def rotary(
    config: Mapping[str, Any],
    head_dim: int,
    *,
    pairing: str = "half",
    fraction: Validated[float] = 1.0,
    theta: Validated[float] = 10_000.0,
    layer_type: str | None = None,
) -> Rotary:
    """Rotary embedding of a config, in the names of either version of the library.

    `fraction` and `theta` are the defaults of the family. Frequencies scaled for longer contexts are None, but for
    the types "linear" and "llama3".
    """
    given = config.get("rope_parameters") or config.get("rope_scaling") or {}
    given = given.get(layer_type, given) if layer_type else given
    fraction = (
        first(given, "partial_rotary_factor") or first(config, "partial_rotary_factor", "rotary_pct") or fraction
    )
    theta = first(given, "rope_theta") or first(config, "rope_theta", "rotary_emb_base") or theta
    fraction = share("the rotated fraction", fraction)
    require(theta > 0, f"rope_theta must be positive; got {theta!r}.")
    dimensions = int(first(config, "rotary_dim") or head_dim * fraction)
    require(
        0 < dimensions <= head_dim and dimensions % 2 == 0,
        f"the rotated dimensions must be even and at most the head size; got {dimensions} of {head_dim}.",
    )
    frequencies = theta ** (-np.arange(0, dimensions, 2) / dimensions)
    kind = first(given, "rope_type", "type") or "default"
    return Rotary(dimensions, pairing, _scaled(frequencies, kind, given))  # type: ignore[arg-type]


def _scaled(frequencies: np.ndarray, kind: str, given: Mapping[str, Any]) -> np.ndarray | None:
    """Frequencies for contexts longer than the trained ones, or None for a type without a rule here."""
    if kind == "default":
        return frequencies
    if kind not in ("linear", "llama3"):
        return None
    bad = [name for name, value in given.items() if isinstance(value, int | float) and not 0 < value < math.inf]
    require(not bad, f"numbers of a scaled rotary embedding must be positive and finite; {', '.join(bad)} is not.")
    if kind == "linear":
        return frequencies / given["factor"]
    rotations = given["original_max_position_embeddings"] * frequencies / (2 * math.pi)
    low, high = given["low_freq_factor"], given["high_freq_factor"]
    require(low < high, f"low_freq_factor must be below high_freq_factor; got {low} and {high}.")
    kept = np.clip((rotations - low) / (high - low), 0, 1)
    return frequencies * (kept + (1 - kept) / given["factor"])
