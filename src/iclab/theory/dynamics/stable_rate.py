"""Sharpness of the loss at the least-loss layer, and the learning rates at which gradient descent is stable there.

Every weight that reaches the prediction counts, also those that a restricted layer lacks: they read the raw squares
of inputs and labels and are often the sharpest directions, though a population gives them no signal.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from iclab.numerics import Validated, instance, nonnegative, whole_number, whole_numbers
from iclab.problem import Regression

__all__ = ["drawn_sharpness_factor", "merged_sharpness", "separate_sharpness", "stable_rate"]

Array = np.ndarray


def merged_sharpness(problem: Validated[Regression], *, initial: Validated[float] = 0.0) -> float:
    """Largest curvature of half the population loss at merged attention that has learned all modes.

    The layer is unrestricted, grown from weights of size `initial`. Gradient descent is stable below 2/sharpness on
    infinitely many sequences.

    Raises ValueError for a negative initial.

    Source: derived in docs/derivations/stable_rate.
    """
    instance("problem", problem, Regression)
    law = _SquaredTokens(problem)
    floor = float(nonnegative("initial", initial)) ** 2
    total = float(np.linalg.norm(law.best)) + floor  # r², of the one head that all heads act as
    key_query = law.best / np.sqrt(total) if total > 0 else law.best
    size = np.sqrt(law.curvature)
    restricted = size[:, None] * (total * np.eye(len(size)) + np.outer(key_query, key_query)) * size
    values = np.einsum("d,ide,e->i", key_query, law.input_squares, key_query)
    mixed = np.sqrt(total) * law.mixed @ key_query
    lasts = total * law.label_squares
    half = (values + lasts) / 2
    raw = half + np.sqrt((values - lasts) ** 2 / 4 + mixed**2)
    return float(max(np.linalg.eigvalsh(restricted)[-1], total * np.max(law.crossed), np.max(raw)))


def separate_sharpness(
    problem: Validated[Regression], *, heads: Validated[int], initial: Validated[float] = 0.0
) -> float:
    """Largest curvature of half the population loss at separate attention that has learned what its heads can hold.

    One mode to each head, balanced; otherwise as merged_sharpness.

    Raises ValueError for fewer than one head and for a negative initial.

    Source: derived in docs/derivations/stable_rate.
    """
    instance("problem", problem, Regression)
    law = _SquaredTokens(problem)
    contribution = law.best**2 * law.curvature
    held = np.argsort(np.argsort(-contribution, kind="stable")) < whole_number("heads", heads)
    square = np.cbrt(np.where(held, law.best, 0.0)) ** 2 + float(nonnegative("initial", initial)) ** 2  # v² of heads
    found = [3 * square**2 * law.curvature, (square[:, None] ** 2 + square**2) * law.crossed]
    for mode, (own, last) in enumerate(zip(law.input_squares, law.label_squares, strict=True)):
        block = np.outer(square, square) * own
        edge = square * square[mode] * law.mixed[mode]
        found.append(np.linalg.eigvalsh(np.block([[block, edge[:, None]], [edge, square[mode] ** 2 * last]])))
    return float(max(np.max(part, initial=0.0) for part in found))


def drawn_sharpness_factor(problem: Validated[Regression], sequences: Validated[int | Iterable[int]]) -> float:
    """Factor over the population's sharpness that at most one in a thousand drawn training sets exceeds.

    1 + 300 (1 + 4/N)/P^(3/4) for the shortest context N and the smallest set P: features are products of up to five
    normal numbers, and their squares have heavy tails. A fit to drawn sets of 50 to 4000 sequences, with D from 1 to
    6, not a bound in closed form.

    Raises ValueError for sizes that are no whole numbers >= 1.

    Source: fitted in docs/derivations/stable_rate.
    """
    instance("problem", problem, Regression)
    smallest = min(whole_numbers("sequences", sequences))
    return 1 + 300 * (1 + 4 / min(problem.context_lengths)) / smallest**0.75


def stable_rate(
    problem: Validated[Regression], sharpness: Validated[float], sequences: Validated[int | Iterable[int]]
) -> float:
    """Largest learning rate on half the mean squared error that 999 of 1000 drawn training sets bear.

    2/(sharpness × drawn_sharpness_factor), from the population's sharpness at the least-loss layer. Infinite where
    nothing can be learned.

    Raises ValueError as drawn_sharpness_factor, and for a negative sharpness.

    Source: derived in docs/derivations/stable_rate.
    """
    factor = drawn_sharpness_factor(problem, sequences)
    steepest = float(nonnegative("sharpness", sharpness)) * factor
    return 2 / steepest if steepest > 0 else float("inf")


class _SquaredTokens:
    """Second moments of what the weights of a layer read, for diagonal covariances, mixed over context lengths.

    With the sums S = (Σ x xᵀ + q qᵀ)/N over examples and query q, h = Σ y x/N and Y = Σ y²/N: weights of the
    restricted layer read h_j q_k, the others S_ij q_j and Y q_i. Signs of coordinates can be changed one at a
    time, so that only those that read the same signs are correlated.
    """

    def __init__(self, problem: Regression) -> None:
        inputs, tasks = np.array(problem.eigenvalues), np.array(problem.task_spectrum)
        label = float(tasks @ inputs) + problem.noise
        parts = [_of_length(inputs, tasks, label, length) for length in problem.context_lengths]
        second, self.input_squares, self.mixed, last = (np.mean(part, axis=0) for part in zip(*parts, strict=True))
        self.label_squares: Float[Array, "mode"] = last  # E[Y² q_i²]
        self.curvature: Float[Array, "mode"] = second * inputs  # E[h_d² q_d²]
        self.crossed: Float[Array, "mode mode"] = np.outer(second, inputs) * (1 - np.eye(len(inputs)))
        signal = tasks * inputs**2
        self.best: Float[Array, "mode"] = np.divide(
            signal, self.curvature, out=np.zeros_like(signal), where=self.curvature > 0
        )


def _of_length(
    inputs: Float[Array, "D"], tasks: Float[Array, "D"], label: float, length: int
) -> tuple[Array, Array, Array, Array]:
    """E[h_d²], E[S_id q_d S_ie q_e], E[Y q_i S_id q_d] and E[Y² q_i²] at one context length N, by Wick's theorem."""
    same, n = np.eye(len(inputs)), float(length)
    pairs = np.outer(inputs, inputs) * (1 + 2 * same)  # E[q_i² q_d²]
    alike = same[:, :, None] + same[:, None, :] + same[None, :, :]  # of the indices i, d, e
    six = inputs[:, None, None] * inputs[:, None] * inputs * (1 + 2 * alike + 8 * (alike == 3))  # E[q_i² q_d² q_e²]
    examples = np.outer(inputs, inputs) / n + same * inputs**2 * (1 + 1 / n)  # E[(Σ x_i x_d/N)²]
    between = (same * inputs)[:, :, None] * pairs[:, None, :] / n
    squares = (examples * inputs)[:, :, None] * same + between + between.transpose(0, 2, 1) + six / n**2
    second = tasks * inputs**2 * (1 + 1 / n) + label * inputs / n
    mixed = same * (inputs * label + 2 * tasks * inputs**2 / n) * inputs + label * pairs / n
    last = (label**2 + 2 * np.sum((tasks * inputs) ** 2)) * (1 + 2 / n) * inputs
    return second, squares, mixed, last
