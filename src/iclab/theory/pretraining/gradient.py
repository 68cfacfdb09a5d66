"""The gradient of the error on a test spectrum in the spectrum that is trained on, and in the ridge.

The error is an explicit function of a few averages of F = 1/(φc + ν), of φ and of the effective ridge ξ. These two
follow the spectrum by their own equations: two adjoints carry that, so that the gradient costs as much as the error.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, require
from iclab.problem import Ratios
from iclab.theory.pretraining.alignment import Alignment, Design, NewContexts, checked_spectrum
from iclab.theory.pretraining.response import Shift

__all__ = ["design_gradient", "gradient_at"]

Spectrum = Float[np.ndarray, "D"]


def design_gradient(
    ratios: Validated[Ratios],
    *,
    task_eigenvalues: Validated[Float[ArrayLike, "D"]],
    test_task_eigenvalues: Validated[Float[ArrayLike, "D"]],
    ridge: Validated[float] = 0.0,
    shift: Validated[Shift | None] = None,
) -> tuple[Spectrum, float]:
    """D ∂e/∂c (D,) and ∂e/∂λ of the ICL error e, in the spectrum c of pretraining and in its ridge.

    A spectrum is the best one of its trace where D ∂e/∂c is level on the directions that it trains and nowhere lower.
    At ridge 0 the derivative in λ is that from above. Cost: twice that of the error.

    Raises ValueError as test_costs does, and for spectra of different lengths.

    Source: derived in docs/derivations/task_design.
    """
    design = Design.of(ratios, ridge)
    c = checked_spectrum("task_eigenvalues", task_eigenvalues)
    new = checked_spectrum("test_task_eigenvalues", test_task_eigenvalues)
    require(
        len(new) == len(c),
        f"test_task_eigenvalues must be as many as task_eigenvalues; got {len(new)} and {len(c)}.",
    )
    return gradient_at(Alignment.at(design, c), NewContexts.of(design, shift), new)


def gradient_at(at: Alignment, test: NewContexts, c_test: Spectrum) -> tuple[Spectrum, float]:
    """design_gradient at a fixed point that has been found.

    Source: derived in docs/derivations/task_design.
    """
    back = _Adjoints.of(at, test, test.scale * c_test)
    c, square, design = at.c, at.squares, at.design
    root = np.sqrt(square)
    by_square = back.t0 + c * (back.t1 + back.t2 * c) + test.scale * c_test * (back.u0 + back.u1 * c)
    by_root = (back.mean + 2 * root * by_square) * square  # −∂e/∂(φc + ν), times D
    by_phi = back.phi - float(c @ by_root) / len(c)
    by_nu = back.nu - float(np.mean(by_root))
    by_xi, by_x = back.xi + by_nu, back.x + by_nu
    t0, t1, _ = at.moments
    slope = at.share + at.xi * (at.phi * t1 + at.x * t0) * design.data  # of the equation of ξ, in ξ
    matrix = [[1 + at.nu * t1 * design.pool, -(at.xi**2) * t1 * design.data], [-at.phi * t1 * design.pool, slope]]
    (a, b), (e, f) = matrix
    norm = a * f - b * e
    for_phi, for_xi = (f * by_phi - b * by_xi) / norm, (a * by_xi - e * by_phi) / norm
    by_x += for_phi * at.phi * t1 * design.pool + for_xi * at.xi**2 * t0 * design.data
    follow = (for_xi * at.xi**2 * design.data - for_phi * at.nu * design.pool) * at.phi
    direct = back.t1 + 2 * back.t2 * c + back.u1 * test.scale * c_test
    return (direct + follow) * square - at.phi * by_root + by_x / design.alpha, float(for_xi)


@dataclass(frozen=True)
class _Adjoints:
    """Derivatives of the error by what it is made of, all else fixed: T_k, mean(c_t c^k F²), mean F, φ, ξ, ν, x."""

    t0: float
    t1: float
    t2: float
    u0: float
    u1: float
    mean: float
    phi: float
    xi: float
    nu: float
    x: float

    @classmethod
    def of(cls, at: Alignment, test: NewContexts, new: Spectrum) -> "_Adjoints":
        design, nu, x, v = at.design, at.nu, at.x, at.fluctuation
        t0, t1, t2 = at.moments
        u0 = float(new @ at.squares) / len(new)
        u1 = float(new @ (at.c * at.squares)) / len(new)
        x_test = (float(np.mean(new)) + test.noise) / test.alpha
        raised, raised_all = u0 + at.rise * u1, t0 + at.rise * t1
        by_v = x_test * at.spread + at.psi * u1 + x * raised
        numerator = by_v * design.data / at.unused  # of e_IDG, and below its denominator
        unused = -numerator * at.own
        by_q = x_test + numerator * x
        by_spread = x_test * v + unused * at.xi * design.data
        level = nu**2 + v * x
        by_rise = level * u1 + by_q * nu**2 * t1 + by_spread * x * t1
        by_psi = v * u1 + (numerator * nu**2 + by_spread + by_rise * design.pool) * t1
        by_link = -by_psi * at.psi / (1 + nu * t1 * design.pool)
        first = float(np.mean(np.sqrt(at.squares)))
        return cls(
            t0=by_spread * x,
            t1=numerator * nu**2 * at.psi + by_q * nu**2 * at.rise + by_spread * (at.psi + x * at.rise)
            + (by_rise * at.psi + by_link * nu) * design.pool,
            t2=by_q * at.phi**2,
            u0=level,
            u1=level * at.rise + v * at.psi,
            mean=unused * at.xi * design.data,
            phi=2 * by_q * at.phi * t2 + by_psi / (1 + nu * t1 * design.pool),
            xi=unused * (at.spread + first) * design.data,
            nu=2 * nu * (raised + numerator * at.psi * t1 + by_q * at.rise * t1) + by_link * t1 * design.pool,
            x=v * raised + numerator * at.by_noise + by_spread * raised_all,
        )  # fmt: skip
