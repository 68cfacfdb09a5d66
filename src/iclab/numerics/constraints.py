"""Constraints on the fields of a dataclass: marks beside their types, checked whenever an instance is made.

    @dataclass(frozen=True)
    class Case(Checked):
        rate: Positive = 0.002
        steps: Annotated[int, Whole(least=10)] = 400

A mark belongs to a field by name: a subclass that declares the field again without one keeps it.
"""

import math
import textwrap
from collections.abc import Collection
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Any, Protocol, get_type_hints, runtime_checkable

import numpy as np

from iclab.numerics.checks import (
    checked,
    checked_number,
    increasing_grid,
    instance,
    one_of,
    require,
    share,
    whole_number,
    whole_numbers,
)

__all__ = [
    "Ascending", "Checked", "Constraint", "Count", "Counts", "Distinct", "Finite", "Floats", "Fraction",
    "Increasing", "Kind", "Magnitude", "Magnitudes", "Multiple", "Nonnegative", "Nonnegatives", "OneOf", "Positive",
    "Positives", "Real", "Reals", "Share", "Whole", "Wholes", "constraints",
]  # fmt: skip


@runtime_checkable
class Constraint(Protocol):
    """A condition on the value of a field; `str` of it is what help says."""

    def __call__(self, name: str, value: Any) -> Any:
        """The value that the field is given. Raises ValueError, with the name, where the condition does not hold."""
        ...


@dataclass(frozen=True)
class Whole:
    """One whole number."""

    least: int = 1

    def __call__(self, name: str, value: Any) -> Any:
        """The value as it came."""
        whole_number(name, value, least=self.least)
        return value

    def __str__(self) -> str:
        return f"whole, ≥ {self.least}"


@dataclass(frozen=True)
class Wholes:
    """One or several whole numbers ≥ 1, in any order; kept as a tuple."""

    advice: str = ""

    def __call__(self, name: str, value: Any) -> tuple[int, ...]:
        """The numbers as a tuple."""
        return whole_numbers(name, value, advice=self.advice)

    def __str__(self) -> str:
        return "whole, ≥ 1"


@dataclass(frozen=True)
class Real:
    """One number in a range."""

    above: float = -math.inf
    at_least: float = -math.inf
    infinite: bool = False
    advice: str = ""

    def __call__(self, name: str, value: Any) -> Any:
        """The value as it came."""
        bounds = {"above": self.above, "at_least": self.at_least, "infinite": self.infinite}
        checked_number(name, value, advice=self.advice, **bounds)
        return value

    def __str__(self) -> str:
        bounds = (("> ", self.above), ("≥ ", self.at_least))
        limits = [f"{sign}{bound:g}" for sign, bound in bounds if bound > -math.inf]
        return ", ".join([*limits, *(["may be inf"] if self.infinite else [])]) or "finite"


@dataclass(frozen=True)
class Reals(Real):
    """One or several numbers in a range; kept as a tuple."""

    def __call__(self, name: str, value: Any) -> Any:
        """The numbers as they came, in a tuple."""
        bounds = {"above": self.above, "at_least": self.at_least, "infinite": self.infinite}
        checked(name, value, advice=self.advice, **bounds)
        return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Share:
    """A share of a whole."""

    def __call__(self, name: str, value: Any) -> Any:
        """The value as it came."""
        share(name, value)
        return value

    def __str__(self) -> str:
        return "in (0, 1]"


@dataclass(frozen=True)
class OneOf:
    """One of several words."""

    choices: Collection[str]

    def __call__(self, name: str, value: Any) -> str:
        """The word."""
        return one_of(name, value, self.choices)

    def __str__(self) -> str:
        return f"one of {', '.join(self.choices)}"


@dataclass(frozen=True)
class Kind:
    """An instance of a class."""

    of: type

    def __call__(self, name: str, value: Any) -> Any:
        """The value as it came."""
        instance(name, value, self.of)
        return value

    def __str__(self) -> str:
        return self.of.__name__


@dataclass(frozen=True)
class Multiple:
    """One whole number that falls into so many equal parts."""

    of: int
    parts: str  # in a word or two

    def __call__(self, name: str, value: Any) -> Any:
        """The value as it came."""
        whole_number(name, value, least=self.of)
        require(value % self.of == 0, f"{name} must be a multiple of {self.of}, {self.parts}; got {value}.")
        return value

    def __str__(self) -> str:
        return f"a multiple of {self.of}, {self.parts}"


@dataclass(frozen=True)
class Ascending:
    """One or several numbers ≥ 0, each above the one before; kept as a tuple."""

    def __call__(self, name: str, value: Any) -> Any:
        """The numbers as they came, in a tuple."""
        increasing_grid(name, value)
        return tuple(value) if isinstance(value, list) else value

    def __str__(self) -> str:
        return "≥ 0, increasing"


@dataclass(frozen=True)
class Floats:
    """One or several finite numbers; kept as a tuple of floats."""

    at_least: float = -math.inf

    def __call__(self, name: str, value: Any) -> tuple[float, ...]:
        """The numbers as floats."""
        several = tuple(map(float, np.atleast_1d(checked(name, value, at_least=self.at_least, infinite=False))))
        bound = f" and >= {self.at_least:g}" if self.at_least > -math.inf else ""
        require(len(several) > 0, f"{name} must be finite{bound}; got {several}. Give one number or more.")
        return several

    def __str__(self) -> str:
        return f"≥ {self.at_least:g}" if self.at_least > -math.inf else "finite"


@dataclass(frozen=True)
class Distinct:
    """Several values of which no two are equal."""

    advice: str = ""

    def __call__(self, name: str, value: Any) -> Any:
        """The values as they came."""
        require(len(set(value)) == len(value), f"{name} must differ; got {value}.{self.advice and ' ' + self.advice}")
        return value

    def __str__(self) -> str:
        return "all different"


Count = Annotated[int, Whole()]
Counts = Annotated[tuple[int, ...], Wholes()]
Positive = Annotated[float, Real(above=0.0)]
Positives = Annotated[tuple[float, ...], Reals(above=0.0)]
Magnitude = Annotated[float, Real(above=0.0, infinite=True)]
Magnitudes = Annotated[tuple[float, ...], Reals(above=0.0, infinite=True)]
Nonnegative = Annotated[float, Real(at_least=0.0)]
Nonnegatives = Annotated[tuple[float, ...], Reals(at_least=0.0)]
Finite = Annotated[float, Real()]
Fraction = Annotated[float, Share()]
Increasing = Annotated[tuple[float, ...], Ascending()]


@lru_cache
def constraints(kind: type) -> dict[str, tuple[Constraint, ...]]:
    """The constraints on each field of a dataclass that has some."""
    found: dict[str, tuple[Constraint, ...]] = {}
    for base in reversed(kind.__mro__):
        hints = get_type_hints(base, include_extras=True) if "__annotations__" in vars(base) else {}
        for name in vars(base).get("__annotations__", {}):
            marks = getattr(hints[name], "__metadata__", ())
            if own := tuple(mark for mark in marks if isinstance(mark, Constraint)):
                found[name] = own
    return found


@dataclass(frozen=True)
class Checked:
    """A frozen dataclass whose fields keep to their constraints.

    Raises ValueError, with the name of the field, what must hold and what came, where one does not. A subclass
    with conditions on several fields has a `__post_init__` that calls this one first.
    """

    def __post_init__(self) -> None:
        marks = constraints(type(self))
        for field in fields(self):
            for constraint in marks.get(field.name, ()):
                object.__setattr__(self, field.name, constraint(field.name, getattr(self, field.name)))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the case in a notebook in lines that can be read, ten at most."""
        lines = textwrap.wrap(repr(self), 100, subsequent_indent="    ")
        printer.text("\n".join([*lines[:9], "    …"] if len(lines) > 10 else lines))
