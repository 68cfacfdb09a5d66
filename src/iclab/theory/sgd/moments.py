"""Moments of eighth order of one context, for any covariances, from which the gradient's second moment follows.

Given the task w, labels have power t₂ = wᵀΛw + noise and the summary is h = c m + √(t₂ c/N) (Λ − m mᵀ/t₂)^½ g, with
m = Λw, c = χ²_N/N and g standard normal. Isserlis over g, then over w, gives every moment below.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checked_number, positive, require
from iclab.problem import checked_lengths
from iclab.theory.population import Moments, moments_from

__all__ = [
    "LARGEST", "ContextMoments", "Cost", "LengthFactors", "checked_batch", "context_moments", "dense_cost",
    "diagonal_cost", "gradient_second",
]  # fmt: skip

LARGEST = 2**28  # bytes of the arrays of D⁴ numbers that a dense second moment may take
COPIES = 16  # arrays of D⁴ numbers alive in one step


@dataclass(frozen=True)
class LengthFactors:
    """Moments of c = χ²_N/N over the context lengths, with the powers of 1/N that stand before them.

    E c² = 1 + 2/N, E c³ = E c² (1 + 4/N), E c⁴ = E c³ (1 + 6/N); `second_per` is the mean of E c²/N, and so on.
    """

    per: float
    second: float
    third: float
    fourth: float
    second_per: float
    third_per: float
    second_per_square: float

    @classmethod
    def of(cls, lengths: tuple[int, ...]) -> "LengthFactors":
        """The factors of lengths mixed evenly."""
        per = 1 / np.array(lengths, dtype=float)
        second = 1 + 2 * per
        third = second * (1 + 4 * per)
        fourth = third * (1 + 6 * per)
        means = (per, second, third, fourth, second * per, third * per, second * per**2)
        return cls(*(float(np.mean(mean)) for mean in means))


@dataclass(frozen=True)
class ContextMoments:
    """Moments of the summary h and the task w of one context.

    Those of the loss are in `population`; tasks_ijab = E h_i h_j w_a w_b, mixed_ijka = E h_i h_j h_k w_a,
    summaries_ijkl = E h_i h_j h_k h_l.
    """

    population: Moments
    noise: float
    tasks: Float[np.ndarray, "D D D D"]
    mixed: Float[np.ndarray, "D D D D"]
    summaries: Float[np.ndarray, "D D D D"]


@dataclass(frozen=True)
class Cost:
    """Cost of a run: memory in bytes, time in CPU seconds of one core, to a factor of about two."""

    memory: int
    seconds: float


def dense_cost(dimension: int, steps: int) -> Cost:
    """Cost of dense second moments of Γ: 16 arrays of D⁴ numbers, D⁶ multiplications a step.

    Source: no formula; measured for docs/derivations/sgd.
    """
    return Cost(8 * COPIES * dimension**4, (steps + 1) * (4e-4 + 2.5e-10 * dimension**6))


def diagonal_cost(dimension: int, steps: int) -> Cost:
    """Cost of expected_loss(): 16 arrays of D² numbers, D³ multiplications a step.

    Source: no formula; measured for docs/derivations/sgd.
    """
    return Cost(8 * COPIES * dimension**2, (steps + 1) * (5e-5 + 3e-10 * dimension**3))


def context_moments(
    input_covariance: Validated[Float[ArrayLike, "D D"]],
    context_lengths: Validated[int | Sequence[int]],
    *,
    task_covariance: Validated[Float[ArrayLike, "D D"] | None] = None,
    noise: Validated[float] = 0.0,
) -> ContextMoments:
    """Moments for input covariance Λ and task covariance Ω, commuting or not; lengths are mixed evenly.

    Raises ValueError for a law that population.moments_from() refuses, and where the moments do not fit into memory.

    Source: derived in docs/derivations/sgd.
    """
    population = moments_from(input_covariance, context_lengths, task_covariance=task_covariance, noise=noise)
    inputs, signal, t = population.input_covariance, population.cross, population.null_loss
    dimension = len(inputs)
    tasks = np.eye(dimension) if task_covariance is None else np.asarray(task_covariance, dtype=float)
    cost = dense_cost(dimension, 0)
    require(
        cost.memory <= LARGEST,
        f"D must be small for the dense second moment; got {dimension}, which needs {cost.memory / 2**20:.0f} MiB "
        f"(limit {LARGEST / 2**20:.0f}) and about {cost.seconds:.2g} s a step. In a basis where both covariances are "
        "diagonal expected_loss() needs D² numbers.",
    )
    n = LengthFactors.of(checked_lengths(context_lengths))
    across = inputs @ tasks
    weighted = t * tasks + 2 * tasks @ inputs @ tasks  # E t₂ w wᵀ
    label = inputs @ weighted @ inputs  # E t₂ m mᵀ
    power = t**2 + 2 * float(np.sum(across * across.T))  # E t₂²
    four = _paired(signal, signal)
    three = _paired(signal, across)
    two = np.einsum("ik,ab->ikab", signal, tasks) + 2 * _swapped(np.einsum("ia,kb->ikab", across, across))
    once = _paired(inputs, label) + _paired(label, inputs)
    return ContextMoments(
        population=population,
        noise=noise,
        tasks=(n.second - n.per) * two + n.per * np.einsum("ik,ab->ikab", inputs, weighted),
        mixed=(n.third - 3 * n.second_per) * three + n.second_per * _paired(inputs, inputs @ weighted),
        summaries=n.fourth * four
        + n.third_per * (once - 6 * four)
        + n.second_per_square * (power * _paired(inputs, inputs) - once + 3 * four),
    )


def gradient_second(
    law: ContextMoments, mean: Float[np.ndarray, "D D"], second: Float[np.ndarray, "D D D D"]
) -> Float[np.ndarray, "D D D D"]:
    """E g_ij g_kl for g = h (hᵀ Γ x_q − y_q) x_qᵀ of one context, given E Γ and E Γ_ij Γ_kl.

    Source: derived in docs/derivations/sgd.
    """
    inputs = law.population.input_covariance
    explained = np.einsum("ikcb,ca->ikab", law.mixed, mean)
    moved = np.einsum("ikcd,cadb->ikab", law.summaries, second, optimize=True)
    unexplained = law.tasks - 2 * _swapped(explained) + moved  # E h_i h_k v_a v_b with v = w − Γᵀh
    power = np.einsum("ikab,ab->ik", unexplained, inputs) + law.noise * law.population.second
    weighted = inputs @ unexplained @ inputs
    return np.einsum("ik,jl->ijkl", power, inputs) + 2 * weighted.transpose(0, 2, 1, 3)


def checked_batch(rate: Validated[float], batch: Validated[float]) -> float:
    """1/B. Raises ValueError for a rate that is not positive and finite or a batch that is no whole number >= 1.

    Source: no formula; conventions of docs/derivations/sgd.
    """
    positive("rate", rate)
    size = checked_number("batch", batch, infinite=True)
    require(
        size >= 1 and (size == np.inf or size == int(size)),
        f"batch must be a whole number >= 1, or inf for descent on the population; got {batch!r}.",
    )
    return 1 / size


def _paired(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """first_ij last_kl + first_ik last_jl + first_jk last_il, for a symmetric `first`."""
    product = np.multiply.outer(first, last)
    return product + product.transpose(0, 2, 1, 3) + product.transpose(2, 0, 1, 3)


def _swapped(tensor: np.ndarray) -> np.ndarray:
    """Mean of a tensor and its mirror image in the last two indices."""
    return (tensor + tensor.swapaxes(-1, -2)) / 2
