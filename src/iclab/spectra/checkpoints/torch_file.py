"""Weights of a file written by torch.save: mapped, and without running anything that it holds."""

import argparse
import collections
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from iclab.numerics import require
from iclab.spectra.checkpoints.torch_arrays import split
from iclab.spectra.checkpoints.zips import MEMORY, checked_members
from iclab.spectra.names import quoted
from iclab.spectra.tensors import Skipped, Tensor

_INERT = [argparse.Namespace, collections.defaultdict, collections.Counter, collections.deque, np.dtype, np.ndarray]
_HOLDERS = ("state_dict", "model", "model_state_dict", "module")
_RESAVE = (
    "Load it where you trust it and save the weights alone: "
    "from safetensors.torch import save_file; save_file(model.state_dict(), 'model.safetensors')"
)


def tensors(
    path: Path, *, memory_limit: int = MEMORY
) -> tuple[dict[str, Tensor], tuple[Skipped, ...], dict[str, Any], tuple[str, ...]]:
    """The tensors by name, what is skipped, what the file says of its model, and notes.

    Raises ImportError without torch, ValueError for a file that holds more than weights and plain values.
    """
    content, notes = _loaded(path, memory_limit)
    require(
        isinstance(content, dict),
        f"{quoted(path.name)} must hold a dictionary of tensors; it holds a {type(content).__name__}. {_RESAVE}",
    )
    state, skipped = _weights(content, path)
    kept, others = split(state)
    return kept, (*skipped, *others), _config(content), notes


def _loaded(path: Path, memory_limit: int) -> tuple[Any, tuple[str, ...]]:
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"{quoted(path.name)} needs PyTorch to be read: pip install 'iclab[torch]'. Safetensors and .npz do not."
        ) from None
    mapped = zipfile.is_zipfile(path)
    size = path.stat().st_size
    if mapped:
        checked_members(path, memory_limit=memory_limit)
    else:
        require(size <= memory_limit, f"{quoted(path.name)} has {size:,} bytes, above the limit of {memory_limit:,}.")
    notes = () if mapped else (f"{quoted(path.name)} is of the old format, which is read whole: {size:,} bytes",)
    inert: list[Any] = [*_INERT, *_numpy_pieces()]
    try:
        with torch.serialization.safe_globals(inert):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped), notes
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(_refusal(path, error)) from None


def _numpy_pieces() -> list[Any]:
    """What a pickled scalar or array of NumPy is made of, under its names of either version."""
    scalar, build = np._core.multiarray.scalar, np._core.multiarray._reconstruct  # type: ignore[attr-defined]
    kinds = [type(np.dtype(name)) for name in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")]
    old = [(scalar, "numpy.core.multiarray.scalar"), (build, "numpy.core.multiarray._reconstruct")]
    return [scalar, build, *kinds, *old]


def _refusal(path: Path, error: Exception) -> str:
    """What the file holds besides weights, by the names of the classes alone."""
    import torch

    try:
        foreign = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except Exception:  # whatever else is wrong with a hostile file
        foreign = []
    known = {f"{piece.__module__}.{piece.__qualname__}" for piece in _INERT}
    names = [name for name in foreign if name not in known]
    if names:
        listed = ", ".join(quoted(name) for name in names[:10])
        return f"{quoted(path.name)} must hold weights and plain values alone; it needs {listed}. {_RESAVE}"
    return f"{quoted(path.name)} must be a whole file of torch.save; {type(error).__name__}. {_RESAVE}"


def _weights(content: dict[Any, Any], path: Path) -> tuple[dict[str, Any], tuple[Skipped, ...]]:
    """The dictionary of tensors in the file, and its other entries."""
    holders = [key for key, value in content.items() if _is_state(value)]
    tensors_here = any(hasattr(value, "detach") for value in content.values())
    named = [key for key in _HOLDERS if key in holders]
    if named or (len(holders) == 1 and not tensors_here):
        chosen = named[0] if named else holders[0]
        reason = f"beside the weights, which are read from {quoted(str(chosen))}"
        return content[chosen], tuple(Skipped(str(key), reason) for key in content if key != chosen)
    require(
        tensors_here or not holders,
        f"{quoted(path.name)} must say which of its dictionaries are the weights; it has "
        f"{', '.join(quoted(str(key)) for key in holders)}. {_RESAVE}",
    )
    return content, ()


def _is_state(value: Any) -> bool:
    return isinstance(value, dict) and any(hasattr(entry, "detach") for entry in value.values())


def _config(content: dict[Any, Any]) -> dict[str, Any]:
    """What a training script noted of the model beside its weights."""
    found: dict[str, Any] = {}
    sizes = content.get("model_args")
    sizes = vars(sizes) if isinstance(sizes, argparse.Namespace) else sizes
    if isinstance(sizes, dict) and {"n_layer", "n_head", "n_embd"} <= set(sizes):
        found = {**sizes, "model_type": "nanogpt"}
    step = next((content[key] for key in ("iter_num", "global_step", "step") if type(content.get(key)) is int), None)
    return found if step is None else {**found, "step": step}
