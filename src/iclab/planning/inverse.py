"""Inverse questions about pretraining: numbers of tasks, sequences and examples, best split, forecast of a run.

Errors are not monotone in any ratio, so an answer is a set of intervals: a scan over all sizes, each dip and peak
polished, each crossing of the error to reach solved for. Sizes are ratios to the dimension: context length N = αD,
tasks K = κD, sequences n = τD².
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from iclab.numerics import (
    FIXED_STREAM,
    Validated,
    Values,
    instance,
    magnitude_number,
    one_of,
    positive,
    require,
    whole_number,
)
from iclab.numerics.crossings import intervals, with_turns
from iclab.outcomes import Errors
from iclab.planning.optimum import BEST, SCAN, error_of, finite_or_zero, lowest, refusal, remark
from iclab.problem import Ratios
from iclab.theory.finite_size import LEAST_DIMENSION, ContextLaw, Pool, SphereTasks, leverage_errors, pool_errors
from iclab.theory.generalization import TARGETS, best_ridge, critical_kappa, diversity_gap, errors

__all__ = [
    "BEST", "QUANTITIES", "Forecast", "Regime", "Required", "Split", "best_split", "error_of", "forecast", "regime",
    "required",
]  # fmt: skip

QUANTITIES = ("alpha", "kappa", "tau")


@dataclass(frozen=True)
class Required:
    """The sizes at which an error is reached: closed intervals in rising order, with 0 and inf as limits.

    No interval: no size reaches it. `floor` is the least error at any size and `best` the size that has it.
    """

    intervals: tuple[tuple[float, float], ...]
    floor: float
    advice: str
    best: float


@dataclass(frozen=True)
class Split:
    """The division of a budget of labeled examples into contexts that has the least error."""

    context_length: int
    sequences: int
    ratios: Ratios
    ridge: float
    error: float


@dataclass(frozen=True)
class Regime:
    """The regime of pretraining: memorization of its tasks, or in-context learning.

    Memorization: fewer tasks than dimensions, so that the error on new tasks exceeds that on the pool by 1 − κ even
    for infinite contexts and infinite pretraining. `gap` is ICL − IDG at these ratios. Below critical_kappa longer
    contexts are worse in the end without ridge, if there is noise and pretraining is finite.
    """

    memorizing: bool
    gap: float
    lasting_gap: float
    critical_kappa: float
    longer_contexts_hurt: bool


@dataclass(frozen=True)
class Forecast:
    """Predicted errors of a run of finite dimension: proportional limit, for its pool, with unequal leverage."""

    ratios: Ratios
    limit: Errors
    pool: Errors
    leverage: Errors | None  # None below 5 dimensions, where means over runs need not exist


def required(
    quantity: Validated[str],
    *,
    error: Validated[float],
    alpha: Validated[float | None] = None,
    kappa: Validated[float | None] = None,
    tau: Validated[float | None] = None,
    noise: Validated[float],
    ridge: Validated[float | str] = 0.0,
    target: Validated[str] = "icl",
) -> Required:
    """The values of alpha, kappa or tau that reach an error, given the other two; ridge "best" is optimal at each.

    At both ends of an interval the error is reached, to the last digits; just outside it is not. Dips narrower than
    a tenth of a decade that touch the error between two points of the scan are polished; narrower ones are missed.

    Raises ValueError for an unknown quantity or target, for ratios missing or too many, and for values out of
    their domain.

    Source: derived in docs/derivations/proportional_limit.
    """
    given = {"alpha": alpha, "kappa": kappa, "tau": tau}
    _require_question(quantity, given, target)
    level = positive("error", error)
    others = {name: magnitude_number(name, value, infinite=True) for name, value in given.items() if name != quantity}
    noise = magnitude_number("noise", noise, zero=True)

    def curve(size: Values) -> Values:
        return error_of(Ratios(**{**others, quantity: size}, noise=noise), ridge, target)

    sizes, heights = with_turns(curve, SCAN)
    floor, best = lowest(sizes, heights)
    best = finite_or_zero(best)
    found = intervals(curve, sizes, heights, level)
    if found:
        return Required(found, floor, remark(quantity, found, floor, best), best)
    no = f"No {quantity} reaches {level:g}: the least {target} error is {floor:.4g}, at {quantity} = {best:.4g}."
    return Required((), floor, f"{no} {refusal(quantity, others, noise, ridge, target, level, floor)}", best)


def best_split(
    tokens: Validated[int],
    *,
    dimension: Validated[int],
    kappa: Validated[float],
    noise: Validated[float],
    ridge: Validated[float | str] = BEST,
    target: Validated[str] = "icl",
) -> Split:
    """The division of n·N labeled examples into n sequences of N that has the least error.

    The error is that of the proportional limit at the rounded sizes. Without ridge it has a peak at τ = 1, on
    either side of which the minimum may lie.

    Raises ValueError for tokens or a dimension below 1, values out of their domain and an unknown target.

    Source: derived in docs/derivations/proportional_limit.
    """
    budget, d = whole_number("tokens", tokens), whole_number("dimension", dimension)
    kappa, noise = magnitude_number("kappa", kappa, infinite=True), magnitude_number("noise", noise, zero=True)
    one_of("target", target, TARGETS)

    def ratios(length: Values) -> Ratios:
        return Ratios(length / d, kappa, (budget // length) / d**2, noise)

    def least(lengths: Values) -> float:
        whole = np.unique(np.round(lengths))
        return float(whole[int(np.argmin(error_of(ratios(whole), ridge, target)))])

    length = least(np.geomspace(1.0, float(budget), 300))
    for reach in (2.0, 1.05):  # integer counts make the curve jagged: the first dip found may not be the deepest
        low, high = max(1.0, length / reach), min(float(budget), length * reach)
        counts = np.unique(np.round(np.geomspace(budget / high, budget / low, 500)))
        length = least(np.concatenate([np.geomspace(low, high, 500), budget // counts]))
    chosen = ratios(length)
    strength = float(best_ridge(chosen, target=target) if isinstance(ridge, str) else ridge)
    return Split(int(length), int(budget // length), chosen, strength, float(error_of(chosen, strength, target)))


def regime(ratios: Validated[Ratios], *, ridge: Validated[float] = 0.0) -> Regime:
    """The regime of pretraining at these ratios, memorization or in-context learning, and its κ_c.

    Raises ValueError for a negative ridge.

    Source: lu2025asymptotic, figure 4 (transition at κ = 1); κ_c derived in docs/derivations/proportional_limit.
    """
    instance("ratios", ratios, Ratios)
    alpha, kappa, tau = (magnitude_number(name, getattr(ratios, name), infinite=True) for name in QUANTITIES)
    noise = magnitude_number("noise", ratios.noise, zero=True)
    penalty = magnitude_number("ridge", ridge, zero=True, infinite=True)
    critical = float(critical_kappa(tau, noise))
    return Regime(
        memorizing=kappa < 1,
        gap=float(diversity_gap(Ratios(alpha, kappa, tau, noise), ridge=penalty)),
        lasting_gap=max(0.0, 1 - kappa),
        critical_kappa=critical,
        longer_contexts_hurt=bool(kappa < critical and noise > 0 and np.isfinite(tau)),
    )


def forecast(
    dimension: Validated[int],
    *,
    context_length: Validated[int],
    sequences: Validated[int],
    tasks: Validated[int | None] = None,
    noise: Validated[float],
    ridge: Validated[float] = 0.0,
) -> Forecast:
    """Forecast of pretraining on n sequences of N examples in D dimensions; tasks=None is a fresh task for each.

    The pool is on the sphere of radius √D, from a fixed stream; another pool moves the finite-size errors a
    little. ICL is on new tasks of the sphere. Cost: 1 s at D = 128, 10 s at D = 512.

    Raises ValueError for sizes below 1, more than 512 dimensions, a pool of more than 1e8 numbers, negative noise
    and a negative ridge.

    Source: derived in docs/derivations/finite_size.
    """
    d, n = whole_number("dimension", dimension), whole_number("sequences", sequences)
    require(
        d <= 512,
        f"dimension must be at most 512, which takes 10 seconds; got {d}. The limit D → ∞ is within some percent.",
    )
    penalty = magnitude_number("ridge", ridge, zero=True, infinite=True)
    sphere = SphereTasks(d)
    if tasks is None:
        law, kappa = ContextLaw(sphere, context_length, noise), np.inf
    else:
        count = whole_number("tasks", tasks)
        require(count * d <= 1e8, f"tasks must be at most 1e8/D, in memory; got {count}. Leave them out for more.")
        pool = Pool(sphere.draw(count, np.random.default_rng(FIXED_STREAM)))
        law, kappa = ContextLaw(pool, context_length, noise), count / d
    ratios = Ratios(law.context_length / d, kappa, n / d**2, noise)
    return Forecast(
        ratios,
        errors(ratios, ridge=penalty),
        pool_errors(law, n, ridge=penalty),
        leverage_errors(law, n, ridge=penalty) if d >= LEAST_DIMENSION else None,
    )


def _require_question(quantity: Validated[str], given: dict[str, Any], target: Validated[str]) -> None:
    one_of("quantity", quantity, QUANTITIES)
    require(given[quantity] is None, f"{quantity} is the unknown and must not be given; got {given[quantity]!r}.")
    for name, value in given.items():
        require(name == quantity or value is not None, f"{name} must be given when {quantity} is the unknown.")
    one_of("target", target, TARGETS)
