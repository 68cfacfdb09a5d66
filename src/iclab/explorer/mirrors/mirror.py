"""One function of the page beside the library: arguments to try it at, and the answer of the library there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CLOSED", "FLOW", "MINIMUM", "Mirror", "chance", "log_uniform", "rounded", "sizes"]

CLOSED = 1e-11  # of closed forms and roots: orders of summation differ, and conditions reach some thousands
FLOW = 1e-8  # of flows, where both sides are asked for 1e-12: steps are rounded differently
MINIMUM = 1e-6  # of the place of a minimum: half of the digits of the function, which is flat there
DIGITS = 4  # of drawn arguments, so that they are short

Draw = Callable[[np.random.Generator], tuple[Any, ...]]


@dataclass(frozen=True)
class Mirror:
    """One function of the page, and the way it is held against the library.

    `draw` draws arguments as the page passes them, `answer` takes these and answers as the page does: objects are
    dictionaries, curves are lists. `curve` where entries of a list are differences of numbers as large as the largest
    of them, to which their tolerance is then relative; else it is relative to each.
    """

    draw: Draw
    answer: Callable[..., Any]
    tolerance: float = CLOSED
    curve: bool = False
    seconds: float = 1e-3  # of the library for one answer, about


def rounded(value: float) -> float:
    """The number in few digits."""
    return float(f"{value:.{DIGITS}g}")


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A size between two, in few digits."""
    return rounded(low * (high / low) ** rng.random())


def sizes(rng: np.random.Generator, count: int, low: float, high: float) -> list[float]:
    """Several sizes between two."""
    return [log_uniform(rng, low, high) for _ in range(count)]


def chance(rng: np.random.Generator, probability: float, special: Any, usual: Any) -> Any:
    """A special value with this probability, else the usual one."""
    return special if rng.random() < probability else usual
