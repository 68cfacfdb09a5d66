"""The command `iclab studies`: the questions that can be asked, and a study found by its name."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from iclab.commands.flags.parsing import parsed
from iclab.commands.terminal import print_table
from iclab.numerics import did_you_mean, plain
from iclab.studies import STUDIES
from iclab.study import Study

__all__ = ["ABOUT", "Studies", "named", "studies"]

ABOUT = "List the studies and the questions they put."


@dataclass(frozen=True)
class Studies:
    """List the studies and the questions they put."""

    json: bool = False  # print names and questions as JSON
    debug: bool = False  # show the traceback of an error


def studies(words: Sequence[str]) -> int:
    """Print names and questions. Returns the exit code."""
    options = parsed(Studies, words, prog="iclab studies", description=ABOUT)
    listed = [(study.name, study.title) for study in STUDIES.values()]
    if options.json:
        print(json.dumps([{"name": name, "question": question} for name, question in listed]))
        return 0
    print_table(("study", "question"), listed)
    return 0


def named(name: str) -> Study:
    """The study of a name without case, `_` and `-`. Raises ValueError, with the nearest, where there is none."""
    known = {plain(one): one for one in STUDIES}
    if plain(name) in known:
        return STUDIES[known[plain(name)]]
    names = ", ".join(known.values())
    if not name:
        raise ValueError(f"a study must be named; choose from {names}. `iclab studies` says what they ask.")
    near = did_you_mean(name, known.values())
    raise ValueError(f"study must be one of {names}; got {name!r}.{near} `iclab studies` says what they ask.")
