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

__all__ = ["Plan", "plan"]

_FORM = ("figure", "json", "debug")  # flags of the output, not of the question
_ABOUT = """Plan a run before it is made. Errors are those of pretrained linear attention, label noise included; sizes
are ratios to the dimension D of inputs, or counts where D is given."""


@dataclass(frozen=True)
class Plan:
    """Plan a run before it is made: how many tasks, sequences, examples? See `iclab plan --help`."""

    question: tyro.conf.Positional[str]  # the question; `iclab plan --help` lists them


def plan(words: Sequence[str]) -> int:
    """Answer one question: print a table or JSON, and write the figure if one is requested."""
    name, rest = (words[0], words[1:]) if words else ("--help", [])
    if name in ("-h", "--help"):
        every = Union[tuple(Annotated[form, tyro.conf.subcommand(name)] for name, form in QUESTIONS.items())]  # noqa: UP007
        parsed(every, ["--help"], prog="iclab plan", description=_ABOUT)
    if name not in QUESTIONS:
        raise ValueError(f"question must be one of {', '.join(QUESTIONS)}; got {name!r}. See `iclab plan --help`.")
    form = QUESTIONS[name]
    question = parsed(form, rest, prog=f"iclab plan {name}", description=form.__doc__ or "")
    if question.figure is not None:
        writable_pdf(question.figure)
    answer = question.answer()
    if question.figure is not None:
        _write_figure(answer, question.figure)
    if question.json:
        given = {flag: value for flag, value in asdict(question).items() if flag not in _FORM}
        print(json.dumps(_plain({"question": name, "given": given, "answer": answer.numbers}), allow_nan=False))
        return 0
    if answer.rows:
        print_table(answer.header, answer.rows)
    for sentence in answer.sentences:
        print(sentence)
    if question.figure is not None:
        print(f"figure: {question.figure}")
    return 0


def _write_figure(answer: Answer, path: Path) -> None:
    from iclab import figures

    path.write_bytes(figures.as_bytes(figures.sketched(answer.draw, size=(5.0, 3.6)), "pdf", name="plan"))


def _plain(value: Any) -> Any:
    """The value in JSON types: NumPy numbers as plain ones, infinities as "inf"."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    return "inf" if isinstance(value, float) and math.isinf(value) else value
