"""What studies of finite pretraining answer: errors along the sizes that were varied.

ICL is the error on new tasks, IDG on tasks of the pool, both with the noise of the target. Infinite values
are limits.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int

from iclab.outcomes.labelled import quantity
from iclab.outcomes.pretraining import Errors

Array = np.ndarray


def _alpha() -> Any:
    return quantity("α", "alpha", words="examples of a context for each dimension, N/D")


def _kappa() -> Any:
    return quantity("κ", "kappa", words="tasks of the pool for each dimension, K/D")


def _tau() -> Any:
    return quantity("τ", "tau", words="pretraining sequences for each squared dimension, n/D²")


def _noise() -> Any:
    return quantity("ρ", "noise", unit="label²", words="variance of the label noise")


def _icl(*axes: str) -> Any:
    return quantity("e_ICL", *axes, unit="label²", words="error on new tasks")


def _idg(*axes: str) -> Any:
    return quantity("e_IDG", *axes, unit="label²", words="error on tasks of the pool")


def _train(*axes: str) -> Any:
    return quantity("e_train", *axes, unit="label²", words="error on the pretraining data")


@dataclass(frozen=True)
class ErrorsByLengthAndSequences:
    """Errors against the number of pretraining sequences, for contexts of several lengths."""

    alpha: Float[Array, "alpha"] = _alpha()
    tau: Float[Array, "tau"] = _tau()
    icl: Float[Array, "alpha tau"] = _icl("alpha", "tau")
    idg: Float[Array, "alpha tau"] = _idg("alpha", "tau")
    train: Float[Array, "alpha tau"] = _train("alpha", "tau")


@dataclass(frozen=True)
class ErrorsByDimensionAndSequences:
    """Errors against the number of pretraining sequences, in several dimensions."""

    dimension: Int[Array, "dimension"] = quantity("D", "dimension", words="entries of an input")
    tau: Float[Array, "tau"] = _tau()
    icl: Float[Array, "dimension tau"] = _icl("dimension", "tau")
    idg: Float[Array, "dimension tau"] = _idg("dimension", "tau")
    train: Float[Array, "dimension tau"] = _train("dimension", "tau")


@dataclass(frozen=True)
class ErrorsByRidgeAndSequences:
    """Errors against the number of pretraining sequences, at several ridges."""

    ridge: Float[Array, "ridge"] = quantity("λ", "ridge", words="ridge of the readout")
    tau: Float[Array, "tau"] = _tau()
    icl: Float[Array, "ridge tau"] = _icl("ridge", "tau")
    idg: Float[Array, "ridge tau"] = _idg("ridge", "tau")
    train: Float[Array, "ridge tau"] = _train("ridge", "tau")


@dataclass(frozen=True)
class ErrorsBySequences:
    """Errors against the number of pretraining sequences."""

    tau: Float[Array, "tau"] = _tau()
    icl: Float[Array, "tau"] = _icl("tau")
    idg: Float[Array, "tau"] = _idg("tau")
    train: Float[Array, "tau"] = _train("tau")

    @classmethod
    def of(cls, tau: Float[Array, "tau"], errors: Errors) -> Self:
        """The curves of given errors, one for each τ."""
        return cls(tau, *(np.asarray(part) for part in (errors.icl, errors.idg, errors.train)))


@dataclass(frozen=True)
class BestRidges:
    """The ridge of least error on new tasks and on tasks of the pool, and the two errors that they reach."""

    tau: Float[Array, "tau"] = _tau()
    icl_ridge: Float[Array, "tau"] = quantity("λ_ICL", "tau", words="ridge of least error on new tasks")
    idg_ridge: Float[Array, "tau"] = quantity("λ_IDG", "tau", words="ridge of least error on tasks of the pool")
    icl: Float[Array, "tau"] = _icl("tau")
    idg: Float[Array, "tau"] = _idg("tau")


@dataclass(frozen=True)
class ErrorsByTasksAndLength:
    """Errors against the length of contexts, for pools of several sizes."""

    kappa: Float[Array, "kappa"] = _kappa()
    alpha: Float[Array, "alpha"] = _alpha()
    icl: Float[Array, "kappa alpha"] = _icl("kappa", "alpha")
    idg: Float[Array, "kappa alpha"] = _idg("kappa", "alpha")


@dataclass(frozen=True)
class ErrorsByTestLength:
    """Errors on contexts of other lengths than those of pretraining."""

    alpha: Float[Array, "alpha"] = _alpha()
    test_alpha: Float[Array, "test_alpha"] = quantity("α_test", "test_alpha", words="examples of a test context, N/D")
    icl: Float[Array, "alpha test_alpha"] = _icl("alpha", "test_alpha")
    idg: Float[Array, "alpha test_alpha"] = _idg("alpha", "test_alpha")


@dataclass(frozen=True)
class BestLengths:
    """The length of contexts with the least error, for pools of several sizes; infinite where longer is better."""

    kappa: Float[Array, "kappa"] = _kappa()
    alpha: Float[Array, "kappa"] = quantity("α*", "kappa", words="best number of examples for each dimension")
    error: Float[Array, "kappa"] = quantity("e(α*)", "kappa", unit="label²", words="error at the best length")


@dataclass(frozen=True)
class BestLengthMap:
    """The length of contexts with the least error, by pool size and noise; infinite where longer is better."""

    noise: Float[Array, "noise"] = _noise()
    kappa: Float[Array, "kappa"] = _kappa()
    alpha: Float[Array, "noise kappa"] = quantity(
        "α*", "noise", "kappa", words="best number of examples for each dimension"
    )


@dataclass(frozen=True)
class CriticalTasks:
    """The pool size below which error rises again in long contexts."""

    noise: Float[Array, "noise"] = _noise()
    kappa: Float[Array, "noise"] = quantity("κ_c", "noise", words="critical number of tasks for each dimension")


@dataclass(frozen=True)
class GapByTasks:
    """What a new task costs more than a task of the pool, against the size of the pool."""

    kappa: Float[Array, "kappa"] = _kappa()
    gap: Float[Array, "kappa"] = quantity(
        "g", "kappa", unit="label²", words="error on new tasks above that on the pool"
    )


@dataclass(frozen=True)
class GapByTasksAndLength:
    """What a new task costs more than a task of the pool, against the size of the pool, for several lengths."""

    alpha: Float[Array, "alpha"] = _alpha()
    kappa: Float[Array, "kappa"] = _kappa()
    gap: Float[Array, "alpha kappa"] = quantity(
        "g", "alpha", "kappa", unit="label²", words="error on new tasks above that on the pool"
    )


@dataclass(frozen=True)
class GapByDimensionAndTasks:
    """What a new task costs more than a task of the pool, in several dimensions."""

    dimension: Int[Array, "dimension"] = quantity("D", "dimension", words="entries of an input")
    kappa: Float[Array, "kappa"] = _kappa()
    gap: Float[Array, "dimension kappa"] = quantity(
        "g", "dimension", "kappa", unit="label²", words="error on new tasks above that on the pool"
    )


@dataclass(frozen=True)
class ErrorsByLogTasks:
    """Errors of an estimator that knows exp(sD) tasks."""

    log_tasks: Float[Array, "log_tasks"] = quantity("s", "log_tasks", unit="nat", words="ln K for each dimension")
    icl: Float[Array, "log_tasks"] = _icl("log_tasks")
    idg: Float[Array, "log_tasks"] = _idg("log_tasks")


@dataclass(frozen=True)
class TaskThreshold:
    """Where a pool becomes as good as all tasks, and the error from there on."""

    log_tasks: Float[Array, ""] | float = quantity(
        "s_c", unit="nat", words="ln K for each dimension at the threshold"
    )
    error: Float[Array, ""] | float = quantity("e_ridge", unit="label²", words="error of ridge regression at ridge ρ")
