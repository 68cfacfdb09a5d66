"""White inputs in the limit N, D → ∞ at α = N/D: every result of a stack in closed form."""

from math import exp, isinf, log1p, sqrt

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, hyp2f1

from iclab.numerics import Validated, magnitude_number, whole_number

__all__ = [
    "white_critical_noise_ratio", "white_free_excess", "white_ridge_excess", "white_split_rate",
    "white_tied_excess", "white_tied_layer", "white_untied_excess", "white_untied_layers",
]  # fmt: skip


def white_untied_excess(alpha: Validated[float], depth: Validated[int]) -> float:
    """The excess of the best untied layers without noise, 1/(1 + α + … + α^L).

    Raises ValueError for α that is not positive and a depth below 1.

    Source: paquette2020universality, abstract (minimum residual); derived in docs/derivations/depth.
    """
    ratio, layers = _sizes(alpha, depth)
    return float(1 / np.sum(ratio ** np.arange(layers + 1.0)))


def white_untied_layers(alpha: Validated[float], depth: Validated[int]) -> Float[np.ndarray, "layer"]:
    """The best untied layers without noise, ascending: 1/g = 1 + 1/α + (2/√α) cos(πk/(L + 1)).

    Raises ValueError as white_untied_excess().

    Source: derived in docs/derivations/depth.
    """
    ratio, layers = _sizes(alpha, depth)
    return 1 / (1 + 1 / ratio + 2 / sqrt(ratio) * np.cos(np.pi * np.arange(1, layers + 1) / (layers + 1)))


def white_tied_layer(alpha: Validated[float]) -> float:
    """The best tied layer without noise, at every depth: α/(1 + α).

    Raises ValueError for α that is not positive.

    Source: gatmiry2024looped, abstract (one matrix is optimal); derived in docs/derivations/depth.
    """
    ratio = magnitude_number("alpha", alpha, infinite=True)
    return 1 / (1 + 1 / ratio)


def white_tied_excess(alpha: Validated[float], depth: Validated[int]) -> float:
    """The excess of the best tied layers without noise: 1 − g Σ_{j<L} Cat_j r^j, r = α/(1 + α)², as its tail.

    Raises ValueError as white_untied_excess().

    Source: bordelon2025theory, abstract (isotropic inputs); derived in docs/derivations/depth.
    """
    ratio, layers = _sizes(alpha, depth)
    if isinf(ratio):
        return 0.0
    tail = float(hyp2f1(1.0, layers + 0.5, layers + 2.0, 4 * ratio / (1 + ratio) ** 2))
    return max(0.0, 1 - ratio) + white_tied_layer(ratio) * _catalan_power(layers, ratio) * tail


def white_split_rate(alpha: Validated[float], depth: Validated[int]) -> float:
    """Growth rate of any difference of layers at the tied plateau, without noise: (1 + 1/α) Cat_{L−1} r^{L−1}.

    In units of the flow dg/dt = −½ ∂F/∂g.

    Raises ValueError as white_untied_excess().

    Source: derived in docs/derivations/depth.
    """
    ratio, layers = _sizes(alpha, depth)
    if isinf(ratio):
        return float(layers == 1)
    return (1 + 1 / ratio) * _catalan_power(layers - 1, ratio)


def white_free_excess(
    alpha: Validated[float], depth: Validated[int], *, noise_ratio: Validated[float] = 0.0
) -> float:
    """The least excess of any polynomial: 1 − sinh(Lh)/(√c sinh((L + 1)h)), 2√c cosh h = 1 + c + s.

    c = 1/α, s = c ρ/T.

    Raises ValueError as white_untied_excess(), and for negative noise.

    Source: derived in docs/derivations/depth.
    """
    ratio, layers = _sizes(alpha, depth)
    noise = magnitude_number("noise_ratio", noise_ratio, zero=True)
    if noise == 0 or isinf(ratio):
        return white_untied_excess(ratio, layers)
    shrink = _shrink(ratio, noise)
    return 1 - sqrt(ratio) * shrink * (1 - shrink ** (2 * layers)) / (1 - shrink ** (2 * layers + 2))


def white_ridge_excess(alpha: Validated[float], *, noise_ratio: Validated[float] = 0.0) -> float:
    """The excess of Bayes-optimal ridge: the limit of the free polynomial at infinite depth, a floor for any stack.

    Raises ValueError for α that is not positive and for negative noise.

    Source: lu2025asymptotic, section 3 (ridge in the limit); derived in docs/derivations/depth.
    """
    ratio = magnitude_number("alpha", alpha, infinite=True)
    noise = magnitude_number("noise_ratio", noise_ratio, zero=True)
    if noise == 0 or isinf(ratio):
        return max(0.0, 1 - ratio)
    return 1 - sqrt(ratio) * _shrink(ratio, noise)


def white_critical_noise_ratio(alpha: Validated[float]) -> float:
    """The noise ρ/T from which on two layers are best equal: (2/3)(√(α² + 5α + 1) − α − 1), below 1 for every α.

    Raises ValueError for α that is not positive.

    Source: derived in docs/derivations/depth.
    """
    ratio = magnitude_number("alpha", alpha, infinite=True)
    if ratio > 1:
        return (2 / 3) * 3 / (sqrt(1 + 5 / ratio + ratio**-2) + 1 + 1 / ratio)
    return (2 / 3) * 3 * ratio / (sqrt(ratio**2 + 5 * ratio + 1) + ratio + 1)


def _sizes(alpha: Validated[float], depth: Validated[int]) -> tuple[float, int]:
    return magnitude_number("alpha", alpha, infinite=True), whole_number("depth", depth)


def _catalan_power(index: int, alpha: float) -> float:
    """Cat_j r^j with r = α/(1 + α)²."""
    log_ratio = -2 * log1p(alpha) + np.log(alpha)
    log_catalan = gammaln(2 * index + 1.0) - gammaln(index + 1.0) - gammaln(index + 2.0)
    return exp(log_catalan + index * log_ratio)


def _shrink(alpha: float, noise: float) -> float:
    """e^−h: the smaller root of z + 1/z = (1 + c + s)/√c."""
    height = 0.5 * (sqrt(alpha) + (1 + noise) / sqrt(alpha))
    return 1 / (height + sqrt((height - 1) * (height + 1)))
