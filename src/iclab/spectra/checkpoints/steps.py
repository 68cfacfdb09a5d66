"""The training step in the name of a checkpoint."""

import re

from iclab.numerics import require
from iclab.spectra.checkpoints.names import quoted

__all__ = ["LATEST", "says_step", "step_of"]

LATEST = 2**53  # step from which numbers are no longer exact
_STEP = re.compile(r"(?:global_?step|step|iter|checkpoint|ckpt)[-_=]?(\d+)", re.IGNORECASE)
_VERSION = re.compile(r"(?:^|(?<=[-_.]))v(?:ersion)?[-_]?\d+(?=$|[-_.])", re.IGNORECASE)  # the second file of a name
_SIZE = re.compile(r"\d+(?:\.\d+)?[kKmMbBgG](?![A-Za-z])")
_UNIT = r"\.\d|[kKmMbBgG](?![A-Za-z])|e\d"
_FORMATS = (".safetensors", ".npz", ".ckpt", ".pth", ".bin", ".pt")


def says_step(name: str) -> bool:
    """True where a name has a number after one of the words for steps."""
    return _STEP.search(name) is not None


def step_of(name: str) -> int | None:
    """Step in a name: the number after the last of step, global_step, iter, checkpoint, ckpt, or the only one.

    None for a name without a number; that of a version (last-v1) or of a size (7b) is no step.

    Raises ValueError, with the candidates, where several numbers could be meant, and for a number with a fraction or
    a unit after a word for steps (step1.5k).
    """
    stem = next((name[: -len(ending)] for ending in _FORMATS if name.lower().endswith(ending)), name)
    stated = list(_STEP.finditer(stem))
    if not stated:
        return _only_number(name, _SIZE.sub("", _VERSION.sub("", stem)))
    after = stem[stated[-1].end() :]
    more = re.match(r"(?:[-_=]\d+)+(?![A-Za-z\d])", after)
    numbers = [stated[-1][1], *re.findall(r"\d+", more[0] if more else "")]
    _require_one(name, numbers)
    require(
        not re.match(_UNIT, after),
        f"{quoted(name)} must state its step as a whole number; got {numbers[0]}{after[:4]!r}.",
    )
    return _counted(name, numbers[0])


def _counted(name: str, digits: str) -> int:
    require(
        len(digits.lstrip("0")) <= 16 and int(digits) < LATEST,
        f"{quoted(name)} must state a step below 2^53; got {len(digits)} digits. Rename it.",
    )
    return int(digits)


def _only_number(name: str, stem: str) -> int | None:
    """The only number of a name without versions and sizes."""
    numbers = re.findall(r"\d+", stem)
    if not numbers:
        return None
    _require_one(name, numbers)
    return _counted(name, numbers[0])


def _require_one(name: str, numbers: list[str]) -> None:
    require(
        len(numbers) == 1,
        f"{quoted(name)} must state one step; it could be {', '.join(numbers)}. Rename it to step{numbers[-1]}, say.",
    )
