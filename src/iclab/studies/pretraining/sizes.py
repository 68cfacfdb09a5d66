"""What studies of finite pretraining share: sizes on a grid, pools of given dimension, axes of sizes and errors."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.numerics import require, whole_number
from iclab.outcomes import Errors, Levels
from iclab.problem import Pool
from iclab.study import Axes, View

if TYPE_CHECKING:
    from iclab.problem import ContextLaw

_STREAM = 20250517  # of pools at finite dimension, which theory takes as given

LENGTH = "examples of a context  $\\alpha = N/D$"
TASKS = "tasks of the pool  $\\kappa = K/D$"
SEQUENCES = "pretraining sequences  $\\tau = n/D^2$"


@dataclass(frozen=True)
class Span:
    """Sizes from one to another, in equal ratios. Raises ValueError unless 0 < least < most."""

    least: float  # the smallest size
    most: float  # the largest size
    points: int = 121  # how many sizes

    def __post_init__(self) -> None:
        require(
            0 < self.least < self.most < np.inf,
            f"least and most must be positive and finite, least below most; got {self.least!r} and {self.most!r}.",
        )
        whole_number("points", self.points, least=2)

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


def law_of(dimension: int, *, alpha: float, kappa: float, noise: float, pool: int = 0) -> "ContextLaw":
    """Contexts of N = αD examples with K = κD tasks on the sphere; `pool` numbers pools, each always the same.

    Sizes are rounded, to one at least; κ = ∞ gives a fresh task to every context.
    """
    from iclab.theory import finite_size

    tasks = finite_size.SphereTasks(dimension)
    if np.isfinite(kappa):
        count = max(1, round(kappa * dimension))
        tasks = Pool(tasks.draw(count, np.random.default_rng((_STREAM, pool))))
    return finite_size.ContextLaw(tasks, max(1, round(alpha * dimension)), noise)


def pool_of(law: "ContextLaw") -> Float[np.ndarray, "K D"]:
    """The tasks of a law that has a pool."""
    assert isinstance(law.tasks, Pool)
    return law.tasks.vectors


def table(answer: Callable[..., Errors], *axes: Iterable) -> dict[str, Float[np.ndarray, "..."]]:
    """ICL, IDG and training errors of one answer for each point of a grid."""
    lists = [tuple(axis) for axis in axes]
    shape = tuple(len(axis) for axis in lists)
    found = [answer(*(axis[i] for axis, i in zip(lists, at, strict=True))) for at in np.ndindex(shape)]
    return {name: np.reshape([getattr(errors, name) for errors in found], shape) for name in ("icl", "idg", "train")}


def bounds(noise: float) -> Levels:
    """The errors of predicting nothing and of knowing the task."""
    return Levels(np.array([1 + noise, noise]))


def error_axes(axes: Axes, view: View, sizes: str, *, title: str) -> None:
    """Logarithmic axes of sizes and errors; the bounds of the study are dotted lines where they are in sight."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(title)
    axes.set_xlabel(sizes)
    axes.set_ylabel("mean squared error")
    seen = axes.get_ylim()
    levels = view.theory.bounds.loss.values
    for level, name, side in zip(levels, ("1 + ρ", "ρ"), ("bottom", "top"), strict=True):
        if seen[0] < level < seen[1]:
            figures.level_lines(axes, [level])
            axes.annotate(name, (1.01, level), xycoords=("axes fraction", "data"), va=side, size=7, color="#777777")
    axes.set_ylim(seen)
