"""The command that puts the question of a case again, to be copied into a shell."""

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iclab.study import Study

__all__ = ["command", "preset_of"]


def preset_of(study: "Study", case: Any) -> str:
    """The name of the preset that has this case, or that of the preset from which fewest flags lead to it."""
    flags = {name: len(list(_flags(case, preset.case))) for name, preset in study.presets.items()}
    return min(flags, key=flags.__getitem__)


def command(study: "Study", case: Any, seeds: Sequence[int]) -> str:
    """The line `iclab run NAME ...` for a case: its preset, every flag that differs from it, and the seeds."""
    name = preset_of(study, case)
    preset = study.presets[name]
    words = ["iclab", "run", study.name, *([] if name == "quick" else [f"--{name}"])]
    words += [*_flags(case, preset.case), *_unsettled(study, case, preset.case)]
    if study.simulation is not None and list(seeds) != list(range(preset.seeds)):
        words += ["--seeds", str(len(seeds))]
    return shlex.join(words)


def _unsettled(study: "Study", case: Any, like: Any) -> Iterator[str]:
    """Flags of the fields that are as in the preset, and would follow from the problem if they were not stated."""
    names = {
        entry.name for entry in dataclasses.fields(case) if getattr(case, entry.name) != getattr(like, entry.name)
    }
    settled = study.settled(case, names, like=like)
    same = {name: getattr(settled, name) for name in vars(case) if name not in names}
    yield from _flags(case, dataclasses.replace(case, **same))


def _flags(case: Any, like: Any, prefix: str = "") -> Iterator[str]:
    """Flags and values of the fields in which a case differs from another one."""
    for entry in dataclasses.fields(case):
        value, other = getattr(case, entry.name), getattr(like, entry.name)
        flag = f"{prefix}{entry.name}".replace("_", "-")
        if value == other:
            continue
        if dataclasses.is_dataclass(value):
            yield from _flags(value, other, f"{flag}.")
        elif isinstance(value, bool):
            yield f"--{flag}" if value else f"--{prefix}no-{entry.name.replace('_', '-')}"
        else:
            yield f"--{flag}"
            yield from (map(str, value) if isinstance(value, tuple | list) else [str(value)])
