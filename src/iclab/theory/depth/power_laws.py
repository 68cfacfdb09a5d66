"""Spectra that fall as powers, in infinite contexts that are rotated anew each time: layers are scalars."""

from math import inf

import numpy as np
from jaxtyping import Float

from iclab.numerics import Validated, checked_number, positive, require, whole_number
from iclab.theory.depth.laws import Discrete, spectrum

__all__ = ["power_law", "untied_bessel_excess"]

Array = np.ndarray
_WHOLE = 2000  # modes that are taken one by one; beyond, the sum is an integral to 1e-9 of the rest
_NODES = 8  # of a panel of an e-fold of the mode number
_REST = 1e-17  # weight beyond the last mode that is left out, relative


def power_law(exponent: Validated[float], source: Validated[float], modes: Validated[float] = inf) -> Discrete:
    """The law Σ ω_k λ_k δ(λ_k) with λ_k = k^−ν and ω_k λ_k ∝ k^(−νβ − 1), ν = exponent, β = source; α = ∞.

    The best tied layers lose L^−β of it, the best untied ones L^−(2 + ν)β, at large L. `modes` is their number,
    infinite by default: L layers read the first L^((2 + ν)/ν) of them. Noise is refused, for contexts are infinite.

    Raises ValueError for an exponent or a source that is not positive, and for fewer than one mode.

    Source: bordelon2025theory, abstract (rotated contexts, tied); exponents of untied layers measured, see
    docs/derivations/depth.
    """
    nu, beta = positive("exponent", exponent), positive("source", source)
    last = checked_number("modes", modes, at_least=1.0, infinite=True)
    require(last == inf or last == whole_number("modes", int(last)), f"modes must be whole or inf; got {modes!r}.")
    number, count = _modes(last, fall=nu * beta)
    return spectrum(number**-nu, count * number ** (-nu * beta - 1))


def _modes(last: float, *, fall: float) -> tuple[Float[Array, "node"], Float[Array, "node"]]:
    """Mode numbers and how many modes each stands for: one by one first, then Gauss nodes in the logarithm."""
    number = np.arange(1.0, min(last, _WHOLE) + 1)
    if last <= _WHOLE:
        return number, np.ones_like(number)
    ends = np.log(_WHOLE + 0.5), min(np.log(last + 0.5), np.log(_WHOLE) - np.log(_REST) / fall)
    edges = np.linspace(*ends, 2 + int(ends[1] - ends[0]))
    point, weight = np.polynomial.legendre.leggauss(_NODES)
    half = 0.5 * np.diff(edges)[:, None]
    nodes = np.exp(edges[:-1, None] + half * (point + 1))
    return np.r_[number, nodes.ravel()], np.r_[np.ones_like(number), (half * weight * nodes).ravel()]


def untied_bessel_excess(depth: Validated[int]) -> float:
    """The excess of the best untied layers on power_law(2, 1/2), in closed form: 3/((L + 1)(2L + 3)).

    Eigenvalues k⁻² with weights ∝ k⁻² have Bessel polynomials for their orthogonal ones.

    Raises ValueError for a depth below 1.

    Source: derived in docs/derivations/depth.
    """
    layers = whole_number("depth", depth)
    return 3 / ((layers + 1) * (2 * layers + 3))
