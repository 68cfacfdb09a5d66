"""Memory and time of each route to a readout, estimated before it runs, and the quickest within a budget."""

import math
from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np

from iclab.numerics import one_of, require
from iclab.problem import Pretraining
from iclab.simulation.pretraining.routes import FACTORED, ITERATIVE
from iclab.simulation.pretraining.sequences import PART

__all__ = ["AUTO", "ROUTES", "FitSize", "RouteCost", "cheapest", "chosen", "cost"]

AUTO = "auto"  # the route that takes the least time within the budget
ROUTES = (*FACTORED, *ITERATIVE)
SPEED = 2.5e10  # operations of a product with features in a second, one busy core in float64
SLOW = 400.0  # operations in whose time a random number is drawn
LEAST_DAMPING = 1e-10  # ridge for each unit of curvature, below which rounding decides what it should
RELIABLE = 1e-6  # residual for each unit of damping that leaves five digits where only the ridge holds weights


@dataclass(frozen=True)
class RouteCost:
    """A route, the reason for it, and estimates of its memory and time.

    Memory is right to the byte for the sequences, time within a factor of two or three.
    """

    route: str
    why: str
    bytes: float
    seconds: float  # on one core, for one draw, without compilation
    iterations: float  # of conjugate gradients, 0 for other routes


@dataclass(frozen=True)
class FitSize:
    """All that the cost of a fit depends on."""

    pretraining: Pretraining
    ridge: float
    weights: int  # that data reach: r(r+1) for inputs in r directions; r² for one task without noise
    curvature: float  # mean second moment of a feature, times D
    tolerance: float
    itemsize: int

    @property
    def tau(self) -> float:
        """Sequences for each weight."""
        return self.pretraining.sequences / self.weights

    @property
    def interpolates(self) -> bool:
        """True where some readout has no error on the sequences and no ridge keeps it from that."""
        return self.ridge == 0 and self.pretraining.sequences < self.weights

    @property
    def damping(self) -> float:
        """The ridge, in units of the curvature that it adds to."""
        return self.ridge / self.curvature

    @property
    def singular(self) -> bool:
        """True where the Gram matrix of the sequences has no inverse, to rounding."""
        return self.damping < LEAST_DAMPING and self.pretraining.sequences > self.weights

    @property
    def held(self) -> bool:
        """True where data determine every weight, or the ridge does: errors are then gradients over curvatures."""
        return self.pretraining.sequences >= self.weights or self.tolerance <= RELIABLE * self.damping


def cost(size: FitSize, route: str) -> RouteCost:
    """Memory and time of a route at this size."""
    d, n = size.pretraining.dimension, size.pretraining.sequences
    p, data = d * (d + 1), n * (2 * d + 2)
    drawn = SLOW * data * (1.5 if size.pretraining.tasks is None else 1.0)
    numbers, steps, work = {  # a step in single precision takes half the time and a copy of the data
        "direct": (data + 4 * n * p + min(n, p) ** 2, 0.0, 10.0 * n * p * min(n, p)),
        "kernel": (data + 3 * n**2, 0.0, n**3 / 3 + 4 * n**2 * d),
        "plain": (data, _steps(size, spread=True), 4.0 * n * d**2),
        "preconditioned": (1.5 * data, _steps(size, spread=False), 2.0 * n * d**2 + 8.0 * d**3),
        "dual": (data + 4 * n, _steps(size, spread=True), 4.0 * n * d**2),
    }[route]
    extra = 12 if route == "preconditioned" else 4  # products in float64, in addition to the steps
    spent = (work * (steps + extra if steps else 1) + drawn) / SPEED
    pool = (size.pretraining.tasks or 0) * d
    needed = float(size.itemsize * (numbers + pool + 12 * p + 8 * PART * d))
    return RouteCost(route, "it was asked for", needed, spent, steps)


def cheapest(size: FitSize, budget: float) -> RouteCost:
    """The quickest route that fits into the budget, in bytes, and why.

    Raises ValueError where none fits, with the largest dimension that does at these ratios.
    """
    steps = "dual" if size.interpolates else "preconditioned" if _better_preconditioned(size) else "plain"
    able = [steps, *(("kernel",) if not size.singular else ()), "direct"]
    costs = [cost(size, route) for route in able]
    fitting = [one for one in costs if one.bytes <= budget]
    if not fitting:
        raise ValueError(_too_large(size, steps, budget))
    best = min(fitting, key=lambda one: one.seconds)
    others = ", ".join(
        f"{one.route} {one.seconds:.2g} s and {one.bytes / 1e6:.3g} MB" for one in costs if one is not best
    )
    why = (
        f"of the routes that fit into {budget / 1e6:.3g} MB it takes the least time: {best.seconds:.2g} s and "
        f"{best.bytes / 1e6:.3g} MB; {others}"
    )
    return RouteCost(best.route, why, best.bytes, best.seconds, best.iterations)


def chosen(size: FitSize, route: str, budget: float) -> RouteCost:
    """The named route, or the cheapest one for "auto".

    Raises ValueError for an unknown route, one that does not find the solution of least norm, and one that takes
    more than the budget.
    """
    if one_of("route", route, (AUTO, *ROUTES)) == AUTO:
        return cheapest(size, budget)
    n, weights = size.pretraining.sequences, size.weights
    require(
        route != "preconditioned" or size.held,
        f"route must not be preconditioned for fewer sequences, {n}, than weights, {weights}, at a ridge of "
        f"{size.ridge:g}, too small to lead it to the solution of least norm. Use plain, or dual without ridge.",
    )
    require(
        not (route in ("kernel", "dual") and size.singular),
        f"route must not be {route} for more sequences, {n}, than weights, {weights}, at a ridge of {size.ridge:g}: "
        "its matrix is singular. Use preconditioned.",
    )
    named = cost(size, route)
    if named.bytes > budget:
        raise ValueError(_too_large(size, route, budget))
    return named


def _better_preconditioned(size: FitSize) -> bool:
    """True beyond interpolation, and below it with a ridge that is not tiny: a tiny one makes this route slower."""
    return size.held and (size.tau > 1 or size.damping >= 0.01)


def _steps(size: FitSize, *, spread: bool) -> float:
    """Iterations, by the edges of the spectrum of n random features; `spread` curvatures take about twice as many."""
    edge = abs(np.sqrt(size.tau) - 1)
    bound = np.sqrt((1 + np.sqrt(size.tau)) ** 2 / (edge**2 + size.tau * min(size.damping, 1.0) + 1e-12))
    return float(0.5 * math.log(2 / size.tolerance) * bound * (2.2 if spread else 1.0)) + 1


def _too_large(size: FitSize, route: str, budget: float) -> str:
    need, d = cost(size, route).bytes, size.pretraining.dimension
    ratio = size.pretraining.sequences / d**2

    def need_at(smaller: int) -> float:
        return cost(
            replace(size, pretraining=Pretraining(smaller, 1, max(1, round(ratio * smaller**2)))), route
        ).bytes

    fits = bisect_right(range(1, d), budget, key=need_at)
    return (
        f"memory must hold {need / 1e9:.3g} GB for route {route} at dimension {d}; got {budget / 1e9:.3g} GB. The "
        f"largest dimension that fits at these ratios is {fits}; or use another route, or precision float32."
    )
