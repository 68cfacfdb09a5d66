"""The training step in the name of a checkpoint."""

import re

from iclab.numerics import require
from iclab.spectra.checkpoints.names import quoted

__all__ = ["says_step", "step_of"]

_STEP = re.compile(r"(?:global_?step|step|iter|checkpoint|ckpt)[-_=]?(\d+)", re.IGNORECASE)
_FORMATS = (".safetensors", ".npz", ".ckpt", ".pth", ".bin", ".pt")


def says_step(name: str) -> bool:
    """True where a name has a number after one of the words for steps."""
    return _STEP.search(name) is not None


def step_of(name: str) -> int | None:
    """Step in a name: the number after the last of step, global_step, iter, checkpoint, ckpt, or the only one.

    None for a name without a number.

    Raises ValueError, with the candidates, where several numbers could be meant, and for a number with a fraction or
    a unit (1.5k).
    """
    stem = next((name[: -len(ending)] for ending in _FORMATS if name.lower().endswith(ending)), name)
    stated = list(_STEP.finditer(stem))
    if stated:
        after = stem[stated[-1].end() :]
        more = re.match(r"(?:[-_=]\d+)+(?![A-Za-z\d])", after)
        numbers = [stated[-1][1], *re.findall(r"\d+", more[0] if more else "")]
    else:
        numbers = re.findall(r"\d+", stem)
        after = stem[stem.rindex(numbers[0]) + len(numbers[0]) :] if len(numbers) == 1 else ""
    if not numbers:
        return None
    require(
        len(numbers) == 1,
        f"{quoted(name)} must state one step; it could be {', '.join(numbers)}. Rename it to step{numbers[-1]}, say.",
    )
    require(
        not re.match(r"\.\d|[kKmMbBgG](?![A-Za-z])|e\d", after),
        f"{quoted(name)} must state its step as a whole number; got {numbers[0]}{after[:4]!r}.",
    )
    return int(numbers[0])
