"""The result of an observation: measures of every matrix at every checkpoint, each with its null level."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from iclab.spectra.checkpoints.series import few
from iclab.spectra.checkpoints.tensors import Skipped
from iclab.spectra.measures.changes import Change
from iclab.spectra.observation.integrity import Integrity

__all__ = ["ChangePoint", "Curve", "MatrixSeries", "Row", "SpectralDynamics", "Status"]

Status = Literal["ok", "degenerate", "nonfinite", "skipped"]


class Row(NamedTuple):
    """One row of the tidy table: one number. Undefined numbers are nan, with a status and a reason.

    `tower` is the module path of the stack that the layer is in.
    """

    step: int
    tower: str
    layer: int | None
    head: int | None
    matrix: str
    measure: str
    value: float
    null: float
    spread: float
    gap: float
    norm: float
    status: Status
    reason: str


@dataclass(frozen=True)
class Curve:
    """One measure of one matrix along the steps; `null` and `spread` are its random-matrix baseline.

    `undefined` is the reason for which a value may be nan although the status of the matrix is ok.
    """

    values: Float[np.ndarray, "step"]
    null: float
    spread: float
    undefined: str = ""
    of_subspace: bool = False  # True where the spectral gap measures how well it is defined


@dataclass(frozen=True)
class MatrixSeries:
    """One matrix along the steps: its curves by measure, and at each step its norm, status and reason.

    `tower` is the module path of the stack that the layer is in. `layer` is None for embeddings, `head` for whole
    matrices. `role` is QK, "QK averaged" or OV for the circuits of a
    head, and mlp_in, mlp_out, embed, unembed, q, … for whole matrices, whose `matrix` is the name of the tensor.
    `shape` is (m, n), or (m, r, n) for a circuit of inner size r. `gap` is the spectral gap
    after the directions of overlaps; `leading` has the largest singular values.
    """

    tower: str
    layer: int | None
    head: int | None
    matrix: str
    role: str
    shape: tuple[int, ...]
    stored: str
    curves: Mapping[str, Curve]
    norm: Float[np.ndarray, "step"]
    gap: Float[np.ndarray, "step"]
    leading: Float[np.ndarray, "step value"]
    status: tuple[Status, ...]
    reason: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangePoint:
    """A change that was called in the curve of one measure of one matrix."""

    series: MatrixSeries
    measure: str
    change: Change


@dataclass(frozen=True, repr=False)
class SpectralDynamics:
    """Spectra of a series of checkpoints. Matrices share `steps`, in the order of the series.

    `changes` are those called among `tested` curves, of which one in twenty would be called if all were random walks;
    `uncertainty` is that of their steps. `skipped` has every tensor and file that was not analyzed.
    """

    steps: Int[np.ndarray, "step"]
    labels: tuple[str, ...]  # checkpoints, as paths below the one that was read
    matrices: tuple[MatrixSeries, ...]
    integrity: Integrity
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    changes: tuple[ChangePoint, ...] = ()
    tested: int = 0
    uncertainty: str = "none from one run"
    family: str = ""
    leading: int = 4  # directions of overlaps
    samples_per_step: float | None = None

    def __repr__(self) -> str:
        """The series in a few lines; `rows()` has its numbers."""
        found = self.integrity.findings
        return "\n".join(
            [
                f"Spectra of {len(self.matrices)} matrices along {len(self.steps)} checkpoints: "
                f"steps {few(self.steps.tolist())}",
                f"  family:    {self.family or 'unknown'}",
                f"  measures:  {textwrap.shorten(', '.join(self.measures), 100, placeholder=' …')}",
                f"  changes:   {len(self.changes)} of {self.tested} curves",
                f"  integrity: {f'{len(found)} findings' if found else 'nothing found'}",
                f"  left out:  {len(self.skipped)} tensors or files",
            ]
        )

    @property
    def measured(self) -> int:
        """Number of defined values."""
        curves = (curve for series in self.matrices for curve in series.curves.values())
        return sum(int(np.sum(~np.isnan(curve.values))) for curve in curves)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of all measures, in order."""
        return tuple(dict.fromkeys(name for series in self.matrices for name in series.curves))

    def rows(self) -> Iterator[Row]:
        """Rows of the tidy table, one number each."""
        for series in self.matrices:
            for measure, curve in series.curves.items():
                yield from _rows(self.steps, series, measure, curve)


def _rows(steps: Int[np.ndarray, "step"], series: MatrixSeries, measure: str, curve: Curve) -> Iterator[Row]:
    whose = (series.tower, series.layer, series.head, series.matrix, measure)
    gaps = series.gap if curve.of_subspace else np.full(len(steps), np.nan)
    columns = zip(
        steps.tolist(), curve.values.tolist(), gaps.tolist(), series.norm.tolist(), series.status, series.reason,
        strict=True,
    )  # fmt: skip
    for step, value, gap, norm, status, reason in columns:
        if status == "ok" and np.isnan(value):
            status, reason = "degenerate", curve.undefined
        yield Row(step, *whose, value, curve.null, curve.spread, gap, norm, status, reason)
