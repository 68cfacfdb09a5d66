"""Entries of a state dict of PyTorch, NumPy or JAX, as arrays that share its memory."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from iclab.spectra.checkpoints.tensors import PACKED, Skipped, Tensor, no_numbers, of_array

__all__ = ["config_of_arguments", "plain", "split"]


def plain(given: Any) -> dict[str, Any]:
    """Entries of a mapping, or attributes of an object that holds settings; empty for anything else."""
    if isinstance(given, Mapping):
        return {str(key): value for key, value in given.items()}
    return dict(vars(given)) if hasattr(given, "__dict__") else {}


def config_of_arguments(given: Any) -> dict[str, Any]:
    """Config of a model of nanoGPT from the arguments of its class; empty for other ones."""
    found = plain(given)
    return {**found, "model_type": "nanogpt"} if {"n_layer", "n_head", "n_embd"} <= set(found) else {}


def split(state: dict[Any, Any]) -> tuple[dict[str, Tensor], tuple[Skipped, ...]]:
    """Tensors of a state dict, and the entries that are none."""
    kept, skipped = {}, []
    for key, value in state.items():
        entry = _entry(key, value) if isinstance(key, str) else Skipped(str(key), "its name is no text")
        if isinstance(entry, Tensor):
            kept[key] = entry
        else:
            skipped.append(entry)
    return kept, tuple(skipped)


def _entry(name: str, value: Any) -> Tensor | Skipped:
    if hasattr(value, "detach"):
        reason = _unreadable(value)
        return Skipped(name, reason) if reason else _tensor(name, value)
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        array = np.asarray(value)
        reason = no_numbers(array.dtype)
        return Skipped(name, reason) if reason else of_array(name, array)
    return Skipped(name, PACKED if "_packed_params" in name else f"a {type(value).__name__}, no tensor")


def _unreadable(value: Any) -> str:
    import torch

    if value.is_quantized:
        return PACKED
    if value.layout is not torch.strided:
        return "a sparse tensor: save it dense"
    if value.device.type == "meta":
        return "a tensor on the meta device: it has no numbers"
    if value.is_complex():
        return "complex numbers"
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        return "an expanded tensor: its shape has more numbers than its storage"
    return ""


def _tensor(name: str, value: Any) -> Tensor:
    """A PyTorch tensor; one on another device is copied when it is read."""
    import torch

    formats = {
        torch.bfloat16: (torch.int16, np.dtype(ml_dtypes.bfloat16)),
        torch.float8_e4m3fn: (torch.uint8, np.dtype(ml_dtypes.float8_e4m3fn)),
        torch.float8_e5m2: (torch.uint8, np.dtype(ml_dtypes.float8_e5m2)),
    }
    carrier, dtype = formats.get(value.dtype, (None, None))

    def load() -> np.ndarray:
        local = value.detach().cpu()
        return local.numpy() if carrier is None else local.view(carrier).numpy().view(dtype)

    kind = dtype if dtype is not None else torch.empty(0, dtype=value.dtype).numpy().dtype
    storage = (str(value.device), value.untyped_storage().data_ptr(), value.storage_offset(), value.stride())
    return Tensor(name, tuple(value.shape), kind, load, (*storage, tuple(value.shape)))
