"""Errors of pretrained linear attention in the proportional limit: D → ∞, N = αD, K = κD, n = τD².

ICL is the error on new tasks, IDG on tasks of the pool; both hold the noise of the target, so ρ is their floor
and 1 + ρ the error of predicting nothing. The ridge λ is that of the loss
Σ (y_q − x_qᵀ G g)² + (n/D) λ ‖G‖² over the readout G.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from iclab.numerics import LEAST, MOST, Validated, Values, every, floats, increasing_root, instance, magnitude, one_of
from iclab.numerics.minima import least
from iclab.outcomes import Errors
from iclab.problem import Ratios
from iclab.theory.pretraining.resolvent import (
    MANY,
    STRONG,
    VANISHED,
    WishartMoments,
    bounded,
    effective_ridge,
    wishart_moments_at,
)
from iclab.theory.pretraining.response import (
    Averages,
    Contexts,
    Shift,
    diverges_at_infinite_alpha,
    errors_from,
    with_limits,
)

__all__ = [
    "TARGETS", "Peak", "best_alpha", "best_ridge", "critical_kappa", "diversity_gap", "errors", "interpolation_peak",
]  # fmt: skip

TARGETS = ("icl", "idg")
_ALPHAS, _RIDGES = np.geomspace(LEAST, 1e20, 241), np.geomspace(LEAST, MOST, 81)
_FLAT = 1 + 1e-15  # errors closer than this are equal to rounding, and the limit is taken
_IDLE = 1 + 1e-9  # least relative saving of a best length: rounding hides where a shallower dip lies


@dataclass(frozen=True)
class Peak:
    """Limit of |τ − 1| times the ridgeless error as τ → 1, from either side."""

    icl: Values
    idg: Values


def errors(
    ratios: Validated[Ratios], *, ridge: Validated[ArrayLike] = 0.0, shift: Validated[Shift | None] = None
) -> Errors:
    """ICL, IDG and training error of ridge regression on the readout; all fields broadcast together.

    Holds for white inputs and tasks at any ridge >= 0: without ridge it is the solution of least norm, with
    ridge = inf nothing is learned. Limits are returned as such: at τ = 1 without ridge ICL and IDG are inf, and so
    is ICL without ridge at α = ∞ with label noise where κ <= min(τ, 1). Units: squared label. Cost: a microsecond
    a point on a large grid.

    Raises ValueError for a negative ridge.

    Source: lu2025asymptotic, theory code (ridgeless ICL and IDG, ICL with ridge); IDG with ridge, training error
    and other test contexts derived in docs/derivations/proportional_limit.
    """
    instance("ratios", ratios, Ratios)
    at = _Pretraining.of(ratios, ridge)
    new, pool, scale = at.contexts, None, 1.0
    if shift is not None:
        instance("shift", shift, Shift)
        scale = floats(shift.task_scale)
        new = at.contexts.shifted(ratios.alpha, shift, signal=scale)
        pool = at.contexts.shifted(ratios.alpha, shift, signal=1.0)
    icl, idg, train = errors_from(
        at.averages(), at.share, at.tau, pretraining=at.contexts, new=new, pool=pool, scale=scale
    )
    return with_limits(Errors(icl, idg, train, at.xi), ratios, ridge, shift)


def diversity_gap(ratios: Validated[Ratios], *, ridge: Validated[ArrayLike] = 0.0) -> Values:
    """ICL − IDG, the excess error on a new task after pretraining on K tasks only. Falls like 1/κ.

    Accurate also where the gap is far below both errors. At τ = ∞ and α → ∞ it tends to 1 − κ below κ = 1, at
    κ = 1 like ½ √((1 + ρ)/α), above like ((1 + ρ)/α)² κ(2κ − 1)/(κ − 1)³.

    Raises ValueError for a negative ridge.

    Source: lu2025asymptotic, figure 4 (g_task); closed form derived in docs/derivations/proportional_limit.
    """
    instance("ratios", ratios, Ratios)
    at = _Pretraining.of(ratios, ridge)
    m, x = at.spectrum, at.contexts.x
    few = 1 + m.kept / m.inverse  # 1 + φ with φ = 1 − E[r/(r + ν)]/κ
    idg = errors_from(at.averages(), at.share, at.tau, pretraining=at.contexts, new=at.contexts)[1]
    noise = x * m.inverse * (m.inverse_square / m.inverse) * m.kept * few
    spread = m.mixed / (x + at.xi) * (m.kept - m.lost) + noise
    gap = (m.lost_square * m.kept * few + idg / at.tau * spread) / at.kappa
    gap = np.where(diverges_at_infinite_alpha(ratios, ridge, None)[0], np.inf, gap)
    vanished = np.isinf(ratios.alpha) & (at.ridge == 0) & (abs(gap) < VANISHED)
    none = np.isinf(ratios.kappa) | vanished
    return np.where(none, 0.0, gap)[()]


def interpolation_peak(alpha: Validated[Values], kappa: Validated[Values], noise: Validated[Values]) -> Peak:
    """Height of the ridgeless peak at τ = 1: |τ − 1| e → Peak from both sides.

    Raises ValueError for ratios that are not positive and for negative noise.

    Source: lu2025asymptotic, theory code (its ridgeless errors as τ → 1); derived in
    docs/derivations/proportional_limit.
    """
    ratios = Ratios(alpha, kappa, np.inf, noise)
    at = _Pretraining.of(ratios, 0.0)
    own, x = at.averages(), at.contexts.x
    idg = at.contexts.noise + own.lost_pool + x * own.noisy
    icl = idg * (1 + x) * at.spectrum.inverse
    if not every(np.isfinite(ratios.alpha)):
        icl = np.where(diverges_at_infinite_alpha(replace(ratios, tau=2.0), 0.0, None)[0], np.inf, icl)
        icl, idg = (np.where(np.isinf(ratios.alpha) & (part < VANISHED), 0.0, part)[()] for part in (icl, idg))
    return Peak(icl, idg)


def critical_kappa(tau: Validated[ArrayLike], noise: Validated[ArrayLike]) -> Values:
    """κ_c, the pool size below which the ridgeless ICL error is larger at α = ∞ than at some finite α.

    With m = min(τ, 1), κ_c = m (1 + z) and z the positive root of (1 + |τ − 1|) z³ = ρ + 3ρz + (2ρ − 1) z². It
    tends to m for ρ → 0 and to 1 for τ → ∞, and these limits are returned; at ρ = 0 and at τ = ∞ themselves
    longer contexts are better in the end at every κ. Exact for the approach to α = ∞; curves above it fall throughout
    in every scan made.

    Raises ValueError for tau that is not positive and for negative noise.

    Source: derived in docs/derivations/proportional_limit; lu2025asymptotic, figures 2 and 3 (draws κ = min(τ, 1)).
    """
    tau, rho = bounded(magnitude("tau", tau), MANY), magnitude("noise", noise, zero=True, infinite=False)
    cubic, some = 1 + abs(tau - 1), rho + (rho == 0)

    def equation(z: Values) -> tuple[Values, Values]:
        linear, constant = 3 * some / z, some / z / z
        return cubic * z + 1 - 2 * some - linear - constant, cubic * z + linear + 2 * constant

    z = increasing_root(equation, np.minimum(1.0, np.sqrt(some / (cubic + 1))), np.maximum(1.0, 6 * some))
    return (np.minimum(tau, 1) * (1 + np.where(rho > 0, z, 0.0)))[()]


def best_alpha(
    kappa: Validated[Values],
    tau: Validated[Values],
    noise: Validated[Values],
    *,
    ridge: Validated[ArrayLike] = 0.0,
    target: Validated[str] = "icl",
) -> Values:
    """The context length, α = N/D, of least error; inf where longer is always better, 0 where shorter is.

    0 is also returned where no length saves more than 1e-9 of the error of contexts without examples, as in
    much noise or few tasks. At τ = 1 without ridge, where every error is infinite, the limit τ → 1. A scan of α
    from 1e-12 to 1e16, polished to 1e-8 or, where the dip is shallow, to 1e-14 over its depth relative to the
    error.

    Raises ValueError for ratios that are not positive, negative noise or ridge, and an unknown target.

    Source: lu2025asymptotic, figures 2 and 3; derived in docs/derivations/proportional_limit.
    """
    one_of("target", target, TARGETS)
    first = Ratios(1.0, kappa, tau, noise)
    penalty = magnitude("ridge", ridge, zero=True)
    shape = np.broadcast_shapes(*(np.shape(part) for part in (first.kappa, first.tau, first.noise, penalty)))
    peaked = (np.asarray(first.tau) == 1) & (penalty == 0)

    def error(alpha: Values) -> Values:
        found = getattr(errors(replace(first, alpha=alpha), ridge=penalty), target)
        if np.any(peaked):
            found = np.where(peaked, getattr(interpolation_peak(alpha, first.kappa, first.noise), target), found)
        return found

    best = least(error, _ALPHAS, shape)
    least_error = error(best)
    best = np.where(error(LEAST) <= _IDLE * least_error, 0.0, best)
    return np.where((best >= _ALPHAS[-1]) | (error(np.inf) <= _FLAT * least_error), np.inf, best)[()]


def best_ridge(ratios: Validated[Ratios], *, target: Validated[str] = "icl") -> Values:
    """The ridge of least ICL or IDG error; 0 or inf where the error decreases all the way.

    Where it falls towards ridge 0 but is larger without any, as at α = ∞ for κ <= τ in noise, no ridge is best:
    the result is the smallest, on a grid from 1e-40, that has the least error to rounding. A scan of the ridge
    from 1e-40 to 1e40, polished to 1e-8 or, where the dip is shallow, to 1e-14 over its depth relative to the
    error. The best ridges of the two targets differ unless κ = ∞.

    Raises ValueError for an unknown target.

    Source: lu2025asymptotic, figure 1 (the ridge removes the peak); derived in
    docs/derivations/proportional_limit.
    """
    instance("ratios", ratios, Ratios)
    one_of("target", target, TARGETS)
    shape = np.broadcast_shapes(*(np.shape(part) for part in (ratios.alpha, ratios.kappa, ratios.tau, ratios.noise)))

    def error(ridge: Values) -> Values:
        return getattr(errors(ratios, ridge=ridge), target)

    best = least(error, _RIDGES, shape)
    floor = _FLAT * error(best)
    none = error(0.0) <= floor
    level = ~none & (error(np.maximum(best / 100, LEAST)) <= floor) & (best > LEAST)
    if np.any(level):
        enough = error(_RIDGES.reshape(-1, *(1,) * len(shape))) <= floor
        best = np.where(level, _RIDGES[np.argmax(enough, axis=0)], best)
    best = np.where(error(np.inf) <= floor, np.inf, best)
    return np.where(none, 0.0, best)[()]


@dataclass(frozen=True)
class _Pretraining:
    """Pretraining at given ratios, its effective ridge solved for. Infinities are replaced by large numbers."""

    contexts: Contexts
    kappa: Values
    tau: Values
    ridge: Values
    xi: Values
    share: Values
    spectrum: WishartMoments

    @classmethod
    def of(cls, ratios: Ratios, ridge: Validated[ArrayLike]) -> "_Pretraining":
        contexts = Contexts.of(1.0, floats(ratios.alpha), floats(ratios.noise))
        kappa, tau = bounded(floats(ratios.kappa), MANY), bounded(floats(ratios.tau), MANY)
        penalty = bounded(magnitude("ridge", ridge, zero=True), STRONG)
        xi = effective_ridge(contexts.x, kappa, tau, penalty)
        share = np.maximum(penalty / np.maximum(xi, 1e-300), (tau - 1) / tau)
        return cls(contexts, kappa, tau, penalty, xi, share, wishart_moments_at(contexts.x + xi, kappa))

    def averages(self) -> Averages:
        m, x = self.spectrum, self.contexts.x
        nu = x + self.xi
        pool = m.mixed / nu  # E r/(r + ν)²
        noise = pool + x * m.inverse * (m.inverse_square / m.inverse)
        return Averages(
            lost_pool=nu * m.mixed,
            lost_new=m.lost_square,
            noisy=m.kept_square,
            ridge_spread=self.xi * noise,
            noise_spread=noise,
            new_spread=noise,
            pool_spread=m.kept_square + x * pool,
        )
