"""Sequences of unequal leverage: the largest correction to the deterministic equivalent at small dimension.

The weight of a sequence in the solution falls with its leverage L = φᵀ(Σ + ξ)^-1 φ, as 1/(1 + rq) with r = L/E L.
This raises the effective ridge, ξ = λ/c with c = E[r/(1 + rq)] and q = df/(cτ), adds to the fluctuations, and
reweights the moments of the solution against sequences of large leverage. Averages over sequences are taken over
a fixed set of them.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from iclab.numerics import FIXED_STREAM, Validated, Values, increasing_root, instance, whole_number
from iclab.outcomes import Errors
from iclab.problem import ContextLaw
from iclab.problem.readouts import FeatureMoments, error_of
from iclab.theory.pretraining.equivalent import SPENT, Equivalent
from iclab.theory.pretraining.resolvent import STRONG

__all__ = ["Leverage", "Sequences", "drawn_sequences"]

FAINT = 1e-9  # 1 − df/τ below which it may be rounding, and q beyond any other scale
Draws = Float[np.ndarray, "draw"]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of a law of contexts: query √D x_q, features g and task w of each."""

    query: Float[np.ndarray, "draw D"]
    features: Float[np.ndarray, "draw feature"]
    task: Float[np.ndarray, "draw D"]


def drawn_sequences(law: Validated[ContextLaw], count: Validated[int]) -> Sequences:
    """Sequences from the fixed stream; each takes O(D) random numbers, whatever the context length.

    Given its task, the labels of a context enter through Σ y² alone, a multiple of chi-square; given that, the
    summary is normal, wider across the task than along it.

    Raises ValueError for a count below 1.

    Source: derived in docs/derivations/finite_size.
    """
    instance("law", law, ContextLaw)
    count = whole_number("count", count)
    d, n, root = law.dimension, law.context_length, law.input_root
    stream = np.random.default_rng(FIXED_STREAM)
    task = law.tasks.draw(count, stream)
    white = task @ root
    signal = np.sum(white**2, axis=1) / d
    variance = signal + law.noise
    squares = variance * stream.chisquare(n, size=count)
    normal = stream.standard_normal((count, d))
    direction = white / np.maximum(np.linalg.norm(white, axis=1, keepdims=True), np.finfo(float).tiny)
    along = np.sum(direction * normal, axis=1)
    shift = np.sqrt(signal) * squares / variance - np.sqrt(squares) * (1 - np.sqrt(law.noise / variance)) * along
    summary = np.sqrt(d) / n * (np.sqrt(squares)[:, None] * normal + shift[:, None] * direction)
    features = np.column_stack([summary @ root, squares / n])
    return Sequences(stream.standard_normal((count, d)) @ root, features, task)


@dataclass(frozen=True, eq=False)
class Leverage:
    """Pretraining on sequences of unequal leverage: the deterministic equivalent of their reweighted moments."""

    fit: Equivalent
    nodes: Sequences
    query_squares: Float[np.ndarray, "draw a"]
    feature_squares: Float[np.ndarray, "draw b"]

    @classmethod
    def of(cls, fit: Equivalent, nodes: Sequences) -> "Leverage":
        """The equivalent `fit`, and sequences of the same law as nodes."""
        return cls(fit, nodes, (nodes.query @ fit.inputs) ** 2, (nodes.features @ fit.summaries) ** 2)

    def settled(self) -> "Leverage":
        """The fixed point at which weights and moments agree.

        Raises ArithmeticError where the iteration does not converge.
        """
        here, exact, weights = self, self.fit.moments, np.ones(len(self.query_squares))
        for _ in range(100):
            before, weights = weights, here.weights(here.effective_ridge())[0]
            if np.mean((weights - before) ** 2) < 1e-10:
                return here
            here = Leverage.of(self.fit.with_moments(self._weighted(exact, weights)), self.nodes)
            if here.fit.rank < self.fit.rank:
                break
        raise ArithmeticError("the weights of sequences do not converge; take more draws, or a ridge")

    def _weighted(self, exact: FeatureMoments, weights: Draws) -> FeatureMoments:
        """The exact moments, reweighted: only their change is estimated from the nodes."""
        white = np.mean(self.query_squares / self.fit.input_values, axis=1)
        change = (weights - 1) * white / len(weights)
        g, w = self.nodes.features, self.nodes.task
        tilt = (g.T * change) @ g
        return replace(exact, second=exact.second + 0.5 * (tilt + tilt.T), cross=exact.cross + (g.T * change) @ w)

    def relative(self, xi: float) -> Draws:
        """r, the leverage of each node relative to the mean, at an effective ridge."""
        table = self.query_squares @ (1 / (self.fit.values + xi))
        leverage = np.sum(table * self.feature_squares, axis=1)
        return leverage / np.mean(leverage)

    def effective_ridge(self) -> float:
        """ξ, the root of ξ c(ξ) = λ: larger than at equal leverage; the same without ridge."""
        fit, equal = self.fit, self.fit.effective_ridge()
        if fit.ridge == 0:
            return equal

        def equation(xi: float) -> tuple[Values, Values]:
            r, share = self.relative(xi), fit.slack(xi)
            if share < FAINT:  # q is large, and c in proportion to what may be rounding
                slope = 1 / float(np.mean(1 / r))
                return share * slope - fit.ridge / xi, fit.spread(xi) / fit.tau * slope + fit.ridge / xi
            shrink = 1 / (1 + r * _strength(r, share))
            c = np.mean(r * shrink)
            derivative = fit.spread(xi) * (1 / (fit.tau * np.mean(shrink * (1 - shrink))) - 1 / fit.freedom(xi))
            return c - fit.ridge / xi, c * derivative + fit.ridge / xi

        uneven = max(float(np.mean(self.relative(xi) ** 2)) for xi in (equal, 1e3 * np.max(fit.values)))
        upper = 2 * max(fit.ridge, 4 * uneven * np.mean(fit.values) * fit.rank / fit.tau)  # where c >= ½
        lower = equal * (1 - 2.0**-40)  # where share is rounding, so is the equation at its lower end
        return float(increasing_root(equation, lower, max(upper, equal), start=equal))

    def weights(self, xi: float) -> tuple[Draws, float]:
        """The weight 1/(1 + rq)/c of each node, and c, which is λ/ξ. At c = 0 sequences are interpolated."""
        fit = self.fit
        r, share = self.relative(xi), fit.share(xi)
        if share <= 0:
            return 1 / r, 0.0
        if share <= SPENT:
            c = fit.ridge / xi
            return 1 / (1 + r * _strength_at(r, c)) / c, c
        shrink = 1 / (1 + r * _strength(r, share))
        c = float(np.mean(r * shrink))
        return shrink / c, c

    def errors(self, exact: FeatureMoments, test: FeatureMoments, noise: float) -> Errors:
        """Errors under the law of pretraining (IDG) and of test (ICL)."""
        fit, nodes, xi = self.fit, self.nodes, self.effective_ridge()
        readout = fit.readout(xi)
        lost = np.sum(nodes.query * (nodes.task - nodes.features @ readout.T), axis=1)
        residual = noise + lost**2 / fit.dimension  # squared error of the mean solution at each node
        residual *= error_of(readout, exact) / np.mean(residual)  # its mean is known
        r, (weights, c) = self.relative(xi), self.weights(xi)
        spread, weight = fit.spread(xi) / fit.tau, r * weights**2
        with np.errstate(divide="ignore"):
            size = np.mean(residual * weight) / (c * np.mean(weight) + spread * np.mean(r * weight))
        idg, icl = (error_of(readout, law) + size / fit.tau * fit.response(xi, law) for law in (exact, test))
        excess = (fit.freedom(xi) / fit.tau - spread) * size
        train = np.mean((c * weights) ** 2 * (residual + r * excess)) if c > 0 else 0.0
        return Errors(icl, idg, train, xi if fit.ridge < STRONG else np.inf)


def _strength_at(r: Draws, c: float) -> float:
    """q, the root of E[r/(1 + rq)] = c: at most that of equal r, at least that of the largest r."""
    odds = (1 - c) / c

    def equation(q: float) -> tuple[float, float]:
        part = r / (1 + r * q)
        return c - float(np.mean(part)), float(np.mean(q * part**2))

    return float(increasing_root(equation, odds / np.max(r), odds))


def _strength(r: Draws, share: float) -> float:
    """q, the root of E[1/(1 + rq)] = share: at least that of equal r, at most that of the least r."""
    odds = (1 - share) / share

    def equation(q: float) -> tuple[float, float]:
        shrink = 1 / (1 + r * q)
        return share - float(np.mean(shrink)), float(np.mean(r * q * shrink**2))

    return float(increasing_root(equation, odds, odds / np.min(r)))
