"""Contents of checkpoints, remembered from one run to the next by path, size and time of their files."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from iclab.spectra.checkpoints.content import Content, content
from iclab.spectra.checkpoints.series import Checkpoint, Contents

_VERSION = 1  # raised when a content changes its meaning


@dataclass(frozen=True)
class Ledger:
    """A folder with the contents of checkpoints that were read before, one small file for each."""

    folder: Path

    def contents(
        self, checkpoint: Checkpoint, opened: Contents | None = None, *, rehash: bool = False
    ) -> dict[str, Content]:
        """The content of each tensor: remembered where its files are unchanged, read and noted otherwise."""
        known = None if rehash else _remembered(self._page(checkpoint), checkpoint)
        if known is not None:
            return known
        fresh = contents(opened or checkpoint.open())
        if checkpoint.files:
            self._write(checkpoint, fresh)
        return fresh

    def _page(self, checkpoint: Checkpoint) -> Path:
        return self.folder / f"{hashlib.blake2b(checkpoint.label.encode(), digest_size=16).hexdigest()}.json"

    def _write(self, checkpoint: Checkpoint, fresh: Mapping[str, Content]) -> None:
        """Whole or not at all."""
        noted = {name: asdict(one) for name, one in fresh.items()}
        page = {"version": _VERSION, "files": _stamps(checkpoint), "tensors": noted}
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".unfinished-", dir=self.folder)
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(page, file)
            os.replace(name, self._page(checkpoint))
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def contents(opened: Contents) -> dict[str, Content]:
    """The content of each tensor; one storage is read once, whatever names it has."""
    known: dict[Any, Content] = {}
    found = {}
    for name, tensor in opened.tensors.items():
        key = name if tensor.storage is None else tensor.storage
        known[key] = known.get(key) or content(tensor)
        found[name] = known[key]
    return found


def _stamps(checkpoint: Checkpoint) -> list[list[Any]]:
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in checkpoint.files]


def _remembered(page: Path, checkpoint: Checkpoint) -> dict[str, Content] | None:
    """What a page remembers, or None where the files have changed, it is damaged or there is none."""
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
