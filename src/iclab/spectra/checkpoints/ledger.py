"""Contents of checkpoints, remembered from one run to the next by path, size and time of their files."""

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
    """A JSON file with the contents of checkpoints that were read before."""

    path: Path

    def contents(
        self, checkpoint: Checkpoint, opened: Contents | None = None, *, rehash: bool = False
    ) -> dict[str, Content]:
        """The content of each tensor: remembered where its files are unchanged, read and noted otherwise."""
        entries = self._entries()
        kept = entries.get(checkpoint.label)
        known = None if rehash else _remembered(kept, checkpoint)
        if known is not None:
            return known
        fresh = contents(opened or checkpoint.open())
        if checkpoint.files:
            noted = {name: asdict(one) for name, one in fresh.items()}
            entries[checkpoint.label] = {"files": _stamps(checkpoint), "tensors": noted}
            self._write(entries)
        return fresh

    def _entries(self) -> dict[str, Any]:
        try:
            found = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        whole = isinstance(found, dict) and found.get("version") == _VERSION
        return found["checkpoints"] if whole and isinstance(found.get("checkpoints"), dict) else {}

    def _write(self, entries: Mapping[str, Any]) -> None:
        """Whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".unfinished-", dir=self.path.parent)
        try:
            with os.fdopen(handle, "w") as file:
                json.dump({"version": _VERSION, "checkpoints": entries}, file)
            os.replace(name, self.path)
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


def _remembered(kept: Any, checkpoint: Checkpoint) -> dict[str, Content] | None:
    """What an entry remembers, or None where the files have changed or the entry is damaged."""
    if not checkpoint.files or not isinstance(kept, dict) or kept.get("files") != _stamps(checkpoint):
        return None
    names = {field.name for field in fields(Content)}
    try:
        return {name: _content(entry, names) for name, entry in kept["tensors"].items()}
    except (KeyError, TypeError, AttributeError):
        return None


def _content(entry: Mapping[str, Any], names: set[str]) -> Content:
    if set(entry) != names:
        raise KeyError("fields")
    where = entry["first_nonfinite"]
    return Content(**{**entry, "shape": tuple(entry["shape"]), "first_nonfinite": where and tuple(where)})
