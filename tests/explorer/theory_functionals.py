"""Tools of the page that take a function: the functions they are tried with, and what the library answers.

A function is passed as its name and parameters; the driver under Node builds the same one.
"""

from typing import Any

import numpy as np

from iclab.explorer.mirrors.mirror import CLOSED, FLOW, MINIMUM, Mirror, chance, log_uniform, rounded
from iclab.numerics import golden_section, increasing_root, intervals, least, with_turns
from iclab.planning.optimum import least_of_two
from iclab.theory.integration import integrate

__all__ = ["FUNCTIONALS"]

Rng = np.random.Generator
GRID = np.geomspace(1e-3, 1e3, 61).tolist()
SCAN = [1e-40, *np.geomspace(1e-4, 1e4, 97).tolist(), np.inf]


def power(rng: Rng) -> dict[str, Any]:
    return {"$": "power", "with": [log_uniform(rng, 0.2, 5), log_uniform(rng, 0.01, 100)]}


def wave(rng: Rng) -> dict[str, Any]:
    return {
        "$": "wave",
        "with": [rounded(rng.uniform(-3, 3)), rounded(rng.uniform(0.2, 3)), rounded(rng.uniform(1, 3))],
    }


def valley(rng: Rng) -> dict[str, Any]:
    return {"$": "valley", "with": [rounded(value) for value in rng.uniform(-1.5, 1.5, 3)]}


def rotation(rng: Rng) -> dict[str, Any]:
    return {"$": "rotation", "with": [log_uniform(rng, 0.1, 2), log_uniform(rng, 0.1, 2)]}


def kink(rng: Rng) -> dict[str, Any]:
    return {"$": "kink", "with": [rounded(rng.uniform(-3, 3)), rounded(rng.uniform(0.2, 3))]}


def jump(rng: Rng) -> dict[str, Any]:
    """A curve that falls to 2, and is something else at infinity."""
    return {"$": "jump", "with": [log_uniform(rng, 0.1, 10), rounded(rng.uniform(1, 4))]}


def built(given: dict[str, Any]) -> Any:
    """The function of a name and parameters."""
    a, b, *rest = given["with"]
    if given["$"] == "power":
        return lambda x: (x**a - b / x, a * x**a + b / x)
    if given["$"] == "rotation":
        return lambda y: np.array([a * y[1], -a * y[0], b * y[2] * (1 - y[2])])
    if given["$"] == "kink":
        return lambda x: 1 + b * np.abs(np.log(x) - a)
    if given["$"] == "jump":
        return lambda x: np.where(np.isinf(x), b, 2 + a / (1 + x))
    c = rest[0]
    if given["$"] == "valley":
        return lambda one, two: _valley(*(np.clip(np.log(size), -30, 30) for size in (one, two)), a, b, c)
    return lambda x: np.where(np.isinf(x), 1e3, _wave(np.log(np.where(np.isinf(x), 1.0, x)), a, b, c))


def _wave(log: np.ndarray, a: float, b: float, c: float) -> np.ndarray:
    return (log - a) ** 2 + b * np.cos(c * log) + 5


def _valley(x: np.ndarray, y: np.ndarray, a: float, b: float, c: float) -> np.ndarray:
    return 1 + (x - a) ** 2 + (y - b) ** 2 + c * (x - a) * (y - b)


def _dip(rng: Rng) -> tuple[Any, ...]:
    curve, lower = wave(rng), log_uniform(rng, 0.01, 10)
    return {**curve, "with": [*curve["with"][:1], 0.1, 1.0]}, lower, rounded(lower * log_uniform(rng, 2, 50)), 1e-9


def _levels(rng: Rng) -> tuple[Any, ...]:
    curve, level = chance(rng, 0.7, (wave(rng), rounded(rng.uniform(3, 20))), (jump(rng), rounded(rng.uniform(1, 5))))
    sizes, heights = with_turns(built(curve), np.array(SCAN))
    return curve, sizes.tolist(), heights.tolist(), level


def _root(equation: Any, lower: float, upper: float, start: float | None = None) -> float:
    return float(increasing_root(built(equation), lower, upper, start=start))


def _rooted(rng: Rng) -> tuple[Any, ...]:
    return power(rng), 1e-40, 1e40, *chance(rng, 0.5, [], [log_uniform(rng, 1e-3, 1e3)])


def _moving(rng: Rng) -> tuple[Any, ...]:
    time = sorted({0.0, *(log_uniform(rng, 0.01, 5) for _ in range(6))})
    loose = float(rng.choice([1e-3, 1e-6, 1e-12]))  # answers agree to far less than that where all steps are the same
    usual = [rounded(value) for value in rng.uniform(0.01, 0.9, 3)], time, loose
    rests = [0.0, 0.0, float(rng.choice([1.0, 0.2, 1e-12]))], [*time, 1e4], 1e-12  # steps at rest hang on rounding
    start, time, tolerance = chance(rng, 0.2, rests, usual)
    floor = chance(rng, 0.3, {}, {"floor": [0.5, 0.5, 0.01]})
    return rotation(rng), start, time, {"tolerance": tolerance} | floor


FUNCTIONALS = {
    "increasingRoot": Mirror(_rooted, _root, CLOSED),
    "integrate": Mirror(
        _moving,
        lambda velocity, start, time, options: integrate(
            built(velocity),
            np.array(start),
            time,
            tolerance=options["tolerance"],
            floor=np.array(options.get("floor", 1.0)),
        ).tolist(),
        FLOW,
        curve=True,
        seconds=0.01,
    ),
    "least": Mirror(
        lambda rng: (chance(rng, 0.1, kink, wave)(rng), GRID),
        lambda curve, grid: float(least(built(curve), np.array(grid))),
        MINIMUM,
        seconds=3e-3,
    ),
    "goldenSection": Mirror(
        _dip,
        lambda curve, lower, upper, tolerance: float(golden_section(built(curve), lower, upper, tolerance=tolerance)),
        MINIMUM,
        seconds=3e-3,
    ),
    "withTurns": Mirror(
        lambda rng: (wave(rng), SCAN),
        lambda curve, scan: dict(
            zip(
                ("sizes", "heights"),
                (part.tolist() for part in with_turns(built(curve), np.array(scan))),
                strict=True,
            )
        ),
        MINIMUM,
        seconds=5e-3,
    ),
    "intervals": Mirror(
        _levels,
        lambda curve, *given: [list(span) for span in intervals(built(curve), *map(np.asarray, given[:2]), given[2])],
        seconds=5e-3,
    ),
    "leastOfTwo": Mirror(
        lambda rng: (valley(rng),), lambda surface: list(least_of_two(built(surface))), MINIMUM, seconds=0.05
    ),
}
