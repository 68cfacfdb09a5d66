"""Axes of a grid: text to values and back, each value rounded once and then written in the plan.

ratios.tau=.2:5:25log     from, to and count, equal ratios; without log equal steps
dimension=16,32           the values themselves
{"kappa": [.5, 1]}        the same from Python or TOML; a value that is itself a list is one of several numbers
"""

import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from iclab.numerics import require

__all__ = ["Axis", "GridFile", "axes_of", "axis_of_text", "read_grid", "rounded", "text_of"]

DIGITS = 12  # significant ones; no library's last bit makes a new key
_KEYS = {"study", "seeds", "base", "grid", "together"}


@dataclass(frozen=True)
class Axis:
    """One axis of a grid: a field of the case and its values, or several fields that move as one."""

    names: tuple[str, ...]
    """Fields, parts with a dot."""
    points: tuple[tuple[Any, ...], ...]
    """A value for each field, at each point."""

    def __post_init__(self) -> None:
        name = self.title
        require(len(self.points) > 0, f"axis {name} must hold at least one value; got none.")
        twice = [point for place, point in enumerate(self.points) if point in self.points[:place]]
        require(not twice, f"axis {name} must not repeat a value; got {_shown(twice[:1])} again. Leave it out.")

    @property
    def title(self) -> str:
        """The fields in one line."""
        return " & ".join(self.names)

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True)
class GridFile:
    """A grid as it stands in a TOML file."""

    study: str | None
    seeds: int | tuple[int, ...] | None
    base: dict[str, Any]
    axes: tuple[Axis, ...]


def rounded(value: Any) -> Any:
    """The value with twelve significant digits; lists as tuples, NumPy numbers as plain ones."""
    if isinstance(value, np.ndarray | np.generic):
        return rounded(value.tolist())
    if isinstance(value, list | tuple):
        return tuple(map(rounded, value))
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def axis_of_text(text: str) -> Axis:
    """The axis that `NAME=VALUES` states. Raises ValueError, in one sentence, for text that states none."""
    name, sign, stated = text.partition("=")
    require(
        bool(sign and name.strip()),
        f"an axis must be NAME=VALUES, as ratios.tau=.2:5:25log or dimension=16,32; got {text!r}.",
    )
    name = name.strip()
    if ":" in stated and "," not in stated:
        values = _spaced(name, stated)
    else:
        values = [_value(part) for part in stated.split(",") if part.strip()]
    return Axis((name,), tuple((rounded(value),) for value in values))


def axes_of(grid: Mapping[str, Any] | Iterable[str | Axis]) -> tuple[Axis, ...]:
    """Axes from a mapping of fields to their values or to text, or from texts `NAME=VALUES`.

    A field may be a tuple of fields that move as one; their values are then tuples. Raises ValueError for axes that
    state no values, repeat one, or name a field twice.
    """
    if isinstance(grid, Mapping):
        named: Mapping[Any, Any] = grid
        axes = tuple(_axis(name, values) for name, values in named.items())
    else:
        axes = tuple(one if isinstance(one, Axis) else axis_of_text(one) for one in grid)
    names = [name for axis in axes for name in axis.names]
    for name in names:
        require(names.count(name) == 1, f"an axis must stand once; got {name} {names.count(name)} times.")
    return axes


def read_grid(path: Path) -> GridFile:
    """The grid of a TOML file: study, seeds, [base], [grid], [[together]]. Raises ValueError for others."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"--grid-file must be a TOML file that can be read; got {path} ({reason}).") from None
    require(
        set(content) <= _KEYS,
        f"{path.name} must hold {', '.join(sorted(_KEYS))}; got {', '.join(sorted(set(content) - _KEYS))}.",
    )
    grid, together = content.get("grid", {}), content.get("together", [])
    require(
        isinstance(grid, dict) and isinstance(together, list) and isinstance(content.get("base", {}), dict),
        f"{path.name} must hold [base] and [grid] as tables and [[together]] as tables of lists.",
    )
    axes = [*axes_of(_flat(grid)), *map(_moving, together)]
    seeds = content.get("seeds")
    return GridFile(
        content.get("study"), tuple(seeds) if isinstance(seeds, list) else seeds, _flat(content.get("base", {})),
        axes_of(axes),
    )  # fmt: skip


def text_of(axis: Axis) -> str:
    """The axis as text `NAME=VALUES`, which states the same values again. An axis of several fields has none."""
    (name,) = axis.names
    return f"{name}={','.join(_word(value) for (value,) in axis.points)}"


def _axis(name: str | tuple[str, ...], values: Any) -> Axis:
    if isinstance(values, str):
        return axis_of_text(f"{name}={values}")
    if isinstance(values, Mapping):
        require(
            {"from", "to", "count"} <= set(values) <= {"from", "to", "count", "scale"},
            f"axis {name} must be a list, or a table of from, to, count and scale; got {dict(values)}.",
        )
        scale = values.get("scale", "linear")
        require(scale in ("linear", "log"), f"scale of axis {name} must be linear or log; got {scale!r}.")
        listed: list[Any] = _between(str(name), values["from"], values["to"], values["count"], log=scale == "log")
    else:
        require(
            isinstance(values, Iterable),
            f"axis {name} must hold a list of values; got {values!r}. Write [{values!r}].",
        )
        listed = list(values)
    if isinstance(name, str):
        return Axis((name,), tuple((rounded(value),) for value in listed))
    for point in listed:
        require(
            isinstance(point, Sequence) and len(point) == len(name),
            f"axis {' & '.join(name)} must hold {len(name)} values at each point; got {point!r}.",
        )
    return Axis(tuple(name), tuple(rounded(tuple(point)) for point in listed))


def _moving(table: Any) -> Axis:
    """The axis of a table of fields that move as one."""
    fields = _flat(table)
    lengths = {len(values) for values in fields.values() if isinstance(values, list)}
    require(
        len(fields) > 1 and len(lengths) == 1 and all(isinstance(values, list) for values in fields.values()),
        f"[[together]] must hold lists of one length for two fields or more; got {fields}.",
    )
    return Axis(tuple(fields), tuple(rounded(point) for point in zip(*fields.values(), strict=True)))


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables with a dot; a table of from, to and count is a value."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict) and "from" not in value:
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def _spaced(name: str, stated: str) -> list[float]:
    parts = stated.split(":")
    log = parts[-1].endswith("log")
    try:
        first, last, count = float(parts[0]), float(parts[1]), int(parts[2].removesuffix("log"))
        require(len(parts) == 3, "")
    except (ValueError, IndexError):
        raise ValueError(
            f"axis {name} must be from:to:count or from:to:countlog, as .2:5:25log; got {stated!r}."
        ) from None
    return _between(name, first, last, count, log=log)


def _between(name: str, first: Any, last: Any, count: Any, *, log: bool) -> list[float]:
    numbers = all(isinstance(end, int | float) and math.isfinite(end) for end in (first, last))
    require(numbers, f"axis {name} must go from one finite number to another; got {first!r} and {last!r}.")
    require(
        isinstance(count, int) and 1 <= count <= 10**7 and (count > 1 or first == last),
        f"axis {name} must have a count of 2 at least between two ends; got {count!r} from {first:g} to {last:g}.",
    )
    if not log:
        return np.linspace(first, last, count).tolist()
    require(
        first > 0 and last > 0, f"axis {name} must have positive ends for equal ratios; got {first:g} and {last:g}."
    )
    return np.geomspace(first, last, count).tolist()


def _value(word: str) -> Any:
    word = word.strip()
    named = {"none": None, "true": True, "false": False}
    if word.lower() in named:
        return named[word.lower()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def _word(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def _shown(points: Iterable[tuple[Any, ...]]) -> str:
    return ", ".join(json.dumps(point[0] if len(point) == 1 else point) for point in points)
