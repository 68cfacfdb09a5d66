"""General tools of the page: sums, grids, reading of a curve."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import exprel

from iclab.explorer.mirrors.mirror import Mirror, chance, log_uniform, rounded, sizes
from iclab.numerics.curves import first_below, half_drop_time

__all__ = ["NUMERICS"]

Rng = np.random.Generator


def _numbers(rng: Rng) -> tuple[list[float]]:
    return (sizes(rng, int(rng.integers(1, 9)), 1e-3, 1e3),)


def _ends(rng: Rng) -> tuple[float, float, int]:
    return log_uniform(rng, 1e-6, 1e6), log_uniform(rng, 1e-6, 1e6), int(rng.integers(2, 9))


def _curve(rng: Rng) -> tuple[list[float], list[float]]:
    time, loss = sorted(sizes(rng, 8, 0.01, 100)), sizes(rng, 8, 0.1, 1)
    return time, loss


def _height(rng: Rng) -> tuple[Any, ...]:
    return *_curve(rng), rounded(rng.uniform(0.05, 1.1))


NUMERICS: Mapping[str, Mirror] = {
    "sum": Mirror(_numbers, lambda values: float(np.sum(values))),
    "mean": Mirror(_numbers, lambda values: float(np.mean(values))),
    "linspace": Mirror(_ends, lambda *given: np.linspace(*given).tolist()),
    "geomspace": Mirror(_ends, lambda *given: np.geomspace(*given).tolist()),
    "exprel": Mirror(
        lambda rng: (chance(rng, 0.1, 0.0, float(rng.choice([-1, 1])) * log_uniform(rng, 1e-9, 50)),),
        lambda x: float(exprel(x)),
    ),
    "largestFirst": Mirror(
        lambda rng: ([float(value) for value in rng.integers(0, 4, 6)],),
        lambda values: np.argsort(-np.array(values), kind="stable").tolist(),
    ),
    "firstBelow": Mirror(_height, lambda time, loss, height: first_below(np.array(time), np.array(loss), height)),
    "halfDropTime": Mirror(_curve, lambda time, loss: half_drop_time(np.array(time), np.array(loss))),
}
