"""Checkpoints of a folder: the files that hold their weights, and the entries that are none."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from iclab.numerics import require
from iclab.spectra.checkpoints.listing import Found, beside_index, in_order, sharded
from iclab.spectra.checkpoints.names import path_below, quoted, terminal
from iclab.spectra.checkpoints.paths import bare_name, entries, inside, regular_file
from iclab.spectra.checkpoints.steps import says_step
from iclab.spectra.checkpoints.tensors import PARTS, Skipped

__all__ = ["CANONICAL", "FORMATS", "SUPPORTED", "series"]

CANONICAL = (
    "model.safetensors",
    "model.safetensors.index.json",
    "adapter_model.safetensors",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "adapter_model.bin",
)  # the first of them is read, as other libraries do: an index beside a whole file is of an older save
FORMATS = (
    ".safetensors",
    ".npz",
    ".pt",
    ".pth",
    ".bin",
    ".ckpt",
)  # of one checkpoint in two formats the first is read
SUPPORTED = (
    "Files that are read: .safetensors (single or with model.safetensors.index.json), .pt .pth .bin .ckpt of torch, "
    ".npz of NumPy, and folders of these."
)
_NEVER = re.compile(
    r"training_args\.bin|optimizer.*\.(?:pt|bin|safetensors)|scheduler\.(?:pt|bin)|rng_state.*\.pth|scaler\.pt|random_states.*\.pkl"
    r"|.*optim_states\.pt|.*\.distcp|\.metadata"
)
_JOIN = "join them into one file with torch.distributed.checkpoint.format_utils.dcp_to_torch_save"
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.(?:safetensors|bin)$")


def series(path: Path, *, allow_partial: bool = False) -> tuple[list[Found], list[Skipped]]:
    """Checkpoints of a path in order of their steps, and the entries that are none, with reasons.

    An entry that cannot be read stays in its place with its trouble. Raises ValueError, listing the formats that are
    read, where there is no checkpoint, and the trouble where all entries have one.
    """
    require(path.exists(), f"the path must exist; got {quoted(str(path))}. {SUPPORTED}")
    if not path.is_dir():
        return in_order([_file(path, path)], [])
    if (path / "snapshots").is_dir() and (path / "refs").is_dir():
        return _revisions(path, allow_partial)
    found, skipped = _folders_below(path, allow_partial)
    found += [_loose_one(entry, path) for entry in _loose(path, path)]
    stepped = [entry for entry in found if says_step(entry.path.name)]
    whole = _tried(path, lambda folder: _folder(folder, path, allow_partial))
    if whole is not None and not (whole.trouble and stepped):  # others are a series where their names state steps
        others = [entry for entry in found if entry not in stepped] if stepped else found
        skipped += [Skipped(path_below(entry.path, path), "beside the weights of the folder") for entry in others]
        if stepped:
            skipped.append(Skipped(path_below(whole.files[0], path), "weights beside a series: they state no step"))
        found = stepped or [whole]
    elif whole is not None:
        skipped.append(Skipped(terminal(path.name), f"weights beside a series: {whole.trouble}"))
    require(
        bool(found),
        f"{quoted(path.name)} must hold weights; there are none: {_nothing(path, path)}. {SUPPORTED}"
        + ("".join(f"\n  {entry.name}: {entry.reason}" for entry in skipped[:20])),
    )
    return in_order(found, skipped)


def _tried(entry: Path, make: Callable[[Path], Found | None]) -> Found | None:
    """The finding of `make` in an entry, or the entry with its trouble."""
    try:
        return make(entry)
    except (ValueError, OSError) as error:
        return Found(entry, (), trouble=str(error))


def _file(path: Path, root: Path) -> Found:
    regular_file(path, root)
    require(
        path.suffix.lower() in FORMATS and not _NEVER.fullmatch(path.name),
        f"{quoted(path.name)} is no file of weights that is read. {SUPPORTED}",
    )
    return Found(path, (path,))


def _folders_below(path: Path, allow_partial: bool) -> tuple[list[Found], list[Skipped]]:
    """Subfolders that are checkpoints, and the other ones with reasons."""
    found, skipped = [], []
    for entry in entries(path, path):
        if entry.name.startswith(("tmp-", ".tmp", ".unfinished")):
            skipped.append(
                Skipped(path_below(entry, path), "unfinished: it has the name of a checkpoint being written")
            )
        elif entry.is_dir() or (entry.is_symlink() and not entry.exists() and says_step(entry.name)):
            inner = _tried(entry, lambda entry: _below(entry, path, allow_partial))
            if inner is None:
                skipped.append(Skipped(path_below(entry, path), _nothing(entry, path)))
            else:
                found.append(inner)
                skipped += _unread(entry, path, inner)
    return found, skipped


def _unread(folder: Path, root: Path, read: Found) -> list[Skipped]:
    """Other files of weights in the folder of a checkpoint, each under its bare name."""
    known = {*read.files, *(file for other in read.beside for file in other.files)}
    known |= {file.with_suffix(ending) for file in known for ending in FORMATS}
    others = [] if read.trouble else [one for one in _loose(folder, root) if one not in known]
    return [Skipped(terminal(one.name), "beside the weights of a checkpoint, and not read") for one in others]


def _below(entry: Path, root: Path, allow_partial: bool) -> Found | None:
    """The checkpoint in a subfolder, under a canonical name or as its only file of weights."""
    require(entry.exists(), f"{quoted(path_below(entry, root))} must be a folder; it is a link that leads nowhere.")
    inner = _folder(entry, root, allow_partial)
    files = _loose(entry, root) if inner is None else []
    return inner or (replace(_loose_one(files[0], root), path=entry) if len(files) == 1 else None)


def _loose(folder: Path, root: Path) -> list[Path]:
    """Files of weights under other names than the canonical ones; of two formats of one name the first."""
    kept: dict[str, Path] = {}
    for entry in entries(folder, root):
        if _of_weights(entry):
            other = kept.get(entry.stem)
            if other is None or FORMATS.index(entry.suffix.lower()) < FORMATS.index(other.suffix.lower()):
                kept[entry.stem] = entry
    return list(kept.values())


def _of_weights(entry: Path) -> bool:
    """True for a file of weights under a name of its own."""
    known = entry.suffix.lower() in FORMATS and not _NEVER.fullmatch(entry.name)
    own = entry.name not in CANONICAL and not _SHARD.search(entry.name)
    return known and own and not entry.name.startswith(("tmp-", ".")) and not entry.is_dir()


def _loose_one(entry: Path, root: Path) -> Found:
    """A file of weights, with those of its name in other formats; with its trouble where it cannot be read."""
    try:
        alike = [one for one in entries(entry.parent, root) if one.stem == entry.stem and one != entry]
        beside = tuple(Found(one, (one,)) for one in alike if _of_weights(one))
        return replace(_file(entry, root), beside=beside)
    except (ValueError, OSError) as error:
        return Found(entry, (), trouble=str(error))


def _nothing(folder: Path, root: Path) -> str:
    """Reason for which a folder is no checkpoint, with the way to read what it holds."""
    if len(_loose(folder, root)) > 1:
        return "several files of weights, none of them named as the checkpoint"
    below = [entry for entry in entries(folder, root) if entry.is_dir() and inside(entry.resolve(), root)]
    for place in (folder, *below):
        if next(place.glob("*.distcp"), None) is not None:
            where = "" if place == folder else f" in {quoted(path_below(place, root))}"
            return f"distributed parts (.distcp){where}: {_JOIN}"
    if any(next(place.glob("*zero_pp_rank_*"), None) is not None for place in (folder, *below)):
        return f"{PARTS}: run it in {quoted(path_below(folder, root))} and read what it writes"
    nested = [entry for entry in below if any(_there(entry / name) for name in CANONICAL) or _loose(entry, root)]
    if nested and folder != root:
        first = quoted(path_below(nested[0], root))
        return f"a folder of {len(nested)} checkpoints itself, {first} the first: give the path of that folder"
    return "no weights in it"


def _folder(folder: Path, root: Path, allow_partial: bool) -> Found | None:
    """The checkpoint in a folder, by the names of its files, or None."""
    name = next((name for name in CANONICAL if _there(folder / name)), None)
    if name is None:
        shards = sorted(entry.name for entry in entries(folder, root) if _SHARD.search(entry.name))
        require(
            not shards,
            f"shards must come with their index; {quoted(path_below(folder, root))} has {len(shards)} shards such as "
            f"{quoted(shards[0] if shards else '')} and no model.safetensors.index.json. Is it still being "
            "written, or is the download not whole?",
        )
        return None
    return replace(_form(folder, name, root, allow_partial), beside=tuple(_others(folder, name, root)))


def _form(folder: Path, name: str, root: Path, allow_partial: bool) -> Found:
    """Weights under a canonical name, with the shards of an index."""
    regular_file(folder / name, root)
    if name.endswith(".index.json"):
        return sharded(folder, name, root, allow_partial)
    return beside_index(Found(folder, (folder / name,)), root)


def _others(folder: Path, name: str, root: Path) -> Iterator[Found]:
    """The same weights under other canonical names; an index whose shards are gone is of an older save."""
    for other in CANONICAL:
        alike = other.startswith("adapter") == name.startswith("adapter")
        if other != name and alike and _there(folder / other):
            try:
                yield replace(_form(folder, other, root, allow_partial=False), path=folder / other)
            except (ValueError, OSError) as error:
                if not other.endswith(".index.json"):
                    yield Found(folder / other, (), trouble=str(error))


def _there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _revisions(cache: Path, allow_partial: bool) -> tuple[list[Found], list[Skipped]]:
    """The revisions of one model in a hub cache; a branch such as step1000 states its step."""
    found, skipped = [], []
    for reference in sorted((cache / "refs").rglob("*")):
        if reference.is_dir():
            continue
        inner = _tried(reference, lambda reference: _revision(reference, cache, allow_partial))
        if inner is None:
            skipped.append(Skipped(terminal(reference.name), "a revision without weights in this cache"))
        else:
            found.append(replace(inner, path=reference))
    require(bool(found), f"the hub cache {quoted(cache.name)} holds no weights. Download the revisions first.")
    return in_order(found, skipped, words_only=True)


def _revision(reference: Path, cache: Path, allow_partial: bool) -> Found | None:
    """The checkpoint of the commit that a branch names."""
    commit = bare_name(regular_file(reference, cache).read_text(errors="replace")[:200].strip(), reference.name)
    folder = cache / "snapshots" / commit
    return _folder(folder, cache, allow_partial) if folder.is_dir() else None
