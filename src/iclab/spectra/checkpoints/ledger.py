"""A cache of the contents of checkpoints, by path, size, times and number of their files."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from iclab.files import written_whole
from iclab.spectra.checkpoints.content import Content, content
from iclab.spectra.checkpoints.series import Checkpoint, Contents

__all__ = ["Ledger", "contents"]

_VERSION = 2  # raised when a content changes its meaning


@dataclass(frozen=True)
class Ledger:
    """A folder of cached contents, one small file for each checkpoint."""

    folder: Path

    def contents(
        self, checkpoint: Checkpoint, opened: Contents | None = None, *, rehash: bool = False
    ) -> dict[str, Content]:
        """Content of each tensor: from the cache where files are unchanged, else read and cached."""
        cached = None if rehash else _cached(self._page(checkpoint), checkpoint)
        if cached is not None and (opened is None or set(cached) == set(opened.tensors)):
            return cached
        fresh = contents(opened or checkpoint.open())
        if checkpoint.files:
            self._write(checkpoint, fresh)
        return fresh

    def _page(self, checkpoint: Checkpoint) -> Path:
        return self.folder / f"{hashlib.blake2b(checkpoint.label.encode(), digest_size=16).hexdigest()}.json"

    def _write(self, checkpoint: Checkpoint, fresh: Mapping[str, Content]) -> None:
        """Write atomically."""
        noted = {name: asdict(one) for name, one in fresh.items()}
        page = {"version": _VERSION, "files": _stamps(checkpoint), "tensors": noted}
        with written_whole(self._page(checkpoint)) as file:
            file.write_text(json.dumps(page))


def contents(opened: Contents) -> dict[str, Content]:
    """Content of each tensor; storage shared by several names is read once."""
    by_storage: dict[Any, Content] = {}
    found = {}
    for name, tensor in opened.tensors.items():
        key = name if tensor.storage is None else tensor.storage
        by_storage[key] = by_storage.get(key) or content(tensor)
        found[name] = by_storage[key]
    return found


def _stamps(checkpoint: Checkpoint) -> list[list[Any]]:
    """Name, size, times and number of each file. A copy can keep size and time, but no time of its last change."""
    found = [(file.name, file.stat()) for file in checkpoint.files]
    return [[name, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_dev] for name, s in found]


def _cached(page: Path, checkpoint: Checkpoint) -> dict[str, Content] | None:
    """Cached contents, or None where the files have changed or the page is missing or damaged."""
    if not checkpoint.files:
        return None
    names = {field.name for field in fields(Content)}
    try:
        kept = json.loads(page.read_text())
        if kept["version"] != _VERSION or kept["files"] != _stamps(checkpoint):
            return None
        return {name: _content(entry, names) for name, entry in kept["tensors"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _content(entry: Mapping[str, Any], names: set[str]) -> Content:
    if set(entry) != names:
        raise KeyError("fields")
    where = entry["first_nonfinite"]
    return Content(**{**entry, "shape": tuple(entry["shape"]), "first_nonfinite": where and tuple(where)})
