"""The spectrum of tasks to pretrain on for a given test: least error at fixed trace, over spectrum and ridge.

The error and its gradient are closed, so descent on amplitudes c_j ∝ u_j² takes a fraction of a second. It starts
from several spectra, and what they end in is compared: no proof says that there is one minimum.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, magnitude_number, one_of, require
from iclab.planning.optimum import BEST
from iclab.problem import Ratios
from iclab.theory.pretraining import Shift
from iclab.theory.pretraining.alignment import Alignment, Design, NewContexts, checked_spectrum
from iclab.theory.pretraining.gradient import gradient_at

__all__ = ["LARGEST", "POOLS", "PlannedSpectrum", "planned_spectrum"]

Spectrum = Float[np.ndarray, "D"]
POOLS = ("drawn", "chosen")
LARGEST = 1000  # directions of a plan
_RIDGES = 10.0 ** np.arange(-9, 7)  # of the scan for the best ridge of one spectrum
_POOLS = np.append(np.geomspace(1, 1e3, 25)[1:], np.inf)  # times κ: pools of the test's own spectrum to compare with
_IDLE = 1e-7  # of the mean: a direction that has less, and would be better off with none, has none
_LEVEL = 1e-9  # relative gain of a plan below which it equals the test's own spectrum


@dataclass(frozen=True, eq=False)
class PlannedSpectrum:
    """The spectrum of least error and what it is compared with, each at its own ridge unless one was given.

    `starts` are the errors in which descent from each start ended, least first; `unlevel` is how far the first-order
    conditions are missed, in units of the error. `equivalent_kappa` is the least pool, of at least the given size,
    with which the test's own spectrum reaches the error; inf where none does.
    """

    task_eigenvalues: Spectrum
    ridge: float
    error: float
    matched_error: float
    matched_ridge: float
    white_error: float
    white_ridge: float
    directions: float  # share of directions trained
    equivalent_kappa: float
    null_error: float  # of predicting nothing
    starts: tuple[float, ...]
    unlevel: float

    @property
    def disagreement(self) -> float:
        """The difference between the worst and the best end of descent."""
        return self.starts[-1] - self.starts[0]


def planned_spectrum(
    ratios: Validated[Ratios],
    *,
    test_task_eigenvalues: Validated[Float[ArrayLike, "D"]],
    ridge: Validated[float | str] = BEST,
    trace: Validated[float | None] = None,
    shift: Validated[Shift | None] = None,
    pool: Validated[str] = "drawn",
) -> PlannedSpectrum:
    """The task spectrum of pretraining with the least error on tests of a given spectrum, at a mean `trace`.

    The mean eigenvalue is that of the test unless given. With pool "chosen" the κD tasks are orthogonal, on at most
    that many directions, the strongest of the test. Ridge "best" is optimized with the spectrum; then all
    starts have ended in one error wherever tried, while at a small fixed ridge near τ = 1 white tests have several
    local optima. Cost: a third of a second at D = 100.

    Raises ValueError for ratios that are not single numbers, an infinite α, τ = 1 without ridge, a spectrum that is
    negative, all zero or of more than 1000 directions, a trace that is not positive, and for chosen pools of less
    than one task.

    Source: derived in docs/derivations/task_design.
    """
    new = checked_spectrum("test_task_eigenvalues", test_task_eigenvalues)
    require(
        len(new) <= LARGEST,
        f"test_task_eigenvalues must be at most {LARGEST}; got {len(new)}. Take fewer directions for the same shape.",
    )
    one_of("pool", pool, POOLS)
    mean = float(np.mean(new)) if trace is None else magnitude_number("trace", trace)
    search = _Search.of(ratios, ridge, shift, new, mean)
    compared = {name: search.ridged(search.scaled(c)) for name, c in (("own", new), ("white", np.ones_like(new)))}
    allowed = np.ones(len(new), bool)
    plan = search
    if pool == "chosen":
        allowed = _strongest(new, float(ratios.kappa))
        plan = replace(search, design=replace(search.design, pool=0.0))
    ends = sorted((plan.descended(start, compared["own"][1], allowed) for start in plan.starts(allowed)), key=_error)
    error, strength, c = ends[0]
    own, white = compared["own"], compared["white"]
    nothing = search.test.scale * float(np.mean(new)) + search.test.noise
    return PlannedSpectrum(
        task_eigenvalues=c,
        ridge=strength,
        error=error,
        matched_error=own[0],
        matched_ridge=own[1],
        white_error=white[0],
        white_ridge=white[1],
        directions=float(np.mean(c > 0)),
        equivalent_kappa=search.equivalent(float(ratios.kappa), error, own[0]),
        null_error=nothing,
        starts=tuple(end[0] for end in ends),
        unlevel=plan.unlevel(c, strength, allowed),
    )


def _error(end: tuple[float, float, Spectrum]) -> float:
    return end[0]


def _strongest(new: Spectrum, kappa: float) -> Bool[np.ndarray, "D"]:
    """The directions that a chosen pool can have: as many as it has tasks."""
    count = len(new) if np.isinf(kappa) else min(len(new), int(np.floor(kappa * len(new) * (1 + 1e-12))))
    require(count >= 1, f"kappa must give at least one task of {len(new)} directions; got {kappa:g}. Raise kappa.")
    allowed = np.zeros(len(new), bool)
    allowed[np.argsort(-new, kind="stable")[:count]] = True
    return allowed


@dataclass(frozen=True, eq=False)
class _Search:
    """The question: sizes, tests, the mean of the spectrum, and whether the ridge is free."""

    design: Design
    test: NewContexts
    new: Spectrum
    mean: float
    free: bool

    @classmethod
    def of(
        cls,
        ratios: Validated[Ratios],
        ridge: Validated[float | str],
        shift: Validated[Shift | None],
        new: Spectrum,
        mean: float,
    ) -> "_Search":
        instance("ratios", ratios, Ratios)
        free = isinstance(ridge, str)
        require(not free or ridge == BEST, f'ridge must be a number >= 0 or "{BEST}"; got {ridge!r}.')
        design = Design.of(ratios, 1.0 if free else ridge)
        return cls(design, NewContexts.of(design, shift), new, mean, free)

    def scaled(self, c: Spectrum) -> Spectrum:
        """A spectrum at the mean of the question."""
        return c * (self.mean / np.mean(c))

    def at(self, c: Spectrum, ridge: float, near: Alignment | None = None) -> Alignment:
        """The equivalent of a spectrum at a ridge."""
        return Alignment.at(self.design.with_ridge(ridge), c, near)

    def ridged(self, c: Spectrum) -> tuple[float, float]:
        """The error of a spectrum and the ridge that it has there: the given one, or its own best."""
        if not self.free:
            return self.at(c, self.design.ridge).error(self.test, self.new), self.design.ridge
        heights = [self.at(c, ridge).error(self.test, self.new) for ridge in _RIDGES]
        index = int(np.argmin(heights))
        if index in (0, len(_RIDGES) - 1):
            return heights[index], float(_RIDGES[index])
        ridge = self._level(c, _RIDGES[index - 1], _RIDGES[index + 1])
        return self.at(c, ridge).error(self.test, self.new), ridge

    def _level(self, c: Spectrum, low: float, high: float) -> float:
        """The ridge of least error between two."""
        from scipy import optimize

        def slope(log: float) -> float:
            return gradient_at(self.at(c, float(np.exp(log))), self.test, self.new)[1]

        if slope(np.log(low)) >= 0 or slope(np.log(high)) <= 0:
            return float(low if slope(np.log(low)) >= 0 else high)
        found = optimize.root_scalar(slope, bracket=(np.log(low), np.log(high)), xtol=1e-9)
        return float(np.exp(found.root))

    def starts(self, allowed: Bool[np.ndarray, "D"]) -> list[Spectrum]:
        """Spectra to start from: level, the test's, a steeper one, and the best few directions."""
        share = 0.5 * min(1.0, 1 / self.design.pool if self.design.pool > 0 else 1.0)
        few = np.argsort(-self.new, kind="stable")[: max(1, round(share * len(self.new)))]
        best = np.full(len(self.new), 1e-3)
        best[few] = 1.0
        relative = self.new / np.max(self.new)
        several = np.ones_like(relative), relative, relative**1.7, best
        return [np.where(allowed, np.maximum(one, 1e-4), 0.0) for one in several]

    def descended(
        self, start: Spectrum, ridge: float, allowed: Bool[np.ndarray, "D"]
    ) -> tuple[float, float, Spectrum]:
        """The end of descent from a start: its error, ridge and spectrum."""
        from scipy import optimize

        function, given = self._function(allowed), np.sqrt(self.scaled(start))[allowed]
        point = np.append(given, np.log(ridge)) if self.free else given
        logs = [(float(np.log(_RIDGES[0])), float(np.log(_RIDGES[-1])))] if self.free else []
        bounds = [(None, None)] * len(given) + logs
        options = {"maxiter": 3000, "maxfun": 5000, "ftol": 1e-14, "gtol": 1e-8, "maxcor": 20}
        found = optimize.minimize(function, point, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        strength = float(np.exp(found.x[-1])) if self.free else self.design.ridge
        c = np.zeros(len(self.new))
        c[allowed] = found.x[: len(given)] ** 2
        c = self._without_idle(self.scaled(c), strength)
        return self.at(c, strength).error(self.test, self.new), strength, c

    def _function(self, allowed: Bool[np.ndarray, "D"]) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """The error and its gradient in amplitudes, and in the logarithm of the ridge where it is free."""
        near: Alignment | None = None
        level_error = self.at(self.scaled(self.new), self.design.ridge).error(self.test, self.new)
        unit = level_error - self.test.noise  # what can be gained: descent stops at a relative change
        count, c = int(np.sum(allowed)), np.zeros(len(self.new))

        def function(point: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal near
            u = point[:count]
            scale = self.mean * len(c) / float(u @ u)
            c[allowed] = scale * u * u
            ridge = float(np.exp(point[-1])) if self.free else self.design.ridge
            near = at = self.at(c, ridge, near)
            by_task, by_ridge = gradient_at(at, self.test, self.new)
            level = float(by_task @ c) / (self.mean * len(c))
            slope = 2 * scale / len(c) * u * (by_task[allowed] - level)
            slopes = np.append(slope, ridge * by_ridge) if self.free else slope
            return (at.error(self.test, self.new) - self.test.noise) / unit, slopes / unit

        return function

    def _without_idle(self, c: Spectrum, ridge: float) -> Spectrum:
        """The spectrum without the directions that descent has all but left."""
        by_task, _ = gradient_at(self.at(c, ridge), self.test, self.new)
        idle = (c < _IDLE * self.mean) & (by_task > float(by_task @ c) / float(np.sum(c)))
        return self.scaled(np.where(idle, 0.0, c))

    def unlevel(self, c: Spectrum, ridge: float, allowed: Bool[np.ndarray, "D"]) -> float:
        """The largest gain for each unit of trace that moving some still promises, over the error."""
        at = self.at(c, ridge)
        by_task, _ = gradient_at(at, self.test, self.new)
        level = float(by_task @ c) / float(np.sum(c))
        weight = np.minimum(c / self.mean, 1.0)
        missed = np.maximum(abs(by_task - level) * weight, np.where(allowed, level - by_task, 0.0))
        return float(np.max(missed)) * self.mean / at.error(self.test, self.new)

    def equivalent(self, kappa: float, error: float, own: float) -> float:
        """The least pool from κ on whose errors with the test's own spectrum are the given one."""
        from scipy import optimize

        if np.isinf(kappa) or error >= own * (1 - _LEVEL):
            return float(kappa)
        c = self.scaled(self.new)

        def excess(pool: float) -> float:
            return replace(self, design=replace(self.design, pool=pool)).ridged(c)[0] - error

        before = 1 / kappa
        for size in _POOLS:
            pool = 1 / (kappa * size)
            if excess(pool) <= 0:
                inverse = float(optimize.root_scalar(excess, bracket=(pool, before), xtol=1e-10 / kappa).root)
                return 1 / inverse if inverse > 0 else float("inf")
            before = pool
        return float("inf")
