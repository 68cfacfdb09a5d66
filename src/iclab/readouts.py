"""The exact error of a readout at finite size, under any law of contexts.

The readout G of shape (D, D+1) answers x_qᵀ G g from g = [(D/N) Σ y x ; (1/N) Σ y²], with inputs x ~ N(0, S/D).
Its error is a quadratic in G whose coefficients need only four averages over the tasks: nothing is sampled.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from jaxtyping import Float

from iclab.numerics import checked_covariance, instance, magnitude_number, numbers, require, whole_number

Array = np.ndarray


@dataclass(frozen=True)
class TaskMoments:
    """Averages over tasks w, with v = wᵀSw/D + ρ the variance of a label given its task."""

    second: Float[Array, "D D"]  # E w wᵀ
    variance: float  # E v
    skew: Float[Array, "D"]  # E v w
    square: float  # E v²


class Tasks(Protocol):
    """A law of tasks: what Pool, SphereTasks and NormalTasks are."""

    @property
    def dimension(self) -> int:
        """D."""
        ...

    def moments(self, inputs: Float[Array, "D D"], noise: float) -> TaskMoments:
        """Averages for inputs of covariance S/D and label noise ρ."""
        ...

    def draw(self, count: int, stream: np.random.Generator) -> Float[Array, "count D"]:
        """Tasks in random order."""
        ...


@dataclass(frozen=True, eq=False)
class Pool:
    """K given tasks, each as likely as the others.

    Raises ValueError for a pool of no task, or of entries that are not finite.
    """

    vectors: Float[Array, "K D"]

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
        """D."""
        return self.vectors.shape[1]

    def moments(self, inputs: Float[Array, "D D"], noise: float) -> TaskMoments:
        """Averages over the pool."""
        w = self.vectors
        variance = np.sum(w @ inputs * w, axis=1) / self.dimension + noise
        return TaskMoments(
            w.T @ w / len(w), float(np.mean(variance)), variance @ w / len(w), float(np.mean(variance**2))
        )

    def draw(self, count: int, stream: np.random.Generator) -> Float[Array, "count D"]:
        """Tasks of the pool in random order, each as often as the others to within one."""
        return self.vectors[stream.permutation(np.arange(count) % len(self.vectors))]


@dataclass(frozen=True, eq=False)
class SphereTasks:
    """Tasks spread evenly over the sphere of squared radius D, times the root of a covariance C if one is given.

    Raises ValueError for a dimension that is not a whole number >= 1 and for a C that is no covariance of it.
    """

    dimension: int
    covariance: Float[Array, "D D"] | None = None  # C: None is the identity

    def __post_init__(self) -> None:
        d, given = whole_number("dimension", self.dimension), self.covariance
        covariance = np.eye(d) if given is None else checked_covariance("covariance", given)
        require(covariance.shape == (d, d), f"covariance must have the shape {(d, d)}; got {covariance.shape}.")
        object.__setattr__(self, "covariance", covariance)

    def moments(self, inputs: Float[Array, "D D"], noise: float) -> TaskMoments:
        """Averages over the sphere, whose fourth moments are those of normal tasks times D/(D + 2)."""
        d, covariance = self.dimension, np.asarray(self.covariance)
        product = inputs @ covariance
        signal, pairs = np.trace(product) / d, np.sum(product * product.T) / d**2
        square = d / (d + 2) * (signal**2 + 2 * pairs) + 2 * noise * signal + noise**2
        return TaskMoments(covariance, float(signal + noise), np.zeros(d), float(square))

    def draw(self, count: int, stream: np.random.Generator) -> Float[Array, "count D"]:
        """Normal vectors, brought to length √D and coloured."""
        w = stream.standard_normal((count, self.dimension))
        even = w * (np.sqrt(self.dimension) / np.linalg.norm(w, axis=1, keepdims=True))
        return even @ symmetric_root(np.asarray(self.covariance))


@dataclass(frozen=True, eq=False)
class NormalTasks:
    """Tasks w ~ N(0, C).

    Raises ValueError for a covariance that is not symmetric positive semidefinite.
    """

    covariance: Float[Array, "D D"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariance", checked_covariance("covariance", self.covariance))

    @property
    def dimension(self) -> int:
        """D."""
        return len(self.covariance)

    def moments(self, inputs: Float[Array, "D D"], noise: float) -> TaskMoments:
        """Averages by Isserlis' theorem."""
        product = inputs @ self.covariance
        variance = np.trace(product) / self.dimension + noise
        square = variance**2 + 2 * np.sum(product * product.T) / self.dimension**2
        return TaskMoments(self.covariance, float(variance), np.zeros(self.dimension), float(square))

    def draw(self, count: int, stream: np.random.Generator) -> Float[Array, "count D"]:
        """Normal vectors, coloured."""
        return stream.standard_normal((count, self.dimension)) @ symmetric_root(self.covariance)


def require_tasks(name: str, tasks: Tasks) -> None:
    """Raise ValueError, with the name, for what is no law of tasks.

    Source: derived in docs/derivations/finite_size (the averages that are asked for).
    """
    holds = all(hasattr(tasks, part) for part in ("dimension", "moments", "draw"))
    require(holds, f"{name} must be a law of tasks, as Pool or SphereTasks; got {type(tasks).__name__}.")


@dataclass(frozen=True, eq=False)
class ContextLaw:
    """How contexts come about: tasks, N labelled inputs x ~ N(0, S/D) for each, label noise of variance ρ.

    Raises ValueError for a context length below 1, negative noise, an S that is not a covariance of the right
    size, and where labels would be zero throughout.
    """

    tasks: Tasks
    context_length: int  # N
    noise: float = 0.0  # ρ
    input_covariance: Float[Array, "D D"] | None = None  # S, relative: None is the identity

    def __post_init__(self) -> None:
        require_tasks("tasks", self.tasks)
        d = self.tasks.dimension
        length = whole_number("context_length", self.context_length)
        noise = magnitude_number("noise", self.noise, zero=True, advice="It is a variance.")
        given = self.input_covariance
        inputs = np.eye(d) if given is None else checked_covariance("input_covariance", given)
        require(
            inputs.shape == (d, d),
            f"input_covariance must have the shape {(d, d)}, as the tasks ask; got {inputs.shape}.",
        )
        object.__setattr__(self, "context_length", length)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "input_covariance", inputs)
        variance = self.tasks.moments(inputs, self.noise).variance
        require(variance > 0, "labels must vary; got tasks of length zero and no noise, with nothing to learn.")

    @property
    def dimension(self) -> int:
        """D."""
        return self.tasks.dimension

    @property
    def input_root(self) -> Float[Array, "D D"]:
        """The symmetric root of S."""
        return symmetric_root(np.asarray(self.input_covariance))


def symmetric_root(covariance: Float[Array, "D D"]) -> Float[Array, "D D"]:
    """The symmetric square root of a covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def sphere_law(law: ContextLaw) -> ContextLaw:
    """The same contexts with new tasks, spread over the sphere.

    Source: lu2025asymptotic, theory code (tasks of its simulations).
    """
    instance("law", law, ContextLaw)
    return replace(law, tasks=SphereTasks(law.dimension))


@dataclass(frozen=True)
class FeatureMoments:
    """The moments of g and the task through which a law of contexts enters the error of a readout."""

    cross: Float[Array, "D+1 D"]  # A = E g wᵀ
    second: Float[Array, "D+1 D+1"]  # B = E g gᵀ
    inputs: Float[Array, "D D"]  # S
    null_error: float  # E y_q²


def feature_moments(law: ContextLaw) -> FeatureMoments:
    """Moments of the features of a law of contexts, exact at every dimension and context length.

    Source: lu2025asymptotic, theory code (gen_err_analytical, sphere tasks); any tasks and inputs derived in
    docs/derivations/finite_size.
    """
    instance("law", law, ContextLaw)
    d, n, s = law.dimension, law.context_length, np.asarray(law.input_covariance)
    tasks = law.tasks.moments(s, law.noise)
    signal = s @ tasks.second @ s
    corner = (1 + 2 / n) * (s @ tasks.skew)
    second = np.empty((d + 1, d + 1))
    second[:d, :d] = (1 + 1 / n) * signal + (d / n) * tasks.variance * s
    second[:d, d] = second[d, :d] = corner
    second[d, d] = (1 + 2 / n) * tasks.square
    return FeatureMoments(np.vstack([s @ tasks.second, tasks.skew]), second, s, tasks.variance)


def exact_error(readout: Float[Array, "*batch D D+1"], law: ContextLaw) -> Float[Array, "*batch"]:
    """Mean squared error of a readout under a law of contexts, target noise included: no sampling, any D and N.

    Raises ValueError for a readout whose shape does not end in (D, D+1).

    Source: lu2025asymptotic, theory code (gen_err_analytical); derived in docs/derivations/finite_size.
    """
    instance("law", law, ContextLaw)
    return error_of(readout, feature_moments(law))


def error_of(readout: Float[Array, "*batch D D+1"], moments: FeatureMoments) -> Float[Array, "*batch"]:
    """exact_error, from moments that were built once.

    Source: derived in docs/derivations/finite_size.
    """
    g, d = numbers("readout", readout), len(moments.inputs)
    require(g.shape[-2:] == (d, d + 1), f"readout must end in shape {(d, d + 1)}, as the law; got {g.shape}.")
    weighted = moments.inputs @ g
    gain = np.einsum("...ij,ji->...", weighted, moments.cross)
    cost = np.einsum("...ij,...ij->...", weighted @ moments.second, g)
    return moments.null_error + (cost - 2 * gain) / d


def readout_of(gamma: Float[Array, "*batch D D"]) -> Float[Array, "*batch D D+1"]:
    """The readout [Γᵀ/D, 0] that answers as linear attention with the matrix Γ does.

    Raises ValueError for a matrix that is not square.

    Source: lu2025asymptotic, section 2 (reduction of the parameters); convention Γ of zhang2025training.
    """
    matrix = numbers("gamma", gamma)
    require(
        matrix.ndim >= 2 and matrix.shape[-1] == matrix.shape[-2] > 0,
        f"gamma must end in the shape (D, D); got {matrix.shape}.",
    )
    g = np.swapaxes(matrix, -1, -2) / matrix.shape[-1]
    return np.concatenate([g, np.zeros((*g.shape[:-1], 1))], axis=-1)
