"""Reasons for which a tensor is not analyzed."""

import re
from collections.abc import Mapping

from iclab.spectra.checkpoints.tensors import PACKED, Tensor

__all__ = ["no_role", "unreadable"]

_BUFFERS = re.compile(
    r"(?:.*\.)?(?:(?:attn|attention)\.(?:attention\.)?(?:masked_)?bias|rotary_emb\.inv_freq|inv_freq|position_ids|"
    r"num_batches_tracked|mask|IGNORE|rotary_sin|rotary_cos)"
)
_PACKED = ("qweight", "qzeros", "SCB", "absmax", "quant_map", "nested_absmax", "_packed_params", "weight_packed")
_SCALES = ("_scale_inv", "_scale", ".scales")


def unreadable(tensor: Tensor, others: Mapping[str, Tensor]) -> str:
    """Reason for which the numbers of a tensor are no weights, or an empty string."""
    if _BUFFERS.fullmatch(tensor.name):
        return "buffer"
    packed = any(part in tensor.name for part in _PACKED) or any(
        f"{tensor.name}.{part}" in others for part in ("absmax", "quant_map")
    )
    if packed or (not tensor.floating and tensor.name.endswith("weight")):
        return PACKED
    if not tensor.floating:
        return f"stored as {tensor.stored}: no weight"
    if tensor.stored.startswith("F8") and any(tensor.name + scale in others for scale in _SCALES):
        return "8-bit floats scaled block by block; multiply the scales in and save it again"
    if tensor.size == 0:
        return "empty"
    return ""


def no_role(tensor: Tensor, family: str) -> str:
    """Reason for which a readable tensor is left out."""
    if "norm" in tensor.name.lower() or re.search(r"\bln_?\w*\.", tensor.name):
        return "a norm that does not feed attention"
    return f"no name of a {family} layer; give it a role in a mapping to analyze it"
