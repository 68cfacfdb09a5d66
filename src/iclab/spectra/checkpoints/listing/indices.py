"""Shards of a checkpoint, by the index beside them."""

from dataclasses import replace
from pathlib import Path

from iclab.numerics import require
from iclab.spectra.checkpoints import safetensors_file
from iclab.spectra.checkpoints.listing.found import Found
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.paths import bare_name, json_file, regular_file

__all__ = ["beside_index", "sharded"]

_ENDING = ".index.json"


def sharded(folder: Path, name: str, root: Path, allow_partial: bool) -> Found:
    """The checkpoint of an index: its shards, or other files of the folder that hold all that the index names.

    Raises ValueError for an index that is none, and for missing shards unless `allow_partial`.
    """
    promised = _weight_map(folder, name, root)
    shards = sorted(set(promised.values()))
    present = [shard for shard in shards if _there(folder / shard)]
    missing = tuple(shard for shard in shards if shard not in present)
    others = _holding(folder, set(promised), root) if missing else ()
    if others:
        return Found(folder, others, promised=promised)
    require(
        allow_partial or not missing,
        f"every shard that {quoted(name)} names must be there; {', '.join(quoted(s) for s in missing[:5])} of "
        f"{len(shards)} is not. The download is not whole; allow_partial reads what is there.",
    )
    require(bool(present), f"no shard that {quoted(name)} names is there. The download is not whole.")
    for shard in present:
        regular_file(folder / shard, root)
    return Found(folder, tuple(folder / shard for shard in present), missing, promised=promised)


def beside_index(whole: Found, root: Path) -> Found:
    """A checkpoint in one file, with what an index beside it promises: nothing where it cannot be read."""
    index = whole.files[0].with_name(whole.files[0].name + _ENDING)
    if not index.is_file():
        return whole
    try:
        return replace(whole, promised=_weight_map(index.parent, index.name, root))
    except (ValueError, OSError):
        return whole


def _weight_map(folder: Path, name: str, root: Path) -> dict[str, str]:
    found = json_file(folder / name, root).get("weight_map")
    require(isinstance(found, dict) and bool(found), f"{quoted(name)} must have a weight_map; it has none.")
    assert isinstance(found, dict)
    return {tensor: bare_name(shard, name) for tensor, shard in found.items()}


def _holding(folder: Path, names: set[str], root: Path) -> tuple[Path, ...]:
    """Files of another save that hold every tensor of these names, by their headers; none where they do not."""
    groups: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        group = "-of-" + file.name.rpartition("-of-")[2] if "-of-" in file.name else file.name
        groups.setdefault(group, []).append(file)
    for files in groups.values():
        held: set[str] = set()
        for file in files:
            tensors, skipped = safetensors_file.tensors(regular_file(file, root))
            held |= {*tensors, *(one.name for one in skipped)}
        if names <= held:
            return tuple(files)
    return ()


def _there(path: Path) -> bool:
    return path.is_symlink() or path.exists()
