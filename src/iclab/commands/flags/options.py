"""Options that `iclab run` and `iclab report` share, and the study that they ask."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from iclab.commands.flags.forgiving import split
from iclab.commands.flags.table import flags_of
from iclab.numerics import require
from iclab.study import Preset, Study

__all__ = ["Clock", "Options", "apart", "chosen_preset"]

Clock = Literal["time", "steps", "published"]

RESULTS = Path("results")


@dataclass(frozen=True)
class Options:
    """Options of what is computed, where it is kept, and how it is shown."""

    seeds: int | None = None  # K, seeds 0..K-1; 0 asks theory alone; default: as the study suggests
    full: bool = False  # start from the full case instead of the quick one; other flags still apply
    published: bool = False  # start from the published case where the full one is smaller; its time is estimated
    results: Path | None = None  # folder of stored answers, of all commands; default: --out if stated, else results
    out: Path | None = None  # folder of what is shown: figures, pages
    clock: Clock = "time"  # unit of the lower axis of training: τ, steps, or epochs of the published run
    quiet: bool = False  # say nothing of progress
    strict: bool = False  # exit 1 where a claim does not hold, 3 where one is open
    cache: bool = True  # keep compiled programs in your folder of caches; --no-cache compiles all anew
    verbose: bool = False  # say why compiled programs are not kept, where they cannot be
    debug: bool = False  # show the traceback of an error

    @property
    def stored(self) -> Path:
        """The folder of stored answers."""
        return self.results or self.out or RESULTS


def chosen_preset(study: Study, words: Sequence[str]) -> Preset:
    """The preset that the other words change: the first stage of parsing.

    Raises ValueError where a study has no published case.
    """
    if "--published" in words:
        require(
            "published" in study.presets,
            f"published cases are those of studies whose full case is smaller; {study.name!r} has none. Use --full.",
        )
        return study.presets["published"]
    return study.presets["full" if "--full" in words else "quick"]


def apart(words: Sequence[str], options: type) -> tuple[list[str], list[str]]:
    """Names that stand at the beginning or behind a switch, which takes no value, and all other words."""
    switches = {flag.name for flag in flags_of(options) if flag.switch}
    names: list[str] = []
    rest: list[str] = []
    free = True
    for word in words:
        flag = word.startswith("-")
        if free and not flag:
            names += split([word])
        else:
            rest.append(word)
            free = word.lower().replace("_", "-") in switches
    return names, rest
