"""Wrong theories of finite pretraining, and the verdicts that must notice them.

Rows that no study can notice, each with the fast test of its function:

* `feature_moments` with the corner (1 + 2/N) → 1: a weight on Σ y² changes an error by a tenth of a percent; see
  tests/test_finite_size.py.
* `interpolation_peak` × 1.02 (tests/test_generalization.py), `error_of` at ridge × 1.05 (tests/test_planning.py),
  `nearest_task_errors` (tests/test_estimators.py): no study calls them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from iclab.theory import estimators
from iclab.theory.pretraining import (
    best_alpha,
    best_ridge,
    critical_kappa,
    diversity_gap,
    errors,
    leverage_errors,
    pool_errors,
    structured_errors,
)
from iclab.theory.pretraining.equivalent import Equivalent
from iclab.theory.pretraining.leverage import Leverage
from iclab.theory.pretraining.resolvent import effective_ridge, wishart_moments_at
from iclab.theory.pretraining.response import errors_from
from tests.wrong_theories.battery import Wrong

Change = Callable[[Callable[..., Any]], Callable[..., Any]]
RUNS = ("double-descent", "finite-size", "ridge", "structured", "task-diversity", "context-length")


def times(factor: float) -> Change:
    """A function whose values are all off by a factor."""
    return lambda right: lambda *given, **more: factor * right(*given, **more)


def parts_times(**factors: float) -> Change:
    """A function of which some of the errors that it returns are off by factors."""

    def change(right: Callable[..., Any]) -> Callable[..., Any]:
        def wrong(*given: Any, **more: Any) -> Any:
            found = right(*given, **more)
            return replace(found, **{name: factor * getattr(found, name) for name, factor in factors.items()})

        return wrong

    return change


def responses(icl: float = 1.0, idg: float = 1.0, power: int = 2) -> Change:
    """Errors of the limit off by factors, or with another power of λ/ξ in the training error."""

    def change(right: Callable[..., Any]) -> Callable[..., Any]:
        def wrong(averages: Any, share: Any, tau: Any, **more: Any) -> Any:
            new, known, train = right(averages, share, tau, **more)
            return icl * new, idg * known, train * np.maximum(share, 1e-300) ** (power - 2)

        return wrong

    return change


def without_noise_spread(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda averages, *given, **more: right(replace(averages, noise_spread=0.0), *given, **more)


def with_two_for_three(_: Callable[..., Any]) -> Callable[..., Any]:
    """κ_c from (1 + |τ − 1|) z³ = ρ + 2ρz + (2ρ − 1) z²."""

    def wrong(tau: float, noise: Any) -> Any:
        cubics = [np.roots([1 + abs(tau - 1), 1 - 2 * rho, -2 * rho, -rho]) for rho in np.ravel(noise)]
        z = [max(root.real for root in roots if abs(root.imag) < 1e-9) for roots in cubics]
        return min(tau, 1) * (1 + np.reshape(z, np.shape(noise)))

    return wrong


def of_new_tasks(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda ratios, *, target="icl": right(ratios, target="icl")


def of_best_fit(right: Callable[..., Any]) -> Callable[..., Any]:
    """dMMSE that keeps the whole spread of the task of best fit."""

    def wrong(alpha: float, noise: float, s: Any) -> Any:
        found = right(alpha, noise, s)
        fit = estimators.nearest_task_errors(alpha, noise, s)
        return replace(
            found, icl=np.where(np.asarray(s) < estimators.task_threshold(alpha, noise), fit.icl, found.icl)
        )

    return wrong


def at_pretraining_length(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda ratios, *, ridge=0.0, shift=None: right(ratios, ridge=ridge)


def on_more_sequences(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda law, sequences, **more: right(law, round(1.03 * sequences), **more)


def of_equal_leverage(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda law, sequences, *, ridge=0.0, new=None, draws=6000: pool_errors(
        law, sequences, ridge=ridge, new=new
    )


def of_more_tasks(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda nu, kappa: right(nu, 1.05 * kappa)


WRONG = [
    Wrong("ICL without the fluctuation in context noise", errors_from, without_noise_spread, RUNS[:2]),
    Wrong("IDG × 1.02", errors_from, responses(idg=1.02), RUNS),
    Wrong("IDG × 1.05", errors_from, responses(idg=1.05), ("ridge",)),
    Wrong("IDG × 0.98", errors_from, responses(idg=0.98), RUNS[:1]),
    Wrong("ICL × 1.02", errors_from, responses(icl=1.02), RUNS),
    Wrong("ICL × 1.05", errors_from, responses(icl=1.05), ("task-diversity",)),
    Wrong("λ/ξ for its square in the training error", errors_from, responses(power=1), RUNS[:3]),
    Wrong("κ_c with 2ρz", critical_kappa, with_two_for_three, ("non-monotone-context",)),
    Wrong("κ_c × 1.001", critical_kappa, times(1.001), ("non-monotone-context",)),
    Wrong("structured ICL × 1.03", structured_errors, parts_times(icl=1.03), ("structured",)),
    Wrong("structured training error × 1.03", structured_errors, parts_times(train=1.03), ("structured",)),
    Wrong("dMMSE of the best fit", estimators.dmmse_errors, of_best_fit, ("task-diversity",)),
    Wrong("dMMSE on new tasks × 1.03", estimators.dmmse_errors, parts_times(icl=1.03), ("task-diversity",)),
    Wrong("dMMSE on the pool × 1.03", estimators.dmmse_errors, parts_times(idg=1.03), ("task-diversity",)),
    Wrong("dMMSE of a pool, IDG × 1.05", estimators.pool_dmmse_errors, parts_times(idg=1.05), ("task-diversity",)),
    Wrong("dMMSE of a pool, ICL × 1.06", estimators.pool_dmmse_errors, parts_times(icl=1.06), ("task-diversity",)),
    Wrong("threshold × 1.03", estimators.task_threshold, times(1.03), ("task-diversity",)),
    Wrong("ridge regression × 1.03", estimators.ridge_error, times(1.03), ("task-diversity",)),
    Wrong("gap × 1.03", diversity_gap, times(1.03), ("task-diversity",)),
    Wrong("best ridge × 2", best_ridge, times(2.0), ("ridge",)),
    Wrong("best ridge × 1.02", best_ridge, times(1.02), ("ridge",)),
    Wrong("best ridge for new tasks, for those of the pool", best_ridge, of_new_tasks, ("ridge",)),
    Wrong("best length × 1.3", best_alpha, times(1.3), ("context-length", "non-monotone-context")),
    Wrong("best length × 1.02", best_alpha, times(1.02), ("context-length", "non-monotone-context")),
    Wrong("effective ridge × 1.1", effective_ridge, times(1.1), ("ridge", "double-descent")),
    Wrong("a spectrum of more tasks", wishart_moments_at, of_more_tasks, ("double-descent", "task-diversity")),
    Wrong("tests at the length of pretraining", errors, at_pretraining_length, ("context-length",)),
    Wrong("equal leverage", leverage_errors, of_equal_leverage, ("finite-size", "double-descent")),
    Wrong("leverage × 1.02", leverage_errors, parts_times(icl=1.02, idg=1.02), ("double-descent",)),
    Wrong("leverage ICL × 1.06", leverage_errors, parts_times(icl=1.06), ("finite-size", "structured", "forecast")),
    Wrong("leverage IDG × 1.06", leverage_errors, parts_times(idg=1.06), ("forecast", "context-length")),
    Wrong("leverage training error × 1.06", leverage_errors, parts_times(train=1.06), ("ridge", "task-diversity")),
    Wrong("pool ICL × 1.03", pool_errors, parts_times(icl=1.03), ("finite-size", "double-descent")),
    Wrong("pool IDG × 1.03", pool_errors, parts_times(idg=1.03), ("context-length", "ridge")),
    Wrong("pool on more sequences", pool_errors, on_more_sequences, ("double-descent", "finite-size")),
    Wrong("response", Equivalent.response, times(1.03), ("double-descent",), owner=Equivalent),
    Wrong("spread", Equivalent.spread, times(1.05), ("finite-size",), owner=Equivalent),
    Wrong("share", Equivalent.share, times(1.03), ("structured",), owner=Equivalent),
    Wrong("effective ridge of leverages", Leverage.effective_ridge, times(1.1), ("finite-size",), owner=Leverage),
]
