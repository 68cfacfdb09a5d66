"""Flags that the questions of `iclab plan` share, and the sizes that they give."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from iclab.numerics import require, whole_number

COUNTS = {"alpha": ("context_length", 1), "kappa": ("tasks", 1), "tau": ("sequences", 2)}
"""The count that each ratio stands for, and the power of D that divides it."""


@dataclass(frozen=True)
class Answer:
    """What is printed, as a table and sentences or as JSON, and how the figure is drawn."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
    numbers: dict[str, Any]
    draw: Callable[[Any], None]


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """What every question takes. Raises ValueError, by the name of the flag, for sizes that do not make sense."""

    noise: float = 0.0  # ρ, variance of the label noise, where labels have variance 1 + ρ
    figure: Path | None = None  # write the curve behind the answer to this PDF
    json: bool = False  # print the answer as JSON instead of a table
    debug: bool = False  # show the traceback of an error

    def sizes(self) -> dict[str, float]:
        """The sizes given, as ratios. Raises ValueError where one is missing or given twice."""
        return {name: ratio_given(self, name) for name in COUNTS if hasattr(self, name)}

    @abstractmethod
    def answer(self) -> Answer:
        """The answer to the question."""


@dataclass(frozen=True, kw_only=True)
class ReachFlags:
    """Which error is to be reached."""

    error: float  # mean squared error to reach, label noise included


@dataclass(frozen=True, kw_only=True)
class CountFlags:
    """Whether sizes are counted."""

    dimension: int | None = None  # D, entries of an input; with it sizes are counted too


@dataclass(frozen=True, kw_only=True)
class ErrorFlags:
    """Which error is meant."""

    ridge: Literal["best"] | float = "best"  # λ, ridge of the readout; best: chosen anew at every size
    target: Literal["icl", "idg"] = "icl"  # which error: on new tasks (icl) or on tasks of the pool (idg)


@dataclass(frozen=True, kw_only=True)
class ContextFlags:
    """How long contexts are."""

    alpha: float | None = None  # α = N/D, labelled examples of a context; inf: without end
    context_length: int | None = None  # N, in place of alpha; needs dimension


@dataclass(frozen=True, kw_only=True)
class PoolFlags:
    """How many tasks there are."""

    kappa: float | None = None  # κ = K/D, tasks of the pool; inf: a fresh task in every context
    tasks: int | None = None  # K, in place of kappa; needs dimension


@dataclass(frozen=True, kw_only=True)
class PretrainingFlags:
    """How many sequences there are."""

    tau: float | None = None  # τ = n/D², pretraining sequences; inf: without end
    sequences: int | None = None  # n, in place of tau; needs dimension


def ratio_given(asked: Any, name: str) -> float:
    """One size as a ratio, from the flag of the ratio or from that of its count."""
    count_name, power = COUNTS[name]
    value, count = getattr(asked, name), getattr(asked, count_name)
    require(value is None or count is None, f"{name} and {count_name} say the same; got both. Give one of them.")
    if count is None:
        if value is None:
            raise ValueError(f"{name} must be given, or {count_name} with dimension. For no limit write inf.")
        return float(value)
    require(asked.dimension is not None, f"dimension must be given with {count_name}; got none.")
    dimension = whole_number("dimension", asked.dimension)
    return whole_number(count_name, count) / dimension**power
