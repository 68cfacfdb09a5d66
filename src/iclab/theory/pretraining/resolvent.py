"""The resolvent of a Wishart matrix, and the effective ridge of pretraining.

A pool of K = κD tasks has the second moment R = (1/K) Σ w wᵀ, of eigenvalues r. Context noise adds
x = (1 + ρ)/α to each: the features of pretraining have covariance I ⊗ (R + x). A ridge λ on n = τD² sequences
acts on the mean like the larger effective ridge ξ on infinitely many. With ν = x + ξ every error is made of
averages of r/(r + ν) and ν/(r + ν), written here as sums of positive terms, so that no digit is lost.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from iclab.numerics import Validated, Values, increasing_root, magnitude

__all__ = [
    "LONG", "MANY", "STRONG", "VANISHED", "WishartMoments", "bounded", "effective_ridge", "flat_ridge", "slack",
    "unspent", "wishart_moments", "wishart_moments_at",
]  # fmt: skip

# These numbers replace infinity: so far beyond all finite sizes, at most 1e40, that every finite limit is reached to
# the last digit. They are ordered so that κ and τ are infinite even relative to an infinite α.
LONG, MANY, STRONG = 1e100, 1e250, 1e150  # α; κ and τ; ridge
VANISHED = 1e-45  # bounds, at the largest α, an error that tends to zero at least like α^-1/2


@dataclass(frozen=True)
class WishartMoments:
    """Averages over the eigenvalues r of R at a shift ν. Kept is r/(r + ν), lost is ν/(r + ν)."""

    inverse: Values  # M = E 1/(r + ν)
    inverse_square: Values  # E 1/(r + ν)²
    kept: Values  # E r/(r + ν)
    kept_square: Values  # E r²/(r + ν)²
    lost: Values  # E ν/(r + ν)
    lost_square: Values  # E ν²/(r + ν)²
    mixed: Values  # E r ν/(r + ν)²


def wishart_moments(shift: Validated[ArrayLike], kappa: Validated[ArrayLike]) -> WishartMoments:
    """Averages over the law of Marchenko and Pastur, the spectrum of R = (1/K) Σ w wᵀ with K = κD, w ~ N(0, I).

    κ = ∞ is R = I. Every moment is accurate to some units of rounding, whatever ν > 0 and κ.

    Raises ValueError for a shift or a kappa that is not positive, or not of a size between 1e-40 and 1e40: at ν = 0
    the inverse moments diverge for κ <= 1.

    Source: lu2025asymptotic, theory code (M_kappa); forms without cancellation derived in
    docs/derivations/proportional_limit.
    """
    nu = magnitude("shift", shift, infinite=False)
    return wishart_moments_at(nu, bounded(magnitude("kappa", kappa), MANY))


def wishart_moments_at(nu: Values, kappa: Values) -> WishartMoments:
    """wishart_moments at values that have been checked and bounded.

    Source: derived in docs/derivations/proportional_limit.
    """
    w, root = _inverse(nu, kappa)
    c = 1 / kappa
    kept, lost = 1 / (w + c), nu / w
    ratio = 0.5 * (1 + (nu + 1 + c) / root)  # E 1/(r + ν)² / M²
    return WishartMoments(
        inverse=1 / w,
        inverse_square=ratio / w / w,
        kept=kept,
        kept_square=kept * kept * ratio * (w * kept + c * lost),
        lost=lost,
        lost_square=lost * lost * ratio,
        mixed=nu * kept * kept * ratio,
    )


def effective_ridge(x: Values, kappa: Values, tau: Values, ridge: Values) -> Values:
    """ξ, the root of 1 − df/τ = λ/ξ with df = E (r + x)/(r + ν); without ridge its limit, 0 for τ >= 1.

    Arguments are checked and bounded by the caller. The left side grows with ξ and the right side falls, so the
    root is unique; ξ df stays below 1 + x, so it lies between λ and λ + (1 + x)/τ.

    Source: lu2025asymptotic, theory code (self_consistency); start derived in
    docs/derivations/proportional_limit.
    """
    none = ridge == 0
    start = flat_ridge(_inverse(x, kappa, np.minimum(tau, 1.0))[0], tau, ridge)
    some = ridge + LONG * none  # so strong a ridge is its own root, and costs one step

    def equation(xi: Values) -> tuple[Values, Values]:
        share, spread = slack(xi, x, kappa, tau)
        return share - some / xi, some / xi + spread

    root = increasing_root(equation, some, some + (1 + x) / tau, start=start + LONG * none)
    return root * (1 - none) + start * none  # without ridge the start is exact


def flat_ridge(level: Values, tau: Values, ridge: Values) -> Values:
    """ξ when every eigenvalue of the features is `level`: the positive root of a quadratic.

    Source: derived in docs/derivations/proportional_limit.
    """
    middle = level * ((tau - 1) / tau) - ridge
    root = np.hypot(middle, 2 * np.sqrt(ridge) * np.sqrt(level))
    large = 0.5 * (abs(middle) + root)
    return (middle > 0) * ridge * (level / np.maximum(large, 1e-200)) + (middle <= 0) * large


def slack(xi: Values, x: Values, kappa: Values, tau: Values) -> tuple[Values, Values]:
    """1 − df/τ and its derivative in log ξ.

    df nears its largest value, 1 or at small x the rank κ, where 1 − df cancels: there the distance from that
    value, a sum of small terms, is used.

    Source: derived in docs/derivations/proportional_limit.
    """
    nu = x + xi
    w, root = _inverse(nu, kappa)
    c = 1 / kappa
    kept, noise = 1 / (w + c), x / w
    df = kept + noise
    lost = xi / w  # 1 − df
    idle = kappa * (w * kept)  # κ − E r/(r + ν)
    low_rank = (idle + noise) < kappa * lost * (kappa < 1)
    rank = low_rank * kappa + (1 - low_rank)  # κ where low_rank, else 1: quicker than np.where on scalars
    rest = low_rank * (idle - noise) + (1 - low_rank) * lost
    slope = xi * (kept * kept + noise / w) * (0.5 * (1 + (nu + 1 + c) / root))
    return unspent(df, rest, rank, tau), slope / tau


def unspent(df: Values, rest: Values, rank: Values, tau: Values) -> Values:
    """1 − df/τ, accurate where df is near `rank` when the rest, rank − df, is.

    Source: derived in docs/derivations/proportional_limit.
    """
    return (df * ((tau - rank) / tau) + rest) / rank


def bounded(value: Values, large: float) -> Values:
    """The value, with infinity replaced by a large number.

    Source: derived in docs/derivations/proportional_limit.
    """
    return np.minimum(value, large)


def _inverse(nu: Values, kappa: Values, tau: Values = 1.0) -> tuple[Values, Values]:
    """1/M at pool size κ/τ, and the root in it: W² − aW = τν/κ with a = ν + (κ − τ)/κ, by its stable branch."""
    a = nu + (kappa - tau) / kappa
    product = (tau / kappa) * nu
    root = np.hypot(a, 2 * np.sqrt(product))
    large = 0.5 * (abs(a) + root)
    return (a >= 0) * large + (a < 0) * (product / large), root
