"""Sizes of finite pretraining: grids of them, pools of given dimension, predictions over a grid."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab.numerics import Checked, Positive, Whole, require
from iclab.outcomes import Errors, Labeled, labeled
from iclab.problem import ContextLaw, Pool, SphereTasks
from iclab.studies.pretraining.runs import ERRORS

__all__ = ["STREAM", "Span", "around", "bounds", "column", "law_of", "table"]

STREAM = 20250517  # of pools at finite dimension, which theory takes as given


@dataclass(frozen=True)
class Span(Checked):
    """Sizes from one to another, in equal ratios. Raises ValueError unless 0 < least < most."""

    least: Positive  # the smallest size
    most: Positive  # the largest size
    points: Annotated[int, Whole(least=2)] = 121  # number of sizes

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.least < self.most,
            f"least and most must be positive and finite, least below most; got {self.least!r} and {self.most!r}.",
        )

    def grid(self) -> Float[np.ndarray, "point"]:
        """The sizes, in rising order."""
        return np.geomspace(self.least, self.most, self.points)


def around(sizes: Iterable[float], peaks: Iterable[float]) -> Float[np.ndarray, "point"]:
    """The sizes, and more of them near peaks and on them, in rising order."""
    near = np.array([0.9, 0.94, 0.97, 0.985, 0.993, 1.0, 1.007, 1.015, 1.03, 1.06, 1.1])
    return np.unique(np.concatenate([np.array(tuple(sizes)), np.outer(tuple(peaks), near).ravel()]))


def column(values: Iterable[float]) -> Float[np.ndarray, "n 1"]:
    """Values down the rows of a grid."""
    return np.array(tuple(values), dtype=float)[:, None]


def law_of(dimension: int, *, alpha: float, kappa: float, noise: float, pool: int = 0) -> ContextLaw:
    """Contexts of N = αD examples with K = κD tasks on the sphere; `pool` numbers pools, each always the same.

    Sizes are rounded, to one at least; κ = ∞ gives a fresh task to every context.
    """
    tasks = SphereTasks(dimension)
    if np.isfinite(kappa):
        count = max(1, round(kappa * dimension))
        tasks = Pool(tasks.draw(count, np.random.default_rng((STREAM, pool))))
    return ContextLaw(tasks, max(1, round(alpha * dimension)), noise)


def table(prediction: Callable[..., Errors], **axes: Iterable[float]) -> Labeled:
    """ICL, IDG and training errors of a prediction at each point of a grid."""
    points = {name: tuple(axis) for name, axis in axes.items()}
    shape = [len(axis) for axis in points.values()]
    found = [prediction(*point) for point in product(*points.values())]  # in the order of the axes
    return labeled(points, **{name: np.reshape([getattr(one, name) for one in found], shape) for name in ERRORS})


def bounds(noise: float) -> Labeled:
    """The errors of predicting 0 and of knowing the task."""
    return labeled({"plateau": None}, loss=np.array([1 + noise, noise]))
