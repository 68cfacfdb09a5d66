"""What is to be learned: frozen descriptions made of plain numbers."""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.numerics import (
    Values,
    checked_number,
    instance,
    magnitude,
    magnitude_number,
    numbers,
    require,
    whole_number,
    whole_numbers,
)

if TYPE_CHECKING:
    Ratio = Values
else:
    Ratio = float  # a case holds plain numbers, and flags are made for these


_VARIANCE = "Variances are never negative."


@dataclass(frozen=True)
class Regression:
    """The law of one context of in-context linear regression.

    Inputs x ~ N(0, Λ), a task w ~ N(0, Ω) for each context, labels y = wᵀx + noise; N labelled examples
    precede the query. Λ and Ω are diagonal here; for others see theory.population.moments_from.

    Raises ValueError for impossible numbers. Eigenvalues that come unsorted are sorted, largest first,
    with a UserWarning; the task eigenvalues keep their partners.
    """

    eigenvalues: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)  # λ, of the input covariance, largest first
    context_length: int | tuple[int, ...] = 31  # N, labelled examples before the query; several: mixed evenly
    noise: float = 0.0  # ρ, variance of the label noise
    task_eigenvalues: tuple[float, ...] | None = None  # ω, of the task covariance in the same basis; None: all 1

    def __post_init__(self) -> None:
        eigenvalues = _spectrum("eigenvalues", self.eigenvalues)
        require(
            max(eigenvalues) > 0,
            "eigenvalues must hold a positive one; got zeros only. Give at least one input direction.",
        )
        tasks = self.task_eigenvalues
        if tasks is not None:
            tasks = _spectrum("task_eigenvalues", tasks)
            require(
                len(tasks) == len(eigenvalues),
                f"task_eigenvalues must be as many as eigenvalues; got {len(tasks)} and {len(eigenvalues)}. "
                "Give one for each input direction.",
            )
        order = sorted(range(len(eigenvalues)), key=lambda i: -eigenvalues[i])
        if order != list(range(len(eigenvalues))):
            warnings.warn(
                f"eigenvalues came unsorted as {eigenvalues} and were sorted largest first"
                + ("; task_eigenvalues moved with them" if tasks else ""),
                stacklevel=3,
            )
            eigenvalues = tuple(eigenvalues[i] for i in order)
            tasks = tasks and tuple(tasks[i] for i in order)
        object.__setattr__(self, "eigenvalues", eigenvalues)
        object.__setattr__(self, "task_eigenvalues", tasks)
        object.__setattr__(self, "context_length", _context_length(self.context_length))
        object.__setattr__(self, "noise", checked_number("noise", self.noise, at_least=0.0, advice=_VARIANCE))

    @property
    def dimension(self) -> int:
        """D, the number of entries of an input."""
        return len(self.eigenvalues)

    @property
    def context_lengths(self) -> tuple[int, ...]:
        """The context lengths that occur, each as often as the others."""
        lengths = self.context_length
        return (lengths,) if isinstance(lengths, int) else lengths

    @property
    def task_spectrum(self) -> tuple[float, ...]:
        """ω, one for each input direction."""
        return self.task_eigenvalues or (1.0,) * self.dimension


@dataclass(frozen=True)
class Ratios:
    """In-context regression in the proportional limit: D → ∞ with N = αD, K = κD and n = τD².

    Inputs have covariance I/D and tasks I, so labels have variance 1 + ρ. Infinity is a value: α = ∞ are
    contexts without end, κ = ∞ a fresh task in every context, τ = ∞ pretraining without end. Fields may be
    arrays that broadcast together: one call then answers a grid. Finite values lie between 1e-40 and 1e40, and
    noise may be 0.

    Raises ValueError for a ratio that is not positive, for negative noise and for sizes out of that range.
    """

    alpha: Ratio  # α = N/D, labelled examples for each input dimension
    kappa: Ratio  # κ = K/D, tasks of the pool for each input dimension
    tau: Ratio  # τ = n/D², sequences for each squared input dimension
    noise: Ratio  # ρ, variance of the label noise

    def __post_init__(self) -> None:
        advice = {
            "alpha": "For a context without end write alpha=inf.",
            "kappa": "For a fresh task in every context write kappa=inf.",
            "tau": "For pretraining without end write tau=inf.",
        }
        values = [magnitude(name, _read(getattr(self, name)), advice=text) for name, text in advice.items()]
        values.append(magnitude("noise", self.noise, zero=True, infinite=False, advice=_VARIANCE))
        try:
            np.broadcast_shapes(*(np.shape(value) for value in values))
        except ValueError:
            shapes = ", ".join(f"{field.name} {np.shape(v)}" for field, v in zip(fields(self), values, strict=True))
            raise ValueError(f"the fields of Ratios must broadcast together; got {shapes}.") from None
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value.item() if np.ndim(value) == 0 else value)


@dataclass(frozen=True)
class Pretraining:
    """Finite pretraining: n sequences of in-context regression, with N labelled examples each and a pool of K tasks.

    Inputs are N(0, I/D) and tasks N(0, I), or spread over the sphere of radius √D where normalized. Balanced use
    takes every task of the pool n/K times; else each sequence takes one at random. A fresh task for every sequence
    is tasks=None.

    Raises ValueError for sizes that are no whole numbers >= 1, negative noise, flags that are not True or False, a
    pool larger than the sequences and balanced use that does not come out even.
    """

    dimension: int  # D, entries of an input
    context_length: int  # N, labelled examples before the query
    sequences: int  # n, contexts seen in pretraining
    tasks: int | None = None  # K, tasks of the pool; None: a fresh one for every sequence
    noise: float = 0.0  # ρ, variance of the label noise
    normalized: bool = True  # tasks have length √D; else they are N(0, I)
    balanced: bool = True  # every task of the pool is used n/K times; else at random

    def __post_init__(self) -> None:
        for name in ("dimension", "context_length", "sequences"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        object.__setattr__(self, "noise", magnitude_number("noise", self.noise, zero=True, advice=_VARIANCE))
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
    def of(cls, ratios: Ratios, dimension: int, *, normalized: bool = True, balanced: bool = True) -> "Pretraining":
        """Whole sizes next to the ratios: N = αD, K = κD and n = τD², or K times a whole number if balanced.

        What they make of the ratios is in `ratios`, at which theory is to be asked.

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
    """The whole number next to ratio · unit. Raises ValueError unless it is finite and at least 1."""
    require(
        np.ndim(ratio) == 0 and bool(np.isfinite(ratio)),
        f"{name} must be one finite number at finite dimension; got {ratio!r}. Give one number for each run.",
    )
    size = round(ratio * unit)
    require(size >= 1, f"{name} must give at least 1 of the {what}; got {ratio:g} · {unit}. Raise {name}.")
    return size


def _read(ratio: Any) -> Any:
    """The ratio; the text "inf", as infinity is written in JSON, is a number here."""
    return np.inf if isinstance(ratio, str) and ratio == "inf" else ratio


def checked_lengths(lengths: int | Iterable[int], name: str = "context_length") -> tuple[int, ...]:
    """Checked context lengths as a tuple. Raises ValueError for none, for a fraction or for one below 1."""
    return whole_numbers(name, lengths, advice="Count the labelled examples, not the query.")


def checked_mixture(
    problem: Regression, in_context_fraction: float, in_weight_task: Iterable[float]
) -> tuple[float, ...]:
    """The checked task that the sequences of a mixture share whose task is not fresh.

    Raises ValueError for a fraction outside [0, 1] and for a task that is not D finite numbers.
    """
    require(
        0 <= checked_number("in_context_fraction", in_context_fraction) <= 1,
        f"in_context_fraction must be between 0 and 1; got {in_context_fraction!r}. It is a share of the sequences.",
    )
    task = numbers("in_weight_task", in_weight_task)
    require(
        task.shape == (problem.dimension,),
        f"in_weight_task must be {problem.dimension} finite numbers, one for each input direction; got "
        f"{in_weight_task!r}.",
    )
    return tuple(task.tolist())


def _context_length(lengths: int | Iterable[int]) -> int | tuple[int, ...]:
    several = checked_lengths(lengths)
    return several if isinstance(lengths, Iterable) else several[0]


def _spectrum(name: str, values: Iterable[float]) -> tuple[float, ...]:
    require(
        isinstance(values, Iterable),
        f"{name} must be a list of numbers; got {values!r}. Write (0.4, 0.3), for example.",
    )
    spectrum = tuple(checked_number(name, value, at_least=0.0, advice=_VARIANCE) for value in values)
    require(len(spectrum) > 0, f"{name} must not be empty. Give one number for each input direction.")
    return spectrum
