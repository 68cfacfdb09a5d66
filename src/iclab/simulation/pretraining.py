"""Finite pretraining at scale: sequences are drawn, and the readout that ridge regression finds on them is fitted.

Neither the features of the sequences nor the D(D+1) × D(D+1) matrix of their products is ever formed (but on the
direct route, the witness). A draw is a pool of tasks and the sequences that use it, both from its key. It runs on
any device of JAX; sequences never leave it.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from iclab.numerics import checked, positive, require, whole_number
from iclab.outcomes import FittedErrors
from iclab.problem import Pretraining
from iclab.readouts import ContextLaw, NormalTasks, Pool, SphereTasks, Tasks, exact_error
from iclab.simulation import ridge_routes
from iclab.simulation.pretraining_sequences import (
    SequenceLaw,
    Shape,
    Spectrum,
    drawn_pool,
    drawn_sequences,
    parts_of,
    sequence_law,
    shape_of,
)
from iclab.simulation.ridge_costs import Plan, Size, machine_memory, taken

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

Array = np.ndarray
ITERATIVE = ("plain", "preconditioned", "dual")
REACH = 50  # units of rounding below which no residual falls reliably


@dataclass(frozen=True, eq=False)
class Fit:
    """The readout that one draw of finite pretraining ends in, and how it was found."""

    readout: Float[Array, "D D+1"]  # G, which answers x_qᵀ G g
    route: str  # direct, kernel, plain, preconditioned or dual
    iterations: int  # of conjugate gradients; 0 for other routes
    residual: float  # gradient of the penalised error, relative to that at G = 0
    sequences: int  # n
    law: ContextLaw  # of the sequences, with the pool that was drawn
    new: ContextLaw  # of the same contexts with new tasks
    train: float  # mean squared error on the sequences

    @property
    def tasks(self) -> Tasks:
        """The pool that was drawn, or the law of the fresh tasks."""
        return self.law.tasks

    def errors(self, new: ContextLaw | None = None) -> FittedErrors:
        """ICL, IDG and training error, exact: ICL under the law `new`, that of new tasks in pretraining unless given.

        Raises ValueError for a law of another dimension.
        """
        icl = exact_error(self.readout, self.new if new is None else new)
        return FittedErrors(float(icl), float(exact_error(self.readout, self.law)), self.train)


def fit(
    pretraining: Pretraining,
    *,
    ridge: float,
    input_eigenvalues: Spectrum | None = None,
    task_eigenvalues: Spectrum | None = None,
    route: str = "auto",
    tolerance: float = 1e-8,
    memory: float | None = None,
    precision: str = "float64",
    room: Pretraining | None = None,
    iterations: int = 20_000,
    key: "PRNGKeyArray",
) -> Fit:
    """One draw of finite pretraining: fit_each with one key."""
    return fit_each(
        pretraining,
        ridge=ridge,
        input_eigenvalues=input_eigenvalues,
        task_eigenvalues=task_eigenvalues,
        route=route,
        tolerance=tolerance,
        memory=memory,
        precision=precision,
        room=room,
        iterations=iterations,
        keys=key[None],
    )[0]


def fit_each(
    pretraining: Pretraining,
    *,
    ridge: float,
    input_eigenvalues: Spectrum | None = None,
    task_eigenvalues: Spectrum | None = None,
    route: str = "auto",
    tolerance: float = 1e-8,
    memory: float | None = None,
    precision: str = "float64",
    room: Pretraining | None = None,
    iterations: int = 20_000,
    keys: "PRNGKeyArray",
) -> list[Fit]:
    """A draw of finite pretraining for each key: the G of least Σ (y − x_qᵀ G g)² + (n/D) λ ‖G‖².

    Without ridge the limit λ → 0, of least norm where sequences are fewer than weights. Inputs are N(0, diag(s)/D)
    and tasks have covariance diag(c), s and c the eigenvalues given, 1 unless they are; normalized tasks are those
    of the sphere times √c. Routes: `plan` says which is taken and why. Conjugate gradients stop at a residual of
    `tolerance`. `memory` is the budget in bytes, that of the machine unless given. Runs of one dimension that differ
    in sequences and tasks share one compiled function if all are given the largest of them as `room`: rows of zeros
    fill it. Cost: 4 n D² operations a step, 2 n (D+1) numbers.

    Raises ValueError for a negative ridge, a tolerance that the precision cannot reach, spectra that are not D
    numbers >= 0, a route that does not apply, a room that is too small, and for more than the budget, with the
    largest dimension that fits; ArithmeticError where the residual stays above ten times the tolerance.
    """
    penalty = float(checked("ridge", ridge, at_least=0.0, infinite=False))
    law = sequence_law(pretraining, input_eigenvalues, task_eigenvalues)
    shape = shape_of(pretraining, room, precision)
    size = _size(law, shape, pretraining, penalty, _reachable(tolerance, precision))
    chosen = taken(size, route, machine_memory() if memory is None else memory)
    require(
        jnp.issubdtype(keys.dtype, jax.dtypes.prng_key) and keys.ndim == 1,
        f"keys must be a list of keys made by jax.random.key; got {keys.dtype} of shape {keys.shape}.",
    )
    most = whole_number("iterations", iterations)
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        numbers = jax.tree.map(lambda part: np.asarray(part, precision), law)
        return [
            _fit(both, pretraining, numbers, penalty, chosen.route, (tolerance, most), shape) for both in _roles(keys)
        ]


def plan(
    pretraining: Pretraining,
    *,
    ridge: float,
    input_eigenvalues: Spectrum | None = None,
    route: str = "auto",
    tolerance: float = 1e-8,
    memory: float | None = None,
    precision: str = "float64",
) -> Plan:
    """The route that `fit` will take, why, and an estimate of its memory, time and iterations. Nothing is drawn.

    Raises ValueError as fit_each does.
    """
    penalty = float(checked("ridge", ridge, at_least=0.0, infinite=False))
    law, shape = sequence_law(pretraining, input_eigenvalues, None), shape_of(pretraining, None, precision)
    size = _size(law, shape, pretraining, penalty, _reachable(tolerance, precision))
    return taken(size, route, machine_memory() if memory is None else memory)


def _size(law: SequenceLaw, shape: Shape, pretraining: Pretraining, ridge: float, tolerance: float) -> Size:
    rank = int(np.count_nonzero(law.contexts.input_scale))
    itemsize = np.dtype(shape.precision).itemsize
    return Size(pretraining, ridge, rank * (rank + 1), tolerance, itemsize, shape.blocks * shape.block)


def _reachable(tolerance: float, precision: str) -> float:
    least = REACH * float(np.finfo(precision).eps)
    positive("tolerance", tolerance)
    require(
        tolerance >= least,
        f"tolerance must be at least {least:.1e}, which {precision} can reach; got {tolerance!r}. Raise it"
        + (", or use precision float64." if precision == "float32" else "."),
    )
    return tolerance


@jax.jit
def _roles(keys: jax.Array) -> jax.Array:
    """Two keys of each: for the pool and for the sequences."""
    return jax.vmap(jax.random.split)(keys)


@partial(jax.jit, static_argnames="shape")
def _drawn(
    both: jax.Array, law: SequenceLaw, count: int, tasks: int, shape: Shape
) -> tuple[jax.Array, ridge_routes.Summaries]:
    """A pool of tasks and sequences that use it."""
    pool = drawn_pool(both[0], law, shape)
    return pool, drawn_sequences(both[1], pool, law, count, tasks, shape)


def _fit(
    both: jax.Array,
    pretraining: Pretraining,
    law: SequenceLaw,
    ridge: float,
    route: str,
    limits: tuple[float, int],
    shape: Shape,
) -> Fit:
    """One draw. Raises ArithmeticError where it has not converged."""
    count, (tolerance, most) = pretraining.sequences, limits
    pool, drawn = _drawn(both, law, count, pretraining.tasks or 1, shape)
    data = parts_of(drawn)
    solution = getattr(ridge_routes, route)(data, count, ridge, *(limits if route in ITERATIVE else ()))
    residual, train = ridge_routes.check(data, count, ridge, solution.readout)
    if not residual <= 10 * tolerance:
        raise ArithmeticError(
            f"route {route} ended after {solution.iterations} of {most} iterations at a residual of {residual:.1e}, "
            f"above ten times the tolerance {tolerance:.1e}. Near as many sequences as weights a tiny ridge takes "
            "very many: raise the ridge, tolerance or iterations, or use route kernel or direct."
        )
    new = _population(pretraining, law)
    own = new if pretraining.tasks is None else replace(new, tasks=Pool(np.asarray(pool[: pretraining.tasks], float)))
    return Fit(np.asarray(solution.readout, float), route, solution.iterations, residual, count, own, new, train)


def _population(pretraining: Pretraining, law: SequenceLaw) -> ContextLaw:
    covariance, inputs = np.diag(law.task_scale**2), np.diag(law.contexts.input_scale**2)
    tasks = SphereTasks(len(inputs), covariance) if pretraining.normalized else NormalTasks(covariance)
    return ContextLaw(tasks, pretraining.context_length, pretraining.noise, inputs)
