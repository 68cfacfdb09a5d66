"""Series of checkpoints from a path, or from state dicts in memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from iclab.numerics import require, whole_number
from iclab.spectra.checkpoints import folders, npz_file, safetensors_file, state_dicts
from iclab.spectra.checkpoints.listing import Found
from iclab.spectra.checkpoints.names import path_below, quoted
from iclab.spectra.checkpoints.paths import json_file, regular_file
from iclab.spectra.checkpoints.series import Checkpoint, Contents, Series, one_in
from iclab.spectra.checkpoints.steps import LATEST
from iclab.spectra.checkpoints.tensors import PARTS, Tensor
from iclab.spectra.checkpoints.zips import MEMORY

__all__ = ["of_states", "read"]


def read(path: str | Path, *, every: int = 1, allow_partial: bool = False, memory_limit: int = MEMORY) -> Series:
    """Checkpoints of a folder, or of one file, in order of their steps; no weights are read.

    Every `every`-th is kept, and always the last. With `allow_partial` a checkpoint that lacks shards is read
    without them. `memory_limit` bounds the bytes of a file that cannot be mapped. The step inside a torch file goes
    before the one in its name. An entry that cannot be read keeps its place, and says why when it is opened.

    Raises ValueError, with the reason and the formats that are read, for a path without checkpoints.
    """
    root = Path(path)
    whole_number("every", every)
    found, skipped = folders.series(root, allow_partial=allow_partial)
    checkpoints = tuple(_checkpoint(entry, root, memory_limit) for entry in one_in(every, found))
    return Series(checkpoints, tuple(skipped), root)


def of_states(
    states: Sequence[Mapping[Any, Any]],
    steps: Sequence[int] | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    adapter: Mapping[str, Any] | None = None,
) -> Series:
    """Series of state dicts in memory, of NumPy arrays or PyTorch tensors, by their steps.

    `config` holds the entries of a config.json, `adapter` those of an adapter_config.json.

    Raises ValueError unless there is one step for each.
    """
    numbers = list(range(len(states)) if steps is None else steps)
    require(len(states) > 0, "states must not be empty. Give one dictionary of arrays for each checkpoint.")
    require(
        len(numbers) == len(states),
        f"steps must have one entry for each state; got {len(numbers)} steps and {len(states)} states.",
    )
    for step in numbers:
        require(whole_number("steps", step, least=0) < LATEST, f"steps must be below 2^53; got {step}.")
    return Series(
        tuple(
            Checkpoint(step, f"step{step}", partial(_of_state, dict(state), dict(config or {}), adapter))
            for step, state in zip(numbers, states, strict=True)
        )
    )


def _of_state(state: dict[Any, Any], config: dict[str, Any], adapter: Mapping[str, Any] | None) -> Contents:
    tensors, skipped = state_dicts.split(state)
    return Contents(tensors, skipped, config, adapter)


def _checkpoint(found: Found, root: Path, memory_limit: int) -> Checkpoint:
    opened, noted = partial(_contents, found, root, memory_limit), None
    try:
        noted = _noted_step(found, root)
    except (ValueError, OSError) as error:  # of one entry; the others are read
        opened = partial(_contents, replace(found, trouble=str(error)), root, memory_limit)
    step = next((one for one in (found.step, noted) if one is not None), 0)
    label = path_below(found.path, root)
    beside = tuple(
        Checkpoint(step, path_below(one.path, root), partial(_contents, one, root, memory_limit), one.files)
        for one in found.beside
    )
    return Checkpoint(step, label, opened, found.files, found.missing, noted, found.named, beside)


def _noted_step(found: Found, root: Path) -> int | None:
    """Step in the trainer_state.json of a folder."""
    if not found.files or not found.path.is_dir():
        return None
    state = found.files[0].parent / "trainer_state.json"
    step = json_file(state, root).get("global_step") if state.is_file() else None
    return step if type(step) is int and 0 <= step < LATEST else None


def _contents(found: Found, root: Path, memory_limit: int) -> Contents:
    """Contents of all files of one checkpoint.

    Raises ValueError for one with a trouble, when two of its files hold one name, and for parts of ZeRO-3.
    """
    require(not found.trouble, found.trouble)
    tensors: dict[str, Tensor] = {}
    places: dict[str, str] = {}
    parts = []
    for file in found.files:
        regular_file(file, root)  # again: it may have been changed since the folder was listed
        part = _part(file, memory_limit)
        twice = next((name for name in part.tensors if name in tensors), None)
        require(
            twice is None,
            f"shards must share no tensor; {quoted(twice or '')} is in two of {path_below(found.path, root)}.",
        )
        tensors |= part.tensors
        places |= dict.fromkeys([*part.tensors, *(one.name for one in part.skipped)], file.name)
        parts.append(part)
    _require_gathered(tensors, path_below(found.path, root))
    notes = [f"shard {quoted(shard)} is missing: its tensors are not analyzed" for shard in found.missing]
    return Contents(
        tensors,
        tuple(entry for part in parts for entry in part.skipped),
        {key: value for part in parts for key, value in part.config.items()} | _json_near("config.json", found, root),
        _json_near("adapter_config.json", found, root) or None,
        (*notes, *_stale(found, places), *(note for part in parts for note in part.notes)),
        parts[0].noted,
        tuple(name for name, shard in found.promised.items() if name not in places and shard not in found.missing),
        _misplaced(found, places),
    )


def _require_gathered(tensors: Mapping[str, Tensor], label: str) -> None:
    """Raise ValueError where most weights are empty, as ZeRO-3 leaves them when parameters are not gathered."""
    floating = [tensor for tensor in tensors.values() if tensor.floating]
    empty = [tensor.name for tensor in floating if tensor.size == 0]
    require(
        2 * len(empty) < max(len(floating), 1),
        f"{quoted(label)} must hold weights; {len(empty)} of its {len(floating)} tensors are empty, as in {PARTS}.",
    )


def _stale(found: Found, places: Mapping[str, str]) -> Iterator[str]:
    """Note on an index that is of another save than the files, although they hold all that it names."""
    other = sum(places.get(name, shard) != shard for name, shard in found.promised.items())
    unnamed = sum(name not in found.promised for name in places) if found.promised else 0
    if other or unnamed:
        yield (
            f"the index of {quoted(found.path.name)} is of another save: {other} tensors lie in other files than it "
            f"says, and it leaves {unnamed} out; the files are read"
        )


def _misplaced(found: Found, places: Mapping[str, str]) -> tuple[str, ...]:
    """Tensors that the index places in a shard that is read and that does not hold them."""
    read = {file.name for file in found.files}
    return tuple(name for name, shard in found.promised.items() if shard in read and places.get(name, shard) != shard)


def _json_near(name: str, found: Found, root: Path) -> dict[str, Any]:
    """A JSON file in the folder of the weights, or else in that of the series; empty where there is none."""
    candidates = (found.files[0].parent / name, root / name)
    path = next((candidate for candidate in candidates if candidate.is_symlink() or candidate.exists()), None)
    return {} if path is None else json_file(path, root)


def _part(path: Path, memory_limit: int) -> Contents:
    """Contents of one file."""
    if path.suffix.lower() == ".safetensors":
        return Contents(*safetensors_file.tensors(path))
    if path.suffix.lower() == ".npz":
        return Contents(*npz_file.tensors(path, memory_limit=memory_limit))
    from iclab.spectra.checkpoints import torch_file

    return torch_file.contents(path, memory_limit=memory_limit)
