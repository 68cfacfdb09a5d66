"""A rank-one head of separate attention under signals that do not change.

Along each mode dv = Σ g k q, dk = v g q, dq = v g k. In the coordinate ds = v dt the sums k + q grow as exp(gs) and
the differences k − q fall as exp(−gs), so that v² = f(s) = v₀² + Σ P (exp(2gs) − 1) + M (exp(−2gs) − 1) with
P = (k + q)²/4 and M = (k − q)²/4. Time is the integral of ds/√f; it is finite up to s = ∞, where the head blows up.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.integrate import quad

__all__ = ["FrozenHead"]

AT_REST = "a head comes to rest on its way, to rounding, where its escape time diverges. Draw another start."


@dataclass(frozen=True)
class FrozenHead:
    """One head: value v₀, and P of the sums, M of the differences and g > 0 for each mode that has a signal."""

    value: float
    sums: Float[np.ndarray, "mode"]
    differences: Float[np.ndarray, "mode"]
    signal: Float[np.ndarray, "mode"]

    def escape(self) -> tuple[float, bool]:
        """Time to blow-up, inf if there is none; and True where the value is positive there.

        With the value positive the sums grow, with it negative the differences. A value that shrinks may pass
        zero once: the turn.
        """
        rise = self.signal @ (self.sums - self.differences)
        if self.value < 0 or (self.value == 0 and rise < 0):
            time, positive = self._mirrored().escape()
            return time, not positive
        turn = self._turn() if rise < 0 else np.inf
        if np.isinf(turn):
            return self._time(np.inf), True
        # From the turn f rises both back to the start and on to infinity.
        grown = np.exp(2 * self.signal * turn)
        after = FrozenHead(0.0, self.differences / grown, self.sums * grown, self.signal)
        return after._time(turn) + after._time(np.inf), False

    def _mirrored(self) -> "FrozenHead":
        """The same motion after (value, query) → −(value, query)."""
        return FrozenHead(-self.value, self.differences, self.sums, self.signal)

    def _square(self, s: float) -> float:
        """f, the square of the value at s, never below zero by rounding."""
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.where(self.sums > 0, self.sums * np.expm1(2 * self.signal * s), 0.0)
        return float(max(self.value**2 + np.sum(rise + self.differences * np.expm1(-2 * self.signal * s)), 0.0))

    def _slope(self, s: float) -> float:
        """f′ at s."""
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.where(self.sums > 0, self.sums * np.exp(2 * self.signal * s), 0.0)
        return float(2 * self.signal @ (rise - self.differences * np.exp(-2 * self.signal * s)))

    def _turn(self) -> float:
        """The first s > 0 with f = 0, inf if f has none, for f that falls at 0.

        f is convex: Newton's steps from the left cannot pass its first zero, and pass its bottom only if it has none.
        """
        size = self.value**2 + np.sum(self.sums + self.differences)
        steep, rounding = np.max(self.signal) * size, np.finfo(float).eps
        s, step, slope = 0.0, np.inf, self._slope(0.0)
        while step > 4 * rounding * s and slope < -16 * rounding * steep:
            step = self._square(s) / -slope
            s, slope = s + step, self._slope(s + step)
        # A bottom at zero: rounding decides there between a turn and none, and the time diverges between the two.
        if np.any(self.sums) and self._square(s) <= 1e-14 * size and slope > -1e-7 * steep:
            raise ArithmeticError(AT_REST)
        return s if step <= 4 * rounding * s else np.inf

    def _time(self, end: float) -> float:
        """Time from 0 to `end` along s, for f that does not vanish between."""
        if np.isfinite(end):
            return self._integral(0.0, end)
        growing = self.sums > 0
        if not np.any(growing) or (self.value == 0 and not self.signal @ (self.sums - self.differences)):
            return np.inf
        # From the knee on the growing part of f is the larger, and time runs out exponentially.
        rest = self.value**2 + np.sum(self.differences)
        knee = float(np.min(np.log1p(rest / self.sums[growing]) / (2 * self.signal[growing])))
        knee = max(knee, 1 / float(np.max(self.signal)))
        return self._integral(0.0, knee) + self._integral(knee, np.inf)

    def _integral(self, start: float, end: float) -> float:
        """∫ ds/√f in x with s = x²/g, which takes away the root of f at a start from value 0."""
        g = np.max(self.signal)

        def pace(x: float) -> float:
            with np.errstate(divide="ignore"):
                return 2 * x / g / np.sqrt(self._square(x * x / g))

        ends = np.sqrt(g * start), np.sqrt(g * end)
        time, error, *_ = quad(pace, *ends, epsabs=0, epsrel=1e-11, limit=1000, full_output=1)
        if not error <= 1e-8 * time:
            raise ArithmeticError(AT_REST)
        return time
