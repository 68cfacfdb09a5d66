"""The command `iclab results`: the answers that are stored, and their removal."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from iclab.commands.flags.options import RESULTS
from iclab.commands.flags.parsing import parsed
from iclab.commands.studies import named
from iclab.commands.terminal import print_table
from iclab.numerics import require
from iclab.store.holdings import Holding, holdings, removed

__all__ = ["ABOUT", "Results", "results"]

ABOUT = "List the answers that are stored in a folder: study, case, seeds, date and size. With --remove, remove them."

EXAMPLES = ("iclab results", "iclab results my-results --only staircase", "iclab results --only 00f6eada --remove")


@dataclass(frozen=True)
class Results:
    """The folder, those of its answers that are meant, and their end."""

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(name="dir")] = RESULTS  # folder of stored answers
    only: tuple[str, ...] = ()  # names of studies, or beginnings of the keys of cases
    remove: bool = False  # remove them, with their parts, figures and pages, after a question
    yes: bool = False  # the answer to that question
    json: bool = False  # print the list as JSON
    debug: bool = False  # show the traceback of an error


def results(words: Sequence[str]) -> int:
    """Print what is stored; remove it where that is asked for. Returns the exit code."""
    options = parsed(Results, words, prog="iclab results", description=ABOUT, examples=EXAMPLES)
    require(options.folder.is_dir(), f"the folder of results must be there; got {options.folder}. Name another one.")
    held = [one for one in holdings(options.folder) if not options.only or _meant(one, options.only)]
    if options.json:
        print(json.dumps([one.as_json() for one in held], allow_nan=False))
    elif held:
        rows = [(one.study, one.key, one.changes, one.seeds, one.date, _size(one.size)) for one in held]
        print_table(("study", "key", "case", "seeds", "date", "size"), rows)
        print(f"{_count(held)}, {_size(sum(one.size for one in held))} in {options.folder}")
    else:
        print(f"nothing {'of that ' if options.only else ''}is stored in {options.folder}")
    if options.remove and held:
        _agreed(options, _count(held))
        freed = removed(options.folder, held)
        print(f"removed {_count(held)}, {_size(freed)}", file=sys.stderr if options.json else sys.stdout)
    return 0


def _meant(held: Holding, only: Sequence[str]) -> bool:
    return any(held.key.startswith(one) or held.study == _study_name(one) for one in only)


def _study_name(name: str) -> str:
    try:
        return named(name).name
    except ValueError:
        return name


def _agreed(options: Results, count: str) -> None:
    """Ask. Raises ValueError unless the answer is yes."""
    if options.yes:
        return
    require(sys.stdin.isatty(), "removal must be agreed to; there is nobody to ask. Add --yes.")
    answer = input(f"Remove {count} from {options.folder}, with their parts, figures and pages? [y/N] ")
    require(answer.strip().lower() in ("y", "yes"), "nothing was removed.")


def _count(held: Sequence[Holding]) -> str:
    return f"{len(held)} case{'' if len(held) == 1 else 's'}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
