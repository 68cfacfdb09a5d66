"""TensorBoard event files, read by TensorBoard itself where it is installed."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from iclab.numerics import require

__all__ = ["holds_events", "records_of_events"]

PATTERN = "*tfevents*"


def holds_events(path: Path) -> bool:
    """True for an event file, and for a folder of them."""
    return path.match(PATTERN) or (path.is_dir() and any(path.glob(PATTERN)))


def records_of_events(path: Path, named: str | None, usual: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Records {"step": ..., tag: ...} of the scalar that is named, or of all whose tags end in a usual name.

    Raises ImportError where TensorBoard is not installed, ValueError, with the tags, where none is meant.
    """
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        raise ImportError(
            f"reading {path.name} needs TensorBoard, whose files it is; got {error}. Install it with "
            "pip install tensorboard, or export the scalar as CSV."
        ) from None
    events = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    tags = [*events.Tags()["scalars"]]
    kept = [tag for tag in tags if (tag == named if named else tag.lower().rpartition("/")[2] in usual)]
    require(
        bool(kept),
        f"{path.name} must have a scalar {named or 'loss'!r}; there are {', '.join(map(repr, tags)) or 'none'}. Name "
        "it with --loss-column.",
    )
    for tag in kept:
        for number, event in enumerate(events.Scalars(tag), start=1):
            yield number, {"step": event.step, tag: event.value}
