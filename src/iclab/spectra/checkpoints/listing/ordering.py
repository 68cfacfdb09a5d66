"""Order of checkpoints: by the step that a file holds, else by the one that its name states."""

from collections.abc import Sequence
from dataclasses import replace

from iclab.numerics import require
from iclab.spectra.checkpoints.listing.found import Found
from iclab.spectra.checkpoints.names import quoted, terminal
from iclab.spectra.checkpoints.steps import says_step, step_of
from iclab.spectra.checkpoints.tensors import Skipped
from iclab.spectra.checkpoints.zips import is_zip

__all__ = ["in_order"]

_HOLDING = (".pt", ".pth", ".ckpt")  # files that may hold their step


def in_order(
    found: Sequence[Found], skipped: Sequence[Skipped], *, words_only: bool = False
) -> tuple[list[Found], list[Skipped]]:
    """Checkpoints in order of their steps, and what is left out; a single one needs no step.

    Raises ValueError where no checkpoint has a step, with the candidates of a name with several numbers, and with
    the trouble where none can be read.
    """
    if len(found) == 1 and not found[0].trouble:
        return [_single(found[0])], list(skipped)
    stepped, left, reasons = [], [], []
    for entry in found:
        named, reason = _named(entry, words_only)
        inside = _inside(entry, named)
        step = named if inside is None else inside
        if step is None:
            reasons.append(entry.trouble or reason)
            left.append(Skipped(terminal(entry.path.name), reasons[-1] or "its name states no step"))
        else:
            stepped.append(replace(entry, step=step, named=None if named == step else named))
    stepped, again = _once(stepped)
    left += again
    whole = [entry for entry in stepped if not entry.trouble]
    troubles = [one.trouble for one in stepped if one.trouble] + [one for one in reasons if one]
    names = ", ".join(quoted(entry.path.name) for entry in found[:5])
    require(
        bool(whole),
        troubles[0] if troubles else f"names of checkpoints must state their steps; got {names}. Write step100, say.",
    )
    return sorted(stepped, key=lambda entry: (entry.step, entry.path.name)), [*skipped, *left]


def _once(stepped: Sequence[Found]) -> tuple[list[Found], list[Skipped]]:
    """Checkpoints without those that hold the step of another one and have none in their name, such as last.ckpt."""
    owner = {entry.step: entry for entry in stepped if _states(entry)}
    kept, again = [], []
    for entry in stepped:
        other = owner.setdefault(entry.step, entry)
        if other is entry or _states(entry):
            kept.append(entry)
        else:
            reason = f"it holds step {entry.step}, as {quoted(other.path.name)} does"
            again.append(Skipped(terminal(entry.path.name), reason))
    return kept, again


def _states(entry: Found) -> bool:
    """True where the name of a checkpoint states a step."""
    return _named(entry, words_only=False)[0] is not None


def _single(entry: Found) -> Found:
    """A single checkpoint; a number in the name of its folder is a step only after a word for steps."""
    named, _ = _named(entry, words_only=entry.path.is_dir())
    inside = _torch_step(entry)
    step = named if inside is None else inside
    return replace(entry, step=step, named=None if named == step else named)


def _named(entry: Found, words_only: bool) -> tuple[int | None, str]:
    """Step that a name states, or None with the reason where it could be several."""
    try:
        return step_of(entry.path.name) if says_step(entry.path.name) or not words_only else None, ""
    except ValueError as error:
        return None, str(error)


def _inside(entry: Found, named: int | None) -> int | None:
    """Step that a file holds. One of the old format is read whole, and so only where its name has no step."""
    try:
        return _torch_step(entry) if named is None or (entry.files and is_zip(entry.files[0])) else None
    except (ValueError, OSError, ImportError):  # said when the checkpoint is opened
        return None


def _torch_step(entry: Found) -> int | None:
    """Step that the only file of a checkpoint holds, if it is one of torch."""
    if len(entry.files) != 1 or entry.files[0].suffix.lower() not in _HOLDING:
        return None
    from iclab.spectra.checkpoints import torch_file

    return torch_file.step_inside(entry.files[0])
