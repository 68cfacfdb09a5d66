"""Pretraining on contexts of several lengths, mixed.

Sequences of a length α_l have features of covariance R + x_l with x_l = (signal + ρ)/α_l. In the ridge regression
on a mixture each kind counts by 1/(1 + δ_l), with δ_l its leverage: the mean solution is that of one context
noise x̃, and each kind feeds the fluctuation of the weights by its own error.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, magnitude, require
from iclab.problem import Ratios
from iclab.theory.pretraining.alignment import Alignment, Design, NewContexts, checked_spectrum
from iclab.theory.pretraining.response import Shift

__all__ = ["mixed_lengths_error"]

Spectrum = Float[np.ndarray, "D"]
Kinds = Float[np.ndarray, "kind"]
_STEPS, _SHARP = 20000, 1e-14


def mixed_lengths_error(
    ratios: Validated[Ratios],
    *,
    alphas: Validated[Float[ArrayLike, "kind"]],
    shares: Validated[Float[ArrayLike, "kind"]],
    task_eigenvalues: Validated[Float[ArrayLike, "D"]] = (1.0,),
    test_task_eigenvalues: Validated[Float[ArrayLike, "D"] | None] = None,
    ridge: Validated[float],
    shift: Validated[Shift | None] = None,
) -> float:
    """The ICL error after pretraining on contexts of lengths α_l, a share p_l of the sequences each.

    `ratios.alpha` is the length of test contexts; κ, τ (of all sequences) and ρ are those of pretraining. Units,
    ridge and shift as in structured_errors, to which it reduces for one length. With infinitely many sequences only
    the mean of 1/α_l counts.

    Raises ValueError for ratios that are not single numbers, a ridge that is not positive, lengths and shares that
    are not positive or not as many, and shares that do not add to 1; ArithmeticError where leverages do not settle.

    Source: derived in docs/derivations/task_design.
    """
    instance("ratios", ratios, Ratios)
    design = Design.of(ratios, ridge)
    require(design.ridge > 0, "ridge must be positive for a mixture of lengths; got 0. Take a small one, as 1e-6.")
    lengths = np.atleast_1d(magnitude("alphas", alphas, infinite=False))
    parts = np.atleast_1d(magnitude("shares", shares, infinite=False))
    require(
        lengths.ndim == 1 and lengths.shape == parts.shape,
        f"shares must be as many as alphas; got {parts.shape} and {lengths.shape}.",
    )
    require(abs(float(np.sum(parts)) - 1) < 1e-9, f"shares must add to 1; got {np.sum(parts):g}.")
    c = checked_spectrum("task_eigenvalues", task_eigenvalues)
    new = c if test_task_eigenvalues is None else checked_spectrum("test_task_eigenvalues", test_task_eigenvalues)
    require(
        len(new) == len(c), f"test_task_eigenvalues must be as many as task_eigenvalues; got {len(new)} and {len(c)}."
    )
    test = NewContexts.of(design, shift)
    return _Mixture.of(design, c, (float(np.mean(c)) + design.noise) / lengths, parts).error(test, test.scale * new)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """The deterministic equivalent: the one of infinitely many sequences at context noise x̃ and ridge ξ = λ/a."""

    at: Alignment
    noises: Kinds  # x_l
    shares: Kinds  # p_l
    leverages: Kinds  # δ_l
    weight: float  # a
    data: float  # 1/τ

    @classmethod
    def of(cls, design: Design, c: Spectrum, noises: Kinds, shares: Kinds) -> "_Mixture":
        """By iteration of the leverages, which rise to their values from below."""
        leverages, at = np.zeros_like(noises), None
        for _ in range(_STEPS):
            each = shares / (1 + leverages)
            weight = float(np.sum(each))
            noise = float(each @ noises) / weight
            level = Design(
                (float(np.mean(c)) + design.noise) / noise, design.pool, 0.0, design.noise, design.ridge / weight
            )
            at = Alignment.at(level, c, at)
            first = float(np.mean(np.sqrt(at.squares)))
            found = ((at.phi * float(c @ np.sqrt(at.squares)) / len(c)) + noises * first) * design.data / weight
            change = float(np.max(abs(found - leverages) / (1 + leverages)))
            leverages = found
            if change < _SHARP:
                return cls(at, noises, shares, leverages, weight, design.data)
        raise ArithmeticError(f"leverages do not settle within {_STEPS} steps. Raise the ridge.")

    def error(self, test: NewContexts, new: Spectrum) -> float:
        """The error on tests of a spectrum."""
        at, x = self.at, self.noises
        t0, t1, _ = at.moments
        kept, square = at.psi * t1, t0 + at.rise * t1  # M − νM₂ and M₂
        own = at.design.noise + at.nu**2 * kept + x * at.by_noise
        lift = at.by_noise + (x[:, None] + x) * kept + np.outer(x, x) * square
        feeds = self.shares * self.data / ((1 + self.leverages) * self.weight) ** 2
        errors = np.linalg.solve(np.eye(len(x)) - lift * feeds, own)
        noise = (float(np.mean(new)) + test.noise) / test.alpha
        raised = at.squares * (1 + at.rise * at.c)
        spreads = at.squares * at.psi * at.c + x[:, None] * raised  # F − (ν − x_l) F₂
        response = np.mean((new + noise) * spreads, axis=1)
        bias = test.noise + noise * at.by_noise + at.nu**2 * float(np.mean(new * raised))
        return bias + float((feeds * errors) @ response)
