"""Pools of tasks that are chosen, not drawn: orthogonal in the basis of their spectrum."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, magnitude, require, whole_number
from iclab.problem.tasks import Pool

__all__ = ["orthogonal_pool"]


def orthogonal_pool(tasks: Validated[int], *, task_eigenvalues: Validated[Float[ArrayLike, "D"]]) -> Pool:
    """K tasks w_k = Σ_j O_kj √(K c_j) e_j of second moment (1/K) Σ w wᵀ = diag(c), without any fluctuation.

    O is the orthogonal matrix of the Hartley transform, so that tasks are of like length.

    Raises ValueError for tasks below 1, a spectrum that is negative or all zero, and one that is positive on more
    directions than there are tasks.
    """
    count = whole_number("tasks", tasks)
    c = np.atleast_1d(magnitude("task_eigenvalues", task_eigenvalues, zero=True, infinite=False))
    require(c.ndim == 1 and bool(np.any(c > 0)), "task_eigenvalues must be a list with a positive number; got none.")
    used = np.flatnonzero(c)
    require(
        len(used) <= count,
        f"task_eigenvalues must be positive on at most as many directions as tasks; got {len(used)} for {count}. "
        "Set the smallest to 0, or choose more tasks.",
    )
    angle = 2 * np.pi / count * (np.outer(np.arange(count), np.arange(len(used))) % count)
    vectors = np.zeros((count, len(c)))
    vectors[:, used] = (np.cos(angle) + np.sin(angle)) * np.sqrt(c[used])
    return Pool(vectors)
