"""The error on every test spectrum at once: what a test costs in each direction after pretraining on given tasks.

With white inputs and tasks N(0, diag c) the proportional limit is affine in the spectrum c_t of the tests,
e_ICL = constant + mean(c_t costs). Two numbers of the pretraining decide: φ, by which a finite pool shrinks the
spectrum, and the effective ridge ξ. They are found together, with u = ν/φ in place of φ: it stays well determined
where κ < 1 makes φ small.
"""

from dataclasses import dataclass
from math import exp, isfinite

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, increasing_root, instance, magnitude_number, require
from iclab.problem import Ratios
from iclab.theory.pretraining.resolvent import flat_ridge
from iclab.theory.pretraining.response import Shift
from iclab.theory.pretraining.structured import eigenvalues

__all__ = ["Alignment", "Design", "NewContexts", "checked_spectrum", "test_costs"]

Spectrum = Float[np.ndarray, "D"]
_STEPS, _LONGEST, _SHARP = 40, 2.0, 4e-15  # of Newton in log u and log ξ: their number, a step, the last one


def test_costs(
    ratios: Validated[Ratios],
    *,
    task_eigenvalues: Validated[Float[ArrayLike, "D"]],
    ridge: Validated[float] = 0.0,  # noqa: PT028
    shift: Validated[Shift | None] = None,  # noqa: PT028
) -> tuple[float, Spectrum]:
    """The constant and the costs (D,) with which e_ICL = constant + mean(c_t · costs), for every test spectrum c_t.

    Pretraining is on tasks N(0, diag(task_eigenvalues)) with white inputs; units, ridge and shift as in
    structured_errors, whose ICL error this is. Tests whose covariance has other eigenvectors count by its diagonal in
    those of the pretraining. All terms are positive, so no digit is lost. Cost: a tenth of a millisecond at D = 40.

    Raises ValueError for ratios that are not single numbers, an infinite α, τ = 1 without ridge, a negative ridge,
    and for a spectrum that is negative or all zero.

    Source: letey2025alignment, alignment measure without ridge; any ridge and shift, in positive terms, derived in
    docs/derivations/task_design.
    """
    design = Design.of(ratios, ridge)
    found = Alignment.at(design, checked_spectrum("task_eigenvalues", task_eigenvalues))
    return found.costs(NewContexts.of(design, shift))


@dataclass(frozen=True)
class NewContexts:
    """Contexts of tests: α, ρ, and the scale of the test spectrum."""

    alpha: float
    noise: float
    scale: float

    @classmethod
    def of(cls, design: "Design", shift: Validated[Shift | None]) -> "NewContexts":
        """The contexts of a shift, those of pretraining where it says nothing. Raises ValueError for arrays."""
        shift = Shift() if shift is None else shift
        instance("shift", shift, Shift)
        alpha = design.alpha if shift.alpha is None else magnitude_number("shift.alpha", shift.alpha, infinite=True)
        noise = design.noise if shift.noise is None else magnitude_number("shift.noise", shift.noise, zero=True)
        return cls(alpha, noise, magnitude_number("shift.task_scale", shift.task_scale))


@dataclass(frozen=True)
class Design:
    """The sizes of pretraining at one point, 1/κ in place of κ and 1/τ in place of τ."""

    alpha: float
    pool: float  # 1/κ
    data: float  # 1/τ
    noise: float
    ridge: float

    @classmethod
    def of(cls, ratios: Validated[Ratios], ridge: Validated[float]) -> "Design":
        """The checked sizes. Raises ValueError as test_costs does."""
        instance("ratios", ratios, Ratios)
        alpha, kappa, tau, noise = (
            magnitude_number(f"ratios.{name}", getattr(ratios, name), zero=name == "noise", infinite=True)
            for name in ("alpha", "kappa", "tau", "noise")
        )
        penalty = magnitude_number("ridge", ridge, zero=True)
        require(
            isfinite(alpha),
            "ratios.alpha must be finite to cost tests; got inf, where errors are infinite or tie. Take a large one.",
        )
        require(
            penalty > 0 or tau != 1,
            "ridge must be positive at tau = 1, where every error without ridge is infinite; got 0. Take 1e-8 or the "
            "best ridge.",
        )
        return cls(alpha, 1 / kappa, 1 / tau, noise, penalty)

    def with_ridge(self, ridge: float) -> "Design":
        """The same sizes at another ridge."""
        return Design(self.alpha, self.pool, self.data, self.noise, ridge)

    @property
    def interpolates(self) -> bool:
        """True where the effective ridge is found, not given: with a ridge at finite τ, and below τ = 1."""
        return bool(self.data > 0 and (self.ridge > 0 or self.data > 1))


@dataclass(frozen=True, eq=False)
class Alignment:
    """The deterministic equivalent of pretraining on one spectrum, and what it costs."""

    design: Design
    c: Spectrum
    x: float
    u: float  # ν/φ
    phi: float
    xi: float
    nu: float
    share: float  # λ/ξ
    squares: Spectrum  # F²
    moments: tuple[float, float, float]  # T_k = mean(c^k F²)
    psi: float
    rise: float  # φ' = dφ/dν
    by_noise: float  # q, response to context noise of size 1
    spread: float  # mean of S
    unused: float  # 1 − df₂/τ
    own: float  # e_IDG

    @classmethod
    def at(cls, design: Design, c: Spectrum, near: "Alignment | None" = None) -> "Alignment":
        """The equivalent at a spectrum, from the one `near` it if given."""
        x = (float(np.mean(c)) + design.noise) / design.alpha
        u, xi = _FixedPoint.of(design, c, x).solved(near)
        nu = x + xi
        phi = nu / u
        squares = (1 / (phi * c + nu)) ** 2
        t0, t1, t2 = float(np.mean(squares)), float(c @ squares) / len(c), float(c @ (c * squares)) / len(c)
        psi = phi / (1 + nu * t1 * design.pool)
        rise = psi * t1 * design.pool
        by_noise, spread = phi**2 * t2 + nu**2 * rise * t1, psi * t1 + x * (t0 + rise * t1)
        share = design.ridge / xi if design.ridge > 0 else max(0.0, 1 - design.data)
        unused = share + xi * spread * design.data
        own = (design.noise + nu**2 * psi * t1 + x * by_noise) / unused
        moments = (t0, t1, t2)
        return cls(design, c, x, u, phi, xi, nu, share, squares, moments, psi, rise, by_noise, spread, unused, own)

    @property
    def fluctuation(self) -> float:
        """v = e_IDG/τ, the size of the fluctuation of the weights."""
        return self.own * self.design.data

    def measure(self) -> Spectrum:
        """K, the error on each direction of a test, but for its context noise."""
        raised = 1 + self.rise * self.c
        return self.squares * (
            (self.nu**2 + self.fluctuation * self.x) * raised + self.fluctuation * self.psi * self.c
        )

    def noise_response(self) -> float:
        """B, the error for each unit of context noise at test."""
        return self.by_noise + self.fluctuation * self.spread

    def costs(self, test: NewContexts) -> tuple[float, Spectrum]:
        """The constant and the costs of tests in given contexts."""
        level = self.noise_response() / test.alpha
        return test.noise * (1 + level), test.scale * (self.measure() + level)

    def error(self, test: NewContexts, c_test: Spectrum) -> float:
        """The error on one test spectrum."""
        constant, costs = self.costs(test)
        return constant + float(c_test @ costs) / len(costs)


@dataclass(frozen=True, eq=False)
class _FixedPoint:
    """The equations of u and ξ: u φ(u) = x + ξ with φ = 1 − mean[c/(c + u)]/κ, and 1 − (1 − ξ mean F)/τ = λ/ξ."""

    design: Design
    trained: Spectrum  # the positive ones of c
    count: int  # D
    support: float  # their share s
    mean: float
    x: float

    @classmethod
    def of(cls, design: Design, c: Spectrum, x: float) -> "_FixedPoint":
        trained = c[c > 0]
        return cls(design, trained, len(c), len(trained) / len(c), float(np.sum(trained)) / len(c), x)

    def solved(self, near: Alignment | None) -> tuple[float, float]:
        """u and ξ: by Newton from the white solution or a near one, and by brackets where that does not settle."""
        xi = self._start() if near is None or near.xi == 0 or not self.design.interpolates else near.xi
        u = self.white(self.x + xi) if near is None else near.u
        return self._newton(u, xi) or self._bracketed()

    def white(self, nu: float) -> float:
        """u of the white spectrum of the same mean: an upper bound."""
        middle = nu - self.mean * (1 - self.design.pool)
        root = np.hypot(middle, 2 * np.sqrt(nu * self.mean))
        return float((middle + root) / 2 if middle > 0 else 2 * nu * self.mean / (root - middle))

    def phi(self, u: float, green: Spectrum) -> tuple[float, float, float, float]:
        """φ and u dφ/du, mean of 1/(c + u) and of its square, over all directions."""
        pool, idle = self.design.pool, 1 - self.support
        first, second = float(np.sum(green)) / self.count, float(green @ green) / self.count
        kept_square = first - u * second  # mean of c/(c + u)²
        phi = 1 - self.support * pool + u * first * pool
        return phi, u * kept_square * pool, first + idle / u, second + idle / u**2

    def _start(self) -> float:
        design = self.design
        if not design.interpolates:
            return design.ridge
        return float(flat_ridge(self.x + self.mean, 1 / design.data, design.ridge))

    def _newton(self, u: float, xi: float) -> tuple[float, float] | None:
        design, before = self.design, u
        ridge, data, both = design.ridge, design.data, design.interpolates
        for _ in range(_STEPS):
            phi, rise, first, second = self.phi(u, 1 / (self.trained + u))
            if phi <= 0:
                u = before = np.sqrt(u * max(before, 2 * u))
                continue
            off, down = u * phi - self.x - xi, u * (phi + rise)
            along, across = -off / down, 0.0
            if both:
                lost = xi * first / phi  # ξ mean F
                value = (1 - data) + data * lost - ridge / xi
                slope = data * lost + ridge / xi
                tilt = -data * (u * xi * second / phi + lost * rise / phi)
                across = (-value - tilt * along) / (slope + tilt * xi / down)
                along += across * xi / down
            size = max(abs(along), abs(across))
            if not isfinite(size):
                return None
            trim = min(1.0, _LONGEST / size) if size > 0 else 1.0
            before, u, xi = u, u * exp(trim * along), xi * exp(trim * across)
            if size < _SHARP or (size < 1e-8 and trim == 1):  # the next step would be its square
                return u, xi
        return None

    def _bracketed(self) -> tuple[float, float]:
        design = self.design
        if not design.interpolates:
            return self._u_at(self.x + design.ridge), design.ridge

        def equation(xi: float) -> tuple[float, float]:
            u = self._u_at(self.x + xi)
            phi, rise, first, second = self.phi(u, 1 / (self.trained + u))
            lost = xi * first / phi
            tilt = (u * xi * second + lost * rise) / phi * xi / (u * (phi + rise))
            value = (1 - design.data) + design.data * lost - design.ridge / xi
            return value, design.data * (lost - tilt) + design.ridge / xi

        level = float(flat_ridge(self.x, 1 / design.data, design.ridge))
        xi = float(increasing_root(equation, level, self._start()))
        return self._u_at(self.x + xi), xi

    def _u_at(self, nu: float) -> float:
        def equation(u: float) -> tuple[float, float]:
            phi, rise, *_ = self.phi(u, 1 / (self.trained + u))
            return u * phi - nu, u * max(phi + rise, 1e-300)

        return float(increasing_root(equation, nu, self.white(nu) * (1 + 1e-12)))


def checked_spectrum(name: str, spectrum: Validated[ArrayLike]) -> Spectrum:
    """A spectrum of tasks in float64. Raises ValueError unless it is a list of numbers >= 0, not all 0.

    Source: no formula; conventions as in docs/derivations/task_design.
    """
    values = eigenvalues(name, spectrum)
    require(bool(np.any(values > 0)), f"{name} must hold a positive number; got zeros only.")
    return values
