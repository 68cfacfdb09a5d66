"""Intervals that the sampling of data leaves for the levels and drop times of a case whose spectrum they are."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.attention import MergedAttention, SeparateAttention
from iclab.theory import dynamics

if TYPE_CHECKING:
    from iclab.study import Study

__all__ = ["Bands", "bands", "measured"]

SHOWN = 8  # levels in a table; of more the first ones and the last


def measured(case: Any) -> bool:
    """True for a case whose spectrum was measured on data."""
    return getattr(getattr(case, "problem", None), "sampling", None) is not None


@dataclass(frozen=True)
class Bands:
    """Levels and drop times of a problem, each with the ends of its 95 % interval, as rows of a table."""

    rows: tuple[tuple[str, float, float, float], ...]
    tails: float | None  # least loss with the fourth moments of rows / that of normal inputs, where tails are heavy

    @property
    def words(self) -> list[tuple[str, str, str]]:
        """The rows as they are read."""
        return [(name, f"{value:.4g}", _interval(low, high)) for name, value, low, high in self.rows]

    def plain(self) -> dict[str, Any]:
        """The bands as JSON takes them."""
        entries = [{"name": name, "value": v, "low": _number(a), "high": _number(b)} for name, v, a, b in self.rows]
        return {"bands": entries, "tails": self.tails}


def bands(study: "Study", case: Any) -> Bands:
    """The bands of a case measured on data; drop times from its first start, where its heads have rank one."""
    problem = case.problem
    start = None if study.start is None else study.start(case, 0)
    if not (isinstance(start, MergedAttention) or (isinstance(start, SeparateAttention) and start.rank == 1)):
        start = None
    levels = dynamics.level_band(problem)
    rows = [_row(f"level {m}", levels, m) for m in _shown(len(levels.value))]
    if start is not None:
        try:
            times = dynamics.drop_band(problem, start)
            several = len(times.value) > 1
            rows += [
                _row(f"drop {m + 1}, time" if several else "drop, time", times, m) for m in _shown(len(times.value))
            ]
        except (ValueError, ArithmeticError) as error:
            warnings.warn(f"drop times are not predicted: {error}", stacklevel=2)
    own = dynamics.measured_levels(problem)
    heavy = problem.sampling is not None and any(text.startswith("tails") for text in problem.sampling.notes)
    return Bands(tuple(rows), float(own[-1] / levels.value[-1]) if own is not None and heavy else None)


def _row(name: str, band: dynamics.Band, entry: int) -> tuple[str, float, float, float]:
    return name, float(band.value[entry]), float(band.low[entry]), float(band.high[entry])


def _shown(count: int) -> list[int]:
    return list(range(count)) if count <= SHOWN else [*range(SHOWN - 1), count - 1]


def _interval(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}" if np.isfinite(low) and np.isfinite(high) else "not known"


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
