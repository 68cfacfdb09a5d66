"""The command `iclab compare`: a training run of one's own beside the theory of its problem."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from iclab.attention import Layer, MergedAttention, SeparateAttention
from iclab.commands.flags.parsing import parsed
from iclab.commands.inputs import FLAGS, measured, shortened
from iclab.commands.terminal import note, print_verdicts, writable
from iclab.commands.verdicts import SCHEMA, as_json, exit_code
from iclab.numerics import require
from iclab.overlay.conventions import Conventions
from iclab.problem import Regression

if TYPE_CHECKING:
    from iclab.overlay import Comparison

__all__ = ["Compare", "compare"]

EXAMPLE = """Example: iclab compare losses.csv abrupt-drop --eigenvalues 1 .6 .3 --context-length 20
--learning-rate .001 --normalization none --sequences 5000 --start start.npz"""
LONG = 10.0  # seconds of work that are said first
STUDIES = {"abrupt-drop": "merged", "staircase": "separate"}
"""Studies whose theory can be laid under a run, with the kind of their attention."""


@dataclass(frozen=True)
class Compare:
    """Lay the theory of a problem under the loss of a training run: verdicts, and a page.

    The log is CSV, JSON lines, the JSON of a trainer's state or TensorBoard event files. Conventions are stated, not
    guessed: where scale or clock are off by a factor, it says which convention would explain it.
    """

    log: tyro.conf.Positional[Path]  # file of the run, with a clock and a loss
    study: tyro.conf.Positional[str]  # abrupt-drop: merged key and query; staircase: separate ones
    problem: Annotated[Regression, tyro.conf.arg(name="")] = field(default_factory=Regression)
    learning_rate: float | None = None  # of plain gradient descent on the loss of the log
    loss: str | None = None  # mean of squared errors over sequences, half of it, or their sum: mean, half, sum
    normalization: str | None = None  # divisor of the sum over tokens: 1/N, none, 1/(N+1)
    published: str | None = None  # arXiv number of a code whose loss and normalization these are, in their place
    start: Path | None = None  # weights at step 0: value and key_query, or value, key and query
    sequences: int | None = None  # P, of the training set
    batch: int | None = None  # B, fresh sequences in every step, in place of a training set
    clock_column: str | None = None  # name of the clock in the log, steps of the optimizer
    loss_column: str | None = None  # name of the loss in the log
    out: Path = Path("comparison")  # folder of index.html
    json: bool = False  # print the verdicts as JSON instead of a table
    strict: bool = False  # exit 1 where a claim does not hold, 3 where one is open
    cache: bool = True  # keep compiled programs in your folder of caches; --no-cache compiles all anew
    verbose: bool = False  # say why compiled programs are not kept, where they cannot be
    debug: bool = False  # show the traceback of an error


def compare(words: Sequence[str]) -> int:
    """Read the log, compare, write the page, print the verdicts. Returns the exit code."""
    given, (words, sample) = list(words), measured(words)
    about = "\n\n".join(" ".join(part.split()) for part in [*(Compare.__doc__ or "").split("\n\n"), FLAGS, EXAMPLE])
    asked = parsed(Compare, shortened(words), prog="iclab compare", description=about)
    from iclab.overlay import compared, read_log, read_start, turned
    from iclab.overlay.curves import drawing_seconds
    from iclab.overlay.page import written

    require(
        asked.study in STUDIES,
        f"study must be one whose runs can be compared, {', '.join(STUDIES)}; got {asked.study!r}.",
    )
    log = read_log(asked.log, clock=asked.clock_column, loss=asked.loss_column)
    start = None if asked.start is None else read_start(asked.start, asked.problem.dimension)
    problem = asked.problem
    if sample is not None:
        problem = problem.measured_on(sample)
        start = start and turned(start, sample.directions)
    conventions = _conventions(asked, start)
    if (seconds := drawing_seconds(problem, conventions)) > LONG:
        note(f"training sets as large as that of the run are drawn: about {seconds:.0f} s")
    found = compared(log, problem, conventions)
    path = written(found, writable(asked.out), command=shlex.join(["iclab", "compare", *given]))
    code = exit_code(found.verdicts, strict=asked.strict)
    if asked.json:
        print(json.dumps(_summary(found, asked.study, path), allow_nan=False))
        return code
    for text in (*found.notes, *found.hints):
        note(text)
    print_verdicts(asked.study, found.verdicts)
    print(f"page: {path}")
    return code


def _conventions(asked: Compare, start: Layer | None) -> Conventions:
    kind = STUDIES[asked.study]
    own = MergedAttention if kind == "merged" else SeparateAttention
    require(
        start is None or isinstance(start, own),
        f"start must hold the weights of {asked.study}, a {own.__name__}; got a {type(start).__name__}.",
    )
    rate = asked.learning_rate
    if rate is None:
        raise ValueError(
            "--learning-rate must be stated; got none. It is that of the optimizer, on the loss of the log."
        )
    data: dict[str, Any] = {
        "sequences": asked.sequences, "batch": asked.batch, "start": start, "attention": kind,
    }  # fmt: skip
    if asked.published is None:
        return Conventions(rate, asked.loss or "mean", asked.normalization or "1/N", **data)
    require(
        asked.loss is None and asked.normalization is None,
        f"conventions must be stated once; got --published {asked.published} beside --loss or --normalization. "
        "Leave one.",
    )
    return Conventions.published(asked.published, rate, **data)


def _summary(found: "Comparison", study: str, path: Path) -> dict[str, Any]:
    from iclab.overlay.page import case_of

    return {
        "schema": SCHEMA,
        "study": study,
        "case": case_of(found),
        "records": len(found.log.clock),
        "verdicts": [as_json(verdict) for verdict in found.verdicts],
        "hints": list(found.hints),
        "notes": list(found.notes),
        "page": str(path),
    }
