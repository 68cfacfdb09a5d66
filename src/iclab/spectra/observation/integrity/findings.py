"""Findings about a series, and the summaries of its checkpoints on which they stand."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from iclab.spectra.checkpoints.content import Content
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.series import Checkpoint
from iclab.spectra.checkpoints.tensors import FLOATS
from iclab.spectra.layouts.geometry import Geometry
from iclab.spectra.layouts.skipping import is_buffer

if TYPE_CHECKING:
    from iclab.spectra.observation.integrity.forms import Beside

__all__ = ["Finding", "Record", "Severity", "names_of", "record_of", "shown"]

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Record:
    """Summary of one checkpoint: its step, its name and the content of each of its tensors."""

    step: int
    label: str
    contents: Mapping[str, Content]
    missing: tuple[str, ...] = ()  # shards that its folder lacks
    noted: int | None = None  # step that its trainer wrote beside it
    named: int | None = None  # step that its name states, where its file holds another one
    absent: tuple[str, ...] = ()  # tensors that its index promises and no shard holds
    misplaced: tuple[str, ...] = ()  # tensors that another shard holds than its index says
    geometry: Geometry | None = None  # of its config
    beside: tuple["Beside", ...] = ()  # other files of the same weights

    @property
    def digest(self) -> str:
        """Hash of the names and contents of the whole checkpoint."""
        text = "\n".join(f"{name} {one.digest}" for name, one in sorted(self.contents.items()))
        return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Finding:
    """One finding about the series. With errors the series cannot be trusted."""

    kind: str
    severity: Severity
    message: str
    steps: tuple[int, ...] = ()
    tensors: tuple[str, ...] = ()


def record_of(
    checkpoint: Checkpoint,
    contents: Mapping[str, Content],
    *,
    absent: Sequence[str] = (),
    misplaced: Sequence[str] = (),
    geometry: Geometry | None = None,
    beside: Sequence["Beside"] = (),
) -> Record:
    """Record of a checkpoint with these contents: of its weights, for buffers and counters are no evidence."""
    weights = {name: one for name, one in contents.items() if one.size and _weight(name, one)}
    return Record(
        checkpoint.step, checkpoint.label, weights, checkpoint.missing, checkpoint.noted, checkpoint.named,
        tuple(absent), tuple(misplaced), geometry, tuple(beside),
    )  # fmt: skip


def _weight(name: str, one: Content) -> bool:
    """True for numbers that training moves, and for the codes of such numbers."""
    return not is_buffer(name) and (one.stored in FLOATS or len(one.shape) > 1)


def names_of(records: Sequence[Record]) -> list[str]:
    """Names of all tensors, in the order of their first occurrence."""
    return list(dict.fromkeys(name for record in records for name in record.contents))


def shown(names: Sequence[str]) -> str:
    """Names in quotes; three of many."""
    listed = ", ".join(quoted(name) for name in names[:3])
    return listed if len(names) <= 3 else f"{listed} and {len(names) - 3} more tensors"
