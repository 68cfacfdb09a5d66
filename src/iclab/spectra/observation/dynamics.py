"""What observation returns: every matrix at every checkpoint, each number beside what random matrices show."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from iclab.spectra.checkpoints.tensors import Skipped
from iclab.spectra.measures.changes import Change
from iclab.spectra.measures.factors import Array
from iclab.spectra.observation.integrity import Integrity

Status = Literal["ok", "degenerate", "nonfinite", "skipped"]


class Row(NamedTuple):
    """One number of the tidy table. Undefined numbers are nan, and the status and the reason say why."""

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
    """One measure of one matrix along the steps; `null` and `spread` are its level on random numbers.

    `undefined` says why a value of a matrix that is otherwise in order may be nan.
    """

    values: Float[Array, "step"]
    null: float
    spread: float
    undefined: str = ""
    of_subspace: bool = False  # whether the gap says how well it is defined


@dataclass(frozen=True)
class MatrixSeries:
    """One matrix through training: its curves by measure, and at each step its norm and how it fared.

    `layer` is None for embeddings, `head` for whole matrices. `role` is QK, "QK averaged" or OV for the circuits of a
    head, and mlp_in, mlp_out, embed, unembed, q, … for whole matrices, whose `matrix` is the name of the tensor.
    `shape` is (m, n), or (m, r, n) for a circuit of inner size r. `gap` is the one after the leading directions that
    overlaps look at; `leading` has the largest singular values, as many as a fan shows.
    """

    tower: str
    layer: int | None
    head: int | None
    matrix: str
    role: str
    shape: tuple[int, ...]
    stored: str
    curves: Mapping[str, Curve]
    norm: Float[Array, "step"]
    gap: Float[Array, "step"]
    leading: Float[Array, "step value"]
    status: tuple[Status, ...]
    reason: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangePoint:
    """A change that was called: which curve of which series, and where."""

    series: MatrixSeries
    measure: str
    change: Change


@dataclass(frozen=True)
class SpectralDynamics:
    """What a series of checkpoints shows. Tracks share `steps`, which stand in the order of the series.

    `changes` are those called among `tested` curves, of which one in twenty would be called if all were random walks;
    `uncertainty` says what is known of their place. `skipped` has every tensor and file that was not analysed.
    """

    steps: Int[Array, "step"]
    labels: tuple[str, ...]  # the checkpoints, as paths below the one that was read
    matrices: tuple[MatrixSeries, ...]
    integrity: Integrity
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    changes: tuple[ChangePoint, ...] = ()
    tested: int = 0
    uncertainty: str = "none from one run"
    family: str = ""
    leading: int = 4  # directions that overlaps look at
    samples_per_step: float | None = None

    @property
    def measured(self) -> int:
        """How many numbers are defined."""
        curves = (curve for series in self.matrices for curve in series.curves.values())
        return sum(int(np.sum(~np.isnan(curve.values))) for curve in curves)

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that were taken, in order."""
        return tuple(dict.fromkeys(name for series in self.matrices for name in series.curves))

    def rows(self) -> Iterator[Row]:
        """The tidy table, one number at a time."""
        for series in self.matrices:
            for measure, curve in series.curves.items():
                yield from _rows(self.steps, series, measure, curve)


def _rows(steps: Int[Array, "step"], series: MatrixSeries, measure: str, curve: Curve) -> Iterator[Row]:
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
