"""Pretraining in the proportional limit on the page: errors, best sizes, Bayes estimators."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from iclab.explorer.mirrors.mirror import CLOSED, Mirror, chance, log_uniform, rounded, sizes
from iclab.outcomes import Errors
from iclab.problem import Ratios
from iclab.theory import estimators, generalization
from iclab.theory.pretraining import resolvent, response

__all__ = ["PRETRAINING", "ratios_at"]

Rng = np.random.Generator
Given = Mapping[str, Any]
BEST = 1e-4  # of the place of a dip: 1e-14 over its relative depth


def ratios_at(rng: Rng, *, finite: bool = False) -> dict[str, float]:
    """Ratios and noise, limits among them."""
    at = {
        "alpha": log_uniform(rng, 0.05, 1e3),
        "kappa": log_uniform(rng, 0.05, 50),
        "tau": log_uniform(rng, 0.05, 50),
    }
    if not finite:
        limits = {"alpha": (0.1, np.inf), "kappa": (0.1, np.inf), "tau": (0.1, float(rng.choice([1.0, np.inf])))}
        at = {name: chance(rng, *limits[name], value) for name, value in at.items()}
        at["tau"] = chance(rng, 0.03, at["kappa"], at["tau"])
    return at | {"noise": chance(rng, 0.2, 0.0, log_uniform(rng, 1e-4, 3))}


def _ridge(rng: Rng) -> float:
    return chance(rng, 0.3, chance(rng, 0.9, 0.0, np.inf), log_uniform(rng, 1e-8, 1e2))


def _with_ridge(rng: Rng) -> tuple[Any, ...]:
    at, ridge = ratios_at(rng), _ridge(rng)
    far = {name: log_uniform(rng, 1e-20, 1e20) for name in at}
    limit = {name: float(rng.choice([1.0, 1.0, np.inf])) for name in at} | {"noise": float(rng.choice([0.0, 0.1]))}
    corner = limit, float(rng.choice([0.0, 0.1, np.inf]))
    return chance(rng, 0.2, chance(rng, 0.5, corner, (far, log_uniform(rng, 1e-20, 1e20))), (at, ridge))


def _spectra(rng: Rng) -> tuple[Any, ...]:
    tasks = sizes(rng, int(rng.integers(1, 6)), 0.05, 5)
    if len(tasks) > 1 and rng.random() < 0.1:
        tasks[-1] = 0.0
    inputs = chance(rng, 0.7, None, [float(s) for s in rng.choice([0.4, 2.0], len(tasks))])
    at, ridge = ratios_at(rng), _ridge(rng)
    if (
        at["tau"] == at["kappa"] and ridge == 0
    ):  # at α = ∞ errors are infinite there, and the effective ridge is rounding
        at["alpha"] = min(at["alpha"], 1e3)
    return at, tasks, inputs, ridge


def _errors(found: Errors) -> dict[str, float]:
    names = {"icl": "icl", "idg": "idg", "train": "train", "effectiveRidge": "effective_ridge"}
    return {name: float(getattr(found, own)) for name, own in names.items()}


def _averages(rng: Rng) -> dict[str, float]:
    names = ("lostPool", "lostNew", "noisy", "ridgeSpread", "noiseSpread", "newSpread")
    return dict(zip(names, sizes(rng, len(names), 0.01, 3), strict=True))


def _response(rng: Rng) -> tuple[Any, ...]:
    share = chance(rng, 0.1, 0.0, log_uniform(rng, 1e-3, 1))
    return _averages(rng), share, *sizes(rng, 3, 0.1, 10)


def _errors_from(averages: Given, share: float, tau: float, noise: float, x: float) -> dict[str, float]:
    own = response.Averages(*averages.values(), pool_spread=0.0)
    contexts = response.Contexts(noise, x)
    found = response.errors_from(own, share, tau, pretraining=contexts, new=contexts)
    return dict(zip(("icl", "idg", "train"), map(float, found), strict=True))


def _diverging(rng: Rng) -> tuple[Any, ...]:
    at, support = ratios_at(rng), chance(rng, 0.5, 1.0, float(rng.choice([0.25, 0.5, 0.75])))
    return at | {"tau": chance(rng, 0.2, support, at["tau"])}, _ridge(rng), support


def _limited(rng: Rng) -> tuple[Any, ...]:
    found = dict(zip(("icl", "idg", "train"), sizes(rng, 3, 1e-50, 10), strict=True))
    return found, log_uniform(rng, 1e-50, 10), *_diverging(rng)


def _with_limits(found: Given, xi: float, at: Given, ridge: float, support: float) -> dict[str, float]:
    errors = Errors(found["icl"], found["idg"], found["train"], xi)
    return _errors(response.with_limits(errors, Ratios(**at), ridge, None, support=support))


def _resolved(rng: Rng) -> tuple[Any, ...]:
    at = ratios_at(rng)
    ridge = chance(rng, 0.2, 0.0, log_uniform(rng, 1e-8, 1e2))
    return (1 + at["noise"]) / min(at["alpha"], 1e6), min(at["kappa"], 1e9), min(at["tau"], 1e9), ridge


def _moments(shift: float, kappa: float) -> dict[str, float]:
    found = vars(resolvent.wishart_moments(shift, kappa))
    return {_camel(name): float(value) for name, value in found.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _best_alpha(rng: Rng) -> tuple[Any, ...]:
    at, target = ratios_at(rng), str(rng.choice(["icl", "idg"]))
    tau, noise = log_uniform(rng, 0.1, 30), log_uniform(rng, 0.03, 1)
    few = rounded(min(tau, 1.0) * rng.uniform(0.2, 1)), tau, noise, 0.0, "icl"  # where a finite length is best
    any_ridge = chance(rng, 0.7, 0.0, log_uniform(rng, 1e-6, 1))
    loud = at["kappa"], at["tau"], log_uniform(rng, 1e4, 1e12), any_ridge, target  # where none helps
    return chance(rng, 0.4, few, chance(rng, 0.1, loud, (at["kappa"], at["tau"], at["noise"], any_ridge, target)))


def _context(rng: Rng) -> tuple[float, float]:
    noise = chance(rng, 0.15, 0.0, log_uniform(rng, 1e-3, 3))
    return chance(rng, 0.1, np.inf, log_uniform(rng, 0.05, 100)), noise


def _pool(rng: Rng) -> tuple[float, float, float]:
    alpha, noise = log_uniform(rng, 0.1, 50), log_uniform(rng, 1e-3, 3)
    threshold = float(estimators.task_threshold(alpha, noise))
    return alpha, noise, chance(rng, 0.1, 0.0, float(f"{threshold * rng.uniform(0.05, 1.5):.4g}"))


def _known(found: Any) -> dict[str, float]:
    return {"icl": float(found.icl), "idg": float(found.idg)}


def _peak(alpha: float, kappa: float, noise: float) -> dict[str, float]:
    return _known(generalization.interpolation_peak(alpha, kappa, noise))


PRETRAINING: Mapping[str, Mirror] = {
    "wishartMoments": Mirror(
        lambda rng: (log_uniform(rng, 1e-12, 1e6), chance(rng, 0.1, np.inf, log_uniform(rng, 0.01, 100))), _moments
    ),
    "effectiveRidge": Mirror(_resolved, lambda *given: float(resolvent.effective_ridge(*given))),
    "flatRidge": Mirror(
        lambda rng: (log_uniform(rng, 1e-6, 10), *_resolved(rng)[2:]),
        lambda *given: float(resolvent.flat_ridge(*given)),
    ),
    "unspent": Mirror(
        lambda rng: (*sizes(rng, 2, 1e-6, 1), chance(rng, 0.5, 1.0, 0.3), log_uniform(rng, 0.05, 50)),
        lambda *given: float(resolvent.unspent(*given)),
    ),
    "errorsFrom": Mirror(_response, _errors_from),
    "divergesAtInfiniteAlpha": Mirror(
        _diverging,
        lambda at, ridge, support: [
            bool(part) for part in response.diverges_at_infinite_alpha(Ratios(**at), ridge, None, support=support)
        ],
    ),
    "withLimits": Mirror(_limited, _with_limits),
    "errors": Mirror(_with_ridge, lambda at, ridge: _errors(generalization.errors(Ratios(**at), ridge=ridge))),
    "structuredErrors": Mirror(
        _spectra,
        lambda at, tasks, inputs, ridge: _errors(
            generalization.structured_errors(
                Ratios(**at), task_eigenvalues=tasks, input_eigenvalues=inputs, ridge=ridge
            )
        ),
        seconds=2e-3,
    ),
    "diversityGap": Mirror(
        _with_ridge, lambda at, ridge: float(generalization.diversity_gap(Ratios(**at), ridge=ridge))
    ),
    "interpolationPeak": Mirror(lambda rng: (_context(rng)[0], ratios_at(rng)["kappa"], _context(rng)[1]), _peak),
    "criticalKappa": Mirror(
        lambda rng: (ratios_at(rng)["tau"], _context(rng)[1]),
        lambda tau, noise: float(generalization.critical_kappa(tau, noise)),
    ),
    "bestAlpha": Mirror(
        _best_alpha,
        lambda kappa, tau, noise, ridge, target: float(
            generalization.best_alpha(kappa, tau, noise, ridge=ridge, target=target)
        ),
        BEST,
        seconds=5e-3,
    ),
    "bestRidge": Mirror(
        lambda rng: (ratios_at(rng), str(rng.choice(["icl", "idg"]))),
        lambda at, target: float(generalization.best_ridge(Ratios(**at), target=target)),
        BEST,
        seconds=5e-3,
    ),
    "ridgeError": Mirror(_context, lambda *given: float(estimators.ridge_error(*given))),
    "taskThreshold": Mirror(_context, lambda *given: float(estimators.task_threshold(*given))),
    "dmmseErrors": Mirror(_pool, lambda *given: _known(estimators.dmmse_errors(*given))),
    "nearestTaskErrors": Mirror(_pool, lambda *given: _known(estimators.nearest_task_errors(*given))),
    "effectiveLogTasks": Mirror(
        lambda rng: (
            chance(rng, 0.2, float(rng.choice([1.0, np.inf])), log_uniform(rng, 1, 1e12)),
            int(rng.integers(1, 200)),
        ),
        lambda *given: float(estimators.effective_log_tasks(*given)),
        CLOSED,
    ),
}
