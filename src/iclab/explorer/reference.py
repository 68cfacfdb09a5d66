"""Reference points, by which the page checks its theory against the library that wrote it.

`points()` lists calls of functions of the page as dictionaries of "function", "arguments", "value" and "tolerance",
with infinities and NaN as the strings "inf", "-inf" and "nan". The page calls the function with the arguments and
compares each number of the answer with that of the value: their difference is at most the tolerance times the
largest finite number in the list that it stands in, or times the number itself where it stands in none. Truth values
and texts are equal. Typed arrays count as lists; of an answer that is an object the keys of the value are compared.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from iclab.explorer.mirrors import DYNAMICS, MODES, NUMERICS, PLANNING, PRETRAINING, Mirror
from iclab.numerics import FIXED_STREAM

__all__ = ["MIRRORS", "points"]

MIRRORS: Mapping[str, Mirror] = {**NUMERICS, **DYNAMICS, **MODES, **PRETRAINING, **PLANNING}
"""Every function of the page that takes no function, by name."""

DIGITS = 13  # of a value: rounding is then below every tolerance
SLOW = 0.05  # seconds of an answer, from which one point of a function is enough
COUNTS = 3, 1  # points of a function, of a slow one


def points() -> list[dict[str, Any]]:
    """Calls of the functions of the page and their answers, in types of JSON; the same at every call."""
    found = []
    for name, mirror in MIRRORS.items():
        rng = np.random.default_rng((FIXED_STREAM, len(found)))
        for _ in range(COUNTS[mirror.seconds >= SLOW]):
            given = mirror.draw(rng)
            value = plain(mirror.answer(*given), digits=DIGITS)
            found.append({"function": name, "arguments": plain(given), "value": value, "tolerance": mirror.tolerance})
    return found


def plain(value: Any, *, digits: int | None = None) -> Any:
    """The value in types of JSON, numbers in so many digits: infinities as strings, tuples as lists."""
    if isinstance(value, Mapping):
        return {key: plain(entry, digits=digits) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, digits=digits) for entry in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return str(float(value))
    return float(value) if digits is None else float(f"{value:.{digits}g}")
