"""Best layers of a stack: tied, untied, and the polynomial that no stack of scalar layers beats.

Without noise the best polynomial with p(0) = 1 is the minimum-residual (kernel) polynomial of the law; its roots are
real, positive and different, and the best layers are their inverses. With noise the free polynomial may have complex
roots, and then the best layers are found by search.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh_tridiagonal, solve_banded
from scipy.optimize import brentq

from iclab.numerics import Validated, instance, require, whole_number
from iclab.theory.depth.laws import GaussRule, SpectralLaw
from iclab.theory.depth.losses import excess_of, excess_slope
from iclab.theory.depth.searches import lowest

__all__ = [
    "best_excess", "best_layers", "checked_depth", "free_excess", "free_roots", "levels", "ridge_excess",
    "tied_excess", "tied_layer",
]  # fmt: skip

Array = np.ndarray
_GRID = np.geomspace(0.02, 50, 1200)  # of a tied layer, in units of 1 over the mean eigenvalue
_RIDGE = 64  # degree of the rule for ridge
_REAL = 1e-7  # imaginary part of a root, relative, up to which it is rounding of a real one


def best_layers(
    law: Validated[SpectralLaw], depth: Validated[int], *, noise_ratio: Validated[float] = 0.0
) -> Float[Array, "layer"]:
    """The best layers in units of 1/λ, ascending. Order does not matter: layers may be permuted.

    Without noise in closed form, 1/eigenvalues of the Jacobi matrix of x dμ; with noise the inverse roots of the free
    polynomial where these are real, else the lowest of the minima that a search from many starts finds.

    Raises ValueError for a depth below 1, for negative noise, and for a law with no more points than layers.

    Source: paquette2020universality, abstract (minimum residual on sample covariances); pedregosa2020acceleration,
    abstract (average case); derived in docs/derivations/depth.
    """
    layers, noise = checked_depth(law, depth, noise_ratio)
    if noise == 0:
        inverses: Any = eigh_tridiagonal(*_tilted(law, layers), eigvals_only=True)
        return np.sort(1 / inverses)
    roots = free_roots(law, layers, noise_ratio=noise_ratio)
    if np.all(abs(roots.imag) <= _REAL * abs(roots)):
        return np.sort(1 / roots.real)
    return lowest(law.rule(layers), layers, noise=noise)


def best_excess(law: Validated[SpectralLaw], depth: Validated[int], *, noise_ratio: Validated[float] = 0.0) -> float:
    """The excess of the best layers. Without noise 1/Σ p_j(0)² over orthonormal polynomials, to all digits.

    Raises ValueError as best_layers().

    Source: paquette2020universality, abstract (minimum residual); derived in docs/derivations/depth.
    """
    layers, noise = checked_depth(law, depth, noise_ratio)
    if noise > 0:
        found = best_layers(law, layers, noise_ratio=noise_ratio)
        return float(excess_of(law.rule(layers), found, noise=noise))
    diagonal, squares = law.recurrence(layers)
    total, before, now, norm = 1.0, 0.0, 1.0, 0.0
    for middle, square in zip(diagonal, squares, strict=False):
        root = np.sqrt(square)
        before, now, norm = now, (middle * now - norm * before) / root, root  # |p_j(0)|, whose signs alternate
        total += now**2
    return float(1 / total)


def levels(
    law: Validated[SpectralLaw], depth: Validated[int], *, noise_ratio: Validated[float] = 0.0
) -> Float[Array, "plateau"]:
    """The excess of the best k layers for k = 0 … depth: the plateaus of a staircase in depth.

    Raises ValueError as best_layers().

    Source: derived in docs/derivations/depth; zhang2025training, section 4 (the staircase of modes).
    """
    layers, _ = checked_depth(law, depth, noise_ratio)
    return np.array([1.0, *(best_excess(law, k, noise_ratio=noise_ratio) for k in range(1, layers + 1))])


def tied_layer(law: Validated[SpectralLaw], depth: Validated[int], *, noise_ratio: Validated[float] = 0.0) -> float:
    """The best layer of a stack that has the same one at every depth (looped), in units of 1/λ.

    Raises ValueError for a depth below 1 and for negative noise.

    Source: bordelon2025theory, abstract (tied layers); gatmiry2024looped, abstract (its minimum); derived in
    docs/derivations/depth.
    """
    layers, noise = checked_depth(law, depth, noise_ratio, points=False)
    rule = law.rule(layers)
    mean = float(rule.weights @ rule.nodes)

    def slope(step: float) -> float:
        return float(excess_slope(rule, np.full(layers, step), noise=noise)[0])

    grid = _GRID / mean
    heights = _tied(rule, grid, layers, noise=noise)
    place = int(np.argmin(heights))
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    if slope(low) >= 0 or slope(high) <= 0:
        return float(grid[place])  # flat to rounding
    root: Any = brentq(slope, low, high, xtol=1e-15 * high)
    return float(root)


def tied_excess(law: Validated[SpectralLaw], depth: Validated[int], *, noise_ratio: Validated[float] = 0.0) -> float:
    """The excess of the best tied layers.

    Raises ValueError as tied_layer().

    Source: bordelon2025theory, abstract (tied layers); derived in docs/derivations/depth.
    """
    layers, noise = checked_depth(law, depth, noise_ratio, points=False)
    step = tied_layer(law, layers, noise_ratio=noise_ratio)
    return float(excess_of(law.rule(layers), np.full(layers, step), noise=noise))


def free_excess(law: Validated[SpectralLaw], depth: Validated[int], *, noise_ratio: Validated[float] = 0.0) -> float:
    """The least excess of any polynomial of the depth's degree with p(0) = 1: a lower bound for scalar layers.

    Layers attain it where the polynomial has real roots: always without noise. As the depth grows it tends to the
    error of Bayes-optimal ridge.

    Raises ValueError as best_layers().

    Source: derived in docs/derivations/depth.
    """
    layers, noise = checked_depth(law, depth, noise_ratio)
    if noise == 0:
        return best_excess(law, layers)
    diagonal, _ = law.recurrence(layers)
    return 1 - float(diagonal[0]) * float(_free_answer(law, layers, noise)[0])


def free_roots(
    law: Validated[SpectralLaw], depth: Validated[int], *, noise_ratio: Validated[float] = 0.0
) -> np.ndarray[tuple[int], np.dtype[np.complex128]]:
    """Roots of the free polynomial, complex where noise asks for steps that no real layer can take; shape (L,).

    Raises ValueError as best_layers(), and for a law with no more than depth + 1 points.

    Source: derived in docs/derivations/depth.
    """
    layers, noise = checked_depth(law, depth, noise_ratio)
    diagonal, squares = _tilted(law, layers + 1)
    answer = _free_answer(law, layers, noise)
    off = np.append(squares, 0.0)
    kept = np.zeros(layers + 1)  # 1 − x q in the orthonormal polynomials of x dμ
    kept[:layers] = -diagonal[:layers] * answer
    kept[1 : layers + 1] -= off[:layers] * answer
    kept[: layers - 1] -= off[: layers - 1] * answer[1:]
    kept[0] += 1
    comrade = np.diag(diagonal[:layers]) + np.diag(off[: layers - 1], 1) + np.diag(off[: layers - 1], -1)
    comrade[-1] -= off[layers - 1] * kept[:layers] / kept[layers]
    return np.sort_complex(np.linalg.eigvals(comrade))


def ridge_excess(law: Validated[SpectralLaw], *, noise_ratio: Validated[float] = 0.0) -> float:
    """The excess of Bayes-optimal ridge, the mean of s/(x + s): a floor for any stack, the only one that is proved.

    By a Gauss rule, which is below the mean and has eight digits at noise .1; without noise the weight at 0.

    Raises ValueError for negative noise, and noise where α is infinite.

    Source: lu2025asymptotic, section 3 (ridge in the limit); derived in docs/derivations/depth.
    """
    instance("law", law, SpectralLaw)
    noise = law.felt_noise(noise_ratio)
    if noise == 0:
        return law.floor
    rule = law.rule(_RIDGE)
    return float(rule.weights @ (noise / (rule.nodes + noise)))


def checked_depth(
    law: SpectralLaw, depth: Validated[int], noise_ratio: Validated[float], *, points: bool = True
) -> tuple[int, float]:
    """The depth as a whole number, and the noise that the spectrum feels.

    Raises ValueError for a depth below 1, for noise that the law does not feel and, where `points` count, for a law
    with no more of them than layers.

    Source: derived in docs/derivations/depth.
    """
    instance("law", law, SpectralLaw)
    layers = whole_number("depth", depth)
    require(
        not points or law.points > layers,
        f"depth must be below the number of points of the spectrum, {law.points:g}; got {layers}. So many layers "
        f"leave the loss exactly at its floor without noise, {law.floor:g}: one layer 1/x for every point x above 0.",
    )
    return layers, law.felt_noise(noise_ratio)


def _tied(rule: GaussRule, steps: Float[Array, "step"], depth: int, *, noise: float) -> Float[Array, "step"]:
    """The excess of so many equal layers, for many of them."""
    return np.asarray(excess_of(rule, np.broadcast_to(steps[:, None], (len(steps), depth)), noise=noise))


def _tilted(law: SpectralLaw, size: int) -> tuple[Array, Array]:
    """Diagonal and off-diagonal of T, the Jacobi matrix of x dμ of that size: RᵀR without its last row, J = R Rᵀ."""
    diagonal, squares = law.recurrence(size)
    first, second = np.empty(size + 1), np.empty(size)
    first[0] = diagonal[0]
    for j in range(size):
        second[j] = squares[j] / first[j]
        first[j + 1] = diagonal[j + 1] - second[j]
    return first[:-1] + second, np.sqrt(first[1:-1] * second[:-1])


def _free_answer(law: SpectralLaw, depth: int, noise: float) -> Float[Array, "layer"]:
    """(T + s)⁻¹ e_0: the coefficients of q, over √m_1, in the orthonormal polynomials of x dμ."""
    diagonal, off = _tilted(law, depth)
    band = np.zeros((3, depth))
    band[0, 1:], band[1], band[2, :-1] = off, diagonal + noise, off
    return np.asarray(solve_banded((1, 1), band, np.eye(depth)[0]))
