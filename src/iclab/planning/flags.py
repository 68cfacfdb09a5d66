"""Flags shared by the questions of `iclab plan`, and the sizes that they give."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from iclab.numerics import require, whole_number

__all__ = [
    "COUNTS", "Answer", "ContextFlags", "CountFlags", "ErrorFlags", "PoolFlags", "PretrainingFlags", "Question",
    "ReachFlags", "ratio_given",
]  # fmt: skip

COUNTS = {"alpha": ("context_length", 1), "kappa": ("tasks", 1), "tau": ("sequences", 2)}
"""The count that each ratio stands for, and the power of D that divides it."""


@dataclass(frozen=True)
class Answer:
    """An answer: a table and sentences, the same as numbers for JSON, and the drawing of the figure."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]
    numbers: dict[str, Any]
    draw: Callable[[Any], None]


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """Flags of every question. Raises ValueError, by the name of the flag, for invalid sizes."""

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
    """The error to reach."""

    error: float  # mean squared error to reach, label noise included


@dataclass(frozen=True, kw_only=True)
class CountFlags:
    """The dimension, for sizes as counts."""

    dimension: int | None = None  # D, entries of an input; with it sizes are counted too


@dataclass(frozen=True, kw_only=True)
class ErrorFlags:
    """The ridge and the kind of error."""

    ridge: Literal["best"] | float = "best"  # λ, ridge of the readout; best: optimal at every size
    target: Literal["icl", "idg"] = "icl"  # which error: on new tasks (icl) or on tasks of the pool (idg)


@dataclass(frozen=True, kw_only=True)
class ContextFlags:
    """The context length."""

    alpha: float | None = None  # α = N/D, labeled examples of a context; inf: infinite context length
    context_length: int | None = None  # N, in place of alpha; needs dimension


@dataclass(frozen=True, kw_only=True)
class PoolFlags:
    """The number of tasks."""

    kappa: float | None = None  # κ = K/D, tasks of the pool; inf: a fresh task in every context
    tasks: int | None = None  # K, in place of kappa; needs dimension


@dataclass(frozen=True, kw_only=True)
class PretrainingFlags:
    """The number of sequences."""

    tau: float | None = None  # τ = n/D², pretraining sequences; inf: infinite pretraining
    sequences: int | None = None  # n, in place of tau; needs dimension


def ratio_given(question: Any, name: str) -> float:
    """One size as a ratio, from the flag of the ratio or from that of its count."""
    count_name, power = COUNTS[name]
    value, count = getattr(question, name), getattr(question, count_name)
    require(value is None or count is None, f"{name} and {count_name} are the same size; got both. Give one of them.")
    if count is None:
        if value is None:
            raise ValueError(f"{name} must be given, or {count_name} with dimension. For no limit write inf.")
        return float(value)
    require(question.dimension is not None, f"dimension must be given with {count_name}; got none.")
    dimension = whole_number("dimension", question.dimension)
    return whole_number(count_name, count) / dimension**power
