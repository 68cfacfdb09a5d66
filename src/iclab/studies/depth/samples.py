"""White problems and samples of contexts that studies of depth share, and the words of their results."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.numerics import Whole
from iclab.outcomes import vocabulary
from iclab.problem import Regression

if TYPE_CHECKING:
    from iclab.theory.depth import Discrete

__all__ = ["WORDS", "Depth", "Sample", "curve_reading", "drawn_sample", "law_of", "white_problem"]

Array = np.ndarray
Depth = Annotated[int, Whole()]  # a field of a case: L, layers of the stack


class Sample(NamedTuple):
    """Covariances of the drawn contexts and layers at the start, which theory and simulation are handed alike."""

    covariances: Float[Array, "M D D"]
    gammas: tuple[Float[Array, "..."], ...]


def white_problem(dimension: int, context_length: int, noise: float = 0.0) -> Regression:
    """White inputs and tasks with T = tr ΩΛ = 1: the loss is the noise plus the excess."""
    return Regression((1.0,) * dimension, context_length, noise, (1 / dimension,) * dimension)


def drawn_sample(case: Any, rng: np.random.Generator) -> Float[Array, "M D D"]:
    """Covariances of the contexts of a case with `dimension`, `context_length` and `contexts`."""
    inputs = rng.standard_normal((case.contexts, case.context_length, case.dimension))
    return inputs.transpose(0, 2, 1) @ inputs / case.context_length


def law_of(covariances: Float[Array, "M D D"], context_length: int) -> "Discrete":
    """The law of the spectrum of a sample: the theory of that very sample."""
    from iclab.theory import depth

    return depth.spectrum(np.linalg.eigvalsh(covariances).ravel(), alpha=context_length / covariances.shape[-1])


def curve_reading(time: Float[Array, "time"], loss: Float[Array, "time"]) -> tuple[float, float]:
    """The loss of the longest rest between start and end of a curve, and when it is half-way from there to the end.

    The rest is where |dL/d log t| is least among losses in the middle, a twentieth away from either end.
    """
    from iclab.numerics.curves import first_below

    late = time > 0
    slope = abs(np.gradient(loss[late], np.log(time[late])))
    low, high = 1.05 * loss[-1], loss[0] - 0.05 * (loss[0] - loss[-1])
    middle = (loss[late] > low) & (loss[late] < high)
    rest = float(loss[late][middle][np.argmin(slope[middle])])
    return rest, first_below(time, loss, 0.5 * (rest + float(loss[-1])))


WORDS = vocabulary(
    depth=("L", "layers of the stack"),
    layer=("l", "layer"),
    excess=("F", "mean squared error over the noise of the query's label, signal variance 1", "label²"),
    tied=("F_tied", "excess of the best equal layers", "label²"),
    untied=("F*", "excess of the best layers", "label²"),
    gain=("g", "layer in units of 1/λ"),
    half_way=("t½", "time half-way from the tied to the best level", "1/λ²"),
    noise_ratio=("ρ/T", "noise over signal variance"),
    divisor=("η₀/η", "divisor of the learning rate"),
    time=("t", "training time", "1/λ²"),
)
