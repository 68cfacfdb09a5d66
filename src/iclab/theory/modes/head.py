"""One head with a scalar output, mode by mode: value u and diagonal key-query matrix U, prediction u hᵀ U x_q.

Here the modes share u, so that those learned early speed up the later ones: exact at any context length, since
a scalar value leaves nothing else to couple.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import numbers, pair, require
from iclab.outcomes import SingleHeadCurves
from iclab.theory.integration import integrate
from iclab.theory.modes.diagonal_tasks import (
    PRECISION,
    checked_time,
    diagonal_tasks,
    mode_start,
    mode_weights,
    start_floor,
)

Array = np.ndarray


def head_limits(
    eigenvalues: Float[Array, "mode"], context_length: int, *, noise: float = 0.0
) -> Float[Array, "mode"]:
    """Strengths u U at which one head settles: 1/((1 + 1/N) s + (tr Λ + noise)/N).

    Source: zhang2025training, eq. 11, as in its merged model; noise derived in docs/derivations/population.
    """
    model = diagonal_tasks(eigenvalues, context_length, noise=noise)
    s, length = model.eigenvalues, model.context_length
    return length / ((length + 1) * s + np.sum(s) + model.noise)


def head_loss(
    value: Float[Array, "*batch"],
    key_query: Float[Array, "*batch mode"],
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    noise: float = 0.0,
) -> Float[Array, "*batch"]:
    """Mean squared error of one head, the query's label noise included: one output, so the noise counts once.

    Source: zhang2025training, eq. 12; noise derived in docs/derivations/population.
    """
    s = diagonal_tasks(eigenvalues, context_length, noise=noise).eigenvalues
    strength = numbers("value", value)[..., None] * mode_weights("key_query", key_query, len(s))
    kept = strength / head_limits(s, context_length, noise=noise)
    return np.sum(s * (1 + s * strength * (kept - 2)), axis=-1) + noise


def head_flow(
    eigenvalues: Float[Array, "mode"],
    context_length: int,
    *,
    start: tuple[float, ArrayLike],
    time: Float[Array, "time"],
    noise: float = 0.0,
) -> SingleHeadCurves:
    """Curves of one head under the flow −½∇L: dU = u s² (1 − u U/a∞), du = Σ s² U (1 − u U/a∞).

    `start` is (u₀, U₀), U₀ a scalar or one number per mode. u² − |U|² is conserved.

    Raises ValueError for starts or times that do not fit, ArithmeticError where the solver stops early.

    Source: zhang2025training, section 3 (merged key and query, one head); noise in docs/derivations/modes.
    """
    model = diagonal_tasks(eigenvalues, context_length, noise=noise)
    first, matrix = pair("start", start)
    require(np.ndim(first) == 0, f"start must hold one value u0; got shape {np.shape(first)}.")
    _, matrix = mode_start((first, matrix), model.modes)
    time, ends = checked_time(time), head_limits(eigenvalues, context_length, noise=noise)

    def velocity(weights: Array) -> Array:
        value, matrix = weights[0], weights[1:]
        push = model.eigenvalues**2 * (1 - value * matrix / ends)
        return np.concatenate([[matrix @ push], value * push])

    joined = np.concatenate([[float(first)], matrix])
    floor = start_floor(np.full(joined.size, np.max(np.abs(joined))))
    path = integrate(velocity, joined, time, tolerance=PRECISION, floor=floor)
    value, key_query = path[:, 0], path[:, 1:]
    loss = head_loss(value, key_query, eigenvalues, context_length, noise=noise)
    return SingleHeadCurves(time, value, key_query, value[:, None] * key_query, loss)
