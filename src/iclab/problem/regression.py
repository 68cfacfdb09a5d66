"""In-context linear regression: the law of one context, made of plain numbers."""

import warnings
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from numpy.typing import ArrayLike

from iclab.numerics import Validated, Wholes, checked_number, checks_its_fields, numbers, require, whole_numbers

if TYPE_CHECKING:
    from iclab.problem.inputs import InputSample

__all__ = ["Lengths", "Regression", "checked_lengths", "checked_mixture"]

_VARIANCE = "Variances are never negative."
_EXAMPLES = "Count the labeled examples, not the query."
Lengths = Annotated[tuple[int, ...], Wholes(advice=_EXAMPLES)]  # a field of a case: one or several context lengths


@checks_its_fields
@dataclass(frozen=True)
class Regression:
    """The law of one context of in-context linear regression.

    Inputs x ~ N(0, Λ), a task w ~ N(0, Ω) for each context, labels y = wᵀx + noise; N labeled examples
    precede the query. Λ and Ω are diagonal here; for others see theory.population.moments_from.

    Raises ValueError for impossible numbers. Eigenvalues that come unsorted are sorted, largest first,
    with a UserWarning; the task eigenvalues keep their partners.
    """

    eigenvalues: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)  # λ, of the input covariance, largest first
    context_length: int | tuple[int, ...] = 31  # N, labeled examples before the query; several: mixed evenly
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
            object.__setattr__(self, "_order", tuple(order))
        object.__setattr__(self, "eigenvalues", eigenvalues)
        object.__setattr__(self, "task_eigenvalues", tasks)
        object.__setattr__(self, "context_length", _context_length(self.context_length))
        object.__setattr__(self, "noise", checked_number("noise", self.noise, at_least=0.0, advice=_VARIANCE))

    @classmethod
    def from_inputs(
        cls,
        inputs: Validated[ArrayLike],
        context_length: Validated[int | Iterable[int]] = 31,
        *,
        noise: Validated[float] = 0.0,
        task_eigenvalues: Validated[Iterable[float] | None] = None,
        centered: bool = True,
        shrinkage: Validated[str] = "none",
    ) -> "Regression":
        """The problem of inputs that rows of data are examples of, in the directions of their covariance.

        Its `sampling` holds these directions and what the rows leave open of the spectrum, from which
        theory.dynamics.level_band and drop_band make bands. Few rows, heavy tails and a mean that is not taken off
        are said in a UserWarning each.

        >>> Regression.from_inputs(X, context_length=20, shrinkage="linear")

        Raises ValueError for rows that have no covariance, as problem.inputs.measured_inputs does, and as Regression.
        """
        from iclab.problem.inputs import measured_inputs

        sample = measured_inputs(inputs, centered=centered, shrinkage=shrinkage)
        return cls._of_sample(sample, context_length, noise=noise, task_eigenvalues=task_eigenvalues)

    @classmethod
    def from_covariance(
        cls, covariance: Validated[ArrayLike], context_length: Validated[int | Iterable[int]] = 31, **others: Any
    ) -> "Regression":
        """The problem of inputs of a known covariance, in its own directions; `others` are fields of the problem.

        Raises ValueError for a matrix that is no covariance, and as Regression.
        """
        from iclab.problem.inputs import given_covariance

        return cls._of_sample(given_covariance(covariance), context_length, **others)

    @classmethod
    def _of_sample(cls, sample: "InputSample", context_length: Any, **others: Any) -> "Regression":
        for text in sample.notes:
            warnings.warn(text, stacklevel=3)
        return cls(tuple(map(float, sample.eigenvalues)), context_length, **others).measured_on(sample)

    @property
    def order(self) -> tuple[int, ...]:
        """Places of the sorted eigenvalues among those that were stated."""
        return vars(self).get("_order", tuple(range(self.dimension)))

    def measured_on(self, sample: "InputSample") -> "Regression":
        """The same problem, whose spectrum was measured on this data."""
        made = copy(self)
        object.__setattr__(made, "_sampling", sample)  # no field: an equal problem is the same case
        return made

    @property
    def sampling(self) -> "InputSample | None":
        """The data that the spectrum was measured on; None where it was stated, and for changed copies."""
        return vars(self).get("_sampling")

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


def checked_lengths(lengths: Validated[int | Iterable[int]], name: str = "context_length") -> tuple[int, ...]:
    """Checked context lengths as a tuple. Raises ValueError for none, for a fraction or for one below 1."""
    return whole_numbers(name, lengths, advice=_EXAMPLES)


def checked_mixture(
    problem: Regression, in_context_fraction: Validated[float], in_weight_task: Validated[ArrayLike]
) -> tuple[float, ...]:
    """The in-weight task of a mixture, checked: the one that all sequences without a fresh task share.

    Raises ValueError for a fraction outside [0, 1] and for a task that is not D finite numbers.
    """
    require(
        0 <= checked_number("in_context_fraction", in_context_fraction) <= 1,
        f"in_context_fraction must be between 0 and 1; got {in_context_fraction!r}. It is a part of the sequences.",
    )
    task = numbers("in_weight_task", in_weight_task)
    require(
        task.shape == (problem.dimension,),
        f"in_weight_task must be {problem.dimension} finite numbers, one for each input direction; got "
        f"{in_weight_task!r}.",
    )
    return tuple(task.tolist())


def _context_length(lengths: Validated[int | Iterable[int]]) -> int | tuple[int, ...]:
    several = checked_lengths(lengths)
    return several if isinstance(lengths, Iterable) else several[0]


def _spectrum(name: str, values: Validated[Iterable[float]]) -> tuple[float, ...]:
    require(
        isinstance(values, Iterable),
        f"{name} must be a list of numbers; got {values!r}. Write (0.4, 0.3), for example.",
    )
    spectrum = tuple(checked_number(name, value, at_least=0.0, advice=_VARIANCE) for value in values)
    require(len(spectrum) > 0, f"{name} must not be empty. Give one number for each input direction.")
    return spectrum
