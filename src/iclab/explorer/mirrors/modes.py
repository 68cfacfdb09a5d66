"""The modes of the two-factor transformer on the page: leading order, exact flow, fixed points, phase portrait."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from iclab.explorer.mirrors.mirror import FLOW, Mirror, chance, log_uniform, rounded, sizes
from iclab.outcomes import ModeCurves
from iclab.theory import modes
from iclab.theory.modes import DiagonalTasks

__all__ = ["MODES"]

Rng = np.random.Generator
Pair = list[float]


def _standard(rng: Rng) -> dict[str, Any]:
    eigenvalues = sorted(sizes(rng, int(rng.integers(1, 6)), 0.04, 2), reverse=True)
    if len(eigenvalues) > 1 and rng.random() < 0.1:
        eigenvalues[-1] = 0.0
    return {"eigenvalues": eigenvalues, "contextLength": chance(rng, 0.05, 10**6, int(rng.integers(1, 500)))}


def _any(rng: Rng) -> dict[str, Any]:
    given = _standard(rng) | {"noise": chance(rng, 0.3, 0.0, log_uniform(rng, 1e-3, 3))}
    moments = sizes(rng, len(given["eigenvalues"]), 0.3, 3)
    return chance(rng, 0.5, given, given | {"taskSecondMoments": moments})


def _tasks(given: Mapping[str, Any]) -> DiagonalTasks:
    moments = given.get("taskSecondMoments")
    return DiagonalTasks(
        given["eigenvalues"], given["contextLength"], noise=given.get("noise", 0.0), task_second_moments=moments
    )


def _start(rng: Rng) -> Pair:
    p, q = (float(rng.choice([-1, 1])) * log_uniform(rng, 1e-3, 2) for _ in range(2))
    special = [[0.0, 0.0], [p, -p], [p, p], [p, 0.0], [0.0, q]]
    return chance(rng, 0.3, special[int(rng.integers(len(special)))], [p, q])


def _mode(rng: Rng) -> tuple[Pair, float, float]:
    return _start(rng), log_uniform(rng, 0.05, 20), chance(rng, 0.05, np.inf, log_uniform(rng, 0.1, 100))


def _mode_time(rng: Rng) -> tuple[Any, ...]:
    return *_mode(rng), chance(rng, 0.1, 0.0, log_uniform(rng, 0.01, 300))


def _fraction(rng: Rng) -> tuple[Any, ...]:
    start, limit, _ = _mode(rng)
    share = rounded(rng.uniform(0.01, 0.99))
    near = float(np.sqrt(rng.uniform(0.98, 1.02) * share * limit))
    return share, chance(rng, 0.1, [near, near], start), limit, log_uniform(rng, 0.1, 100)


def _leading(rng: Rng) -> tuple[Any, ...]:
    return _standard(rng), _start(rng), [0.0, *sorted({*sizes(rng, 4, 0.01, 200)})]


def _exact(rng: Rng) -> tuple[Any, ...]:
    return _any(rng), chance(rng, 0.05, [0.0, 0.0], sizes(rng, 2, 0.03, 1)), np.linspace(0, 30, 7).tolist(), 1e-12


def _weights(rng: Rng) -> tuple[Any, ...]:
    given = _any(rng)
    p, q = ([rounded(value) for value in rng.standard_normal(len(given["eigenvalues"]))] for _ in range(2))
    return given, p, q


def _short(rng: Rng) -> tuple[dict[str, Any]]:
    given = _any(rng)  # at long contexts without noise the least loss is the rounding of a difference
    return (given | {"contextLength": min(given["contextLength"], 500)},)


def _switched(rng: Rng) -> tuple[dict[str, Any]]:
    return (chance(rng, 0.2, _nearly_off(rng), _any(rng)),)


def _nearly_off(rng: Rng) -> dict[str, Any]:
    """Two modes, the second next to where noise switches it off: N + 1 + r₁/s₁ = √(r₁ r₂)/s₂."""
    first, noise, length = log_uniform(rng, 0.5, 2), log_uniform(rng, 1, 100), int(rng.integers(3, 60))
    variance, second = first + noise, 0.0
    for _ in range(20):
        second = float(np.sqrt(variance * (second + noise))) / (length + 1 + variance / first)
    eigenvalues = [first, rounded(second * rng.uniform(0.985, 1.015))]
    return {"eigenvalues": eigenvalues, "contextLength": length, "noise": noise}


def _curves(found: ModeCurves) -> dict[str, Any]:
    parts = {"value": found.value, "keyQuery": found.key_query, "strength": found.strength}
    return {name: part.T.tolist() for name, part in parts.items()} | {"loss": found.loss.tolist()}


def _limits(given: Mapping[str, Any]) -> list[float]:
    silent = {name: given[name] for name in ("eigenvalues", "contextLength")}
    return modes.limits(_tasks(silent)).tolist()


MODES: Mapping[str, Mirror] = {
    "labelVariances": Mirror(lambda rng: (_any(rng),), lambda given: _tasks(given).label_variances.tolist()),
    "timeConstants": Mirror(
        lambda rng: (_standard(rng)["eigenvalues"],), lambda spectrum: modes.time_constants(spectrum).tolist()
    ),
    "limits": Mirror(lambda rng: (_any(rng),), _limits),
    "modeLaw": Mirror(
        _mode_time, lambda start, *given: [float(part) for part in modes.mode_law(tuple(start), *given)]
    ),
    "timeToFraction": Mirror(
        _fraction, lambda share, start, *given: float(modes.time_to_fraction(share, tuple(start), *given))
    ),
    "growthRates": Mirror(_mode, lambda start, *given: modes.growth_rates(tuple(start), *given).tolist()),
    "leadingOrder": Mirror(
        _leading,
        lambda given, start, time: _curves(modes.leading_order(_tasks(given), start=tuple(start), time=time)),
        curve=True,
    ),
    "leadingOrderLoss": Mirror(
        lambda rng: (_leading(rng)[0], sizes(rng, 5, 0.01, 2)),
        lambda given, strength: float(modes.leading_order_loss(_tasks(given), strength[: len(given["eigenvalues"])])),
    ),
    "exactFlow": Mirror(
        _exact,
        lambda given, start, time, tolerance: _curves(
            modes.exact_flow(_tasks(given), start=tuple(start), time=time, tolerance=tolerance)
        ),
        FLOW,
        curve=True,
        seconds=0.1,
    ),
    "exactLoss": Mirror(_weights, lambda given, p, q: float(modes.exact_loss(_tasks(given), p, q))),
    "exactProductLoss": Mirror(
        lambda rng: _weights(rng)[:2],
        lambda given, strength: float(modes.exact_product_loss(_tasks(given), strength)),
    ),
    "exactFixedPoint": Mirror(_switched, lambda given: modes.exact_fixed_point(_tasks(given)).tolist()),
    "exactLeastLoss": Mirror(_short, lambda given: modes.exact_least_loss(_tasks(given))),
}
