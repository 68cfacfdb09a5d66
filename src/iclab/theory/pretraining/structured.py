"""Errors in the proportional limit for inputs and tasks whose covariances share their eigenvectors.

Inputs x ~ N(0, diag(s)/D), tasks w ~ N(0, diag(c)); with whitened inputs the tasks have variances s c. Every
input direction i sees its own ridge, n_ij = x + ξ/(s_i s_j) in direction j, and the second moment R of the pool
has the deterministic equivalent (R + n_i)^-1 ≈ G_i = 1/(φ_i s c + n_i) with 1/φ_i = 1 + mean(s c G_i)/κ.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from iclab.numerics import Validated, Values, increasing_root, instance, magnitude, require
from iclab.outcomes import Errors
from iclab.problem import Ratios
from iclab.theory.pretraining.resolvent import MANY, STRONG, bounded, flat_ridge, unspent
from iclab.theory.pretraining.response import Averages, Contexts, Shift, errors_from, with_limits

__all__ = ["Spectra", "SpectralEquivalent", "eigenvalues", "structured_errors", "structured_ridge"]

Spectrum = Float[np.ndarray, "D"]
Table = Float[np.ndarray, "row D"]
Column = Float[np.ndarray, "row 1"]


def structured_errors(
    ratios: Validated[Ratios],
    *,
    task_eigenvalues: Validated[Float[ArrayLike, "D"]],
    input_eigenvalues: Validated[Float[ArrayLike, "D"] | None] = None,
    test_task_eigenvalues: Validated[Float[ArrayLike, "D"] | None] = None,
    ridge: Validated[ArrayLike] = 0.0,
    shift: Validated[Shift | None] = None,
) -> Errors:
    """ICL, IDG and training error for structured tasks, and for structured inputs in the same basis.

    Eigenvalues are relative: 1 is the variance of white tasks, and of white inputs of covariance I/D. The
    spectrum is taken as the limiting one, each eigenvalue of infinite multiplicity. New tasks have
    `test_task_eigenvalues`, those of the pool unless given. The error of predicting nothing is mean(s c) + ρ.
    Units, ridge, limits and broadcasting as in `errors`, to which it reduces for white spectra. Cost: 0.2 s a
    point for 400 different input eigenvalues, a millisecond for white inputs.

    Raises ValueError for spectra of different lengths, a negative eigenvalue, an input eigenvalue of zero, and
    tasks that are all zero.

    Source: derived in docs/derivations/structured; extends lu2025asymptotic, whose data are white.
    """
    instance("ratios", ratios, Ratios)
    spectra = Spectra.of(task_eigenvalues, input_eigenvalues, test_task_eigenvalues)
    shift = Shift() if shift is None else shift
    instance("shift", shift, Shift)
    penalty = magnitude("ridge", ridge, zero=True)
    grid = np.broadcast(
        ratios.alpha, ratios.kappa, ratios.tau, ratios.noise, penalty,
        ratios.alpha if shift.alpha is None else shift.alpha,
        ratios.noise if shift.noise is None else shift.noise,
        shift.task_scale,
    )  # fmt: skip
    points = np.array([_errors_at(spectra, *map(float, point)) for point in grid])
    found = Errors(*points.T.reshape(4, *grid.shape))
    support, exposed = float(np.mean(spectra.pool > 0)), bool(np.any(spectra.new[spectra.pool == 0] > 0))
    return with_limits(found, ratios, penalty, shift, support=support, exposed=exposed)


@dataclass(frozen=True)
class Spectra:
    """Variances of tasks in whitened inputs, and the input eigenvalues; `rows` are the distinct ones."""

    inputs: Spectrum  # s
    pool: Spectrum  # s c
    new: Spectrum  # s c of new tasks
    rows: Float[np.ndarray, "row"]
    row: Int[np.ndarray, "D"]  # the row of each input direction
    weight: Float[np.ndarray, "row"]

    @classmethod
    def of(
        cls, tasks: Validated[ArrayLike], inputs: Validated[ArrayLike | None], new: Validated[ArrayLike | None]
    ) -> "Spectra":
        pool = eigenvalues("task_eigenvalues", tasks)
        require(bool(np.any(pool > 0)), "task_eigenvalues must hold a positive one; got zeros only.")
        s = np.ones_like(pool) if inputs is None else eigenvalues("input_eigenvalues", inputs)
        fresh = pool if new is None else eigenvalues("test_task_eigenvalues", new)
        for name, spectrum in (("input_eigenvalues", s), ("test_task_eigenvalues", fresh)):
            require(
                len(spectrum) == len(pool),
                f"{name} must be as many as task_eigenvalues; got {len(spectrum)} and {len(pool)}.",
            )
        require(bool(np.all(s > 0)), "input_eigenvalues must be positive; got 0. Drop directions without inputs.")
        rows, row, count = np.unique(s, return_inverse=True, return_counts=True)
        return cls(s, s * pool, s * fresh, rows, row, count / len(s))

    def mean(self, table: Table) -> float:
        """Mean over input directions i and directions j."""
        return float(self.weight @ np.mean(table, axis=1))


@dataclass(frozen=True)
class SpectralEquivalent:
    """The deterministic equivalent of the pool at an effective ridge; one row per distinct input eigenvalue."""

    ridge: Table  # ξ/(s_i s_j)
    n: Table
    phi: Column
    green: Table  # G

    @classmethod
    def at(cls, spectra: Spectra, x: float, xi: float, kappa: float) -> "SpectralEquivalent":
        c = spectra.pool
        ridge = (xi / spectra.rows)[:, None] / spectra.inputs
        n = x + ridge

        def equation(phi: Column) -> tuple[Column, Column]:
            green = 1 / (phi * c + n)
            residual = n * green
            kept, lost = phi * _mean(c * green), _mean(residual)
            slope = phi * (1 + _mean(c * residual * green) / kappa)
            return phi - lost + kept * ((1 - kappa) / kappa), slope

        lower = 1 / (1 + _mean(c / n) / kappa)
        phi = increasing_root(equation, lower, np.ones_like(lower))
        return cls(ridge, n, phi, 1 / (phi * c + n))

    def averages(self, spectra: Spectra, x: float, kappa: float) -> Averages:
        """The traces in the errors: over directions j for spreads, on the diagonal for the rest."""
        c, new, square = spectra.pool, spectra.new, self.green**2
        link = _mean(c * self.n * square) / kappa
        psi = self.phi / (1 + link)
        by_noise, by_new = psi * _mean(c * square) / kappa, psi * _mean(c * new * square) / kappa
        spread = square * (psi * c + x * (1 + by_noise * c))
        pool = c * square * (self.phi**2 * c + psi * (link * self.n + x))

        row, direction = spectra.row, np.arange(len(c))
        green = self.green[row, direction]
        kept, lost = self.phi[row, 0] * c * green, self.n[row, direction] * green
        return Averages(
            lost_pool=np.mean(lost**2 * psi[row, 0] * c),
            lost_new=np.mean(lost**2 * (new + by_new[row, 0] * c)),
            noisy=np.mean(kept**2 + lost**2 * by_noise[row, 0] * c),
            ridge_spread=spectra.mean(self.ridge * spread),
            noise_spread=spectra.mean(spread),
            new_spread=spectra.mean(new * spread),
            pool_spread=spectra.mean(pool),
        )


def _errors_at(
    spectra: Spectra,
    alpha: float,
    kappa: float,
    tau: float,
    noise: float,
    ridge: float,
    test_alpha: float,
    test_noise: float,
    scale: float,
) -> tuple[float, ...]:
    kappa, tau, penalty = float(bounded(kappa, MANY)), float(bounded(tau, MANY)), min(ridge, STRONG)
    signal = np.mean(spectra.pool)
    pretraining = Contexts.of(signal, alpha, noise)
    x = float(pretraining.x)
    xi = structured_ridge(spectra, x, kappa, tau, penalty)
    averages = SpectralEquivalent.at(spectra, x, xi, kappa).averages(spectra, x, kappa)
    share = max(penalty / max(xi, 1e-300), (tau - 1) / tau)
    new = Contexts.of(scale * np.mean(spectra.new), test_alpha, test_noise)
    pool = Contexts.of(signal, test_alpha, test_noise)
    found = errors_from(averages, share, tau, pretraining=pretraining, new=new, pool=pool, scale=scale)
    return *map(float, found), xi


def structured_ridge(spectra: Spectra, x: float, kappa: float, tau: float, ridge: float) -> float:
    """ξ, the effective ridge; 0 without ridge from τ = 1 on. Arguments are checked and bounded by the caller.

    Source: derived in docs/derivations/structured.
    """
    if ridge == 0 and tau >= 1:
        return 0.0

    def equation(xi: float) -> tuple[Values, Values]:
        at = SpectralEquivalent.at(spectra, x, xi, kappa)
        spread = at.averages(spectra, x, kappa).ridge_spread
        lost = spectra.mean(at.ridge * at.green)
        df = spectra.mean((at.phi * spectra.pool + x) * at.green)
        return unspent(df, lost, 1.0, tau) - ridge / xi, ridge / xi + spread / tau

    least = x * spectra.rows[0] ** 2
    mean = np.mean(spectra.inputs) * np.mean(spectra.inputs * (spectra.pool + x))
    return float(increasing_root(equation, flat_ridge(least, tau, ridge), flat_ridge(mean, tau, ridge)))


def _mean(table: Table) -> Column:
    return np.mean(table, axis=1, keepdims=True)


def eigenvalues(name: str, spectrum: Validated[ArrayLike]) -> Spectrum:
    """A list of variances in float64. Raises ValueError, with its name, for another shape and for a negative one.

    Source: no formula; conventions as in docs/derivations/structured.
    """
    numbers = np.atleast_1d(
        magnitude(name, spectrum, zero=True, infinite=False, advice="Variances are never negative.")
    )
    require(numbers.ndim == 1 and len(numbers) > 0, f"{name} must be a list of numbers; got shape {numbers.shape}.")
    return numbers
