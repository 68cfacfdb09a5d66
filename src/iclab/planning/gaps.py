"""The pool sizes between which memory stops to pay, and the loss that knowing a pool of K tasks saves."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.numerics import FIXED_STREAM, Validated, checked_number, one_of, whole_number
from iclab.problem import ContextLaw, Pool
from iclab.theory import estimators, sequences

__all__ = ["LAWS", "RESOLVED", "Diversity", "TaskLaw", "diversity", "task_law"]

LAWS = ("urns", "regression", "markov")
RESOLVED = 0.003  # nats for each prediction: the least that training at a constant rate was seen to leave
_POOLS = 8  # that are drawn for the interval of the gap
_MOST = 4e7  # terms of a drawn gap, about a second


@dataclass(frozen=True)
class TaskLaw:
    """A law of tasks in contexts of some length: information I in nats, χ², and the gap Δ of a drawn pool."""

    name: str
    context_length: int
    information: float
    chi_square: float
    gap: Callable[[int, np.random.Generator], float]
    terms: float  # of the gap, for each task

    @classmethod
    def urns(cls, symbols: int, context_length: int, concentration: float) -> "TaskLaw":
        """Draws from an urn whose law of symbols is Dirichlet."""

        def gap(tasks: int, stream: np.random.Generator) -> float:
            pool = stream.dirichlet(np.full(symbols, concentration), tasks)
            return sequences.urn_gap(pool, length=context_length, concentration=concentration)

        given = symbols, context_length, concentration
        information, chi_square = sequences.urn_information(*given), sequences.urn_chi_square(*given)
        return cls("urns", context_length, information, chi_square, gap, _count_vectors(symbols, context_length))

    @classmethod
    def markov(cls, states: int, context_length: int, concentration: float) -> "TaskLaw":
        """Transitions of a Markov chain whose rows are Dirichlet."""

        def gap(tasks: int, stream: np.random.Generator) -> float:
            pool = stream.dirichlet(np.full(states, concentration), (tasks, states))
            return sequences.markov_gap(pool, length=context_length, concentration=concentration)

        given = states, context_length, concentration
        information, chi_square = sequences.markov_information(*given), sequences.markov_chi_square(*given)
        terms = float(context_length) ** (states * (states - 1))
        return cls("markov", context_length, information, chi_square, gap, terms)

    @classmethod
    def regression(cls, dimension: int, context_length: int, noise: float) -> "TaskLaw":
        """Examples of a linear function with normal weights."""

        def gap(tasks: int, stream: np.random.Generator) -> float:
            law = ContextLaw(Pool(stream.standard_normal((tasks, dimension))), context_length, noise)
            return estimators.sampled_gap(law, contexts=400).mean

        found = estimators.pool_information(dimension, context_length, noise)
        terms = 400.0 * context_length * dimension
        return cls("regression", context_length, found.information, found.chi_square, gap, terms)


@dataclass(frozen=True)
class Diversity:
    """The scale of pool sizes of a law of tasks, and at K tasks the gap Δ in nats, by bounds and by drawn pools.

    Up to `memory_pays` = e^I tasks Δ is at least I − ln K, beyond `memory_fades` = 1 + χ² it is about χ²/2K.
    """

    information: float
    chi_square: float
    memory_pays: float
    memory_fades: float
    tasks: int | None = None
    least: float | None = None
    most: float | None = None
    limit: float | None = None
    drawn: float | None = None  # mean over drawn pools
    error: float | None = None  # its standard error
    each_prediction: float | None = None  # of the drawn gap, or of its upper bound


def diversity(law: Validated[TaskLaw], *, tasks: Validated[int | None] = None) -> Diversity:
    """The pool sizes between which memory stops to pay and, for a pool of K `tasks`, its gap.

    Raises ValueError for fewer than one task.
    """
    information, chi_square = law.information, law.chi_square
    scale = Diversity(information, chi_square, float(np.exp(information)), 1 + chi_square)
    if tasks is None:
        return scale
    count = whole_number("tasks", tasks)
    least, most = (float(end) for end in estimators.gap_bounds(information, chi_square, count))
    limit = float(estimators.gap_limit(chi_square, count))
    gaps = _drawn(law, count) if law.terms * count <= _MOST else None
    mean = None if gaps is None else float(np.mean(gaps))
    error = None if gaps is None else float(np.std(gaps, ddof=1) / np.sqrt(len(gaps)))
    each = (most if mean is None else mean) / law.context_length
    return Diversity(
        information, chi_square, scale.memory_pays, scale.memory_fades, count, least, most, limit, mean, error, each
    )


def task_law(
    name: Validated[str],
    *,
    context_length: Validated[int],
    symbols: Validated[int | None] = None,
    dimension: Validated[int | None] = None,
    concentration: Validated[float] = 1.0,
    noise: Validated[float] = 0.0,
) -> TaskLaw:
    """The law of tasks of this name: urns or markov with `symbols`, regression with `dimension` and noise.

    Raises ValueError for another name, and for sizes that are missing or invalid.
    """
    one_of("law", name, LAWS)
    length = whole_number("context_length", context_length)
    if name == "regression":
        if dimension is None:
            raise ValueError("dimension must be given for regression; got none.")
        rho = checked_number("noise", noise, above=0.0, advice="Without noise a context tells all of its task.")
        return TaskLaw.regression(whole_number("dimension", dimension), length, rho)
    if symbols is None:
        raise ValueError(f"symbols must be given for {name}; got none.")
    count = whole_number("symbols", symbols, least=2)
    alpha = checked_number("concentration", concentration, above=0.0, advice="It is the Dirichlet α of every symbol.")
    return (TaskLaw.urns if name == "urns" else TaskLaw.markov)(count, length, alpha)


def _drawn(law: TaskLaw, tasks: int) -> Float[np.ndarray, "pool"]:
    stream = np.random.default_rng(FIXED_STREAM)
    return np.array([law.gap(tasks, stream) for _ in range(_POOLS)])


def _count_vectors(symbols: int, length: int) -> float:
    """C(T + S − 1, S − 1), the ways to distribute the draws."""
    steps = np.arange(1, symbols)
    return float(np.exp(np.sum(np.log((length + steps) / steps))))
