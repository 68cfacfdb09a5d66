"""Weights of a file written by torch.save, mapped; no code in the file is run."""

import argparse
import collections
import pathlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from iclab.files import installing
from iclab.numerics import require
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.safetensors_file import check_names
from iclab.spectra.checkpoints.series import Contents
from iclab.spectra.checkpoints.state_dicts import config_of_arguments, split
from iclab.spectra.checkpoints.steps import LATEST
from iclab.spectra.checkpoints.tensors import Skipped
from iclab.spectra.checkpoints.zips import MEMORY, checked_members, is_zip

__all__ = ["contents", "step_inside"]

_INERT = [argparse.Namespace, collections.Counter, pathlib.PosixPath, np.dtype, np.ndarray]
_HOLDERS = ("state_dict", "model", "model_state_dict", "module")
_STEPS = ("iter_num", "global_step", "global_steps", "step", "iteration")
_RESAVE = (
    "Load it where you trust it and save the weights alone: "
    "from safetensors.torch import save_file; save_file(model.state_dict(), 'model.safetensors')"
)


def contents(path: Path, *, memory_limit: int = MEMORY) -> Contents:
    """Contents of the file: tensors, skipped entries, the config and the step that it holds.

    Raises ImportError without torch, ValueError for a file that holds more than weights and plain values.
    """
    content, notes = _loaded(path, memory_limit)
    require(
        isinstance(content, dict),
        f"{quoted(path.name)} must hold a dictionary of tensors; it holds a {type(content).__name__}. {_RESAVE}",
    )
    state, skipped = _weights(content, path)
    check_names(path.name, [str(key) for key in state])
    kept, others = split(state)
    return Contents(kept, (*skipped, *others), _config(content), notes=notes, noted=_step(content))


def step_inside(path: Path, *, memory_limit: int = MEMORY) -> int | None:
    """Step that a training script saved in the file, or None. Raises as `contents` does."""
    content, _ = _loaded(path, memory_limit)
    return _step(content) if isinstance(content, dict) else None


def _loaded(path: Path, memory_limit: int) -> tuple[Any, tuple[str, ...]]:
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"{quoted(path.name)} needs PyTorch to be read: {installing('torch')}. Safetensors and .npz do not."
        ) from None
    mapped = is_zip(path)
    size = path.stat().st_size
    if mapped:
        checked_members(path, memory_limit=memory_limit)
    else:
        require(size <= memory_limit, f"{quoted(path.name)} has {size:,} bytes, above the limit of {memory_limit:,}.")
    notes = () if mapped else (f"{quoted(path.name)} is of the old format, which is read whole: {size:,} bytes",)
    try:
        with torch.serialization.safe_globals(_inert()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on the age of the format
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped), notes
    except Exception as error:  # a hostile file can fail in any way
        raise ValueError(_refusal(path, error)) from None


def _inert() -> list[Any]:
    """Inert classes, which run nothing; scalars and arrays of NumPy under the names of both major versions."""
    scalar, build = np._core.multiarray.scalar, np._core.multiarray._reconstruct  # type: ignore[attr-defined]
    kinds = [type(np.dtype(name)) for name in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")]
    named = [
        (piece, f"numpy.{core}.multiarray.{piece.__name__}")
        for core in ("core", "_core")
        for piece in (scalar, build)
    ]
    return [*_INERT, *kinds, *named]


def _refusal(path: Path, error: Exception) -> str:
    """Error text with the names of the classes in the file that are refused."""
    import torch

    try:
        with torch.serialization.safe_globals(_inert()):
            names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except Exception:  # whatever else is wrong with a hostile file
        names = []
    if names:
        listed = ", ".join(quoted(name) for name in names[:10])
        return f"{quoted(path.name)} must hold weights and plain values alone; it needs {listed}. {_RESAVE}"
    return f"{quoted(path.name)} must be a whole file of torch.save; {type(error).__name__}. {_RESAVE}"


def _weights(content: dict[Any, Any], path: Path) -> tuple[dict[str, Any], tuple[Skipped, ...]]:
    """Dictionary of tensors in the file, and its other entries."""
    holders = [key for key, value in content.items() if _is_state(value)]
    has_tensors = any(hasattr(value, "detach") for value in content.values())
    named = [key for key in _HOLDERS if key in holders]
    if named or (len(holders) == 1 and not has_tensors):
        chosen = named[0] if named else holders[0]
        reason = f"no weights: these are read from {quoted(str(chosen))}"
        return content[chosen], tuple(Skipped(str(key), reason) for key in content if key != chosen)
    require(
        has_tensors or not holders,
        f"{quoted(path.name)} must hold one dictionary of weights; it has "
        f"{', '.join(quoted(str(key)) for key in holders)}. {_RESAVE}",
    )
    return content, ()


def _is_state(value: Any) -> bool:
    return isinstance(value, dict) and any(hasattr(entry, "detach") for entry in value.values())


def _config(content: dict[Any, Any]) -> dict[str, Any]:
    """Config of the model that a training script saved with its weights: nanoGPT's model_args."""
    return config_of_arguments(content.get("model_args"))


def _step(content: dict[Any, Any]) -> int | None:
    """Step that a training script saved with the weights."""
    found = (_whole(content.get(key)) for key in _STEPS)
    return next((step for step in found if step is not None), None)


def _whole(value: Any) -> int | None:
    """A count that is stored as a number, or as an array or a tensor of one."""
    if isinstance(value, bool) or not isinstance(getattr(value, "shape", ()), tuple) or getattr(value, "shape", ()):
        return None
    try:
        number = value.item() if hasattr(value, "item") else value
    except (RuntimeError, ValueError):
        return None
    return number if type(number) is int and 0 <= number < LATEST else None
