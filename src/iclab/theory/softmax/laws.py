"""Laws of the softmax window in the limit of long contexts, linear attention for comparison, and low-rank tasks."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import gammaln

from iclab.numerics import MOST, Validated, Values, checked, checked_number, magnitude, numbers, require, whole_number
from iclab.theory.softmax.attention_weights import angles, falling

__all__ = [
    "KINKED", "MOST_DIMENSIONS", "ROUGH", "SMOOTH", "gaussian_loss", "gaussian_squared_weights", "kinked_kernel",
    "linear_attention_loss", "long_context_loss", "scale_exponent", "scale_law",
]  # fmt: skip

MOST_DIMENSIONS = 100_000  # of integrals over the sphere
SMOOTH, KINKED, ROUGH = 2.0, 1.5, 0.5  # powers of 1/w with which the squared bias of a class falls


def scale_law(
    dimension: Validated[int],
    context_length: Validated[ArrayLike],
    slope_variance: Validated[ArrayLike],
    noise: Validated[ArrayLike],
) -> Values:
    """Best scale for affine functions in long contexts: [n L² (d − 1)/(d ρ V)]^(2/(d+3)).

    V = √(2π) 2^(1 − d/2) 2^(−(d−1)/2)/Γ(d/2). An asymptote: 0.2 % off at d = 3, n = 1000, ρ = 0.1 L², 17 % at
    d = 8; the exact one is best_scale. inf without noise.

    Raises ValueError for a dimension or a length that is too small, a slope variance that is not positive, negative
    noise.

    Source: derived in docs/derivations/softmax_window.
    """
    d = whole_number("dimension", dimension, least=2)
    length = checked("context_length", context_length, at_least=1.0)
    variance = checked("slope_variance", slope_variance, above=0.0, infinite=False)
    ripple = checked("noise", noise, at_least=0.0)
    log_volume = 0.5 * np.log(2 * np.pi) + (1.5 - d) * np.log(2) - gammaln(d / 2)
    with np.errstate(divide="ignore"):
        log_ratio = np.log(length) + np.log(variance) + np.log((d - 1) / d) - np.log(ripple) - log_volume
    return np.exp(2 / (d + 3) * log_ratio)


def scale_exponent(dimension: Validated[int], bias_power: Validated[float]) -> float:
    """Power of n·L²/ρ with which the best scale grows in long contexts, 2/(d − 1 + 2 bias_power).

    `bias_power` is the power of 1/w in the squared bias: SMOOTH 2 for differentiable functions, KINKED 3/2 for
    those with a kink, ROUGH 1/2 for those as rough as Brownian paths. A bound on the slope alone does not fix it.

    Raises ValueError for a dimension below 2 and a power that is not positive.

    Source: derived in docs/derivations/softmax_window.
    """
    power = checked_number("bias_power", bias_power, above=0.0)
    return 2 / (whole_number("dimension", dimension, least=2) - 1 + 2 * power)


def long_context_loss(
    scale: Validated[ArrayLike],
    *,
    dimension: Validated[int],
    context_length: Validated[ArrayLike],
    slope_variance: Validated[ArrayLike],
    noise: Validated[ArrayLike],
) -> Values:
    """Loss for affine functions in contexts so long that the sum of kernels no longer fluctuates.

    (L²/d)(1 − A(w))² + ρ (1 + Z(2w)/(n Z(w)²)), Z(w) = E exp(w t), A = Z'/Z = I_{d/2}/I_{d/2−1}.

    Raises ValueError as scale_law, for a dimension above 100000 and a scale that is not positive.

    Source: derived in docs/derivations/softmax_window.
    """
    d = whole_number("dimension", dimension, least=2)
    require(d <= MOST_DIMENSIONS, f"dimension must be at most {MOST_DIMENSIONS} here; got {d}.")
    w = np.asarray(magnitude("scale", scale, infinite=False))
    n, ripple = checked("context_length", context_length, at_least=1.0), checked("noise", noise, at_least=0.0)
    found = [(*_tilted(float(one), d), _tilted(2 * float(one), d)[1]) for one in w.flat]
    shrinkage, log_z, log_z2 = np.array(found).T.reshape(3, *w.shape)
    with np.errstate(over="ignore"):
        variance = 1 + np.exp(log_z2 - 2 * log_z) / n
    part = checked("slope_variance", slope_variance, at_least=0.0) / d * shrinkage**2
    return (part + np.where(ripple > 0, ripple, 0.0) * np.where(ripple > 0, variance, 0.0))[()]


def linear_attention_loss(
    *,
    dimension: Validated[int],
    context_length: Validated[int],
    slope_variance: Validated[float],
    offset_variance: Validated[float],
    noise: Validated[float],
) -> float:
    """Loss of the best linear attention, (c/n) Σ y x_iᵀx_q, on affine functions.

    Without offsets it can beat softmax attention; the variance of an offset enters in full.

    Raises ValueError for a dimension below 2, a length below 1, negative variances.

    Source: derived in docs/derivations/softmax_window.
    """
    d, n = whole_number("dimension", dimension, least=2), whole_number("context_length", context_length)
    slope, offset, ripple = (
        checked_number(name, value, at_least=0.0)
        for name, value in (
            ("slope_variance", slope_variance),
            ("offset_variance", offset_variance),
            ("noise", noise),
        )
    )
    signal, other = slope / d**2, offset + ripple
    second = signal * (d + n - 1) + other  # n d times the mean square of the prediction at c = 1
    residual = signal * d * ((((d - 1) * signal + other) / second) if second > 0 else 1.0)
    return residual + other


def kinked_kernel(
    cosine: Validated[Float[ArrayLike, "*n"]], *, dimension: Validated[int], slope_variance: Validated[float]
) -> float | Float[np.ndarray, "*n"]:
    """Covariance of l₊ max(uᵀx, 0) + l₋ max(−uᵀx, 0), slopes independent of mean 0 and variance slope_variance.

    Raises ValueError for a dimension below 2, a negative variance and cosines outside −1..1.

    Source: cho2009kernel, section 2 (the angular integral); derived in docs/derivations/softmax_window.
    """
    size = whole_number("dimension", dimension, least=2)
    variance = checked_number("slope_variance", slope_variance, at_least=0.0)
    given = numbers("cosine", cosine)
    require(bool(np.all(abs(given) <= 1 + 1e-12)), f"cosine must be between -1 and 1; got {cosine!r}.")
    inside = np.clip(given, -1.0, 1.0)[()]
    return variance / (np.pi * size) * (np.sqrt(1 - inside**2) + (np.pi - np.arccos(inside)) * inside)


def gaussian_squared_weights(
    matrix: Validated[Float[ArrayLike, "D D"]], query: Validated[Float[ArrayLike, "*batch D"]]
) -> float | Float[np.ndarray, "*batch"]:
    """Limit of n E Σ a² in long contexts of inputs N(0, I): exp |M x_q|². The inputs attended to have mean M x_q.

    Raises ValueError for shapes that do not fit.

    Source: derived in docs/derivations/softmax_window.
    """
    key_query, points = numbers("matrix", matrix), numbers("query", query)
    require(
        key_query.ndim == 2 and points.ndim >= 1 and key_query.shape[0] == key_query.shape[1] == points.shape[-1],
        f"matrix must be square and as wide as the query; got {key_query.shape} and {points.shape}.",
    )
    with np.errstate(over="ignore"):
        return np.exp(np.sum((points @ key_query.T) ** 2, axis=-1))


def gaussian_loss(
    matrix: Validated[Float[ArrayLike, "D D"]],
    directions: Validated[Float[ArrayLike, "D k"]],
    *,
    context_length: Validated[int],
    slope_variance: Validated[float],
    noise: Validated[float],
) -> float:
    """Loss in long contexts of inputs N(0, I) for f(x) = aᵀBᵀx, a ~ N(0, slope_variance I_k), key-query matrix M.

    slope_variance |Bᵀ(M − I)|² + noise (1 + det(I − 2 MᵀM)^(−1/2)/n), leading order in 1/n of each part. The
    directions outside the span of B enter the second part alone, so that the best M vanishes there. inf where
    |M| ≥ 1/√2: rare queries then attend to one example.

    Raises ValueError for shapes that do not fit, a length below 1 and negative variances.

    Source: collins2024context (low-rank tasks project); derived in docs/derivations/softmax_window.
    """
    key_query, kept = numbers("matrix", matrix), numbers("directions", directions)
    size = len(np.atleast_1d(kept))
    require(
        kept.ndim == 2 and size > 0 and key_query.shape == (size, size),
        f"matrix must be square with a side for each row of directions; got {key_query.shape} and {kept.shape}.",
    )
    length = whole_number("context_length", context_length)
    slope, ripple = (
        checked_number(name, value, at_least=0.0)
        for name, value in (("slope_variance", slope_variance), ("noise", noise))
    )
    largest = float(np.max(abs(key_query)))
    require(largest <= MOST, f"matrix must have entries of at most {MOST:g}; got {largest:g}.")
    margin = 1 - 2 * np.linalg.svd(key_query, compute_uv=False) ** 2
    cost = np.prod(margin) ** -0.5 / length if np.all(margin > 0) else np.inf
    bias = slope * float(np.sum((kept.T @ (key_query - np.eye(size))) ** 2))
    return float(bias + ripple * (1 + cost)) if ripple > 0 else float(bias)


def _tilted(scale: float, dimension: int) -> tuple[float, float]:
    """1 − A(w) and log Z(w) − w, without cancellation at large w or underflow at small w."""
    at = angles(dimension, *falling(scale, dimension))
    log_weight = at.log_weight - scale * at.gap
    largest = log_weight.max()
    weight = np.exp(log_weight - largest)
    return float(weight @ at.gap / weight.sum()), float(largest + np.log(weight.sum()))
