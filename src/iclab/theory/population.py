"""The population loss of linear attention, an exact quadratic in Γ, and its minima.

With summary h and query (x_q, y_q) the loss is L(Γ) = null − 2⟨Γ, B⟩ + ⟨Γ, C Γ Λ⟩, where B = E[h y_q x_qᵀ] and
C = E[h hᵀ]. `Moments` holds the four ingredients; everything else in this file is a function of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from iclab.numerics import (
    Validated,
    checked_covariance,
    checked_number,
    instance,
    numbers,
    one_of,
    require,
    whole_number,
)
from iclab.problem import Regression, checked_lengths

__all__ = [
    "NORMALIZATIONS", "Modes", "Moments", "best_gamma", "best_loss", "gradient", "loss", "modes", "moments",
    "moments_from", "significant",
]  # fmt: skip

NORMALIZATIONS = ("length", "tokens", "none")
ROUNDING = 1e-11  # of the largest singular value; at condition 1e5 of the covariances rounding reaches 1e-12 of it


@dataclass(frozen=True)
class Moments:
    """Moments through which a law of contexts enters the loss.

    cross B = E[h y_q x_qᵀ] and second C = E[h hᵀ] with the summary h in the rows, input_covariance Λ of the
    query, null_loss = E[y_q²], the loss of the prediction 0; floor is the least loss of any Γ, where the law gives it
    without a difference of numbers that are nearly equal in long contexts.
    """

    cross: Float[np.ndarray, "D D"]
    second: Float[np.ndarray, "D D"]
    input_covariance: Float[np.ndarray, "D D"]
    null_loss: float
    floor: float | None = None

    @property
    def dimension(self) -> int:
        """D, the number of entries of an input."""
        return len(self.cross)


@dataclass(frozen=True)
class Modes:
    """Directions in which Γ is learned, largest contribution to the loss first.

    `gamma[d]` is the rank-one Γ that holds mode d alone at its best, contribution[d] the loss it removes.
    Learned modes add: Γ and losses of any set are sums over the set.
    """

    contribution: Float[np.ndarray, "mode"]
    left: Float[np.ndarray, "D mode"]
    right: Float[np.ndarray, "D mode"]

    def gamma(self, learned: Sequence[int] | slice) -> Float[np.ndarray, "D D"]:
        """Γ that holds the modes `learned`, each at its best strength."""
        chosen = list(learned) if not isinstance(learned, slice) else learned
        return self.left[:, chosen] @ self.right[:, chosen].T


def moments(problem: Validated[Regression]) -> Moments:
    """Moments of a problem with diagonal covariances.

    Source: zhang2025training, eq. 15; general tasks, noise and lengths derived in docs/derivations/population.
    """
    instance("problem", problem, Regression)
    return moments_from(
        np.diag(problem.eigenvalues),
        problem.context_lengths,
        task_covariance=np.diag(problem.task_spectrum),
        noise=problem.noise,
    )


def moments_from(
    input_covariance: Validated[Float[ArrayLike, "D D"]],
    context_lengths: Validated[int | Sequence[int]],
    *,
    task_covariance: Validated[Float[ArrayLike, "D D"] | None] = None,
    noise: Validated[float] = 0.0,
    normalization: Validated[str] = "length",
) -> Moments:
    """Moments for any input and task covariance, label noise and set of context lengths, mixed evenly.

    `normalization` names the divisor of the summary Σ y x: the "length" n of its context, its "tokens" n + 1,
    or "none". With ρ = n/divisor, B = ⟨ρ⟩ ΛΩΛ and C = ⟨ρ²⟩ ΛΩΛ + ⟨ρ²/n⟩ (ΛΩΛ + (tr ΩΛ + noise) Λ). The query's
    label carries the noise too. Commuting covariances are not needed, singular ones are allowed: tasks in directions
    without inputs leave the noise alone.

    Raises ValueError for covariances that are not symmetric positive semidefinite, for lengths below 1 and for
    negative noise.

    Source: zhang2025training, eq. 15; general tasks, noise and lengths derived in docs/derivations/population.
    """
    inputs = checked_covariance("input_covariance", input_covariance)
    require(bool(np.any(inputs)), "input_covariance must not be zero. Give at least one input direction.")
    tasks = np.eye(len(inputs)) if task_covariance is None else checked_covariance("task_covariance", task_covariance)
    require(
        tasks.shape == inputs.shape,
        f"task_covariance must have the shape of input_covariance; got {tasks.shape} and {inputs.shape}.",
    )
    variance = checked_number("noise", noise, at_least=0.0, advice="It is a variance.")
    one_of("normalization", normalization, NORMALIZATIONS)
    length = np.array(checked_lengths(context_lengths, "context_lengths"), dtype=float)
    gain = {"length": np.ones_like(length), "tokens": length / (length + 1), "none": length}[normalization]
    tasks = np.zeros_like(tasks) if _apart(inputs, tasks) else tasks
    signal = inputs @ tasks @ inputs
    null_loss = float(np.sum(tasks * inputs) + variance)
    cross = np.mean(gain) * signal
    second = np.mean(gain**2) * signal + np.mean(gain**2 / length) * (signal + null_loss * inputs)
    require(
        bool(np.all(np.isfinite(second)) and (np.any(signal) or not np.any(tasks))),
        "input_covariance, task_covariance and noise must be of a size whose products are numbers; got an overflow "
        "or an underflow. Measure inputs and labels in other units.",
    )
    varying = {"length": np.zeros_like(length), "tokens": 1 / (length + 1), "none": length}[normalization]
    own = (float(np.var(varying - varying[0])), float(np.mean(gain**2 / length)))
    floor = variance + _unlearned(inputs, tasks, null_loss, float(np.mean(gain) ** 2), own)
    return Moments(cross, second, inputs, null_loss, floor)


def _unlearned(
    inputs: Float[np.ndarray, "D D"],
    tasks: Float[np.ndarray, "D D"],
    null_loss: float,
    shared: float,
    own: tuple[float, float],
) -> float:
    """Part of the labels that the best Γ leaves, Σ a x/(⟨ρ⟩² a + x) over the eigenvalues a of Λ^½ Ω Λ^½.

    `shared` is ⟨ρ⟩², `own` the variance of ρ and ⟨ρ²/n⟩; x is what C has beyond ⟨ρ⟩² ΛΩΛ in units in which Λ is 1.
    All terms are positive.
    """
    values, vectors = np.linalg.eigh(inputs)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    signal = np.maximum(np.linalg.eigvalsh(root.T @ tasks @ root), 0.0)
    excess = sum(own) * signal + own[1] * null_loss
    left = np.divide(excess, shared * signal + excess, out=np.zeros_like(excess), where=excess > 0)
    return float(np.sum(signal * left))


def loss(
    moments: Validated[Moments], gamma: Validated[Float[ArrayLike, "*batch D D"]]
) -> float | Float[np.ndarray, "*batch"]:
    """Mean squared error of the prediction hᵀ Γ x_q, noise of the query's label included.

    With the moments of other contexts it is the loss of the same Γ under that shift.

    Source: zhang2025training, eq. 12 and section 3; derived in docs/derivations/population.
    """
    instance("moments", moments, Moments)
    gamma = _gamma(moments, gamma)
    quadratic = np.einsum("...ij,...ij->...", gamma, moments.second @ gamma @ moments.input_covariance)
    return moments.null_loss - 2 * np.einsum("...ij,ij->...", gamma, moments.cross) + quadratic


def gradient(
    moments: Validated[Moments], gamma: Validated[Float[ArrayLike, "*batch D D"]]
) -> Float[np.ndarray, "*batch D D"]:
    """∇L(Γ) = 2 (C Γ Λ − B). Gradient flow follows −½ of it.

    Source: zhang2025training, eq. 14; derived in docs/derivations/population.
    """
    instance("moments", moments, Moments)
    gamma = _gamma(moments, gamma)
    return 2 * (moments.second @ gamma @ moments.input_covariance - moments.cross)


def modes(moments: Validated[Moments]) -> Modes:
    """Singular modes of C^-1/2 B Λ^-1/2, largest contribution first.

    A contribution is a squared singular value; a set of modes has the loss null − Σ contribution. Directions in which
    inputs or tasks never point have none and come last: contributions below 1e-22 of the largest are rounding, and 0
    here. Cost: three dense decompositions of D × D matrices.

    Source: zhang2025training, eqs. 18 and 19; general covariances derived in docs/derivations/population.
    """
    instance("moments", moments, Moments)
    white = _inverse_root(moments.input_covariance)
    root = white @ _inverse_root(white.T @ moments.second @ white)
    left, singular, right = np.linalg.svd(root.T @ moments.cross @ white)
    singular, count = np.where(significant(singular), singular, 0.0), len(singular)
    pad = ((0, 0), (0, moments.dimension - count))
    return Modes(
        contribution=np.pad(singular**2, pad[1:]),
        left=np.pad(root @ left[:, :count] * singular, pad),
        right=np.pad(white @ right[:count].T, pad),
    )


def significant(singular: Validated[Float[np.ndarray, "mode"]]) -> Bool[np.ndarray, "mode"]:
    """True for the singular values of C^-1/2 B Λ^-1/2 above their rounding; a mode of any other contributes nothing.

    Source: no formula; contributions as in docs/derivations/population.
    """
    return singular > ROUNDING * np.max(singular, initial=0.0)


def best_gamma(moments: Validated[Moments], *, rank: Validated[int | None] = None) -> Float[np.ndarray, "D D"]:
    """Γ of least loss, among those of rank at most `rank` if given. Zero in directions without inputs.

    Raises ValueError for a rank outside 1..D.

    Source: zhang2025training, eq. 11; limited rank derived in docs/derivations/population.
    """
    instance("moments", moments, Moments)
    return modes(moments).gamma(range(_rank(moments, rank)))


def best_loss(moments: Validated[Moments], *, rank: Validated[int | None] = None) -> float:
    """Least loss, at rank at most `rank` if given.

    Exact to rounding of itself for moments of a law, however long the contexts are; of null_loss for others.

    Raises ValueError for a rank outside 1..D.

    Source: zhang2025training, eq. 19; limited rank derived in docs/derivations/population.
    """
    instance("moments", moments, Moments)
    contribution, kept = modes(moments).contribution, _rank(moments, rank)
    if moments.floor is None:
        return float(moments.null_loss - np.sum(contribution[:kept]))
    return float(moments.floor + np.sum(contribution[kept:]))


def _apart(inputs: Float[np.ndarray, "D D"], tasks: Float[np.ndarray, "D D"]) -> bool:
    """True where inputs and tasks share no direction, so that ΛΩ is no more than rounding."""
    inputs, tasks = inputs / np.max(np.abs(inputs)), tasks / (np.max(np.abs(tasks)) or 1.0)
    rounding = len(inputs) * np.finfo(float).eps * (np.abs(inputs) @ np.abs(tasks))
    return bool(np.all(np.abs(inputs @ tasks) <= rounding))


def _rank(moments: Moments, rank: int | None) -> int:
    full = moments.dimension
    if rank is None:
        return full
    require(whole_number("rank", rank) <= full, f"rank must be between 1 and D = {full}; got {rank!r}.")
    return rank


def _gamma(moments: Moments, gamma: Validated[Float[ArrayLike, "*batch D D"]]) -> Float[np.ndarray, "*batch D D"]:
    matrix = numbers("gamma", gamma)
    shape = moments.cross.shape
    require(matrix.shape[-2:] == shape, f"gamma must end in shape {shape}, as the moments; got {matrix.shape}.")
    return matrix


def _inverse_root(matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n r"]:
    """W with Wᵀ matrix W = I on the range of a positive semidefinite matrix of rank r."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
    return vectors[:, kept] / np.sqrt(values[kept])
