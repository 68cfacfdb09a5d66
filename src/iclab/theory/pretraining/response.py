"""Errors from averages over the spectrum of the features, for white and structured data.

The mean solution Γ of pretraining is that of infinitely many sequences at the effective ridge. Finitely many
add a fluctuation of Γ whose size is the in-distribution error itself, divided by τ:

    e_IDG = e_Γ / (1 − df₂/τ),   e_test = e_test,Γ + (e_IDG/τ) tr[B_test B (B + ξ)^-2]/d.

`Averages` names the traces that occur, each a sum of positive terms; `errors_from` puts them together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from iclab.numerics import Validated, Values, checks_its_fields, every, floats, magnitude
from iclab.outcomes import Errors
from iclab.problem import Ratios
from iclab.theory.pretraining.resolvent import LONG, VANISHED, bounded

__all__ = ["Averages", "Contexts", "Shift", "diverges_at_infinite_alpha", "errors_from", "with_limits"]

Truths = bool | np.bool_ | np.ndarray  # one truth value or an array of them


@checks_its_fields
@dataclass(frozen=True)
class Shift:
    """Contexts at test that differ from those of pretraining.

    `alpha` and `noise` hold for new tasks and for tasks of the pool; None keeps those of pretraining.
    `task_scale` multiplies the covariance of new tasks; the pool stays what it is.

    Raises ValueError for an alpha or a task_scale that is not positive and for negative noise.
    """

    alpha: ArrayLike | None = None  # α at test
    noise: ArrayLike | None = None  # ρ at test
    task_scale: ArrayLike = 1.0  # scale of the covariance of new tasks

    def __post_init__(self) -> None:
        if self.alpha is not None:
            magnitude("shift.alpha", self.alpha)
        if self.noise is not None:
            magnitude("shift.noise", self.noise, zero=True, infinite=False)
        magnitude("shift.task_scale", self.task_scale, infinite=False)


@dataclass(frozen=True)
class Contexts:
    """The noise in contexts: ρ of a label, x = (variance of the signal + ρ)/α in the summary."""

    noise: Values
    x: Values

    @classmethod
    def of(cls, signal: Values, alpha: Values, noise: Values) -> "Contexts":
        """Contexts whose tasks give labels of variance `signal` before noise."""
        return cls(noise, (signal + noise) / bounded(alpha, LONG))

    def shifted(self, alpha: Values, shift: Shift, *, signal: Values) -> "Contexts":
        """The contexts at test, where the signal may be another; alpha is that of pretraining."""
        alpha = floats(alpha if shift.alpha is None else shift.alpha)
        return Contexts.of(signal, alpha, self.noise if shift.noise is None else floats(shift.noise))


@dataclass(frozen=True)
class Averages:
    """Traces over the features, for each input direction, with F = (R + N)^-1 and N = x + ξ for white inputs.

    `lost` is the error of the mean solution on a task without noise, `noisy` its response to context noise of size 1.
    Spreads are tr W F (R + x) F, the response to a fluctuation, for W of the ridge, of context noise of size 1,
    of new tasks and of the pool.
    """

    lost_pool: Values
    lost_new: Values
    noisy: Values
    ridge_spread: Values
    noise_spread: Values
    new_spread: Values
    pool_spread: Values


def errors_from(
    averages: Averages,
    share: Values,
    tau: Values,
    *,
    pretraining: Contexts,
    new: Contexts,
    pool: Contexts | None = None,
    scale: Values = 1.0,
) -> tuple[Values, Values, Values]:
    """ICL, IDG and training error. `share` is λ/ξ = 1 − df/τ.

    `new` and `pool` are the contexts at test; None leaves the pool's as in pretraining. New tasks are `scale`
    times those of the averages.

    Source: lu2025asymptotic for ridgeless white data; ridge, shift and structure derived in
    docs/derivations/proportional_limit.
    """
    a = averages
    with np.errstate(divide="ignore"):  # τ = 1 without ridge
        own = pretraining.noise + a.lost_pool + pretraining.x * a.noisy
        unused = share + a.ridge_spread / tau  # 1 − df₂/τ
        idg = own / unused
        spread = idg / tau
        lost, response = scale * a.lost_new, scale * a.new_spread
        icl = new.noise + lost + new.x * a.noisy + spread * (response + new.x * a.noise_spread)
        train = share * (own / np.maximum(unused, 1e-200)) * share
    if pool is not None:
        idg = pool.noise + a.lost_pool + pool.x * a.noisy + spread * (a.pool_spread + pool.x * a.noise_spread)
    return icl, idg, train


def diverges_at_infinite_alpha(
    ratios: Ratios, ridge: Validated[ArrayLike], shift: Shift | None, *, support: float = 1.0, exposed: bool = False
) -> tuple[Truths, Truths]:
    """True where the ICL and the IDG error are infinite: at α = ∞ with label noise and without ridge.

    Weights then diverge in directions that the pool does not span, and add to the error where a test context has a
    component there: new tasks have one in the `support` of the pool (a fraction of all directions) or, if `exposed`,
    outside it; context noise at a finite test length has one everywhere. The pool spans the fraction
    min(κ, support): at τ equal to it the directions that it spans are interpolated, and every test error is infinite.

    Source: derived in docs/derivations/proportional_limit.
    """
    noisy = (
        np.isinf(ratios.alpha) & np.isfinite(ratios.tau) & (np.asarray(ridge) == 0) & (np.asarray(ratios.noise) > 0)
    )
    few = ratios.kappa <= np.minimum(ratios.tau, support)
    narrow = (ratios.kappa > support) & (support < 1) & (support <= np.asarray(ratios.tau))
    peak = np.asarray(ratios.tau) == np.minimum(ratios.kappa, support)
    short = False if shift is None or shift.alpha is None else np.isfinite(shift.alpha)
    return noisy & (few | peak | narrow & (exposed | short)), noisy & (peak | (few | narrow) & short)


def with_limits(
    errors: Errors,
    ratios: Ratios,
    ridge: Validated[ArrayLike],
    shift: Shift | None,
    *,
    support: float = 1.0,
    exposed: bool = False,
) -> Errors:
    """Errors in one shape, exact where an argument is infinite; for `support` and `exposed` see
    diverges_at_infinite_alpha.

    Source: derived in docs/derivations/proportional_limit.
    """
    icl, idg, train, xi = errors.icl, errors.idg, errors.train, errors.effective_ridge
    if not every(np.isfinite(ratios.alpha)):
        no_icl, no_idg = diverges_at_infinite_alpha(ratios, ridge, shift, support=support, exposed=exposed)
        icl, idg = np.where(no_icl, np.inf, icl), np.where(no_idg, np.inf, idg)
        free = np.asarray(ridge) == 0  # a ridge of 1e-40 leaves errors of 1e-80
        icl, idg, train, xi = (np.where(free & (part < VANISHED), 0.0, part)[()] for part in (icl, idg, train, xi))
    if not every(np.isfinite(ridge)):
        xi = np.where(np.isinf(ridge), np.inf, xi)[()]
    parts = (icl, idg, train, xi)
    return Errors(*(parts if len({np.shape(part) for part in parts}) == 1 else np.broadcast_arrays(*parts)))
