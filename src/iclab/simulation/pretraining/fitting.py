"""Finite pretraining at scale: sequences are drawn, and the readout that ridge regression finds on them is fitted.

Neither the features of the sequences nor the D(D+1) × D(D+1) matrix of their products is ever formed (but on the
direct route, the witness). A draw is a pool of tasks and the sequences that use it, both from its key, the same on
every device. A CPU computes with NumPy, another device with JAX.
"""

from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float, Key, PRNGKeyArray

from iclab.numerics import Validated, instance, magnitude_number, require
from iclab.outcomes import FittedErrors
from iclab.problem import ContextLaw, NormalTasks, Pool, Pretraining, SphereTasks, Tasks
from iclab.problem.readouts import exact_error
from iclab.simulation.keys import checked_key, checked_keys, generators_of
from iclab.simulation.linear.summaries import Summaries
from iclab.simulation.pretraining import routes
from iclab.simulation.pretraining.costs import FitSize, RouteCost, chosen
from iclab.simulation.pretraining.sequences import (
    SequenceLaw,
    Spectrum,
    draw_parts,
    drawn_pool,
    empty_parts,
    on_device,
    sequence_law,
)
from iclab.simulation.pretraining.solver import RidgeSolver

__all__ = ["Fit", "chosen_route", "fit", "fit_each", "law_of_new"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Fit:
    """The readout that one draw of finite pretraining ends in, and how it was found."""

    readout: Float[Array, "D D+1"]  # G, whose prediction is x_qᵀ G g
    route: str  # direct, kernel, plain, preconditioned or dual
    iterations: int  # of conjugate gradients; 0 for other routes
    residual: float  # gradient of the penalized error, relative to that at G = 0
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
    pretraining: Validated[Pretraining],
    *,
    ridge: Validated[float],
    input_eigenvalues: Validated[Spectrum | None] = None,
    task_eigenvalues: Validated[Spectrum | None] = None,
    pool: Validated[Pool | None] = None,
    solver: Validated[RidgeSolver] = RidgeSolver(),
    key: Validated[PRNGKeyArray],
) -> Fit:
    """One draw of finite pretraining: fit_each with one key."""
    return fit_each(
        pretraining,
        ridge=ridge,
        input_eigenvalues=input_eigenvalues,
        task_eigenvalues=task_eigenvalues,
        pool=pool,
        solver=solver,
        keys=checked_key(key)[None],
    )[0]


def fit_each(
    pretraining: Validated[Pretraining],
    *,
    ridge: Validated[float],
    input_eigenvalues: Validated[Spectrum | None] = None,
    task_eigenvalues: Validated[Spectrum | None] = None,
    pool: Validated[Pool | None] = None,
    solver: Validated[RidgeSolver] = RidgeSolver(),
    keys: Validated[Key[jax.Array, "seed"]],
) -> list[Fit]:
    """A draw of finite pretraining for each key: the G of least Σ (y − x_qᵀ G g)² + (n/D) λ ‖G‖².

    Without ridge the limit λ → 0, of least norm where sequences are fewer than weights. Inputs are N(0, diag(s)/D)
    and tasks have covariance diag(c), s and c the eigenvalues given, 1 unless they are; normalized tasks are those
    of the sphere times √c. A `pool` is used as it is, in place of a drawn one. `chosen_route` says which route is
    taken and why. Cost: 4 n D² operations an iteration, 2 n (D+1) numbers.

    Raises ValueError for a negative ridge, spectra that are not D numbers >= 0, a pool of other sizes, a route that
    does not apply, a `pad_to` that is too small, and for more than the memory of the solver, with the largest
    dimension that fits; ArithmeticError where the residual stays above ten times the tolerance.
    """
    law = sequence_law(pretraining, input_eigenvalues, task_eigenvalues)
    if pool is not None:
        _require_pool(pool, pretraining)
    size = _size(law, pretraining, ridge, solver)
    rows = solver.rows(pretraining)
    route = chosen(size, solver.route, solver.budget).route
    draws = _Draws(pretraining, law, size.ridge, route, solver, rows, law_of_new(law, pretraining), pool)
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        parts = empty_parts(pretraining, solver.precision)
        return [draws.fit(rng, parts) for rng in generators_of(checked_keys(keys))]


def chosen_route(
    pretraining: Validated[Pretraining],
    *,
    ridge: Validated[float],
    input_eigenvalues: Validated[Spectrum | None] = None,
    task_eigenvalues: Validated[Spectrum | None] = None,
    solver: Validated[RidgeSolver] = RidgeSolver(),
) -> RouteCost:
    """The route that `fit` will take, the reason, and an estimate of memory, time and iterations. Nothing is drawn.

    Raises ValueError as fit_each does.
    """
    law = sequence_law(pretraining, input_eigenvalues, task_eigenvalues)
    return chosen(_size(law, pretraining, ridge, solver), solver.route, solver.budget)


def _size(
    law: SequenceLaw, pretraining: Pretraining, ridge: Validated[float], solver: Validated[RidgeSolver]
) -> FitSize:
    instance("solver", solver, RidgeSolver)
    penalty = magnitude_number("ridge", ridge, zero=True)
    one_direction = pretraining.tasks == 1 and pretraining.noise == 0  # Σ y² is then a sum of the entries of Σ y x
    weights = law.rank * (law.rank + (not one_direction))
    return FitSize(pretraining, penalty, weights, law.curvature, solver.tolerance, solver.itemsize)


def _require_pool(pool: Validated[Pool], pretraining: Pretraining) -> None:
    instance("pool", pool, Pool)
    shape, asked = pool.vectors.shape, (pretraining.tasks, pretraining.dimension)
    require(shape == asked, f"pool must have the shape {asked} of tasks and dimension; got {shape}.")


@dataclass(frozen=True)
class _Draws:
    """All that the draws of one fit have in common."""

    pretraining: Pretraining
    law: SequenceLaw
    ridge: float
    route: str
    solver: RidgeSolver
    rows: int
    new: ContextLaw
    pool: Pool | None  # None: a drawn one

    def fit(self, rng: np.random.Generator, parts: list[Summaries]) -> Fit:
        """One draw, into the memory of `parts`. Raises ArithmeticError where it has not converged."""
        count, tolerance, most = self.pretraining.sequences, self.solver.tolerance, self.solver.iterations
        pool = drawn_pool(rng, self.law, self.pretraining) if self.pool is None else self.pool.vectors
        draw_parts(rng, pool, self.law, self.pretraining, out=parts)
        data = parts if jax.default_backend() == "cpu" else on_device(parts, self.rows)
        readout, steps = routes.solve(self.route, data, count, self.ridge, tolerance=tolerance, most=most)
        residual, train = routes.check(data, count, self.ridge, readout)
        if not residual <= 10 * tolerance:
            raise ArithmeticError(
                f"route {self.route} ended after {steps} of {most} iterations at a residual of {residual:.1e}, "
                f"above ten times the tolerance {tolerance:.1e}. {_ADVICE.get(self.route, _ADVICE['iterative'])}"
            )
        own = self.new if self.pretraining.tasks is None else replace(self.new, tasks=Pool(pool))
        return Fit(np.asarray(readout, float), self.route, steps, residual, count, own, self.new, train)


_ADVICE = {
    "direct": "Features that differ by rounding alone call for a larger ridge or tolerance.",
    "kernel": "Features that nearly depend on each other call for a larger ridge or tolerance, or for route direct.",
    "iterative": "Near as many sequences as weights a tiny ridge takes very many: raise the ridge, tolerance or "
    "iterations, or use route kernel or direct.",
}


def law_of_new(law: SequenceLaw, pretraining: Pretraining) -> ContextLaw:
    """The contexts of pretraining with new tasks. Raises ValueError where labels would be zero throughout."""
    covariance, inputs = np.diag(law.task_scale**2), np.diag(law.contexts.input_scale**2)
    tasks = SphereTasks(len(inputs), covariance) if pretraining.normalized else NormalTasks(covariance)
    return ContextLaw(tasks, pretraining.context_length, pretraining.noise, inputs)
