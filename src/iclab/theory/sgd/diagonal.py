"""One-pass SGD on Γ for diagonal covariances: the exact moments of the expected loss, D² + D numbers.

Each step draws B fresh contexts and moves Γ by −rate × the batch mean of g = h (hᵀ Γ x_q − y_q) x_qᵀ. A change of
sign of one input leaves the law of contexts alone, so of E Γ_ij Γ_kl only those matter whose indices pair up, and
of these the squares E Γ_ij² close among themselves: they and the mean E Γ are the whole state.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.numerics import Validated, instance
from iclab.problem import Regression
from iclab.theory.sgd.moments import LengthFactors

__all__ = ["DiagonalLaw", "diagonal_law", "loss_of", "mean_gradient", "noise_map", "stepped_squares"]


@dataclass(frozen=True)
class DiagonalLaw:
    """Moments of the contexts that enter one step; modes without inputs are left out.

    With h the summary and w the task: signal β_i = E h_i w_i s_i, curvature_ij = s_j E h_i², and the fourth moments
    tasks_ij = E h_i² w_j², mixed_ij = E h_i² h_j w_j, summaries_ij = E h_i² h_j².
    """

    eigenvalues: Float[np.ndarray, "D"]
    noise: float
    null_loss: float
    signal: Float[np.ndarray, "D"]
    curvature: Float[np.ndarray, "D D"]
    tasks: Float[np.ndarray, "D D"]
    mixed: Float[np.ndarray, "D D"]
    summaries: Float[np.ndarray, "D D"]


def diagonal_law(problem: Validated[Regression]) -> DiagonalLaw:
    """Moments of the contexts of a problem, by Isserlis over tasks, given the moments of the labels' power.

    Source: derived in docs/derivations/sgd.
    """
    instance("problem", problem, Regression)
    present = np.array(problem.eigenvalues) > 0
    s, c = np.array(problem.eigenvalues)[present], np.array(problem.task_spectrum)[present]
    n = LengthFactors.of(problem.context_lengths)
    t = np.sum(s * c) + problem.noise
    t4 = t**2 + 2 * np.sum((s * c) ** 2)
    b = c * (t + 2 * s * c)
    pairings = 1 + 2 * np.eye(len(s))  # of four factors: three where the indices agree, else one
    shared, power = np.outer(s**2 * c, s * c) * pairings, np.outer(s**2 * c, s**2 * c) * pairings
    label = np.outer(s**2 * b, s) * pairings
    label = label + label.T
    summary = (n.second - n.per) * s**2 * c + n.per * t * s
    return DiagonalLaw(
        eigenvalues=s,
        noise=problem.noise,
        null_loss=float(t),
        signal=s**2 * c,
        curvature=np.outer(summary, s),
        tasks=(n.second - n.per) * np.outer(s**2 * c, c) * pairings + n.per * np.outer(s, b),
        mixed=(n.third - 3 * n.second_per) * shared + n.second_per * np.outer(s, s * b) * pairings,
        summaries=n.fourth * power
        + n.third_per * (label - 6 * power)
        + n.second_per_square * (t4 * np.outer(s, s) * pairings - label + 3 * power),
    )


def loss_of(law: DiagonalLaw, mean: Float[np.ndarray, "D D"], squares: Float[np.ndarray, "D D"]) -> float:
    """E L for E Γ and E Γ²; the loss of the mean itself where `squares` are its own.

    Source: derived in docs/derivations/sgd.
    """
    return float(law.null_loss - 2 * law.signal @ np.diag(mean) + np.sum(law.curvature * squares))


def mean_gradient(law: DiagonalLaw, mean: Float[np.ndarray, "D D"]) -> Float[np.ndarray, "D D"]:
    """E g, the gradient of half the population loss.

    Source: zhang2025training, eq. 14, for diagonal covariances.
    """
    return law.curvature * mean - np.diag(law.signal)


def noise_map(law: DiagonalLaw, squares: Float[np.ndarray, "D D"]) -> Float[np.ndarray, "D D"]:
    """The part of E g² for one context that is linear in E Γ²; it has no negative entry.

    Source: derived in docs/derivations/sgd.
    """
    return _gradient_squares(law, law.summaries @ squares)


def stepped_squares(
    law: DiagonalLaw,
    mean: Float[np.ndarray, "D D"],
    squares: Float[np.ndarray, "D D"],
    *,
    rate: float,
    per_batch: float,
) -> Float[np.ndarray, "D D"]:
    """E Γ² after one step on batches of size B, per_batch = 1/B.

    Source: derived in docs/derivations/sgd.
    """
    theta, beta, own = np.diag(mean), law.signal, np.diag(law.curvature)
    unexplained = law.tasks - 2 * theta * law.mixed
    noise = noise_map(law, squares) + _gradient_squares(law, unexplained) + law.noise * law.curvature
    linear = law.curvature * squares - np.diag(theta * beta)
    square = law.curvature**2 * squares + np.diag(beta**2 - 2 * own * theta * beta)
    return squares - 2 * rate * linear + rate**2 * ((1 - per_batch) * square + per_batch * noise)


def _gradient_squares(law: DiagonalLaw, unexplained: Float[np.ndarray, "D D"]) -> Float[np.ndarray, "D D"]:
    """E g_ij² without label noise at the query, from E h_i² v_j² with v the task that Γ leaves unexplained."""
    s = law.eigenvalues
    return np.outer(unexplained @ s, s) + 2 * unexplained * s**2
