"""Which files are the weights of a checkpoint, and which entries of a folder are checkpoints."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from iclab.numerics import require
from iclab.spectra.checkpoints.paths import bare_name, entries, json_file, regular_file
from iclab.spectra.checkpoints.steps import says_step, step_of
from iclab.spectra.names import quoted, relative
from iclab.spectra.tensors import Skipped

CANONICAL = (
    "model.safetensors.index.json",
    "model.safetensors",
    "adapter_model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
    "adapter_model.bin",
)
FORMATS = (".safetensors", ".npz", ".pt", ".pth", ".bin", ".ckpt")  # the first of twins is read
SUPPORTED = (
    "Files that are read: .safetensors (single or with model.safetensors.index.json), .pt .pth .bin .ckpt of torch, "
    ".npz of NumPy, and folders of these."
)
_NEVER = re.compile(
    r"training_args\.bin|optimizer.*\.(?:pt|bin)|scheduler\.(?:pt|bin)|rng_state.*\.pth|scaler\.pt|random_states.*\.pkl"
    r"|.*optim_states\.pt|.*\.distcp|\.metadata"
)
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.(?:safetensors|bin)$")


@dataclass(frozen=True)
class Found:
    """One checkpoint on disk: its name, its files, and shards that its index names but the folder lacks."""

    path: Path
    files: tuple[Path, ...]
    step: int | None
    missing: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = field(default=())


def series(path: Path, *, allow_partial: bool = False) -> tuple[list[Found], list[Skipped]]:
    """The checkpoints of a path in order of their steps, and the entries that are none, with reasons.

    Raises ValueError where nothing can be read, saying what could.
    """
    require(path.exists(), f"the path must exist; got {quoted(str(path))}. {SUPPORTED}")
    if not path.is_dir():
        return [_single(path, path)], []
    if (path / "snapshots").is_dir() and (path / "refs").is_dir():
        return _revisions(path, allow_partial)
    found, skipped = _folders_below(path, allow_partial)
    whole = _folder(path, path, allow_partial)
    found += _loose(path)
    if whole is not None and any(says_step(entry.path.name) for entry in found):
        skipped.append(Skipped(relative(whole.files[0], path), "weights beside a series: they state no step"))
    elif whole is not None:
        skipped += [Skipped(relative(entry.path, path), "beside the weights of the folder") for entry in found]
        found = [whole]
    require(
        bool(found),
        f"{quoted(path.name)} must hold weights; there are none. {SUPPORTED}"
        + ("".join(f"\n  {entry.name}: {entry.reason}" for entry in skipped[:20])),
    )
    return _in_order(found, skipped)


def _in_order(found: list[Found], skipped: list[Skipped]) -> tuple[list[Found], list[Skipped]]:
    if len(found) == 1:
        return found, skipped
    silent = [entry for entry in found if entry.step is None]
    skipped += [Skipped(entry.path.name, "its name states no step") for entry in silent]
    stepped = [entry for entry in found if entry.step is not None]
    names = ", ".join(quoted(entry.path.name) for entry in silent[:5])
    require(bool(stepped), f"names of checkpoints must state their steps; got {names}. Write step100, say.")
    return sorted(stepped, key=lambda entry: (entry.step, entry.path.name)), skipped


def _single(path: Path, root: Path) -> Found:
    regular_file(path, root)
    require(
        path.suffix.lower() in FORMATS and not _NEVER.fullmatch(path.name),
        f"{quoted(path.name)} is no file of weights that is read. {SUPPORTED}",
    )
    try:
        return Found(path, (path,), step_of(path.name))
    except ValueError:  # a lone file needs no step
        return Found(path, (path,), None)


def _folders_below(path: Path, allow_partial: bool) -> tuple[list[Found], list[Skipped]]:
    """The folders below that are checkpoints, each with the step its name states, and the others."""
    found, skipped = [], []
    for entry in entries(path, path):
        if entry.name.startswith(("tmp-", ".tmp", ".unfinished")):
            skipped.append(
                Skipped(relative(entry, path), "unfinished: it has the name of a checkpoint being written")
            )
        elif entry.is_dir():
            inner = _folder(entry, path, allow_partial)
            lone = _loose(entry, path) if inner is None else [inner]
            if len(lone) == 1:
                found.append(Found(entry, lone[0].files, step_of(entry.name), lone[0].missing))
            else:
                reason = "several files of weights: which is meant is not said" if lone else _nothing(entry)
                skipped.append(Skipped(relative(entry, path), reason))
    return found, skipped


def _nothing(folder: Path) -> str:
    if next(folder.glob("*.distcp"), None) is not None:
        return "distributed parts (.distcp): join them with torch.distributed.checkpoint and save one file"
    return "no weights in it"


def _loose(folder: Path, root: Path | None = None) -> list[Found]:
    """Files of weights that carry names of their own, twin formats once."""
    kept: dict[str, Path] = {}
    for entry in entries(folder, root or folder):
        known = entry.suffix.lower() in FORMATS and not _NEVER.fullmatch(entry.name)
        own = entry.name not in CANONICAL and not _SHARD.search(entry.name)
        if known and own and not entry.name.startswith(("tmp-", ".")) and not entry.is_dir():
            twin = kept.get(entry.stem)
            if twin is None or FORMATS.index(entry.suffix.lower()) < FORMATS.index(twin.suffix.lower()):
                kept[entry.stem] = entry
    for entry in kept.values():
        regular_file(entry, root or folder)
    if len(kept) == 1:
        return [_single(entry, root or folder) for entry in kept.values()]
    return [Found(entry, (entry,), step_of(entry.name)) for entry in kept.values()]


def _folder(folder: Path, root: Path, allow_partial: bool) -> Found | None:
    """The checkpoint that a folder is by the names of its files, or None."""
    name = next((name for name in CANONICAL if (folder / name).is_symlink() or (folder / name).exists()), None)
    if name is None:
        shards = sorted(entry.name for entry in entries(folder, root) if _SHARD.search(entry.name))
        require(
            not shards,
            f"shards must come with their index; {quoted(relative(folder, root))} has {len(shards)} shards such as "
            f"{quoted(shards[0] if shards else '')} and no model.safetensors.index.json. Is the download whole?",
        )
        return None
    regular_file(folder / name, root)
    if not name.endswith(".index.json"):
        return Found(folder, (folder / name,), _quiet_step(folder))
    return _sharded(folder, name, root, allow_partial)


def _sharded(folder: Path, name: str, root: Path, allow_partial: bool) -> Found:
    weight_map = json_file(folder / name, root).get("weight_map")
    require(isinstance(weight_map, dict) and bool(weight_map), f"{quoted(name)} must have a weight_map; it has none.")
    shards = sorted({bare_name(shard, name) for shard in weight_map.values()})  # type: ignore[union-attr]
    there = [shard for shard in shards if (folder / shard).is_symlink() or (folder / shard).exists()]
    missing = tuple(shard for shard in shards if shard not in there)
    require(
        allow_partial or not missing,
        f"every shard that {quoted(name)} names must be there; {', '.join(quoted(s) for s in missing[:5])} of "
        f"{len(shards)} is not. The download is not whole; allow_partial reads what is there.",
    )
    require(bool(there), f"no shard that {quoted(name)} names is there. The download is not whole.")
    for shard in there:
        regular_file(folder / shard, root)
    return Found(folder, tuple(folder / shard for shard in there), _quiet_step(folder), missing)


def _revisions(cache: Path, allow_partial: bool) -> tuple[list[Found], list[Skipped]]:
    """The revisions of one model in a hub cache; a branch such as step1000 states its step."""
    found, skipped = [], []
    for reference in sorted((cache / "refs").rglob("*")):
        if reference.is_dir():
            continue
        commit = bare_name(regular_file(reference, cache).read_text(errors="replace")[:200].strip(), reference.name)
        folder = cache / "snapshots" / commit
        inner = _folder(folder, cache, allow_partial) if folder.is_dir() else None
        if inner is None:
            skipped.append(Skipped(reference.name, "a revision without weights in this cache"))
        else:
            found.append(Found(reference, inner.files, _quiet_step(reference), inner.missing))
    require(bool(found), f"the hub cache {quoted(cache.name)} holds no weights. Download the revisions first.")
    return _in_order(found, skipped)


def _quiet_step(path: Path) -> int | None:
    """The step of a lone checkpoint, where its name has a word for it and one number."""
    try:
        return step_of(path.name) if says_step(path.name) else None
    except ValueError:
        return None
