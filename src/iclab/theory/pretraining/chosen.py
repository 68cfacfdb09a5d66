"""Errors after pretraining on a chosen pool: tasks orthogonal in a basis of the tasks, in place of drawn ones.

Errors know a pool by its second moment R alone. K chosen tasks have R = diag c without any fluctuation for a
spectrum c on at most K directions, as infinitely many drawn tasks have.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, require
from iclab.outcomes import Errors
from iclab.problem import Ratios
from iclab.theory.pretraining.response import Shift
from iclab.theory.pretraining.structured import eigenvalues, structured_errors

__all__ = ["chosen_pool_errors"]


def chosen_pool_errors(
    ratios: Validated[Ratios],
    *,
    task_eigenvalues: Validated[Float[ArrayLike, "D"]],
    test_task_eigenvalues: Validated[Float[ArrayLike, "D"] | None] = None,
    ridge: Validated[ArrayLike] = 0.0,
    shift: Validated[Shift | None] = None,
) -> Errors:
    """ICL, IDG and training error after pretraining on K = κD tasks chosen so that R = diag(task_eigenvalues).

    They are those of fresh tasks (κ = ∞) of that spectrum. Runs in D dimensions lie above by a term of order 1/D,
    some 2.5 times that of fresh tasks at K = D: below D = 24 the choice may win nothing yet. Units, ridge and limits
    as in structured_errors.

    Raises ValueError as structured_errors does, and for a spectrum on more directions than the pool has tasks.

    Source: derived in docs/derivations/task_design.
    """
    instance("ratios", ratios, Ratios)
    support = float(np.mean(eigenvalues("task_eigenvalues", task_eigenvalues) > 0))
    require(
        bool(np.all(np.asarray(ratios.kappa) >= support * (1 - 1e-12))),
        f"task_eigenvalues must be positive on at most a share kappa of the directions; got {support:g} of them for "
        f"kappa = {np.min(ratios.kappa):g}. Set the smallest ones to 0.",
    )
    return structured_errors(
        replace(ratios, kappa=np.inf),
        task_eigenvalues=task_eigenvalues,
        test_task_eigenvalues=test_task_eigenvalues,
        ridge=ridge,
        shift=shift,
    )
