"""Errors after pretraining on tasks of low rank: on the tasks of the pool, on new ones, and on other subspaces.

Tasks fill a share s of all directions, with variance 1/s there, so that labels vary as with white tasks. Their
pool is a Wishart matrix on these directions, of κ/s tasks for each, and every average is one over its spectrum.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from iclab.numerics import Validated, Values, increasing_root, instance, magnitude, require
from iclab.outcomes import Errors
from iclab.problem import Ratios
from iclab.theory.pretraining.resolvent import (
    LONG,
    MANY,
    STRONG,
    WishartMoments,
    bounded,
    flat_ridge,
    unspent,
    wishart_moments_at,
)
from iclab.theory.pretraining.response import Averages, Contexts, errors_from, with_limits

__all__ = ["LowRankErrors", "low_rank_errors"]


@dataclass(frozen=True)
class LowRankErrors:
    """Errors on tasks of the pool, on new tasks in its subspace, and on new tasks of another random subspace.

    In squared labels, noise included. The last is also the error on white tasks: errors are linear in the spectrum.
    """

    matched: Values
    in_distribution: Values
    out_of_distribution: Values


def low_rank_errors(
    ratios: Validated[Ratios], *, rank: Validated[ArrayLike], ridge: Validated[ArrayLike] = 0.0
) -> LowRankErrors:
    """Errors after pretraining on tasks of a share `rank` of all directions; all arguments broadcast together.

    For infinite pretraining without ridge these tasks are white ones at (α/s, κ/s). Long contexts then let attention
    generalize in the subspace from s = κ down, and nowhere beyond it: the errors tend to ρ + max(0, 1 − κ/s) in
    distribution and to ρ + 1 − min(κ, s) out of it. Units, ridge and limits as in `errors`, to which it reduces at
    rank 1.

    Raises ValueError for a negative ridge and for a rank that is not in (0, 1].

    Source: takanami2025lowrank, whose ridge is λτ/κ; derived in docs/derivations/task_design.
    """
    instance("ratios", ratios, Ratios)
    share = magnitude("rank", rank, infinite=False, advice="It is the share of directions that tasks have.")
    require(bool(np.all(share <= 1)), f"rank must be at most 1; got {np.max(share)}. It is a share of directions.")
    penalty = magnitude("ridge", ridge, zero=True)
    at = _LowRank.of(ratios, share, bounded(penalty, STRONG))
    known, inside = at.errors(outside=False)
    outside = at.errors(outside=True)[1]
    support = float(np.min(share))

    def limits(icl: Values, *, exposed: bool) -> Errors:
        whole = np.broadcast_arrays(icl, known, known, at.xi)
        return with_limits(Errors(*whole), ratios, penalty, None, support=support, exposed=exposed)

    near = limits(inside, exposed=False)
    parts = near.idg, near.icl, limits(outside, exposed=True).icl
    return LowRankErrors(*(np.asarray(part)[()] for part in parts))


@dataclass(frozen=True)
class _LowRank:
    """The averages over the spectrum of the pool at the effective ridge."""

    share: Values  # s
    tau: Values
    ridge: Values
    kappa: Values
    contexts: Contexts
    xi: Values

    @classmethod
    def of(cls, ratios: Ratios, share: Values, ridge: Values) -> "_LowRank":
        kappa, tau = bounded(ratios.kappa, MANY), bounded(ratios.tau, MANY)
        contexts = Contexts.of(1.0, bounded(ratios.alpha, LONG), ratios.noise)
        start = cls(share, tau, ridge, kappa, contexts, ridge)
        none = (ridge == 0) & (tau >= 1)
        lower, upper = (flat_ridge(level, tau, ridge) for level in (contexts.x, 1 / share + contexts.x))

        def equation(xi: Values) -> tuple[Values, Values]:
            value, slope = replace(start, xi=xi).slack()
            return np.where(none, 0.0, value - ridge / xi), np.where(none, 1.0, slope + ridge / xi)

        whole = np.ones(np.broadcast_shapes(np.shape(lower), np.shape(share), np.shape(kappa)))
        root = increasing_root(equation, np.where(none, 1.0, lower) * whole, np.where(none, 1.0, upper) * whole)
        return replace(start, xi=np.where(none, 0.0, root)[()])

    @property
    def nu(self) -> Values:
        """ν = x + ξ."""
        return self.contexts.x + self.xi

    def wishart(self) -> WishartMoments:
        """Averages over the directions of the tasks, in which R has the eigenvalues r/s."""
        return wishart_moments_at(self.share * self.nu, bounded(self.kappa / self.share, MANY))

    def slack(self) -> tuple[Values, Values]:
        """1 − df/τ and its derivative in log ξ."""
        m, s, x = self.wishart(), self.share, self.contexts.x
        mean = (1 - s) / self.nu + s * s * m.inverse  # of F
        noise, lost = x * mean, self.xi * mean
        few = self.kappa < s
        idle = np.where(few, self.kappa * m.kept / m.inverse, s * m.lost)  # rank − its share of df
        most = np.minimum(self.kappa, s)
        scarce = (idle + noise < most * lost) & (most < 1)
        rank, rest = np.where(scarce, most, 1.0), np.where(scarce, idle - noise, lost)
        return unspent(s * m.kept + noise, rest, rank, self.tau), self.xi * self.spread(m) / self.tau

    def spread(self, m: WishartMoments) -> Values:
        """The mean of F²(R + x)."""
        return (1 - self.share) * self.contexts.x / self.nu**2 + self.share * self.task_spread(m)

    def task_spread(self, m: WishartMoments) -> Values:
        """The same in the directions of the tasks, times s for their part of the mean and 1/s for their variance."""
        return self.share * (m.mixed / (self.share * self.nu) + self.share * self.contexts.x * m.inverse_square)

    def errors(self, *, outside: bool) -> tuple[Values, Values]:
        """The errors on tasks of the pool and on new tasks."""
        m, s = self.wishart(), self.share
        spread, inside = self.spread(m), self.task_spread(m)
        averages = Averages(
            lost_pool=s * self.nu * m.mixed,
            lost_new=(1 - s) + s * m.lost_square if outside else m.lost_square,
            noisy=s * m.kept_square,
            ridge_spread=self.xi * spread,
            noise_spread=spread,
            new_spread=spread if outside else inside,
            pool_spread=s * (m.kept_square + self.contexts.x * s * m.mixed / (s * self.nu)),
        )
        free = np.maximum(0.0, (self.tau - 1) / self.tau)
        share = np.where(self.ridge == 0, free, self.ridge / np.maximum(self.xi, 1e-300))
        icl, idg, _ = errors_from(averages, share, self.tau, pretraining=self.contexts, new=self.contexts)
        return idg, icl
