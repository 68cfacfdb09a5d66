"""Plans on the page: the sizes that reach an error, the best split, the regime, numbers in words."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from iclab.explorer.mirrors.mirror import MINIMUM, Mirror, chance, log_uniform, rounded
from iclab.explorer.mirrors.pretraining import ratios_at
from iclab.planning import best_split, error_of, regime, required
from iclab.planning.optimum import refusal, remark
from iclab.problem import Ratios

__all__ = ["PLANNING"]

Rng = np.random.Generator
NAMES = ("alpha", "kappa", "tau")
KNOWN = 1e-9  # of a crossing: the error is known to rounding, and may be nearly level there


def _target(rng: Rng) -> str:
    return str(rng.choice(["icl", "idg"]))


def _learning(rng: Rng) -> dict[str, float]:
    """Ratios at which something is learned."""
    at = {"alpha": log_uniform(rng, 3, 100), "kappa": log_uniform(rng, 0.5, 30), "tau": log_uniform(rng, 0.5, 20)}
    return at | {"noise": chance(rng, 0.2, 0.0, log_uniform(rng, 1e-3, 0.5))}


def _reached(rng: Rng) -> tuple[Any, ...]:
    at, name, target = (
        chance(rng, 0.9, _learning(rng), ratios_at(rng, finite=True)),
        str(rng.choice(NAMES)),
        _target(rng),
    )
    ridge = chance(rng, 0.3, 0.0, chance(rng, 0.1, "best", log_uniform(rng, 1e-5, 1)))
    low = chance(rng, 0.2, 0.01 if ridge != "best" else 1.01, 1.01)  # the first is never reached
    return (
        name,
        rounded(float(error_of(Ratios(**at), ridge, target)) * rng.uniform(low, 1.5 * low)),
        at,
        ridge,
        target,
    )


def _required(name: str, error: float, at: Mapping[str, float], ridge: Any, target: str) -> dict[str, Any]:
    others = {other: at[other] for other in NAMES if other != name}
    found = required(name, error=error, noise=at["noise"], ridge=ridge, target=target, **others)
    spans = [list(span) for span in found.intervals]
    return {"intervals": spans, "floor": found.floor, "best": found.best, "advice": found.advice}


def _remarked(rng: Rng) -> tuple[Any, ...]:
    ends = sorted(log_uniform(rng, 1e-3, 1e6) for _ in range(int(rng.choice([2, 4]))))
    spans = [list(span) for span in zip(ends[::2], ends[1::2], strict=True)]
    one = [ends[0]] * 2
    special = [
        [[0.0, np.inf]],
        [[np.inf, np.inf]],
        [[ends[0], np.inf]],
        [[0.0, ends[0]]],
        [one],
        [one, [ends[1], np.inf]],
    ]
    found = chance(rng, 0.4, special[int(rng.integers(len(special)))], spans)
    return str(rng.choice(NAMES)), found, log_uniform(rng, 0.01, 2), chance(rng, 0.1, np.inf, ends[0])


def _refused(rng: Rng) -> tuple[Any, ...]:
    name, at = str(rng.choice(NAMES)), ratios_at(rng, finite=True)
    floor = chance(rng, 0.2, at["noise"], float(error_of(Ratios(**at), 0.1, "icl")))  # below the noise none goes
    level = chance(rng, 0.5, at["noise"] * rng.uniform(0.2, 0.9), floor * rng.uniform(0.1, 0.9))
    return name, rounded(level), at, 0.1, "icl", floor


def _refusal(name: str, level: float, at: Mapping[str, float], ridge: Any, target: str, floor: float) -> str:
    others = {other: at[other] for other in NAMES if other != name}
    return refusal(name, others, at["noise"], ridge, target, level, floor)


def _budget(rng: Rng) -> tuple[Any, ...]:
    dimension = int(rng.integers(4, 40))
    at = ratios_at(rng, finite=True)
    ridge = chance(rng, 0.2, "best", log_uniform(rng, 1e-4, 1))
    return int(log_uniform(rng, 1e3, 1e6)), dimension, at["kappa"], at["noise"], ridge, _target(rng)


def _split(tokens: int, dimension: int, kappa: float, noise: float, ridge: Any, target: str) -> dict[str, Any]:
    found = best_split(tokens, dimension=dimension, kappa=kappa, noise=noise, ridge=ridge, target=target)
    sizes = {"contextLength": found.context_length, "sequences": found.sequences}
    return sizes | {"ratios": vars(found.ratios), "ridge": found.ridge, "error": found.error}


def _regime(at: Mapping[str, float], ridge: float) -> dict[str, Any]:
    found = regime(Ratios(**at), ridge=ridge)
    return {
        "memorizing": found.memorizing,
        "gap": found.gap,
        "lastingGap": found.lasting_gap,
        "criticalKappa": found.critical_kappa,
        "longerContextsHurt": found.longer_contexts_hurt,
    }


def _number(rng: Rng) -> tuple[float, int]:
    return float(rng.choice([-1, 1])) * 10 ** rng.uniform(-7, 9), int(rng.integers(1, 8))


PLANNING: Mapping[str, Mirror] = {
    "errorOf": Mirror(
        lambda rng: (ratios_at(rng), chance(rng, 0.5, "best", log_uniform(rng, 1e-6, 10)), _target(rng)),
        lambda at, ridge, target: float(error_of(Ratios(**at), ridge, target)),
        seconds=5e-3,
    ),
    "required": Mirror(_reached, _required, KNOWN, seconds=0.04),
    "remark": Mirror(
        _remarked,
        lambda name, found, floor, best: remark(name, tuple((low, high) for low, high in found), floor, best),
    ),
    "refusal": Mirror(_refused, _refusal, seconds=0.5),
    "bestSplit": Mirror(_budget, _split, MINIMUM, seconds=0.1),
    "regime": Mirror(lambda rng: (ratios_at(rng), chance(rng, 0.5, 0.0, log_uniform(rng, 1e-6, 10))), _regime),
    "generalFormat": Mirror(_number, lambda value, digits: f"{value:.{digits}g}"),
}
