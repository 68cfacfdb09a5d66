"""The command `iclab studies`: the questions that can be asked, and a study found by its name."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from iclab.commands.terminal import parsed, print_table
from iclab.studies import STUDIES
from iclab.study import Study

__all__ = ["Studies", "named", "studies"]


@dataclass(frozen=True)
class Studies:
    """List the studies and the questions they put."""

    json: bool = False  # print names and questions as JSON
    debug: bool = False  # show the traceback of an error


def studies(words: Sequence[str]) -> int:
    """Print names and questions. Returns the exit code."""
    options = parsed(Studies, words, prog="iclab studies", description=Studies.__doc__ or "")
    listed = [(study.name, study.title) for study in STUDIES.values()]
    if options.json:
        print(json.dumps([{"name": name, "question": question} for name, question in listed]))
        return 0
    print_table(("study", "question"), listed)
    return 0


def named(name: str) -> Study:
    """The study of a name. Raises ValueError, with all names, where there is none."""
    if name in set(STUDIES):
        return STUDIES[name]
    stated = f"study must be one of {', '.join(STUDIES)}; got {name!r}."
    unstated = f"a study must be named; choose from {', '.join(STUDIES)}."
    raise ValueError(f"{stated if name else unstated} `iclab studies` says what they ask.")
