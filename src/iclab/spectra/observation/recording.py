"""Series of matrices, put together from the measurements of all checkpoints."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from iclab.spectra.measures import null
from iclab.spectra.measures.ranks import participation_ratio
from iclab.spectra.observation.dynamics import Curve, MatrixSeries, Status
from iclab.spectra.observation.measurements import MatrixKey, Measurement, ranked
from iclab.spectra.observation.selection import BALANCE, DISTANCES, OVERLAPS, RANKS, Selection

__all__ = ["SHOWN", "Recorder"]

SHOWN = 16  # leading singular values that are kept of each matrix
_FADED = 1e-3  # fraction of its largest norm below which a matrix may be rounding noise
_TOGETHER = 2**15  # singular values whose ranks are computed together
_EMPTY = Measurement(MatrixKey("", None, None, ""), "")


@dataclass
class Recorder:
    """Series under construction, one for each matrix, of `count` checkpoints."""

    count: int
    selection: Selection
    unread: dict[int, str] = field(default_factory=dict)  # unreadable checkpoints, with reasons
    _slots: dict[MatrixKey, "_Slot"] = field(default_factory=dict)
    _waiting: list[tuple[int, Measurement]] = field(default_factory=list)
    _held: int = 0  # numbers of the measurements whose ranks are missing

    def add(self, index: int, measurement: Measurement) -> None:
        """Add a measurement at a checkpoint; its ranks are computed together with those of others."""
        self._waiting.append((index, measurement))
        self._held += len(measurement.leading)
        if self._held > _TOGETHER:
            self._settle()

    def _settle(self) -> None:
        measurements = ranked((measurement for _, measurement in self._waiting), self.selection)
        for (index, _), measurement in zip(self._waiting, measurements, strict=True):
            if measurement.key not in self._slots:
                self._slots[measurement.key] = _Slot(self.count)
            self._slots[measurement.key].add(index, measurement)
        self._waiting, self._held = [], 0

    def matrices(self) -> tuple[MatrixSeries, ...]:
        """Series of all matrices, with the null level of each measure."""
        self._settle()
        return tuple(
            slot.series(key, self.selection, self.unread) for key, slot in sorted(self._slots.items(), key=_order)
        )


def _order(item: tuple[MatrixKey, "_Slot"]) -> tuple:
    key, slot = item
    order = ("QK", "QK averaged", "OV", "QK balance", "OV balance")
    rank = order.index(slot.last.role) if slot.last.role in order else len(order)
    return key.tower, key.layer is None, key.layer or 0, rank, key.head or 0, key.matrix


class _Slot:
    """Arrays of one matrix over the checkpoints."""

    def __init__(self, count: int) -> None:
        self.values: dict[str, Float[np.ndarray, "step"]] = {}
        self.norm, self.gap = np.full(count, np.nan), np.full(count, np.nan)
        self.leading = np.full((count, SHOWN), np.nan)
        self.status: list[Status] = ["skipped"] * count
        self.reason = ["not in this checkpoint"] * count
        self.shapes: list[tuple[int, ...]] = [()] * count
        self.last = _EMPTY  # last measurement with numbers, else the last

    def add(self, index: int, measurement: Measurement) -> None:
        for name, value in measurement.measures.items():
            self.values.setdefault(name, np.full(len(self.norm), np.nan))[index] = value
        leading = measurement.leading[:SHOWN]
        self.norm[index], self.gap[index] = measurement.norm, measurement.gap
        self.leading[index, : len(leading)] = leading
        self.status[index], self.reason[index] = measurement.status, measurement.reason
        self.shapes[index] = measurement.shape
        if measurement.measures or not self.last.measures:
            self.last = measurement

    def series(self, key: MatrixKey, selection: Selection, unread: dict[int, str]) -> MatrixSeries:
        for index, reason in unread.items():
            self.status[index], self.reason[index] = "skipped", reason
        self._flag_faded()
        self._flag_reshaped()
        last = self.last
        curves = {name: self._curve(name, selection) for name in selection.measures if name in self.values}
        if not curves:  # nothing was measured: one curve carries the reason
            nothing = np.full(len(self.norm), np.nan)
            curves = {selection.measures[0]: Curve(nothing, np.nan, np.nan, "; ".join(last.notes) or "not measured")}
        return MatrixSeries(
            key.tower, key.layer, key.head, key.matrix, last.role, last.shape, last.stored, curves, self.norm,
            self.gap, self.leading, tuple(self.status), tuple(self.reason), last.notes,
        )  # fmt: skip

    def _flag_faded(self) -> None:
        """Flag matrices of vanishing norm, which may be rounding noise."""
        largest = np.max(self.norm, initial=0.0, where=np.isfinite(self.norm))
        for index in np.flatnonzero((self.norm < _FADED * largest) & (self.norm > 0)):
            if self.status[index] == "ok":
                self.status[index] = "degenerate"
                self.reason[index] = f"norm below {_FADED:g} of its largest: it may be rounding noise"

    def _flag_reshaped(self) -> None:
        for index, shape in enumerate(self.shapes):
            if shape and shape != self.last.shape and self.status[index] == "ok":
                self.status[index] = "degenerate"
                self.reason[index] = f"shape {shape} here and {self.last.shape} later: levels are those of the latter"

    def _curve(self, name: str, selection: Selection) -> Curve:
        values, last, k = self.values[name], self.last, selection.leading
        if name in RANKS:
            why = "one value alone has no marginal rank" if name.startswith("marginal") else "not defined here"
            return Curve(values, *_rank_level(last, name), why)
        size = last.shape[-1]
        if name in OVERLAPS:
            level = null.overlap_level(size, k) if k <= size else (np.nan, np.nan)
            earlier = "no checkpoint before it, or " if name == "overlap_with_previous" else ""
            why = f"{earlier}fewer than {k} directions above rounding here or there"
            return Curve(values, *level, why, of_subspace=True)
        if name in BALANCE:
            return Curve(values, *last.level, "nothing has moved since the first checkpoint that is read")
        assert name in DISTANCES
        why = "full row rank, where it is zero whatever the matrix is; a zero reference; or another shape"
        return Curve(values, *_distance_level(last, name), why)


def _rank_level(last: Measurement, name: str) -> tuple[float, float]:
    if last.rotated is not None:
        return null.averaged_level(last.shape, name, rotated=last.rotated)  # type: ignore[arg-type]
    return null.level(last.shape, name)  # type: ignore[arg-type]


def _distance_level(last: Measurement, name: str) -> tuple[float, float]:
    """Null level for random matrices of the shape and norm of the reference."""
    size, rank = last.shape[-1], min(last.shape)
    if last.norm == 0:
        return np.nan, np.nan
    if name == "procrustes_to_final":
        return null.procrustes_level(last.leading, last.shape)  # type: ignore[arg-type]
    spread_over = participation_ratio(last.leading)
    return null.distance_level(size, rank, participation=spread_over) if rank < size else (np.nan, np.nan)
