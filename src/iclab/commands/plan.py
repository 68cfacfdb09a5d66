"""The command `iclab plan`: questions about a pretraining run before it is made, each with its own flags."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Union

import numpy as np
import tyro

from iclab.commands.terminal import parsed, print_table, writable_pdf
from iclab.planning.flags import Answer
from iclab.planning.questions import QUESTIONS

_HOW = ("figure", "json", "debug")  # flags that say how to answer, not what is asked
_ABOUT = """Ask before a run is made. Errors are those of pretrained linear attention, label noise included; sizes are
ratios to the dimension D of inputs, or counts where D is given."""


@dataclass(frozen=True)
class Plan:
    """Ask before a run is made: how many tasks, sequences, examples? See `iclab plan --help`."""

    question: tyro.conf.Positional[str]  # the question; `iclab plan --help` lists them


def plan(words: Sequence[str]) -> int:
    """Answer one question: a table or JSON, and the figure where it is wanted."""
    name, rest = (words[0], words[1:]) if words else ("--help", [])
    if name in ("-h", "--help"):
        every = Union[tuple(Annotated[form, tyro.conf.subcommand(name)] for name, form in QUESTIONS.items())]  # noqa: UP007
        parsed(every, ["--help"], prog="iclab plan", description=_ABOUT)
    if name not in QUESTIONS:
        raise ValueError(f"question must be one of {', '.join(QUESTIONS)}; got {name!r}. See `iclab plan --help`.")
    form = QUESTIONS[name]
    asked = parsed(form, rest, prog=f"iclab plan {name}", description=form.__doc__ or "")
    if asked.figure is not None:
        writable_pdf(asked.figure)
    answer = asked.answer()
    if asked.figure is not None:
        _write_figure(answer, asked.figure)
    if asked.json:
        given = {flag: value for flag, value in asdict(asked).items() if flag not in _HOW}
        print(json.dumps(_plain({"question": name, "given": given, "answer": answer.numbers}), allow_nan=False))
        return 0
    if answer.rows:
        print_table(answer.header, answer.rows)
    for sentence in answer.sentences:
        print(sentence)
    if asked.figure is not None:
        print(f"figure: {asked.figure}")
    return 0


def _write_figure(answer: Answer, path: Path) -> None:
    from iclab import figures

    path.write_bytes(figures.as_bytes(figures.sketched(answer.draw, size=(5.0, 3.6)), "pdf", name="plan"))


def _plain(value: Any) -> Any:
    """For JSON: numbers of NumPy as plain ones, infinities as "inf"."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    return "inf" if isinstance(value, float) and math.isinf(value) else value
