"""What the study of regression in training answers: errors of estimators and of a network along a context."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from iclab.outcomes import quantity

Array = np.ndarray


def _examples() -> Any:
    return quantity("m", "examples", words="labelled examples before the query")


def _steps() -> Any:
    return quantity("step", "step", words="steps of training")


def _error(words: str) -> Any:
    return quantity("L", "examples", unit="label²", words=words)


def _distance(words: str) -> Any:
    return quantity("Δ²", "step", unit="label²", words=f"squared distance from {words} at the last query")


@dataclass(frozen=True)
class Ridge:
    """Error of ridge at the noise level."""

    examples: Int[Array, "examples"] = _examples()
    ridge: Float[Array, "examples"] = _error("error of ridge")


@dataclass(frozen=True)
class Linear:
    """Errors of estimators on linear functions; inf where a mean does not exist."""

    examples: Int[Array, "examples"] = _examples()
    least_squares: Float[Array, "examples"] = _error("error of least squares")
    one_step: Float[Array, "examples"] = _error("error of one step of gradient descent, at its best rate")


@dataclass(frozen=True)
class Drawn:
    """Errors of all estimators on the drawn contexts."""

    examples: Int[Array, "examples"] = _examples()
    ridge: Float[Array, "examples"] = _error("error of ridge")
    least_squares: Float[Array, "examples"] = _error("error of least squares")
    one_step: Float[Array, "examples"] = _error("error of one step of gradient descent")
    descent: Float[Array, "examples"] = _error("error of several steps of gradient descent")


@dataclass(frozen=True)
class Network:
    """Loss of the network on new tasks, and its distances from estimators, during training."""

    step: Int[Array, "step"] = _steps()
    examples: Int[Array, "examples"] = _examples()
    loss: Float[Array, "step examples"] = quantity(
        "L", "step", "examples", unit="label²", words="mean squared error on new tasks"
    )
    ridge: Float[Array, "step"] = _distance("ridge")
    least_squares: Float[Array, "step"] = _distance("least squares")
    one_step: Float[Array, "step"] = _distance("one step of gradient descent")
    descent: Float[Array, "step"] = _distance("several steps of gradient descent")


@dataclass(frozen=True)
class Known:
    """What dMMSE, which knows the pool, does on the same contexts."""

    examples: Int[Array, "examples"] = _examples()
    step: Int[Array, "step"] = _steps()
    error: Float[Array, "examples"] = _error("error of dMMSE")
    distance: Float[Array, "step"] = _distance("dMMSE")


@dataclass(frozen=True)
class Bayes:
    """The trained network against ridge, which is the Bayes estimator of linear functions."""

    score: float = quantity("z", words="least excess over ridge on the same contexts, in standard errors")
    ratio: float = quantity("L/L_ridge", words="final loss at the last query over that of ridge")
    from_one_step: float = quantity("Δ²/Δ²", words="squared distance from ridge over that from one step")
    from_least_squares: float = quantity("Δ²/Δ²", words="squared distance from ridge over that from least squares")


@dataclass(frozen=True)
class Exact:
    """The drawn errors of ridge against its exact ones."""

    score: float = quantity(
        "z", words="largest distance of drawn errors of ridge from exact ones, in standard errors"
    )
