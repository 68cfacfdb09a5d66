"""The neighborhood of a planned answer, drawn: sizes around those that `iclab plan` names, as one axis of a sweep.

Runs are drawn at each of them, so that the plan is held against simulation and not against its own theory.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.numerics import Checked, Count, Nonnegative, require
from iclab.outcomes import Labeled, labeled, parts
from iclab.problem import Pretraining, Ratios
from iclab.study import Key, Preset, Study
from iclab.sweeps.grids.axes import Axis, rounded

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["RUN", "Around", "Case", "around"]

FACTORS = (0.25, 0.5, 1 / math.sqrt(2), 1.0, math.sqrt(2), 2.0, 4.0)
STANDARD_ERRORS = 2.0  # beyond which two means differ
ERRORS = ("icl", "idg")


@dataclass(frozen=True)
class Case(Checked):
    """One pretraining run, and the ridge of its readout."""

    dimension: Count = 16  # D, entries of an input
    context_length: Count = 16  # N, labeled examples of a context
    sequences: Count = 256  # n, pretraining sequences
    tasks: int | None = None  # K, tasks of the pool; none: a fresh task in every context
    noise: Nonnegative = 0.0  # ρ, variance of the label noise
    ridge: Nonnegative = 1e-3  # λ, ridge of the readout

    def __post_init__(self) -> None:
        super().__post_init__()
        self.run()

    def run(self) -> Pretraining:
        """The sizes of the run; a pool that does not divide the sequences is used at random."""
        even = self.tasks is None or self.sequences % self.tasks == 0
        sizes = (self.dimension, self.context_length, self.sequences, self.tasks, self.noise)
        return Pretraining(*sizes, balanced=even)


def theory(case: Case) -> dict[str, Labeled]:
    """Errors at the sizes of the run: in the limit, and for its pool and the leverage of its sequences."""
    from iclab.planning import forecast

    sizes = parts(case, "context_length", "sequences", "tasks", "noise", "ridge")
    found = forecast(case.dimension, **sizes)
    run = found.leverage or found.pool
    return {"limit": labeled({}, **parts(found.limit, *ERRORS)), "run": labeled({}, **parts(run, *ERRORS))}


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of one drawn run."""
    from iclab.simulation import pretraining

    return {"run": labeled({}, **parts(pretraining.fit(case.run(), ridge=case.ridge, key=key).errors(), *ERRORS))}


def _undrawn(*_: Any) -> None:
    """The page of the sweep draws it."""


RUN = Study(
    name="planned-run",
    question="What errors does a pretraining run of these sizes show?",
    version=1,
    presets={"quick": Preset(Case(), seeds=16)},
    theory=theory,
    simulation=simulation,
    figure=_undrawn,
    claims=(),
)


@dataclass(frozen=True)
class Around:
    """A planned answer and the sizes around it."""

    axis: Axis
    base: dict[str, Any]
    planned: int
    """The place of the planned answer on the axis."""
    target: str
    """icl or idg, the error that was planned for."""
    error: float | None
    """The error to be reached; None where the least is looked for."""

    def verdict(self, tree: "xr.DataTree") -> str:
        """A sentence that says whether the drawn runs bear the plan out."""
        drawn = tree["simulation/run"].to_dataset()[self.target].values
        mean, spread = drawn.mean(axis=1), drawn.std(axis=1, ddof=1) / math.sqrt(drawn.shape[1])
        told = [f"{mean[i]:.4g} ± {spread[i]:.2g}" for i in range(len(mean))]
        here, name = self.planned, self.axis.names[0].replace("_", " ")
        values = [point[0] for point in self.axis.points]
        planned = f"{name} {values[here]:g}"
        if self.error is not None:
            reached = "is" if mean[here] - self.error <= STANDARD_ERRORS * spread[here] else "is not"
            return (
                f"the error {self.error:g} {reached} reached at the planned {planned}, where runs show {told[here]}"
            )
        best = int(np.argmin(mean))
        if mean[here] - mean[best] <= STANDARD_ERRORS * math.hypot(spread[here], spread[best]):
            beside = "" if best == here else f"; {told[best]} at {values[best]:g} is not told apart from it"
            return f"the planned optimum is the drawn one: {planned}, where runs show {told[here]}{beside}"
        return (
            f"the planned optimum is not the drawn one: runs show {told[here]} at the planned {planned}, and "
            f"{told[best]} at {values[best]:g}"
        )


def around(name: str, question: Any) -> Around:
    """The sizes around the answer to a question of `iclab plan`: split, ridge, tasks, sequences or context.

    Raises ValueError for other questions, without a dimension, and where no size answers the question.
    """
    require(
        name in ("split", "ridge", *_COUNTS),
        f"a plan must be split, ridge, tasks, sequences or context to be drawn around; got {name!r}.",
    )
    require(
        getattr(question, "dimension", None) is not None,
        f"runs must have a dimension to be drawn; got none. Add --dimension to the question {name}.",
    )
    return _split(question) if name == "split" else _ridge(question) if name == "ridge" else _required(name, question)


_COUNTS = {"tasks": ("kappa", 1), "sequences": ("tau", 2), "context": ("alpha", 1)}
_FIELDS = {"kappa": "tasks", "tau": "sequences", "alpha": "context_length"}


def _split(question: Any) -> Around:
    from iclab.planning.inverse import BEST, best_split
    from iclab.theory.generalization import best_ridge

    d, kappa = question.dimension, question.sizes()["kappa"]
    given = {"kappa": kappa, "noise": question.noise, "target": question.target}
    found = best_split(question.tokens, dimension=d, ridge=question.ridge, **given)
    points = []
    for length in _whole([factor * found.context_length for factor in FACTORS]):
        sequences = max(1, question.tokens // length)
        ratios = Ratios(length / d, kappa, sequences / d**2, question.noise)
        own = best_ridge(ratios, target=question.target) if question.ridge == BEST else question.ridge
        points.append((length, sequences, float(own)))
    lengths = [length for length, _, _ in points]
    axis = Axis(("context_length", "sequences", "ridge"), tuple(rounded(points)))
    base = {"dimension": d, "noise": question.noise, "tasks": _pool(kappa, d)}
    return Around(axis, base, lengths.index(found.context_length), question.target, None)


def _ridge(question: Any) -> Around:
    from iclab.theory.generalization import best_ridge

    ratios = Ratios(**question.sizes(), noise=question.noise)
    best = float(best_ridge(ratios, target="icl"))
    require(0 < best < math.inf, f"the best ridge must be positive and finite to be drawn around; got {best:g}.")
    points = [(best * factor,) for factor in (0.01, 0.1, 1 / 3, 1.0, 3.0, 10.0, 100.0)]
    return Around(Axis(("ridge",), tuple(rounded(points))), _sizes(question), 3, "icl", None)


def _required(name: str, question: Any) -> Around:
    from iclab.planning.inverse import BEST, required
    from iclab.theory.generalization import best_ridge

    quantity, power = _COUNTS[name]
    given = question.sizes()
    asked = {"error": question.error, "noise": question.noise, "ridge": question.ridge, "target": question.target}
    found = required(quantity, **asked, **given)
    least = min((low for low, _ in found.intervals), default=math.inf)
    require(0 < least < math.inf, f"a finite size must answer the question to be drawn around. {found.advice}")
    unit, points = question.dimension**power, []
    start = math.ceil(least * unit * (1 - 1e-12))
    for count in _whole([factor * start for factor in FACTORS]):
        ratios = Ratios(**{**given, quantity: count / unit}, noise=question.noise)
        own = best_ridge(ratios, target=question.target) if question.ridge == BEST else question.ridge
        points.append((count, float(own)))
    base = {field: value for field, value in _sizes(question).items() if field != _FIELDS[quantity]}
    place = [count for count, _ in points].index(start)
    return Around(
        Axis((_FIELDS[quantity], "ridge"), tuple(rounded(points))), base, place, question.target, question.error
    )


def _sizes(question: Any) -> dict[str, Any]:
    """Whole sizes of the given ratios."""
    d, given = question.dimension, question.sizes()
    found: dict[str, Any] = {"dimension": d, "noise": question.noise}
    if given.get("alpha") is not None:
        found["context_length"] = max(1, round(given["alpha"] * d))
    if given.get("tau") is not None:
        found["sequences"] = max(1, round(given["tau"] * d**2))
    if given.get("kappa") is not None:
        found["tasks"] = _pool(given["kappa"], d)
    return found


def _pool(kappa: float, dimension: int) -> int | None:
    return None if math.isinf(kappa) else max(1, round(kappa * dimension))


def _whole(sizes: Sequence[float]) -> list[int]:
    """Different whole numbers, one at least, in order."""
    return sorted({max(1, round(size)) for size in sizes})
