"""Rows of the lists of an inspection: findings, changes and what was skipped, for the terminal and for the page."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from iclab.inspection.behavior import Joined, behavior_changes
from iclab.spectra.measures.changes import Change
from iclab.spectra.observation.dynamics import ChangePoint, SpectralDynamics

__all__ = ["ChangeRow", "change_rows", "integrity_rows", "skipped_rows"]


class ChangeRow(NamedTuple):
    """One change point: its place, its size, and the columns of behavior that change with it, each with its step."""

    layer: str
    head: str
    matrix: str
    measure: str
    step: str
    size: str
    ratio: str  # F over its threshold
    coincident: list[tuple[str, str]]


def integrity_rows(dynamics: SpectralDynamics) -> list[tuple[str, str, str]]:
    """Severity, kind and message of each finding, the worst first."""
    return [(one.severity, one.kind, one.message) for one in dynamics.integrity.findings]


def skipped_rows(dynamics: SpectralDynamics) -> list[tuple[str, str, int]]:
    """Name, reason and count of everything that was not analyzed."""
    found = Counter((one.name, one.reason) for one in dynamics.skipped)
    return [(name, reason, count) for (name, reason), count in found.items()]


def change_rows(dynamics: SpectralDynamics, joined: Joined | None) -> list[ChangeRow]:
    """Change points, the largest F over its threshold first, with the changes of behavior that coincide."""
    behavior = behavior_changes(joined, dynamics.steps)
    ordered = sorted(dynamics.changes, key=lambda one: -one.change.statistic / one.change.threshold)
    return [_row(point, behavior, dynamics.steps) for point in ordered]


def _row(point: ChangePoint, behavior: Mapping[str, Change], steps: np.ndarray) -> ChangeRow:
    series, found = point.series, point.change
    return ChangeRow(
        "" if series.layer is None else str(series.layer), "" if series.head is None else str(series.head),
        series.matrix, point.measure, f"{found.step:g}", f"{found.size:+.3g}",
        f"{found.statistic / found.threshold:.2f}", _coincidences(point, behavior, steps),
    )  # fmt: skip


def _coincidences(point: ChangePoint, behavior: Mapping[str, Change], steps: np.ndarray) -> list[tuple[str, str]]:
    """The columns of behavior that change at the same checkpoint or the next to it, and the step at which they do."""
    index = {step: number for number, step in enumerate(steps.tolist())}
    called = {name: one.step for name, one in behavior.items() if one.called}
    return [(name, f"{step:g}") for name, step in called.items() if abs(index[step] - index[point.change.step]) <= 1]
