"""Caveats: operations of a model around its projections that a product of weights leaves out."""

from collections.abc import Sequence
from typing import Any

from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.layouts.forms import Config
from iclab.spectra.layouts.geometry import Geometry, first
from iclab.spectra.layouts.rules import Rule

__all__ = ["caveats"]

_NORMED_OUTPUT = ("gemma2", "gemma3", "gemma3_text", "olmo2")


def caveats(rules: Sequence[Rule], geometry: Geometry, config: Config) -> tuple[str, ...]:
    """Notes that hold for every circuit of the model."""
    family = config["model_type"]
    given = config.get("rope_parameters") or config.get("rope_scaling") or {}
    attention: Any = config.get("attn_config") or config
    rotary = quoted(str(first(given, "rope_type", "type")))
    notes = {
        "queries and keys pass a norm: query-key circuits are those before it": any(
            r.role == "q_norm" for r in rules
        ),
        "attention's output passes a norm: output-value circuits hold up to it": family in _NORMED_OUTPUT,
        f"scores are soft-capped, c tanh(s/c) with c = {geometry.softcap}": geometry.softcap is not None,
        "activations are clipped: circuits hold where none is": bool(first(attention, "clip_qkv")),
        "weights of TransformerLens may be folded and centered already": family == "transformer_lens",
        f"frequencies of the rotary embedding of type {rotary} are not read": any(
            one is not None and one.frequencies is None for one in geometry.rotaries
        ),
        "the config says that the weights are quantized: packed ones are skipped": bool(
            config.get("quantization_config")
        ),
    }
    return tuple(note for note, holds in notes.items() if holds)
