"""Which files are the weights of a checkpoint, and which entries of a folder are checkpoints."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from iclab.numerics import require
from iclab.spectra.checkpoints.names import path_below, quoted, terminal
from iclab.spectra.checkpoints.paths import bare_name, entries, json_file, regular_file
from iclab.spectra.checkpoints.steps import says_step, step_of
from iclab.spectra.checkpoints.tensors import Skipped

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
    r"training_args\.bin|optimizer.*\.(?:pt|bin|safetensors)|scheduler\.(?:pt|bin)|rng_state.*\.pth|scaler\.pt|random_states.*\.pkl"
    r"|.*optim_states\.pt|.*\.distcp|\.metadata"
)
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.(?:safetensors|bin)$")


@dataclass(frozen=True)
class Found:
    """One checkpoint on disk: its path, its files, and shards that its index names but the folder lacks."""

    path: Path
    files: tuple[Path, ...]
    missing: tuple[str, ...] = ()
    step: int | None = None


def series(path: Path, *, allow_partial: bool = False) -> tuple[list[Found], list[Skipped]]:
    """The checkpoints of a path in order of their steps, and the entries that are none, with reasons.

    Raises ValueError where nothing can be read, saying what could.
    """
    require(path.exists(), f"the path must exist; got {quoted(str(path))}. {SUPPORTED}")
    if not path.is_dir():
        return _in_order([_file(path, path)], [])
    if (path / "snapshots").is_dir() and (path / "refs").is_dir():
        return _revisions(path, allow_partial)
    found, skipped = _folders_below(path, allow_partial)
    found += [_file(entry, path) for entry in _loose(path, path)]
    whole = _folder(path, path, allow_partial)
    if whole is not None:  # what else is here is a series only where it says so
        stepped = [entry for entry in found if says_step(entry.path.name)]
        beside = [entry for entry in found if entry not in stepped] if stepped else found
        skipped += [Skipped(path_below(entry.path, path), "beside the weights of the folder") for entry in beside]
        if stepped:
            skipped.append(Skipped(path_below(whole.files[0], path), "weights beside a series: they state no step"))
        found = stepped or [whole]
    require(
        bool(found),
        f"{quoted(path.name)} must hold weights; there are none. {SUPPORTED}"
        + ("".join(f"\n  {entry.name}: {entry.reason}" for entry in skipped[:20])),
    )
    return _in_order(found, skipped)


def _in_order(
    found: list[Found], skipped: list[Skipped], *, words_only: bool = False
) -> tuple[list[Found], list[Skipped]]:
    """Checkpoints by the steps that their names state; a lone one needs none.

    Raises ValueError with the candidates for a name that could state several.
    """
    if len(found) == 1:
        return [replace(found[0], step=_lone_step(found[0]))], skipped
    stepped, silent = [], []
    for entry in found:
        step = step_of(entry.path.name) if says_step(entry.path.name) or not words_only else None
        (silent if step is None else stepped).append(replace(entry, step=step))
    names = ", ".join(quoted(entry.path.name) for entry in silent[:5])
    require(bool(stepped), f"names of checkpoints must state their steps; got {names}. Write step100, say.")
    left = [Skipped(terminal(entry.path.name), "its name states no step") for entry in silent]
    return sorted(stepped, key=lambda entry: (entry.step, entry.path.name)), [*skipped, *left]


def _lone_step(entry: Found) -> int | None:
    """The step of a lone checkpoint: of a file by any number, of a folder by a word for it."""
    try:
        return step_of(entry.path.name) if says_step(entry.path.name) or not entry.path.is_dir() else None
    except ValueError:
        return None


def _file(path: Path, root: Path) -> Found:
    regular_file(path, root)
    require(
        path.suffix.lower() in FORMATS and not _NEVER.fullmatch(path.name),
        f"{quoted(path.name)} is no file of weights that is read. {SUPPORTED}",
    )
    return Found(path, (path,))


def _folders_below(path: Path, allow_partial: bool) -> tuple[list[Found], list[Skipped]]:
    """The folders below that are checkpoints, and the others with the reason."""
    found, skipped = [], []
    for entry in entries(path, path):
        if entry.name.startswith(("tmp-", ".tmp", ".unfinished")):
            skipped.append(
                Skipped(path_below(entry, path), "unfinished: it has the name of a checkpoint being written")
            )
        elif entry.is_dir():
            inner = _folder(entry, path, allow_partial)
            files = _loose(entry, path) if inner is None else []
            if inner is not None or len(files) == 1:
                found.append(inner or Found(entry, (_file(files[0], path).path,)))
            else:
                reason = "several files of weights: which is meant is not said" if files else _nothing(entry)
                skipped.append(Skipped(path_below(entry, path), reason))
    return found, skipped


def _nothing(folder: Path) -> str:
    if next(folder.glob("*.distcp"), None) is not None:
        return "distributed parts (.distcp): join them with torch.distributed.checkpoint and save one file"
    return "no weights in it"


def _loose(folder: Path, root: Path) -> list[Path]:
    """Files of weights that carry names of their own, twin formats once."""
    kept: dict[str, Path] = {}
    for entry in entries(folder, root):
        known = entry.suffix.lower() in FORMATS and not _NEVER.fullmatch(entry.name)
        own = entry.name not in CANONICAL and not _SHARD.search(entry.name)
        if known and own and not entry.name.startswith(("tmp-", ".")) and not entry.is_dir():
            twin = kept.get(entry.stem)
            if twin is None or FORMATS.index(entry.suffix.lower()) < FORMATS.index(twin.suffix.lower()):
                kept[entry.stem] = entry
    return list(kept.values())


def _folder(folder: Path, root: Path, allow_partial: bool) -> Found | None:
    """The checkpoint that a folder is by the names of its files, or None."""
    name = next((name for name in CANONICAL if (folder / name).is_symlink() or (folder / name).exists()), None)
    if name is None:
        shards = sorted(entry.name for entry in entries(folder, root) if _SHARD.search(entry.name))
        require(
            not shards,
            f"shards must come with their index; {quoted(path_below(folder, root))} has {len(shards)} shards such as "
            f"{quoted(shards[0] if shards else '')} and no model.safetensors.index.json. Is the download whole?",
        )
        return None
    regular_file(folder / name, root)
    if not name.endswith(".index.json"):
        return Found(folder, (folder / name,))
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
    return Found(folder, tuple(folder / shard for shard in there), missing)


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
            skipped.append(Skipped(terminal(reference.name), "a revision without weights in this cache"))
        else:
            found.append(Found(reference, inner.files, inner.missing))
    require(bool(found), f"the hub cache {quoted(cache.name)} holds no weights. Download the revisions first.")
    return _in_order(found, skipped, words_only=True)
