"""Checks of arguments: each returns the value in a fixed type, or raises an error that names the argument."""

import math
import operator
from collections.abc import Collection, Iterable, Sequence
from types import UnionType
from typing import Any, SupportsIndex, get_args

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics.annotations import Validated
from iclab.numerics.nearest import did_you_mean

__all__ = [
    "LEAST", "MOST", "Values", "checked", "checked_covariance", "checked_laws", "checked_number", "divides",
    "every", "floats", "increasing_grid", "instance", "magnitude", "magnitude_number", "nonnegative", "numbers",
    "one_of", "pair", "positive", "require", "share", "whole_number", "whole_numbers",
]  # fmt: skip

Values = float | np.floating[Any] | np.ndarray  # a number or an array of numbers
LEAST, MOST = 1e-40, 1e40  # range of sizes in which theory is exact; 0 and infinity are exact limits


def require(holds: bool | np.bool_, message: str) -> None:
    """Raise ValueError with `message` unless `holds`.

    A message states the condition, the value and the remedy, in that order.
    """
    if not holds:
        raise ValueError(message)


def floats(value: Validated[ArrayLike]) -> Values:
    """The value in float64; an array stays an array."""
    return np.asarray(value, dtype=np.float64)[()]


def every(holds: bool | np.bool_ | np.ndarray) -> bool:
    """True where all entries are; for a single truth value fifty times quicker than its method all()."""
    return bool(holds.all()) if isinstance(holds, np.ndarray) else bool(holds)


def numbers(name: str, values: Any) -> Float[np.ndarray, "*n"]:
    """The values in float64, always an array. Raises ValueError, with their name, unless all are finite numbers."""
    array = _in_float64(name, values)
    require(every(np.isfinite(array)), f"{name} must be finite numbers; got NaN or infinity.")
    return array


def checked(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    infinite: bool = True,
    advice: str = "",
) -> np.float64 | np.ndarray:
    """The value in float64, an array if it was one. Raises ValueError, with the name and the range, outside it."""
    values = _in_float64(name, value)
    holds = (values > above) & (values >= at_least)
    if not infinite:
        holds &= np.isfinite(values)
    if not every(holds):
        limits = ["finite"] * (not infinite)
        limits += [f"> {above:g}"] * (above > -math.inf) + [f">= {at_least:g}"] * (at_least > -math.inf)
        first = values[~holds].flat[0]
        raise ValueError(
            f"{name} must be {' and '.join(limits) or 'a number'}; got {first!s}.{advice and ' ' + advice}"
        )
    return values[()]


def checked_number(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    infinite: bool = False,
    advice: str = "",
) -> float:
    """One number as a float. Raises ValueError, with the name and the range, outside it and for a list."""
    return _one(name, checked(name, value, above=above, at_least=at_least, infinite=infinite, advice=advice))


def magnitude(
    name: str,
    value: Any,
    *,
    zero: bool = False,
    infinite: bool = True,
    between: tuple[float, float] = (LEAST, MOST),
    advice: str = "",
) -> np.float64 | np.ndarray:
    """The value in float64, an array if it was one: positive, or 0 where `zero` is one of the values.

    Raises ValueError, with the name and the range, outside it and for sizes that are not `between` two: below 1e-40
    and above 1e40 float64 does not hold their powers. Infinity is a size where it is a limit.
    """
    values = _in_float64(name, value)
    sized = (values >= between[0]) & (values <= between[1])
    if zero:
        sized |= values == 0
    if not every(sized):
        bound = {"at_least": 0.0} if zero else {"above": 0.0}
        checked(name, values, infinite=infinite, advice=advice, **bound)  # the sign before the size
        _require_infinite(name, values[~sized], zero=zero, infinite=infinite, between=between)
    return values[()]


def _require_infinite(
    name: str, values: np.ndarray, *, zero: bool, infinite: bool, between: tuple[float, float]
) -> None:
    """Raise ValueError, with the range, unless the sizes that are out of it are infinite."""
    finite = values[np.isfinite(values)]
    if finite.size:
        limits = ["0"] * zero + ["inf"] * infinite + ["between {:g} and {:g}".format(*between)]
        raise ValueError(f"{name} must be {' or '.join(limits)}; got {finite[0]!s}.")


def magnitude_number(name: str, value: Any, *, zero: bool = False, infinite: bool = False, advice: str = "") -> float:
    """One number as a float. Raises ValueError, with the name and the range, as magnitude does and for a list."""
    return _one(name, magnitude(name, value, zero=zero, infinite=infinite, advice=advice))


def share(name: str, value: Any) -> float:
    """One number in (0, 1] as a float. Raises ValueError, with its name, for anything else."""
    part = checked_number(name, value)
    require(0 < part <= 1, f"{name} must be in (0, 1]; got {part}.")
    return part


def divides(name: str, parts: int, of: str, whole: int) -> None:
    """Raise ValueError, with both names, unless the whole falls into so many equal parts."""
    require(whole % parts == 0, f"{name} must divide the {of}; got {parts} {name} and {of} {whole}.")


def instance(name: str, value: Any, kind: type | UnionType) -> None:
    """Raise ValueError, with the name and the classes, unless the value is of a class, or of one of several."""
    if not isinstance(value, kind):
        classes: Sequence[type] = get_args(kind) if isinstance(kind, UnionType) else [kind]
        names = " or ".join(one.__name__ for one in classes)
        raise ValueError(f"{name} must be a {names}; got {type(value).__name__}.")


def positive(name: str, value: Any) -> float:
    """One positive, finite number as a float. Raises ValueError, with its name, for anything else."""
    return checked_number(name, value, above=0.0)


def nonnegative(name: str, values: Any) -> Float[np.ndarray, "*n"]:
    """The values as an array. Raises ValueError with `name` unless all are finite and >= 0."""
    return np.asarray(checked(name, values, at_least=0.0, infinite=False))


def pair(name: str, values: Any) -> tuple[Any, Any]:
    """A pair as a tuple. Raises ValueError, with its name, for anything else."""
    try:
        first, second = values
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair; got {values!r}.") from None
    return first, second


def increasing_grid(name: str, values: Validated[Float[ArrayLike, "n"]]) -> Float[np.ndarray, "n"]:
    """The values as an array. Raises ValueError with `name` unless they increase strictly from one >= 0."""
    grid = numbers(name, values)
    require(grid.ndim == 1 and grid.size > 0, f"{name} must be a non-empty list; got shape {grid.shape}.")
    nonnegative(name, grid)
    require(
        bool(np.all(np.diff(grid) > 0)),
        f"{name} must increase strictly; got a step back or a repeat. Sort it and drop repeats.",
    )
    return grid


def checked_laws(name: str, laws: Validated[Float[ArrayLike, "K *n"]]) -> Float[np.ndarray, "K *n"]:
    """The laws as an array. Raises ValueError, with their name, unless there are some and each adds up to one."""
    found = numbers(name, laws)
    require(
        found.ndim >= 2 and found.size > 0,
        f"{name} must hold at least one law, in the shape (K, S); got shape {found.shape}. Give each law a row.",
    )
    total = found.sum(axis=-1)
    worst = float(total.flat[np.argmax(np.abs(total - 1))])
    require(
        bool(np.all(found >= 0) and abs(worst - 1) < 1e-5),  # rounding of single precision
        f"{name} must hold laws, probabilities that add up to 1; got a least entry of {found.min():.6g} and a sum of "
        f"{worst:.6g}. Divide each by its sum.",
    )
    return found / total[..., None]


def checked_covariance(name: str, matrix: Validated[Float[ArrayLike, "D D"]]) -> Float[np.ndarray, "D D"]:
    """The matrix, made exactly symmetric. Raises ValueError, with its name, unless it is a covariance."""
    array = _in_float64(name, matrix)
    require(
        array.ndim == 2 and array.shape[0] == array.shape[1] > 0,
        f"{name} must be a square matrix; got shape {array.shape}. For a spectrum write numpy.diag(spectrum).",
    )
    require(bool(np.all(np.isfinite(array))), f"{name} must be finite; got NaN or infinity.")
    scale = float(np.max(np.abs(array)))
    require(
        float(np.max(np.abs(array - array.T))) <= 1e-12 * scale,  # rounding of a product such as Q Λ Qᵀ
        f"{name} must be symmetric; got entries that differ from their mirror image.",
    )
    smallest = float(np.linalg.eigvalsh(array)[0])
    require(
        smallest >= -1e-12 * len(array) * scale,
        f"{name} must be positive semidefinite; got the eigenvalue {smallest:.3g}.",
    )
    return 0.5 * (array + array.T)


def _in_float64(name: str, values: Any) -> Float[np.ndarray, "*n"]:
    try:
        array = np.asarray(values)
        if values is None or array.dtype.kind in "bSUcMm":  # no numbers, but NumPy would make some of them
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number or an array of numbers; got {values!r}.") from None


def _one(name: str, number: np.float64 | np.ndarray) -> float:
    if np.ndim(number):
        raise ValueError(f"{name} must be one number; got shape {np.shape(number)}.")
    return float(number)


def one_of(name: str, value: Any, choices: Collection[str]) -> str:
    """The value. Raises ValueError, with its name and the choices, unless it is one of them."""
    if not (isinstance(value, str) and value in choices):
        near = did_you_mean(value, choices)
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.{near}")
    return value


def whole_number(name: str, value: Validated[SupportsIndex], *, least: int = 1) -> int:
    """`value` as an int. Raises ValueError, which calls it `name`, unless it is a whole number >= `least`."""
    try:
        whole = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = None
    if whole is None or whole < least:
        raise ValueError(f"{name} must be a whole number >= {least}; got {value!r}.")
    if whole > MOST:
        raise ValueError(f"{name} must be a whole number of at most {MOST:g}; got one of {len(str(whole))} digits.")
    return whole


def whole_numbers(name: str, values: Validated[int | Iterable[int]], *, advice: str = "") -> tuple[int, ...]:
    """One or several whole numbers as a tuple. Raises ValueError, with their name, for none and for any below 1."""
    several: tuple[Any, ...] = (values,)
    if isinstance(values, Iterable) and not isinstance(values, bytes):
        several = tuple(values)
    require(len(several) > 0, f"{name} must hold at least one number >= 1; got none.")
    for value in several:
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1
        require(bool(whole), f"{name} must be whole numbers >= 1; got {value!r}.{advice and ' ' + advice}")
    return tuple(int(value) for value in several)
