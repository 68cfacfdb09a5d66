"""Reasons for which a tensor is not analyzed."""

import re
from collections.abc import Mapping

from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.tensors import PACKED, Tensor

__all__ = ["is_buffer", "no_role", "unreadable"]

_BUFFERS = re.compile(
    r"(?:.*\.)?(?:(?:attn|attention)\.(?:attention\.)?(?:masked_)?bias|masked_bias|(?:\w*_)?(?:mask|tril)|IGNORE|"
    r"(?:\w*_)?inv_freq|freqs|freqs_(?:cis|cos|sin)|(?:rotary_|rope_)?(?:sin|cos)(?:_cached)?|alibi(?:_slopes)?|slopes|"
    r"position_ids|token_type_ids|relative_position_index|num_batches_tracked|n_averaged|steps?|global_step|"
    r"\w*tokens_seen|\w*_counter|_extra_state)"
)  # rotary tables, masks and counters that models register beside their weights
_PACKED = ("qweight", "qzeros", "SCB", "absmax", "quant_map", "nested_absmax", "_packed_params", "weight_packed")
_SCALES = ("_scale_inv", "_scale", "_scales", ".scale", ".scales", ".scale_inv")  # after the name, or its module's
_OWN = ("scale_weight", "weight_scale", "scale", "scales", "scale_inv", "weight_scale_inv")


def is_buffer(name: str) -> bool:
    """True for the name of a buffer: a mask, a table of rotary embeddings, a counter."""
    return _BUFFERS.fullmatch(name) is not None


def unreadable(tensor: Tensor, others: Mapping[str, Tensor]) -> str:
    """Reason for which the numbers of a tensor are no weights, or an empty string."""
    if is_buffer(tensor.name):
        return "buffer"
    packed = any(part in tensor.name for part in _PACKED) or any(
        f"{tensor.name}.{part}" in others for part in ("absmax", "quant_map")
    )
    if packed or (tensor.dtype.kind in "iub" and tensor.name.endswith("weight")):
        return PACKED
    if not tensor.floating:
        return f"stored as {tensor.stored}: no weight"
    if tensor.size == 0:
        return "empty"
    if tensor.stored.startswith("F8"):
        return _coded(tensor, others)
    return "scales of 8-bit codes" if _is_scale(tensor.name, others) else ""


def _coded(tensor: Tensor, others: Mapping[str, Tensor]) -> str:
    scale = next((name for name in _scale_names(tensor.name) if name in others), None)
    if scale is None:
        return "8-bit codes without a known scale: dequantize the model and save it again"
    return f"8-bit floats scaled block by block, by {quoted(scale)}; multiply the scales in and save it again"


def _scale_names(name: str) -> list[str]:
    """Names under which scales of a tensor of codes are stored."""
    module = name.rpartition(".")[0]
    return [name + ending for ending in _SCALES] + ([f"{module}.{own}" for own in _OWN] if module else [])


def _is_scale(name: str, others: Mapping[str, Tensor]) -> bool:
    """True for the scales of a tensor of 8-bit codes beside them."""
    module, _, last = name.rpartition(".")
    if "scale" not in last:
        return False
    codes = [name.removesuffix(ending) for ending in _SCALES if name.endswith(ending)] + [f"{module}.weight"]
    return any(code in others and others[code].stored.startswith("F8") for code in codes)


def no_role(tensor: Tensor, family: str) -> str:
    """Reason for which a readable tensor is left out."""
    if "norm" in tensor.name.lower() or re.search(r"\bln_?\w*\.", tensor.name):
        return "a norm that does not feed attention"
    return f"no name of a {family} layer; give it a role in a mapping to analyze it"
