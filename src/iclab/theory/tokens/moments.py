"""Exact moments of the features of unrestricted linear attention on a sequence, under any law of its task.

The prediction of such a layer is ⟨T, φ⟩ with φ_abc = M_ab x_qc; M = (1/N) Σ z zᵀ runs over the context tokens
z = (x, y) and the query token q = (x_q, 0). Its loss needs E[y_q φ] and E[φ φᵀ], moments of sixth order in the
query and of fourth order in the context and in the task. All are finite sums: no quadrature.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, numbers, require
from iclab.problem import Regression

__all__ = ["MixtureMoments", "TaskLaw", "fixed_task", "fresh_tasks", "token_moments"]

LARGEST_DIMENSION = 12  # E[φ φᵀ] then holds 4.1 million numbers


@dataclass(frozen=True)
class MixtureMoments:
    """Moments through which a law of sequences enters the loss of an unrestricted layer.

    cross b = E[y_q φ] and second S = E[φ φᵀ], the first three axes of one φ and the last three of the other;
    null_loss = E[y_q²], the loss of the prediction 0.
    """

    cross: Float[np.ndarray, "token token D"]
    second: Float[np.ndarray, "token token D token token D"]
    null_loss: float

    @property
    def dimension(self) -> int:
        """D, the number of entries of an input."""
        return self.cross.shape[-1]

    def distinct(self) -> tuple[Float[np.ndarray, "F"], Float[np.ndarray, "F F"]]:
        """b and S over the F = D(D+1)(D+2)/2 distinct features: M is symmetric, so a ≤ b is enough."""
        first, second = np.triu_indices(self.dimension + 1)
        cross = self.cross[first, second]
        return cross.ravel(), self.second[first, second][:, :, first, second].reshape(cross.size, cross.size)


@dataclass(frozen=True)
class TaskLaw:
    """Averages over the tasks: w of the query's label and s = (1, u, v) of the context labels.

    Given its task a sequence has context labels of covariance Λu with the inputs and of variance v plus noise:
    u = w and v = wᵀΛw for labels wᵀx, u = 0 and v = 1 for labels that are independent N(0, 1).
    outer E[s sᵀ], with_query E[w sᵀ], energy E[wᵀΛw]; s has D + 2 entries. Laws mix: mixed() is linear in all three.
    """

    outer: Float[np.ndarray, "entry entry"]
    with_query: Float[np.ndarray, "D entry"]
    energy: float

    def mixed(self, other: "TaskLaw", fraction: float) -> "TaskLaw":
        """The law of which `fraction` is this one and the rest the other one."""
        rest = 1 - fraction
        return TaskLaw(
            fraction * self.outer + rest * other.outer,
            fraction * self.with_query + rest * other.with_query,
            fraction * self.energy + rest * other.energy,
        )


def fresh_tasks(problem: Validated[Regression]) -> TaskLaw:
    """A new task w ~ N(0, Ω) for each sequence.

    Source: derived in docs/derivations/mixture.
    """
    instance("problem", problem, Regression)
    inputs, tasks = np.array(problem.eigenvalues), np.array(problem.task_spectrum)
    energy = float(inputs @ tasks)
    outer = np.diag([1.0, *tasks, energy**2 + 2 * np.sum((inputs * tasks) ** 2)])
    outer[0, -1] = outer[-1, 0] = energy
    with_query = np.zeros((problem.dimension, problem.dimension + 2))
    with_query[:, 1:-1] = np.diag(tasks)
    return TaskLaw(outer, with_query, energy)


def fixed_task(
    problem: Validated[Regression], task: Validated[Float[ArrayLike, "D"]], *, random_labels: Validated[bool]
) -> TaskLaw:
    """One task for all sequences; with `random_labels` their context labels are independent N(0, 1) instead.

    Source: derived in docs/derivations/mixture.
    """
    instance("problem", problem, Regression)
    w = numbers("task", task)
    require(
        isinstance(random_labels, bool | np.bool_), f"random_labels must be True or False; got {random_labels!r}."
    )
    energy = float(np.sum(np.array(problem.eigenvalues) * w**2))
    labels = np.array([1.0, *np.zeros_like(w), 1.0]) if random_labels else np.array([1.0, *w, energy])
    return TaskLaw(np.outer(labels, labels), np.outer(w, labels), energy)


def token_moments(problem: Validated[Regression], tasks: Validated[TaskLaw]) -> MixtureMoments:
    """b and S when inputs, noise and lengths are those of `problem` and tasks follow `tasks`.

    Given the task the context tokens are N(0, Z), so their average (1/N) Σ z zᵀ has mean Z and covariance
    (Z_ad Z_be + Z_ae Z_bd)/N. Several context lengths are mixed evenly, each M divided by its own length.
    Cost and memory grow as D⁶: S holds ((D+1)²D)² numbers.

    Raises ValueError for D above 12.

    Source: derived in docs/derivations/mixture.
    """
    instance("problem", problem, Regression)
    instance("tasks", tasks, TaskLaw)
    dimension = problem.dimension
    require(
        dimension <= LARGEST_DIMENSION,
        f"eigenvalues must be at most {LARGEST_DIMENSION} for the exact moments of a mixture; got {dimension}, "
        f"for which they hold {((dimension + 1) ** 2 * dimension) ** 2:.1e} numbers. Use fewer input directions.",
    )
    length = np.array(problem.context_lengths, dtype=float)
    inverse, inverse_square = np.mean(1 / length), np.mean(1 / length**2)
    inputs = np.diag(problem.eigenvalues)
    query = np.diag([*problem.eigenvalues, 0.0])
    fourth = _normal_moment(query, 4)[..., :-1, :-1]
    sixth = _normal_moment(query, 6)[..., :-1, :-1]
    linear = _token_covariance(problem)
    mean = linear @ tasks.outer[0]
    square = np.einsum("abs,st,det->abde", linear, tasks.outer, linear, optimize=True)
    spread = np.einsum("adbe->abde", square) + np.einsum("aebd->abde", square)
    return MixtureMoments(
        cross=np.einsum("abs,cs->abc", linear, inputs @ tasks.with_query) + inverse * fourth @ tasks.with_query[:, 0],
        second=np.einsum("abde,cf->abcdef", square + inverse * spread, inputs)
        + inverse * np.einsum("ab,decf->abcdef", mean, fourth)
        + inverse * np.einsum("de,abcf->abcdef", mean, fourth)
        + inverse_square * np.einsum("abdecf->abcdef", sixth),
        null_loss=tasks.energy + problem.noise,
    )


def _token_covariance(problem: Regression) -> Float[np.ndarray, "token token entry"]:
    """Z = E[z zᵀ | task] as a linear function of s = (1, u, v)."""
    inputs = np.diag(problem.eigenvalues)
    linear = np.zeros((problem.dimension + 1, problem.dimension + 1, problem.dimension + 2))
    linear[:-1, :-1, 0] = inputs
    linear[:-1, -1, 1:-1] = linear[-1, :-1, 1:-1] = inputs
    linear[-1, -1, 0] = problem.noise
    linear[-1, -1, -1] = 1
    return linear


def _normal_moment(covariance: Float[np.ndarray, "n n"], order: int) -> Float[np.ndarray, "..."]:
    """E[x ⊗ … ⊗ x], `order` factors, x normal: the first factor is paired with each of the others in turn."""
    if order == 0:
        return np.ones(())
    paired = np.multiply.outer(covariance, _normal_moment(covariance, order - 2))
    return sum((np.moveaxis(paired, 1, partner) for partner in range(1, order)), np.zeros_like(paired))
