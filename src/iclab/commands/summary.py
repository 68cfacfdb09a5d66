"""An observation in the terminal: integrity first, then what was measured, what changed, what was left out."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from iclab.commands.terminal import print_table
from iclab.inspection.behavior import Joined
from iclab.inspection.rows import change_rows, integrity_rows, skipped_rows
from iclab.inspection.tables import Runs
from iclab.spectra.checkpoints.names import terminal
from iclab.spectra.observation.dynamics import Curve, MatrixSeries, SpectralDynamics

_SHOWN = 20  # lines of a list in the terminal; files have all of it
_HEADLINES = ("effective_rank", "overlap_with_final", "distance_to_final", "imbalance_since_first")


def print_summary(runs: Runs, joined: Joined | None) -> None:
    """All of it for each run; behavior is that of the first."""
    for number, (name, dynamics) in enumerate(runs.items()):
        if len(runs) > 1:
            print(f"\nrun: {name}")
        _integrity(dynamics)
        _measures(dynamics)
        _changes(dynamics, joined if number == 0 else None)
        _list("left out", [row[:2] for row in skipped_rows(dynamics)], ("tensor or file", "reason"))
        for note in dynamics.notes:
            print(f"note: {terminal(note)}")
    if joined is not None:
        _behavior(joined)


def _integrity(dynamics: SpectralDynamics) -> None:
    rows = integrity_rows(dynamics)
    if not rows:
        print("integrity: nothing found")
    _list("integrity", rows, ("", "integrity", "what was found"))


def _measures(dynamics: SpectralDynamics) -> None:
    """One line for each kind of matrix and layer: medians over heads at the first and at the last step."""
    groups: dict[tuple, list[MatrixSeries]] = defaultdict(list)
    for series in dynamics.matrices:
        groups[series.tower, series.layer, series.role].append(series)
    lines, shown = [], [name for name in dynamics.measures if name in _HEADLINES] or dynamics.measures
    for (tower, layer, role), matrices in groups.items():
        for measure in shown:
            curves = [series.curves[measure] for series in matrices if measure in series.curves]
            if curves:
                place = "" if layer is None else f"{tower}.{layer}" if tower else str(layer)
                lines.append((place, role, str(len(curves)), measure, *_levels(curves)))
    header = ("layer", "matrix", "median of", "measure", "first", "last", "random")
    _list("measures (medians)", lines, header)
    bad = sum(status in ("nonfinite", "degenerate") for series in dynamics.matrices for status in series.status)
    if bad:
        print(f"{bad} readings of matrices are not finite or degenerate: their rows say why")


def _levels(curves: Sequence[Curve]) -> tuple[str, str, str]:
    first, last = (_median([curve.values[index] for curve in curves]) for index in (0, -1))
    level, spread = _median([curve.null for curve in curves]), _median([curve.spread for curve in curves])
    return first, last, f"{level} ± {spread}" if level else ""


def _median(values: Iterable[float]) -> str:
    defined = [value for value in values if np.isfinite(value)]
    return f"{np.median(defined):.4g}" if defined else ""


def _changes(dynamics: SpectralDynamics, joined: Joined | None) -> None:
    if not dynamics.tested:
        return
    lines = [
        (
            row.layer, row.head, row.matrix, row.measure, row.step, row.size,
            ", ".join(f"{name} at {step}" for name, step in row.coincident),
        )
        for row in change_rows(dynamics, joined)
    ]  # fmt: skip
    header = ("layer", "head", "matrix", "changes", "from step", "by", "coincides with")
    shown = len(header) - (joined is None)  # without a behavior there is nothing to coincide with
    _list("changes", [line[:shown] for line in lines], header[:shown])
    print(
        f"{len(lines)} of {dynamics.tested} curves change beyond 95 % of random walks (one in twenty walks would); "
        f"uncertainty of the step: {dynamics.uncertainty}"
    )


def _behavior(joined: Joined) -> None:
    for said, steps in (
        ("rows of the behavior without a checkpoint", joined.unmatched),
        ("checkpoints without a row of behavior", joined.absent),
    ):
        if steps:
            more = f" and {len(steps) - _SHOWN} more" if len(steps) > _SHOWN else ""
            print(f"{said}: step {', '.join(map(str, steps[:_SHOWN]))}{more}")


def _list(title: str, lines: Iterable[Sequence[str]], header: Sequence[str]) -> None:
    """A table of the first lines; the others are counted."""
    every = list(lines)
    if not every:
        return
    print_table(header, [[terminal(cell) for cell in line] for line in every[:_SHOWN]])
    if len(every) > _SHOWN:
        print(f"… and {len(every) - _SHOWN} more of {title}: see the files")
    print()
