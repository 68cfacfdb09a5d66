"""One checkpoint on disk, before it is opened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Found"]


@dataclass(frozen=True)
class Found:
    """One checkpoint on disk: its path and files, and what its index and its name promise.

    `trouble` is the reason for which it cannot be read; it then has no files and keeps its place in the series.
    """

    path: Path
    files: tuple[Path, ...]
    missing: tuple[str, ...] = ()  # shards that its index names but the folder lacks
    step: int | None = None
    named: int | None = None  # step that its name states, where a file of it holds another one
    promised: Mapping[str, str] = field(default_factory=dict)  # shard of each tensor, by its index
    trouble: str = ""
    beside: tuple["Found", ...] = ()  # the same weights in other files of the folder, which are not read
