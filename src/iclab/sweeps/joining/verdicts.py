"""Verdicts over a grid: each claim judged at each point, with the rate of false discoveries controlled over all."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from iclab.claims import ALARM, Verdict
from iclab.store.cells import Cell, tree_of
from iclab.store.parts import Parts
from iclab.sweeps.grids.plan import SweepPlan, case_number
from iclab.sweeps.state import State

__all__ = ["GridVerdicts", "controlled", "judged"]


@dataclass(frozen=True)
class GridVerdicts:
    """The verdicts on one claim at the points of a grid; None at points where not all seeds are done."""

    meaning: str
    measure: str
    relative: bool
    at_most: bool
    verdicts: np.ndarray
    """Of Verdict or None, in the shape of the grid."""
    refuted: np.ndarray
    """True where the claim does not hold, false discoveries controlled over all claims and points."""

    @property
    def values(self) -> np.ndarray:
        """The end of the 95 % interval at each point."""
        return np.array([np.nan if one is None else one.value for one in self.verdicts.flat]).reshape(self.shape)

    @property
    def asked(self) -> np.ndarray:
        """The tolerance or bound at each point."""
        return np.array([np.nan if one is None else one.yardstick for one in self.verdicts.flat]).reshape(self.shape)

    @property
    def outcomes(self) -> np.ndarray:
        """holds, does not hold, open, or nothing where no verdict is there."""
        words = [
            "" if one is None else "does not hold" if refuted else "holds" if one.holds else "open"
            for one, refuted in zip(self.verdicts.flat, self.refuted.flat, strict=True)
        ]
        return np.array(words).reshape(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the grid."""
        return self.verdicts.shape

    def count(self, outcome: str) -> int:
        """Number of points with this outcome."""
        return int(np.sum(self.outcomes == outcome))

    @property
    def alone(self) -> int:
        """Number of points whose verdict alone would say that the claim does not hold."""
        return sum(1 for one in self.verdicts.flat if one is not None and one.outcome == "does not hold")


def judged(folder: Path, plan: SweepPlan) -> list[GridVerdicts]:
    """The verdicts on all claims at all points of a plan whose seeds are all done."""
    state = State(folder, plan)
    points = {int(number): point for point, number in enumerate(state.points)}
    asked = set(plan.numbers)
    cells: dict[int, list[Cell]] = {}
    numbers: dict[str, int] = {}

    def wanted(case: str, seed: int | None) -> bool:
        if case not in numbers:
            numbers[case] = case_number(case)
        return seed in asked and numbers[case] in points

    for (case, _), cell in Parts(folder, plan.study).chosen(wanted).items():
        cells.setdefault(points[numbers[case]], []).append(cell)
    found: dict[str, list[Verdict | None]] = {}
    for point, several in cells.items():
        if len(several) == len(asked):
            tree = tree_of(several, study=plan.study.name, version=plan.study.version)
            for verdict in plan.study.verdicts(tree):
                found.setdefault(verdict.meaning, [None] * plan.points)[point] = verdict
    refuted = controlled([[1.0 if one is None else one.p for one in verdicts] for verdicts in found.values()])
    return [_of_claim(verdicts, refuted[place], plan.shape) for place, verdicts in enumerate(found.values())]


def controlled(p: Sequence[Sequence[float]]) -> np.ndarray:
    """True for the p-values that stay discoveries when the share of false ones among them is held below 0.1 %.

    By the rule of Benjamini and Yekutieli, which holds however the p-values depend on one another: neighbors on a
    grid share theory, and often seeds.

    Source: benjamini2001control, theorem 1.3
    """
    from scipy.stats import false_discovery_control

    values = np.asarray(p, dtype=float)
    if not values.size:
        return values.astype(bool)
    return np.reshape(false_discovery_control(values.ravel(), method="by"), values.shape) <= ALARM


def _of_claim(verdicts: list[Verdict | None], refuted: np.ndarray, shape: tuple[int, ...]) -> GridVerdicts:
    first = next(one for one in verdicts if one is not None)
    whole = np.empty(len(verdicts), dtype=object)
    whole[:] = verdicts
    return GridVerdicts(
        first.meaning, first.measure, first.relative, first.at_most, whole.reshape(shape), refuted.reshape(shape)
    )
