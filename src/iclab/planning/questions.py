"""The questions of `iclab plan`, each with its answer from `planning`.

The help lists flags of base classes from last base to first.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from iclab.numerics import whole_number
from iclab.planning.depth_questions import DepthOrContext, HowDeep
from iclab.planning.diversity_questions import HowManyTasksToRemember
from iclab.planning.flags import (
    COUNTS,
    Answer,
    ContextFlags,
    CountFlags,
    ErrorFlags,
    PoolFlags,
    PretrainingFlags,
    Question,
    ReachFlags,
)
from iclab.planning.spectrum_questions import WhichPool, WhichSpectrum

if TYPE_CHECKING:
    from iclab.outcomes import Errors, FittedErrors

__all__ = [
    "QUESTIONS", "HowLongContexts", "HowManySequences", "HowManyTasks", "MemorizeOrLearn", "WhatWillARunShow",
    "WhichRidge", "WhichSplit",
]  # fmt: skip


KINDS = {"icl": "on new tasks", "idg": "on the pool", "train": "on its data"}


@dataclass(frozen=True, kw_only=True)
class HowManyTasks(Question, CountFlags, ErrorFlags, PretrainingFlags, ContextFlags, ReachFlags):
    """How many tasks must pretraining see for an error of at most this?"""

    def answer(self) -> Answer:
        """All pool sizes that reach the error."""
        return _required(self, "kappa")


@dataclass(frozen=True, kw_only=True)
class HowManySequences(Question, CountFlags, ErrorFlags, PoolFlags, ContextFlags, ReachFlags):
    """How many sequences must pretraining see for an error of at most this?"""

    def answer(self) -> Answer:
        """All numbers of sequences that reach the error."""
        return _required(self, "tau")


@dataclass(frozen=True, kw_only=True)
class HowLongContexts(Question, CountFlags, ErrorFlags, PretrainingFlags, PoolFlags, ReachFlags):
    """How long must contexts be for an error of at most this?"""

    def answer(self) -> Answer:
        """All context lengths that reach the error."""
        return _required(self, "alpha")


@dataclass(frozen=True, kw_only=True)
class WhichSplit(Question, ErrorFlags, PoolFlags):
    """How is a budget of labeled examples best split into sequences and contexts?"""

    tokens: int  # n·N, labeled examples of all sequences together
    dimension: int  # D, entries of an input

    def answer(self) -> Answer:
        """The split of least error."""
        from iclab.planning import figures, inverse

        kappa = self.sizes()["kappa"]
        given = {"kappa": kappa, "noise": self.noise, "target": self.target}
        split = inverse.best_split(self.tokens, dimension=self.dimension, ridge=self.ridge, **given)
        rows = (
            ("context length N", str(split.context_length), f"α = {split.ratios.alpha:.4g}"),
            ("sequences n", str(split.sequences), f"τ = {split.ratios.tau:.4g}"),
            ("ridge λ", f"{split.ridge:.4g}", ""),
            (f"{self.target} error", f"{split.error:.4g}", ""),
        )
        return Answer(
            ("best split", "value", "ratio"),
            rows,
            (),
            asdict(split),
            lambda figure: figures.split_figure(figure, self, split),
        )


@dataclass(frozen=True, kw_only=True)
class WhichRidge(Question, CountFlags, PretrainingFlags, PoolFlags, ContextFlags):
    """Which ridge is best, on new tasks and on tasks of the pool?"""

    def answer(self) -> Answer:
        """The best ridge for each target, with the errors there and without ridge."""
        from iclab.planning import figures
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
            lambda figure: figures.ridge_figure(figure, ratios, best),
        )


@dataclass(frozen=True, kw_only=True)
class MemorizeOrLearn(Question, CountFlags, ErrorFlags, PretrainingFlags, PoolFlags, ContextFlags):
    """Will pretraining memorize its tasks or learn in context, and do longer contexts help?

    Of pretrained linear attention. `iclab plan diversity` asks what memory of the pool can gain, for any model.
    """

    def answer(self) -> Answer:
        """The regime, the gap between new and pool tasks, and κ_c."""
        from iclab.planning import figures, inverse
        from iclab.problem import Ratios
        from iclab.theory.generalization import best_ridge

        ratios = Ratios(**self.sizes(), noise=self.noise)
        ridge = float(best_ridge(ratios, target=self.target)) if self.ridge == inverse.BEST else float(self.ridge)
        found = inverse.regime(ratios, ridge=ridge)
        rows = (
            ("regime", "memorizes its tasks" if found.memorizing else "learns in context"),
            ("tasks κ", f"{ratios.kappa:.4g}; the border is κ = 1"),
            ("gap ICL − IDG now", f"{found.gap:.4g} at ridge {ridge:.4g}"),
            ("gap with infinite contexts and pretraining", f"{found.lasting_gap:.4g}"),
            ("κ_c", f"{found.critical_kappa:.4g}"),
        )
        longer = "κ is below κ_c" if float(ratios.kappa) < found.critical_kappa else "κ is at least κ_c"
        if found.longer_contexts_hurt:
            fate = "some finite context length is best for new tasks."
        else:
            fate = "longer contexts end up better."
        return Answer(
            ("quantity", "answer"),
            rows,
            (f"{longer}{_unless(ratios)}: without ridge {fate}",),
            asdict(found) | {"ridge": ridge},
            lambda figure: figures.gap_figure(figure, ratios, ridge, found.critical_kappa),
        )


@dataclass(frozen=True, kw_only=True)
class WhatWillARunShow(Question):
    """What errors will a run of finite dimension show?"""

    dimension: int  # D, entries of an input
    context_length: int  # N, labeled examples of a context
    sequences: int  # n, pretraining sequences
    tasks: int | None = None  # K, tasks of the pool; none: a fresh task in every context
    ridge: float = 0.0  # λ, ridge of the readout
    runs: int = 0  # number of runs to draw and fit, 32 at least, for the band of single runs; needs JAX

    def answer(self) -> Answer:
        """Errors in the limit, for a pool of this size, with unequal leverage, and the band of drawn runs."""
        from iclab.planning import figures, inverse

        found = inverse.forecast(
            self.dimension,
            context_length=self.context_length,
            sequences=self.sequences,
            tasks=self.tasks,
            noise=self.noise,
            ridge=self.ridge,
        )
        approximations = {"limit D → ∞": found.limit, "pool": found.pool}
        remarks = ["The correction for unequal leverage needs at least 5 dimensions."]
        if found.leverage is not None:
            approximations["pool and leverage"] = found.leverage
            remarks = [] if self.runs else ["With --runs 32 or more the means of drawn runs stand beside."]
        numbers = asdict(found)
        rows = [
            (name, *(f"{getattr(errors, kind):.4g}" for kind in KINDS)) for name, errors in approximations.items()
        ]
        if self.runs:
            mean, deviation = self._band()
            spans = (f"{getattr(mean, kind):.4g} ± {2 * getattr(deviation, kind):.2g}" for kind in KINDS)
            rows.append((f"{self.runs} runs", *spans))
            remarks += [
                _closest(approximations, mean),
                "The band is two standard deviations of single runs; about 95 % of runs fall into it.",
            ]
            numbers["runs"] = {"mean": asdict(mean), "deviation": asdict(deviation)}
        return Answer(
            ("approximation", *KINDS.values()),
            tuple(rows),
            tuple(remarks),
            numbers,
            lambda figure: figures.forecast_figure(figure, self, found),
        )

    def _band(self) -> "tuple[FittedErrors, FittedErrors]":
        from iclab.problem import Pretraining
        from iclab.provenance import simulating

        with simulating("leave --runs out"):
            from iclab.simulation.keys import key_of
            from iclab.simulation.pretraining.bands import band

        even = self.tasks is None or self.sequences % self.tasks == 0
        size = Pretraining(self.dimension, self.context_length, self.sequences, self.tasks, self.noise, balanced=even)
        return band(size, ridge=self.ridge, runs=self.runs, key=key_of(0))


def _closest(approximations: "Mapping[str, Errors]", mean: "FittedErrors") -> str:
    """The approximation closest to the mean of the drawn runs, for each error, with its distance."""
    said = []
    for kind, where in KINDS.items():
        height = float(getattr(mean, kind))
        gaps = {name: float(getattr(errors, kind)) - height for name, errors in approximations.items()}
        name = min(gaps, key=lambda one: abs(gaps[one]) if math.isfinite(gaps[one]) else math.inf)
        off = f" ({100 * gaps[name] / height:+.2g} %)" if height > 0 and math.isfinite(gaps[name]) else ""
        said.append(f"{where} {name}{off}")
    return f"Closest to the mean of these runs: {', '.join(said)}."


def _unless(ratios: Any) -> str:
    """The reason why κ_c does not apply; empty where it does."""
    if ratios.noise == 0:
        return ", which is the limit of little noise, and there is none"
    return ", which is the limit of long pretraining, and this is infinite" if math.isinf(ratios.tau) else ""


QUESTIONS: Mapping[str, type[Question]] = {
    "tasks": HowManyTasks,
    "sequences": HowManySequences,
    "context": HowLongContexts,
    "split": WhichSplit,
    "ridge": WhichRidge,
    "regime": MemorizeOrLearn,
    "diversity": HowManyTasksToRemember,
    "forecast": WhatWillARunShow,
    "depth": HowDeep,
    "depth-or-context": DepthOrContext,
    "spectrum": WhichSpectrum,
    "pool": WhichPool,
}


def _required(question: Any, quantity: str) -> Answer:
    """The sizes that reach an error, as ratios and, if D is given, as counts."""
    from iclab.planning import figures, inverse

    given = question.sizes()
    found = inverse.required(
        quantity, error=question.error, noise=question.noise, ridge=question.ridge, target=question.target, **given
    )
    header = (f"{quantity} from", "to")
    rows = [(f"{low:.6g}", f"{high:.6g}") for low, high in found.intervals]
    numbers = asdict(found)
    if question.dimension is not None:
        name, power = COUNTS[quantity]
        unit = whole_number("dimension", question.dimension) ** power
        counts = [_whole(low * unit, high * unit) for low, high in found.intervals]
        numbers[name] = [span for span in counts if span is not None]
        header += (f"{name} from", "to")
        ends = (("none", "none") if span is None else tuple(f"{end:.12g}" for end in span) for span in counts)
        rows = [(*row, *pair) for row, pair in zip(rows, ends, strict=True)]
    return Answer(
        header if rows else (),
        tuple(rows),
        (found.advice,),
        numbers,
        lambda figure: figures.requirement_figure(figure, question, quantity, found),
    )


def _whole(low: float, high: float) -> tuple[int | float, int | float] | None:
    """The first and the last whole number, one at least, in an interval whose ends are known to rounding."""
    first = low if math.isinf(low) else max(1.0, math.ceil(low * (1 - 1e-12)))
    last = high if math.isinf(high) else math.floor(high * (1 + 1e-12))
    return (first, last) if first <= last else None
