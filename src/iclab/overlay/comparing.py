"""A training run beside theory: from its own start, in its own units, with verdicts."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.attention import Layer, SeparateAttention
from iclab.claims import Verdict
from iclab.numerics import Validated, instance, require
from iclab.overlay.conventions import Conventions
from iclab.overlay.curves import DrawnSets, moments_of, strays, theory_loss, whole
from iclab.overlay.gaps import Factors
from iclab.overlay.hints import explanations, observed_factors, said
from iclab.overlay.judging import diverging, of_gap, of_landmarks, unknown
from iclab.overlay.levels import LEVELS, TIMES
from iclab.overlay.logs import LossLog, log_of
from iclab.overlay.stand_ins import stand_in
from iclab.overlay.starts import turned
from iclab.problem import Regression

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "compare", "compared"]

Array = np.ndarray
Curve = Float[Array, "record"]
RECORDS = 400  # of a log that are compared; more are thinned out, evenly and by equal ratios


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run beside theory: curves as mean squared errors against the clock of the log, verdicts and hints."""

    problem: Regression
    conventions: Conventions
    log: LossLog
    run: Curve
    theory: Curve | None  # where the start is known
    levels: Float[Array, "plateau"]
    draws: Float[Array, "draw record"] | None  # drawn training sets
    verdicts: tuple[Verdict, ...]
    hints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0  # of computation

    def __repr__(self) -> str:
        judged = [f"  {one.meaning} {one.answer}" for one in self.verdicts]
        return "\n".join(["Comparison of a run with theory", *judged, *(f"  {hint}" for hint in self.hints)])

    def draw(self) -> "Figure":
        """The figure: drawn training sets as a band, the run, and theory over both."""
        from iclab.overlay.page import drawn

        return drawn(self)

    def page(self, folder: str | Path) -> Path:
        """The comparison as a page, index.html in a folder, its files beside it. Returns the path of the page."""
        from iclab.overlay.page import written

        return written(self, Path(folder))

    def _repr_html_(self) -> str:
        from iclab.overlay.page import fragment

        return fragment(self)


def compare(
    times: Validated[ArrayLike],
    losses: Validated[ArrayLike],
    problem: Validated[Regression],
    conventions: Validated[Conventions],
) -> Comparison:
    """A training run, its losses at `times` in steps of the trainer, beside the theory of its problem.

    With the start in the conventions theory is the gradient flow from these very weights; drawn training sets of
    the same size, trained the same way, tell how far a right run may be from it. Nothing is fitted: where scale or
    clock are off by a factor, hints name the convention that would explain it.

    >>> iclab.compare(steps, losses, problem, Conventions(0.001, normalization="none", sequences=5000, start=start))

    Raises ValueError for lists that do not fit, and for a start of another dimension.
    """
    instance("problem", problem, Regression)
    instance("conventions", conventions, Conventions)
    return compared(log_of(times, losses), problem, conventions)


def compared(log: LossLog, problem: Regression, conventions: Conventions) -> Comparison:
    """The comparison of a log that was read."""
    begun = time.perf_counter()
    log, notes = _thinned(log), list(log.notes)
    start = _checked_start(log, problem, conventions)
    if strays(start) and not whole(problem, start):
        notes.append("theory leaves out values of inputs and keys of labels, with which the run and drawn sets start")
    drawn = _drawn(log, problem, conventions, start, notes)
    here = _judged(log, problem, start, drawn, conventions, missing=notes[-1] if drawn is None else "")
    hints: list[str] = []
    if any(one.outcome == "does not hold" for one in here.verdicts):
        hints = _hints(here, start, drawn)
    return replace(here, hints=tuple(hints), notes=tuple(notes), seconds=time.perf_counter() - begun)


def _hints(here: Comparison, start: Layer, drawn: DrawnSets | None) -> list[str]:
    """Hints on a run that is not where theory says."""
    log, problem, conventions = here.log, here.problem, here.conventions
    if here.theory is not None:
        others = [] if drawn is None else explanations(
            conventions.others(), lambda other: _judged(log, problem, start, drawn, other).verdicts
        )  # fmt: skip
        seen = observed_factors(log, conventions, lambda clock: theory_loss(problem, conventions, start, clock))
        return said(conventions, others, seen)

    def again(other: Conventions) -> tuple[Verdict, ...]:
        stand = _checked_start(log, problem, other)
        return _judged(log, problem, stand, _drawn(log, problem, other, stand, []), other).verdicts

    alike = (other for other in conventions.others() if other.normalization == conventions.normalization)
    return said(conventions, explanations(alike, again), Factors(1.0, float(here.run[0] / here.levels[0]), 0.0))


def _thinned(log: LossLog) -> LossLog:
    count = len(log.clock)
    if count <= RECORDS:
        return log
    even, ratios = np.linspace(0, count - 1, RECORDS // 2), np.geomspace(1, count - 1, RECORDS // 2)
    kept = np.unique(np.round(np.concatenate([even, ratios])).astype(int))
    return replace(log, clock=log.clock[kept], loss=log.loss[kept])


def _checked_start(log: LossLog, problem: Regression, conventions: Conventions) -> Layer:
    """The start of the run, or one like it where that is not known."""
    start, d = conventions.start, problem.dimension
    if start is None:
        heads = conventions.heads or d
        return stand_in(log, problem, conventions, _levels(problem, conventions, heads))
    require(
        start.dimension == d,
        f"start must have the dimension of the problem, D = {d}; got {start.dimension}. Give that of the run.",
    )
    if problem.order != tuple(range(d)):
        return turned(start, np.eye(d)[:, problem.order])  # weights stand in the order that was stated
    return start


def _levels(problem: Regression, conventions: Conventions, modes: int | None) -> Float[Array, "plateau"]:
    """Levels at which the loss rests: two for merged attention, one for each of so many modes of separate."""
    from iclab.theory import dynamics

    levels = dynamics.plateaus(moments_of(problem, conventions))
    return levels[[0, -1]] if conventions.kind == "merged" or modes is None else levels[: modes + 1]


def _drawn(
    log: LossLog, problem: Regression, conventions: Conventions, start: Layer, notes: list[str]
) -> DrawnSets | None:
    if conventions.drawn is None:
        notes.append(
            "the number of training sequences is not stated, so that the sampling error of the run is not known: "
            "--sequences, or --batch for fresh ones"
        )
        return None
    if not np.all(log.clock == np.round(log.clock)):
        notes.append(f"{log.name} must count steps in whole numbers for the sampling error to be known")
        return None
    try:
        return DrawnSets(problem, conventions, start)
    except (ImportError, MemoryError) as error:
        notes.append(f"the sampling error of the run is not known: {error}")
        return None


def _judged(
    log: LossLog, problem: Regression, start: Layer, drawn: DrawnSets | None, conventions: Conventions,
    *, missing: str = "",
) -> Comparison:  # fmt: skip
    """The comparison in some conventions, without hints."""
    modes = start.heads * start.rank if isinstance(start, SeparateAttention) else None
    run, levels = conventions.errors(log.loss), _levels(problem, conventions, modes)
    known = conventions.start is not None
    theory = theory_loss(problem, conventions, start, log.clock) if known else None
    verdicts, draws = [], None
    try:
        draws = None if drawn is None else drawn.losses(conventions, log.clock)
    except ArithmeticError:
        verdicts += [] if theory is None else [diverging(run, theory, surely=_surely(drawn, conventions, log))]
    if theory is not None and draws is not None:
        verdicts.append(of_gap(run, theory, draws))
    elif theory is not None and not verdicts:
        verdicts.append(unknown(run, theory, missing))
    if draws is not None:
        verdicts += of_landmarks(log.clock, run, levels, draws, (LEVELS, TIMES) if known else (LEVELS,))
    return Comparison(problem, conventions, log, run, theory, levels, draws, tuple(verdicts))


def _surely(drawn: DrawnSets | None, conventions: Conventions, log: LossLog) -> bool:
    """True where descent diverges at a third of the rate too: a right run of this rate would not have come so far."""
    assert drawn is not None
    try:
        drawn.losses(replace(conventions, learning_rate=conventions.learning_rate / 3), log.clock)
    except ArithmeticError:
        return True
    return False
