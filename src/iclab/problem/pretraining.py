"""Finite pretraining, in whole sizes."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from iclab.numerics import Validated, checks_its_fields, instance, magnitude_number, require, whole_number
from iclab.problem.ratios import Ratios

__all__ = ["Pretraining"]


@checks_its_fields
@dataclass(frozen=True)
class Pretraining:
    """Finite pretraining: n sequences of in-context regression, with N labeled examples each and a pool of K tasks.

    Inputs are N(0, I/D). Tasks are N(0, I), or uniform on the sphere of radius √D if normalized. If balanced, every
    task of the pool is used n/K times; else each sequence takes one at random. tasks=None is a fresh task for every
    sequence.

    Raises ValueError for sizes that are no whole numbers >= 1, negative noise, flags that are not True or False, a
    pool of more tasks than sequences, and balanced use where n is no multiple of K.
    """

    dimension: int  # D, entries of an input
    context_length: int  # N, labeled examples before the query
    sequences: int  # n, contexts seen in pretraining
    tasks: int | None = None  # K, tasks of the pool; None: a fresh one for every sequence
    noise: float = 0.0  # ρ, variance of the label noise
    normalized: bool = True  # tasks have length √D; else they are N(0, I)
    balanced: bool = True  # every task of the pool is used n/K times; else at random

    def __post_init__(self) -> None:
        for name in ("dimension", "context_length", "sequences"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        object.__setattr__(
            self, "noise", magnitude_number("noise", self.noise, zero=True, advice="Variances are never negative.")
        )
        for name in ("normalized", "balanced"):
            flag = getattr(self, name)
            require(isinstance(flag, bool | np.bool_), f"{name} must be True or False; got {flag!r}.")
            object.__setattr__(self, name, bool(flag))
        if self.tasks is None:
            return
        count, n = whole_number("tasks", self.tasks), self.sequences
        object.__setattr__(self, "tasks", count)
        require(
            count <= n,
            f"tasks must be at most sequences, {n}; got {count}. For a fresh task in every sequence use tasks=None.",
        )
        require(
            not self.balanced or n % count == 0,
            f"sequences must be a multiple of tasks, {count}, for balanced use; got {n}. Take {n - n % count} or "
            f"{n - n % count + count}, or balanced=False.",
        )

    @classmethod
    def of(
        cls,
        ratios: Validated[Ratios],
        dimension: Validated[int],
        *,
        normalized: Validated[bool] = True,
        balanced: Validated[bool] = True,
    ) -> "Pretraining":
        """The whole sizes nearest to the ratios: N = αD, K = κD and n = τD², or K times a whole number if balanced.

        Compare with theory at the rounded sizes' own `ratios`.

        Raises ValueError for sizes that round to 0, for α or τ that is infinite and for arrays.
        """
        instance("ratios", ratios, Ratios)
        d, noise = whole_number("dimension", dimension), magnitude_number("noise", ratios.noise, zero=True)
        length = _rounded("alpha", ratios.alpha, d, "examples of a context")
        total = _rounded("tau", ratios.tau, d * d, "sequences")
        if np.isinf(ratios.kappa):
            return cls(d, length, total, None, noise, normalized, balanced)
        tasks = _rounded("kappa", ratios.kappa, d, "tasks")
        if balanced:
            uses = round(float(ratios.tau) * d * d / tasks)
            require(
                uses >= 1,
                f"tasks must be used at least once each when balanced; got {tasks} for {total} sequences, which "
                "rounds to no use. Lower kappa, raise tau, or use kappa=inf for fresh tasks.",
            )
            total = tasks * uses
        return cls(d, length, total, tasks, noise, normalized, balanced)

    @property
    def ratios(self) -> Ratios:
        """N/D, K/D, n/D² and the noise."""
        d = self.dimension
        kappa = math.inf if self.tasks is None else self.tasks / d
        return Ratios(self.context_length / d, kappa, self.sequences / d**2, self.noise)

    @property
    def uses(self) -> float:
        """n/K, sequences for each task: a whole number if balanced, a mean if not; 1 for fresh tasks."""
        return 1.0 if self.tasks is None else self.sequences / self.tasks


def _rounded(name: str, ratio: Any, unit: int, what: str) -> int:
    """The whole number nearest to ratio · unit. Raises ValueError unless it is finite and at least 1."""
    require(
        np.ndim(ratio) == 0 and bool(np.isfinite(ratio)),
        f"{name} must be one finite number at finite dimension; got {ratio!r}. Give one number for each run.",
    )
    size = round(ratio * unit)
    require(size >= 1, f"{name} must give at least 1 of the {what}; got {ratio:g} · {unit}. Raise {name}.")
    return size
