"""Laws of tasks, and of contexts whose tasks follow one: pools, tasks on the sphere, normal tasks."""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from iclab.numerics import (
    Validated,
    checked_covariance,
    checks_its_fields,
    instance,
    magnitude_number,
    numbers,
    require,
    whole_number,
)

__all__ = [
    "ContextLaw", "NormalTasks", "Pool", "SphereTasks", "TaskMoments", "Tasks", "require_tasks", "sphere_law",
    "symmetric_root",
]  # fmt: skip


@dataclass(frozen=True)
class TaskMoments:
    """Averages over tasks w, with v = wᵀSw/D + ρ the variance of a label given its task."""

    second: Float[np.ndarray, "D D"]  # E w wᵀ
    variance: float  # E v
    skew: Float[np.ndarray, "D"]  # E v w
    square: float  # E v²


@runtime_checkable
class Tasks(Protocol):
    """A law of tasks, as Pool, SphereTasks and NormalTasks."""

    @property
    def dimension(self) -> int:
        """D, the number of task entries."""
        ...

    def moments(self, inputs: Float[np.ndarray, "D D"], noise: float) -> TaskMoments:
        """Averages for inputs of covariance S/D and label noise ρ."""
        ...

    def draw(self, count: int, stream: np.random.Generator) -> Float[np.ndarray, "count D"]:
        """Tasks in random order."""
        ...


@checks_its_fields
@dataclass(frozen=True, eq=False)
class Pool:
    """K given tasks of equal probability.

    Raises ValueError for a pool of no task, or of entries that are not finite.
    """

    vectors: Float[np.ndarray, "K D"]

    def __post_init__(self) -> None:
        vectors = numbers("vectors", self.vectors)
        require(
            vectors.ndim == 2 and min(vectors.shape) > 0,
            f"vectors must have the shape (K, D) with at least one task; got {vectors.shape}.",
        )
        require(bool(np.all(np.isfinite(vectors))), "vectors must be finite; got NaN or infinity.")
        object.__setattr__(self, "vectors", vectors)

    @property
    def dimension(self) -> int:
        """D, the number of task entries."""
        return self.vectors.shape[1]

    def moments(self, inputs: Float[np.ndarray, "D D"], noise: float) -> TaskMoments:
        """Averages over the pool."""
        w = self.vectors
        variance = np.sum(w @ inputs * w, axis=1) / self.dimension + noise
        return TaskMoments(
            w.T @ w / len(w), float(np.mean(variance)), variance @ w / len(w), float(np.mean(variance**2))
        )

    def draw(self, count: int, stream: np.random.Generator) -> Float[np.ndarray, "count D"]:
        """Tasks of the pool in random order, equally often to within one."""
        return self.vectors[stream.permutation(np.arange(count) % len(self.vectors))]


@checks_its_fields
@dataclass(frozen=True, eq=False)
class SphereTasks:
    """Tasks uniform on the sphere of squared radius D, times the root of a covariance C if one is given.

    Raises ValueError for a dimension that is not a whole number >= 1 and for a C that is no covariance of it.
    """

    dimension: int
    covariance: Float[np.ndarray, "D D"] | None = None  # C: None is the identity

    def __post_init__(self) -> None:
        d, given = whole_number("dimension", self.dimension), self.covariance
        covariance = np.eye(d) if given is None else checked_covariance("covariance", given)
        require(covariance.shape == (d, d), f"covariance must have the shape {(d, d)}; got {covariance.shape}.")
        object.__setattr__(self, "covariance", covariance)

    def moments(self, inputs: Float[np.ndarray, "D D"], noise: float) -> TaskMoments:
        """Averages over the sphere, whose fourth moments are those of normal tasks times D/(D + 2)."""
        d, covariance = self.dimension, np.asarray(self.covariance)
        product = inputs @ covariance
        signal, pairs = np.trace(product) / d, np.sum(product * product.T) / d**2
        square = d / (d + 2) * (signal**2 + 2 * pairs) + 2 * noise * signal + noise**2
        return TaskMoments(covariance, float(signal + noise), np.zeros(d), float(square))

    def draw(self, count: int, stream: np.random.Generator) -> Float[np.ndarray, "count D"]:
        """Normal vectors, scaled to length √D and given the covariance."""
        w = stream.standard_normal((count, self.dimension))
        uniform = w * (np.sqrt(self.dimension) / np.linalg.norm(w, axis=1, keepdims=True))
        return uniform @ symmetric_root(np.asarray(self.covariance))


@checks_its_fields
@dataclass(frozen=True, eq=False)
class NormalTasks:
    """Tasks w ~ N(0, C).

    Raises ValueError for a covariance that is not symmetric positive semidefinite.
    """

    covariance: Float[np.ndarray, "D D"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariance", checked_covariance("covariance", self.covariance))

    @property
    def dimension(self) -> int:
        """D, the number of task entries."""
        return len(self.covariance)

    def moments(self, inputs: Float[np.ndarray, "D D"], noise: float) -> TaskMoments:
        """Averages by Isserlis' theorem."""
        product = inputs @ self.covariance
        variance = np.trace(product) / self.dimension + noise
        square = variance**2 + 2 * np.sum(product * product.T) / self.dimension**2
        return TaskMoments(self.covariance, float(variance), np.zeros(self.dimension), float(square))

    def draw(self, count: int, stream: np.random.Generator) -> Float[np.ndarray, "count D"]:
        """Normal vectors of the covariance."""
        return stream.standard_normal((count, self.dimension)) @ symmetric_root(self.covariance)


def require_tasks(name: str, tasks: Validated[Tasks]) -> None:
    """Raise ValueError, with the name, for anything but a law of tasks.

    Source: derived in docs/derivations/finite_size (the averages that a law of tasks gives).
    """
    holds = all(hasattr(tasks, part) for part in ("dimension", "moments", "draw"))
    require(holds, f"{name} must be a law of tasks, as Pool or SphereTasks; got {type(tasks).__name__}.")


@checks_its_fields
@dataclass(frozen=True, eq=False)
class ContextLaw:
    """The law of contexts: a law of tasks, N labeled inputs x ~ N(0, S/D) for each task, label noise of variance ρ.

    Raises ValueError for a context length below 1, negative noise, an S that is not a covariance of the right
    size, and where labels would be zero throughout.
    """

    tasks: Tasks
    context_length: int  # N
    noise: float = 0.0  # ρ
    input_covariance: Float[np.ndarray, "D D"] | None = None  # S, relative: None is the identity

    def __post_init__(self) -> None:
        require_tasks("tasks", self.tasks)
        d = self.tasks.dimension
        length = whole_number("context_length", self.context_length)
        noise = magnitude_number("noise", self.noise, zero=True, advice="It is a variance.")
        given = self.input_covariance
        inputs = np.eye(d) if given is None else checked_covariance("input_covariance", given)
        require(
            inputs.shape == (d, d),
            f"input_covariance must have the shape {(d, d)}, as the tasks; got {inputs.shape}.",
        )
        object.__setattr__(self, "context_length", length)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "input_covariance", inputs)
        variance = self.tasks.moments(inputs, self.noise).variance
        require(variance > 0, "labels must vary; got tasks of length zero and no noise, with nothing to learn.")

    @property
    def dimension(self) -> int:
        """D, the number of input entries."""
        return self.tasks.dimension

    @property
    def input_root(self) -> Float[np.ndarray, "D D"]:
        """The symmetric root of S."""
        return symmetric_root(np.asarray(self.input_covariance))


def symmetric_root(covariance: Float[np.ndarray, "D D"]) -> Float[np.ndarray, "D D"]:
    """The symmetric square root of a covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def sphere_law(law: Validated[ContextLaw]) -> ContextLaw:
    """The same contexts with new tasks, uniform on the sphere.

    Source: lu2025asymptotic, theory code (tasks of its simulations).
    """
    instance("law", law, ContextLaw)
    return replace(law, tasks=SphereTasks(law.dimension))
