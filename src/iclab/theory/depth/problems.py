"""A problem as a law of spectra: signal, noise ratio, loss of a stack, also in contexts that it was not trained on.

The loss of scalar layers g Λ⁻¹ on a `Regression` is ρ + T F(g), T = tr ΩΛ, whatever Λ and Ω are.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checked_covariance, instance, nonnegative, require, whole_number
from iclab.problem import Regression
from iclab.theory.depth.laws import Wishart, wishart
from iclab.theory.depth.losses import checked_layers, excess

__all__ = [
    "StackProblem", "flow_clock", "infinite_context_loss", "infinite_context_shift", "scalar_gammas",
    "stack_loss", "stack_problem",
]  # fmt: skip

Array = np.ndarray


class StackProblem(NamedTuple):
    """A problem as scalar layers see it."""

    law: Wishart
    signal: float  # T = tr ΩΛ
    noise_ratio: float  # ρ/T
    noise: float  # ρ


def stack_problem(problem: Validated[Regression]) -> StackProblem:
    """The law of S/λ of a problem, its signal T and its noise ratio ρ/T.

    Raises ValueError for several context lengths, for an eigenvalue 0, and for tasks without signal.

    Source: derived in docs/derivations/depth.
    """
    instance("problem", problem, Regression)
    lengths = problem.context_lengths
    require(len(lengths) == 1, f"context_length must be one number here; got {lengths}. Take one length at a time.")
    require(
        problem.eigenvalues[-1] > 0,
        "eigenvalues must be positive here; got 0. Leave directions without inputs out of the problem.",
    )
    signal = float(np.dot(problem.eigenvalues, problem.task_spectrum))
    require(signal > 0, "task_eigenvalues must hold a positive one; got zeros only.")
    return StackProblem(wishart(problem.dimension, lengths[0]), signal, problem.noise / signal, problem.noise)


def stack_loss(
    problem: Validated[Regression],
    layers: Validated[Float[ArrayLike, "*batch layer"]],
    *,
    trained: Validated[Regression | None] = None,
) -> float | Float[Array, "*batch"]:
    """Mean squared error of the layers g Λ⁻¹ on a problem, noise of the query's label included: ρ + T F(g).

    Layers that were `trained` on another problem keep its Λ: the problem may have another length, noise, tasks and
    scale of the inputs. For inputs of another shape see infinite_context_shift().

    Raises ValueError as stack_problem() and excess(), and for inputs that are no multiple of those in training.

    Source: derived in docs/derivations/depth.
    """
    law, signal, ratio, noise = stack_problem(problem)
    steps = checked_layers(layers)
    if trained is not None:
        ratios = np.array(problem.eigenvalues) / _own_eigenvalues(problem, trained)
        require(
            float(np.ptp(ratios)) <= 1e-12 * float(np.max(ratios)),
            f"eigenvalues must be a multiple of those in training; got {problem.eigenvalues} and "
            f"{trained.eigenvalues}. For other shapes take infinite_context_shift.",
        )
        steps = steps * ratios[0]
    return noise + signal * excess(law, steps, noise_ratio=ratio)


def _own_eigenvalues(problem: Regression, trained: Validated[Regression]) -> Float[Array, "D"]:
    instance("trained", trained, Regression)
    require(
        trained.dimension == problem.dimension and trained.eigenvalues[-1] > 0,
        f"trained must have the dimension of the problem, {problem.dimension}, and positive eigenvalues; got "
        f"{trained.eigenvalues}.",
    )
    return np.array(trained.eigenvalues)


def scalar_gammas(
    problem: Validated[Regression], layers: Validated[Float[ArrayLike, "layer"]]
) -> Float[Array, "layer D D"]:
    """Γ_l = g_l Λ⁻¹ of scalar layers, which act on the summary by their rows.

    Raises ValueError as stack_problem(), and for layers that are no list of numbers.

    Source: ahn2023transformers, abstract (preconditioned steps); derived in docs/derivations/depth.
    """
    stack_problem(problem)
    steps = checked_layers(layers)
    require(steps.ndim == 1, f"layers must be one list of numbers; got shape {steps.shape}.")
    return steps[:, None, None] * np.diag(1 / np.array(problem.eigenvalues))


def flow_clock(problem: Validated[Regression], *, factors: Validated[int] = 1) -> float:
    """Time of flow() in one unit of the library's training time, for white inputs and tasks.

    Whole matrices, factors = 1: T λ²/D. A value times m − 1 matrices, balanced: T λ^{2/m} D^{1/m − 1}.

    Raises ValueError as stack_problem(), and for inputs or tasks that are not white.

    Source: derived in docs/derivations/depth.
    """
    signal, powers = stack_problem(problem).signal, whole_number("factors", factors)
    for name, values in (("eigenvalues", problem.eigenvalues), ("task_eigenvalues", problem.task_spectrum)):
        require(
            len(set(values)) == 1, f"{name} must all be equal here; got {values}. Scalar layers stay scalar there."
        )
    scale, size = problem.eigenvalues[0], problem.dimension
    if powers == 1:
        return signal * scale**2 / size
    return signal * scale ** (2 / powers) * size ** (1 / powers - 1)


def infinite_context_shift(
    layers: Validated[Float[ArrayLike, "layer"]],
    *,
    trained: Validated[Float[ArrayLike, "D D"]],
    tested: Validated[Float[ArrayLike, "D D"]],
    task_covariance: Validated[Float[ArrayLike, "D D"] | None] = None,
) -> float:
    """Loss of layers g Σ⁻¹ in infinite contexts with inputs of covariance Σ': tr Ω Rᵀ Σ' R, R = Π(1 − g Σ⁻¹Σ').

    It grows like the 2L-th power of the top eigenvalue of Σ⁻¹Σ' less 1: deep stacks are brittle.

    Raises ValueError for what are no covariances of one size, and for a covariance of training that is singular.

    Source: gatmiry2024looped, abstract (the tied optimum); derived in docs/derivations/depth.
    """
    steps = checked_layers(layers)
    old, new = checked_covariance("trained", trained), checked_covariance("tested", tested)
    tasks = np.eye(len(old)) if task_covariance is None else checked_covariance("task_covariance", task_covariance)
    require(
        old.shape == new.shape == tasks.shape,
        f"trained, tested and task_covariance must be of one size; got {old.shape}, {new.shape}, {tasks.shape}.",
    )
    require(float(np.linalg.eigvalsh(old)[0]) > 0, "trained must be positive definite; got an eigenvalue 0.")
    step, left = np.linalg.solve(old, new), np.eye(len(old))
    for one in steps:
        left = left @ (np.eye(len(old)) - one * step)
    return float(np.trace(tasks @ left.T @ new @ left))


def infinite_context_loss(
    problem: Validated[Regression], depth: Validated[float], time: Validated[Float[ArrayLike, "time"]]
) -> Float[Array, "time"]:
    """Loss of the tied flow from 0 in infinite contexts of a fixed covariance, mode by mode: ρ + Σ ωλ u^{2L}.

    u^{2 − 2L} = 1 + 2 ω λ³ t (L − 1)/L; u = exp(−ω λ³ t) for one layer; Σ ωλ/(1 + 2ωλ³t) at infinite depth. The layer
    is Γ/L. One layer is enough in the end: depth helps only while training.

    Raises ValueError for a depth below 1 and for times that are negative.

    Source: bordelon2025theory, abstract (fixed covariance); derived in docs/derivations/depth.
    """
    instance("problem", problem, Regression)
    require(
        depth == np.inf or depth == whole_number("depth", int(depth)), f"depth must be whole or inf; got {depth}."
    )
    times = nonnegative("time", time)[..., None]
    inputs, tasks = np.array(problem.eigenvalues), np.array(problem.task_spectrum)
    speed = 2 * tasks * inputs**3 * times
    if depth == 1:
        left = np.exp(-speed)
    elif depth == np.inf:
        left = 1 / (1 + speed)
    else:
        left = (1 + speed * (depth - 1) / depth) ** (depth / (1 - depth))
    return problem.noise + left @ (inputs * tasks)
