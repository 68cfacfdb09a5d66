"""Gradient flow of scalar layers: the tied plateau, its end, and the staircase of layers with separate weights.

Time is that of dg/dt = −½ ∂F/∂g. For layers that are products of m balanced weights dg/dt = m g^(2 − 2/m) (−½ ∂F/∂g).
problems.flow_clock() turns the time of the library into this one.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, require, whole_number
from iclab.numerics.curves import first_below
from iclab.theory.depth.laws import SpectralLaw
from iclab.theory.depth.losses import checked_layers, excess_of, excess_slope, mean_of
from iclab.theory.depth.optima import best_excess, checked_depth, tied_excess, tied_layer
from iclab.theory.integration import integrate

__all__ = ["Flow", "flow", "half_way_time", "largest_stable_rate", "split_rate"]

Array = np.ndarray
_POINTS = 600  # of the grids on which a time is searched


class Flow(NamedTuple):
    """Times, the excess there and the layers, in units of 1/λ."""

    time: Float[Array, "time"]
    excess: Float[Array, "time"]
    layers: Float[Array, "time layer"]


def flow(
    law: Validated[SpectralLaw],
    start: Validated[Float[ArrayLike, "layer"]],
    time: Validated[Float[ArrayLike, "time"]],
    *,
    noise_ratio: Validated[float] = 0.0,
    factors: Validated[int] = 1,
    tolerance: Validated[float] = 1e-9,
) -> Flow:
    """The gradient flow of layers that leave `start` at time 0.

    Layers keep their order for ever, and equal ones stay equal. With `factors` m > 1 every layer is a product of m
    balanced weights, and stays positive.

    Raises ValueError for a start that is no list of numbers, or not positive where factors > 1, and for a grid of
    times that does not increase; ArithmeticError when the flow escapes.

    Source: derived in docs/derivations/depth.
    """
    instance("law", law, SpectralLaw)
    layers, powers = checked_layers(start, name="start"), whole_number("factors", factors)
    require(layers.ndim == 1, f"start must be one list of layers; got shape {layers.shape}.")
    require(
        powers == 1 or bool(np.all(layers > 0)),
        f"start must be positive where layers are products of {powers} weights; got {np.min(layers):g}, which a "
        "product never leaves or passes.",
    )
    rule, noise = law.rule(len(layers)), law.felt_noise(noise_ratio)

    def velocity(state: Array) -> Array:
        drive = -0.5 * excess_slope(rule, state, noise=noise)
        return drive if powers == 1 else powers * abs(state) ** (2 - 2 / powers) * drive

    states = integrate(velocity, layers, time, tolerance=tolerance, floor=_floor(layers))
    return Flow(np.asarray(time, dtype=float), np.asarray(excess_of(rule, states, noise=noise)), states)


def _floor(layers: Float[Array, "layer"]) -> Float[Array, "layer"]:
    """The size below which errors of a layer need not fall."""
    return np.maximum(abs(layers), 1e-12)


def split_rate(law: Validated[SpectralLaw], depth: Validated[int], *, noise_ratio: Validated[float] = 0.0) -> float:
    """Growth rate of differences of layers at the best tied ones, ⟨x² f^{2L−2} − s x f^{L−2}(1 − f^L)⟩, f = 1 − gx.

    L − 1 directions share it. Negative: equal layers are a minimum. For one layer it is the curvature without noise.

    Raises ValueError for a depth below 1 or negative noise, and for noise on one layer, which has no difference.

    Source: derived in docs/derivations/depth.
    """
    layers, noise = checked_depth(law, depth, noise_ratio, points=False)
    require(layers > 1 or noise == 0, "depth must be at least 2 with noise, for one layer has no other; got 1.")
    rule = law.rule(layers)
    kept = 1 - tied_layer(law, layers, noise_ratio=noise_ratio) * rule.nodes
    growth = rule.nodes**2 * kept ** (2 * layers - 2)
    if noise > 0:
        growth = growth - noise * rule.nodes * kept ** (layers - 2) * (1 - kept**layers)
    return float(mean_of(rule, growth))


def half_way_time(
    law: Validated[SpectralLaw],
    start: Validated[Float[ArrayLike, "layer"]],
    *,
    noise_ratio: Validated[float] = 0.0,
    factors: Validated[int] = 1,
) -> float:
    """The time at which the flow's loss is half-way from the tied plateau to the best untied layers.

    From small starts it is [ln(1/d₀) + const]/split_rate, d₀ the norm of the layers less their mean.

    Raises ValueError for equal layers, for noise at which the tied point is a minimum, and as flow().

    Source: derived in docs/derivations/depth.
    """
    layers = checked_layers(start, name="start")
    spread = float(np.linalg.norm(layers - np.mean(layers)))
    require(spread > 0, "start must hold different layers; got equal ones, which never leave the tied point.")
    rate = split_rate(law, len(layers), noise_ratio=noise_ratio)
    require(
        rate > 0,
        f"noise_ratio must lie below the value at which equal layers are a minimum; got {noise_ratio}, where a "
        f"difference shrinks at the rate {-rate:.3g}. Layers stay equal there.",
    )
    ends = (one(law, len(layers), noise_ratio=noise_ratio) for one in (tied_excess, best_excess))
    middle = 0.5 * sum(ends)
    last = (abs(np.log(spread)) + 20) / rate + (0 if factors == 1 else 50 / float(np.min(layers)))
    low, high, found = 0.0, last, np.nan
    for _ in range(3):
        grid = np.r_[0.0, np.linspace(low, high, _POINTS)[int(low == 0.0) :]]
        curve = flow(law, layers, grid, noise_ratio=noise_ratio, factors=factors)
        found = first_below(curve.time, curve.excess, middle)
        require(
            bool(np.isfinite(found)),
            "start must lead below the middle of the two levels; got a flow that ends above.",
        )
        step = (high - low) / _POINTS
        low, high = max(found - 2 * step, 0.0), found + 2 * step
    return float(found)


def largest_stable_rate(
    law: Validated[SpectralLaw], depth: Validated[int], *, noise_ratio: Validated[float] = 0.0
) -> float:
    """The learning rate below which descent on layers is stable from 0 to the best ones: 2/((2L − 1)⟨x²⟩ + L s⟨x⟩).

    The bound on the curvature of F/2, which is attained at the start of two layers and of many at the optimum. Above
    it runs diverge, or hang between the tied and the best level. In units of the flow's time; divide by
    problems.flow_clock() for the library's rate.

    Raises ValueError for a depth below 1 and negative noise.

    Source: derived in docs/derivations/depth.
    """
    layers, noise = checked_depth(law, depth, noise_ratio, points=False)
    rule = law.rule(1)
    first, second = (float(mean_of(rule, rule.nodes**power)) for power in (1, 2))
    return 2 / ((2 * layers - 1) * second + layers * noise * first)
