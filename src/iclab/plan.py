"""The command `iclab plan`: questions about a pretraining run before it is made, each with its own flags."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import tyro

from iclab.numerics import require
from iclab.terminal import parsed, print_table


@dataclass(frozen=True)
class Plan:
    """Ask before a run is made: how many tasks, sequences, examples? See `iclab plan --help`."""

    question: tyro.conf.Positional[str]  # the question; `iclab plan --help` lists them


@dataclass(frozen=True)
class Answer:
    """What is printed, as a table and sentences or as JSON, and how the figure is drawn."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
    numbers: dict[str, Any]
    draw: Callable[[Any], None]


@dataclass(frozen=True, kw_only=True)
class _Asked:
    noise: float = 0.0  # ρ, variance of the label noise, where labels have variance 1 + ρ
    ridge: Literal["best"] | float = "best"  # λ, ridge of the readout; best: chosen anew at every size
    target: Literal["icl", "idg"] = "icl"  # which error: on new tasks (icl) or on tasks of the pool (idg)
    dimension: int | None = None  # D, entries of an input; with it sizes are counted too
    figure: Path | None = None  # write the curve behind the answer to this PDF
    json: bool = False  # print the answer as JSON instead of a table
    debug: bool = False  # show the traceback of an error

    def sizes(self) -> dict[str, float]:
        """The sizes given, as ratios. Raises ValueError where one is missing or given twice."""
        return {name: _ratio(self, name) for name in COUNTS if hasattr(self, name)}

    def answer(self) -> Answer:
        """The answer to the question."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class _Contexts:
    alpha: float | None = None  # α = N/D, labelled examples of a context; inf: without end
    context_length: int | None = None  # N, in place of alpha; needs dimension


@dataclass(frozen=True, kw_only=True)
class _Pool:
    kappa: float | None = None  # κ = K/D, tasks of the pool; inf: a fresh task in every context
    tasks: int | None = None  # K, in place of kappa; needs dimension


@dataclass(frozen=True, kw_only=True)
class _Pretraining:
    tau: float | None = None  # τ = n/D², pretraining sequences; inf: without end
    sequences: int | None = None  # n, in place of tau; needs dimension


COUNTS = {"alpha": ("context_length", 1), "kappa": ("tasks", 1), "tau": ("sequences", 2)}
"""The count that each ratio stands for, and the power of D that divides it."""


@dataclass(frozen=True, kw_only=True)
class HowManyTasks(_Contexts, _Pretraining, _Asked):
    """How many tasks must pretraining see for an error of at most this?"""

    error: float  # mean squared error to reach, label noise included

    def answer(self) -> Answer:
        """All pool sizes that reach the error."""
        return _required(self, "kappa", self.error)


@dataclass(frozen=True, kw_only=True)
class HowManySequences(_Contexts, _Pool, _Asked):
    """How many sequences must pretraining see for an error of at most this?"""

    error: float  # mean squared error to reach, label noise included

    def answer(self) -> Answer:
        """All numbers of sequences that reach the error."""
        return _required(self, "tau", self.error)


@dataclass(frozen=True, kw_only=True)
class HowLongContexts(_Pool, _Pretraining, _Asked):
    """How long must contexts be for an error of at most this?"""

    error: float  # mean squared error to reach, label noise included

    def answer(self) -> Answer:
        """All context lengths that reach the error."""
        return _required(self, "alpha", self.error)


@dataclass(frozen=True, kw_only=True)
class WhichSplit(_Pool, _Asked):
    """How is a budget of labelled examples best split into sequences and contexts?"""

    tokens: int  # n·N, labelled examples of all sequences together
    dimension: int  # D, entries of an input

    def answer(self) -> Answer:
        """The split of least error."""
        from iclab import plan_figures, planning

        kappa = self.sizes()["kappa"]
        asked = {"kappa": kappa, "noise": self.noise, "target": self.target}
        split = planning.best_split(self.tokens, dimension=self.dimension, ridge=self.ridge, **asked)
        rows = (
            ("context length N", str(split.context_length), f"α = {split.ratios.alpha:.4g}"),
            ("sequences n", str(split.sequences), f"τ = {split.ratios.tau:.4g}"),
            ("ridge λ", f"{split.ridge:.4g}", ""),
            (f"{self.target} error", f"{split.error:.4g}", ""),
        )
        return Answer(
            ("best split", "value", "ratio"), rows, (), asdict(split), lambda figure: plan_figures.split(figure, self, split)
        )


@dataclass(frozen=True, kw_only=True)
class WhichRidge(_Contexts, _Pool, _Pretraining, _Asked):
    """Which ridge is best, on new tasks and on tasks of the pool?"""

    def answer(self) -> Answer:
        """The best ridge for each target, with the errors there and without ridge."""
        from iclab import plan_figures
        from iclab.problem import Ratios
        from iclab.theory.generalization import TARGETS, best_ridge, errors

        ratios = Ratios(**self.sizes(), noise=self.noise)
        best = {target: float(best_ridge(ratios, target=target)) for target in TARGETS}
        least = {target: float(getattr(errors(ratios, ridge=best[target]), target)) for target in TARGETS}
        without = {target: float(getattr(errors(ratios), target)) for target in TARGETS}
        rows = tuple((t, f"{best[t]:.4g}", f"{least[t]:.4g}", f"{without[t]:.4g}") for t in TARGETS)
        return Answer(
            ("target", "best ridge λ", "error there", "error without ridge"),
            rows,
            (),
            {"best_ridge": best, "error": least, "error_without_ridge": without},
            lambda figure: plan_figures.ridges(figure, ratios, best),
        )


@dataclass(frozen=True, kw_only=True)
class MemorizeOrLearn(_Contexts, _Pool, _Pretraining, _Asked):
    """Will pretraining memorize its tasks or learn in context, and do longer contexts help?"""

    def answer(self) -> Answer:
        """The regime, the gap between new and known tasks, and κ_c."""
        from iclab import plan_figures, planning
        from iclab.problem import Ratios
        from iclab.theory.generalization import best_ridge

        ratios = Ratios(**self.sizes(), noise=self.noise)
        ridge = float(best_ridge(ratios, target=self.target)) if self.ridge == planning.BEST else float(self.ridge)
        found = planning.regime(ratios, ridge=ridge)
        rows = (
            ("regime", "memorizes its tasks" if found.memorizing else "learns in context"),
            ("tasks κ", f"{ratios.kappa:.4g}; the border is κ = 1"),
            ("gap ICL − IDG now", f"{found.gap:.4g} at ridge {ridge:.4g}"),
            ("gap with contexts and pretraining without end", f"{found.lasting_gap:.4g}"),
            ("κ_c", f"{found.critical_kappa:.4g}"),
        )
        below = float(ratios.kappa) < found.critical_kappa
        longer = "κ is below κ_c: without ridge" if below else "κ is at least κ_c: without ridge"
        fate = "some finite context length is best for new tasks." if below else "longer contexts end up better."
        return Answer(
            ("what", "answer"),
            rows,
            (f"{longer} {fate}",),
            asdict(found) | {"ridge": ridge},
            lambda figure: plan_figures.gaps(figure, ratios, ridge, found.critical_kappa),
        )


@dataclass(frozen=True, kw_only=True)
class WhatWillARunShow(_Asked):
    """What errors will a run of finite dimension show?"""

    dimension: int  # D, entries of an input
    context_length: int  # N, labelled examples of a context
    sequences: int  # n, pretraining sequences
    tasks: int | None = None  # K, tasks of the pool; none: a fresh task in every context
    ridge: float = 0.0  # λ, ridge of the readout

    def answer(self) -> Answer:
        """Errors in the limit, for a pool of this size, and with unequal leverage."""
        from iclab import plan_figures, planning

        found = planning.forecast(
            self.dimension,
            context_length=self.context_length,
            sequences=self.sequences,
            tasks=self.tasks,
            noise=self.noise,
            ridge=self.ridge,
        )
        accounts = {"limit D → ∞": found.limit, "pool": found.pool, "pool and leverage": found.leverage}
        rows = tuple(
            (name, *(f"{getattr(errors, kind):.4g}" for kind in ("icl", "idg", "train")))
            for name, errors in accounts.items()
        )
        return Answer(
            ("account", "on new tasks", "on the pool", "on its data"),
            rows,
            ("The last account is the closest to the mean of runs.",),
            asdict(found),
            lambda figure: plan_figures.forecast(figure, self, found),
        )


QUESTIONS: Mapping[str, type[_Asked]] = {
    "tasks": HowManyTasks,
    "sequences": HowManySequences,
    "context": HowLongContexts,
    "split": WhichSplit,
    "ridge": WhichRidge,
    "regime": MemorizeOrLearn,
    "forecast": WhatWillARunShow,
}


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
    answer = asked.answer()
    if asked.figure is not None:
        _write_figure(answer.draw, asked.figure)
    if asked.json:
        given = {field.name: getattr(asked, field.name) for field in fields(asked) if field.name not in _SHOWN}
        print(json.dumps(_plain({"question": name, "given": given, "answer": answer.numbers}), allow_nan=False))
        return 0
    print_table(answer.header, answer.rows)
    print("\n".join([*answer.sentences, *([f"figure: {asked.figure}"] if asked.figure else [])]))
    return 0
