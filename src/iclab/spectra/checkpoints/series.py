"""A series of checkpoints, opened one at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from iclab.numerics import whole_number
from iclab.spectra.checkpoints.tensors import Skipped, Tensor

__all__ = ["Checkpoint", "Contents", "Series", "few", "one_in"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Contents:
    """Contents of one checkpoint: tensors by name, read on demand, and skipped entries."""

    tensors: Mapping[str, Tensor]
    skipped: tuple[Skipped, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)  # of the model, from its files
    adapter: Mapping[str, Any] | None = None  # config of a low-rank adapter
    notes: tuple[str, ...] = ()
    noted: int | None = None  # step written inside a file
    absent: tuple[str, ...] = ()  # tensors that the index promises and no shard holds
    misplaced: tuple[str, ...] = ()  # tensors that another shard holds than the index says

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors, shared storage counted once."""
        return sum({tensor.storage or name: tensor.nbytes for name, tensor in self.tensors.items()}.values())


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint; nothing of it is kept in memory, before or after it is opened."""

    step: int
    label: str  # path below the one that was read
    opened: Callable[[], Contents] = field(repr=False, compare=False)
    files: tuple[Path, ...] = ()
    missing: tuple[str, ...] = ()  # shards that the index names and the folder lacks
    noted: int | None = None  # step that its trainer wrote next to its files
    named: int | None = None  # step that its name states, where its file holds another one
    beside: tuple["Checkpoint", ...] = ()  # the same weights in other files of the folder, which are not read

    def open(self) -> Contents:
        """Contents of the checkpoint, from the headers of its files alone."""
        return self.opened()


@dataclass(frozen=True, repr=False)
class Series:
    """Checkpoints in order of their steps, and the entries of the folder that are none."""

    checkpoints: tuple[Checkpoint, ...]
    skipped: tuple[Skipped, ...] = ()
    root: Path | None = None

    def __repr__(self) -> str:
        below = f" below {self.root}" if self.root else ""
        left = f"; {len(self.skipped)} entries left out" if self.skipped else ""
        return f"Series of {len(self)} checkpoints{below}: steps {few(self.steps)}{left}"

    def __len__(self) -> int:
        return len(self.checkpoints)

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self.checkpoints)

    def __getitem__(self, index: int) -> Checkpoint:
        return self.checkpoints[index]

    def thinned(self, every: int) -> "Series":
        """The series with one checkpoint in `every`, and always the last.

        Raises ValueError unless `every` is a whole number >= 1.
        """
        return replace(self, checkpoints=tuple(one_in(every, self.checkpoints)))

    @property
    def steps(self) -> tuple[int, ...]:
        """Training step of each checkpoint."""
        return tuple(checkpoint.step for checkpoint in self.checkpoints)

    @property
    def nbytes(self) -> int:
        """Bytes on disk that a full pass reads."""
        read = (one for checkpoint in self.checkpoints for one in (checkpoint, *checkpoint.beside))
        return sum(file.stat().st_size for one in read for file in one.files)


def few(steps: Sequence[int]) -> str:
    """Steps in one line: the first ones and the last."""
    shown = [str(step) for step in steps]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:4], "…", shown[-1]])


def one_in(every: int, entries: Sequence[_T]) -> list[_T]:
    """One entry in `every`, and always the last. Raises ValueError unless `every` is a whole number >= 1."""
    whole_number("every", every)
    return [entry for index, entry in enumerate(entries) if index % every == 0 or index == len(entries) - 1]
