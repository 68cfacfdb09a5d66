"""The command `iclab plan`: questions about a pretraining run before it is made, each with its own flags."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from iclab.commands.flags.helptext import listed, wrapped
from iclab.commands.flags.parsing import parsed
from iclab.commands.terminal import print_table, writable_pdf
from iclab.numerics import did_you_mean, plain
from iclab.planning.flags import Answer
from iclab.planning.questions import QUESTIONS

__all__ = ["plan"]

_FORM = ("figure", "json", "debug")  # flags of the output, not of the question
_EXAMPLES = (
    "iclab plan tasks --error .25 --context-length 400 --sequences 4000 --dimension 20 --noise .1",
    "iclab plan split --tokens 1000000 --dimension 20 --tasks 40 --noise .1",
    "iclab plan tasks --help",
)
_ABOUT = """Plan a run before it is made. Errors are those of pretrained linear attention, label noise included; sizes
are ratios to the dimension D of inputs, or counts where D is given."""


def plan(words: Sequence[str]) -> int:
    """Answer one question: print a table or JSON, and write the figure if one is requested."""
    name, rest = (words[0], words[1:]) if words else ("--help", [])
    if name in ("-h", "--help"):
        rows = [(one, (form.__doc__ or "").split("\n")[0]) for one, form in QUESTIONS.items()]
        lines = ["usage: iclab plan QUESTION [FLAGS]", "", *wrapped(_ABOUT, 78), "", "questions:", *listed(rows)]
        print("\n".join([*lines, "", "examples:", *(f"  {line}" for line in _EXAMPLES)]))
        raise SystemExit(0)
    name = {plain(one): one for one in QUESTIONS}.get(plain(name), name)
    if name not in QUESTIONS:
        near = did_you_mean(name, QUESTIONS)
        raise ValueError(
            f"question must be one of {', '.join(QUESTIONS)}; got {name!r}.{near} See `iclab plan --help`."
        )
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
