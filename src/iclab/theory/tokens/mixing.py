"""Two layers on contexts whose inputs and labels are separate tokens: the first must bring each pair together.

A context is the tokens x_1, y_1, …, x_D, y_D, then the query. The first layer makes token k carry Σ_j A_kj x_j and
Σ_j B_kj y_j; a second, linear layer then predicts c x_qᵀ Xᵀ G X θ with G = AᵀB. Inputs N(0, I_d), tasks N(0, I/d), so
that labels without noise have variance 1. Losses include the noise of the query's label.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from iclab.numerics import MOST, Validated, checked_number, numbers, require, whole_number

__all__ = [
    "attention_loss", "attention_mixing", "best_loss", "best_readout", "best_value_scales", "loss", "matched_loss",
]  # fmt: skip

MOST_PAIRS = 5000  # 400 MB of mixing weights


def loss(
    x_mixing: Validated[Float[ArrayLike, "token pair"]],
    y_mixing: Validated[Float[ArrayLike, "token pair"]],
    *,
    dimension: Validated[int],
    noise: Validated[float] = 0.0,
    readout: Validated[float],
) -> float:
    """Exact loss of the mechanism for any mixing of inputs, A, and of labels, B, and a scale c of the second layer.

    c² [(tr G)² + tr G² + d |G|² (1 + noise)] − 2 c tr G + 1 + noise. The query token neither mixes nor is mixed in.

    Raises ValueError for mixings of different shape, for a dimension below 1 and for negative noise.

    Source: xing2024benefits, theorem 2 (two layers, masked); derived in docs/derivations/token_mixing.
    """
    trace, size = _sizes(x_mixing, y_mixing, dimension, noise)
    scale = checked_number("readout", readout)
    require(abs(scale) <= MOST, f"readout must be at most {MOST:g}; got {scale:g}.")
    return float(scale**2 * size - 2 * scale * trace + 1 + noise)


def best_readout(
    x_mixing: Validated[Float[ArrayLike, "token pair"]],
    y_mixing: Validated[Float[ArrayLike, "token pair"]],
    *,
    dimension: Validated[int],
    noise: Validated[float] = 0.0,
) -> float:
    """Scale of the second layer with the least loss; 0 where nothing was mixed.

    Raises ValueError as loss.

    Source: derived in docs/derivations/token_mixing.
    """
    trace, size = _sizes(x_mixing, y_mixing, dimension, noise)
    return float(trace / size) if size > 0 else 0.0


def best_loss(
    x_mixing: Validated[Float[ArrayLike, "token pair"]],
    y_mixing: Validated[Float[ArrayLike, "token pair"]],
    *,
    dimension: Validated[int],
    noise: Validated[float] = 0.0,
) -> float:
    """Loss at the best scale of the second layer.

    Raises ValueError as loss.

    Source: derived in docs/derivations/token_mixing.
    """
    scale = best_readout(x_mixing, y_mixing, dimension=dimension, noise=noise)
    return loss(x_mixing, y_mixing, dimension=dimension, noise=noise, readout=scale)


def attention_mixing(
    pairs: Validated[int],
    *,
    masked: Validated[bool],
    gain: Validated[float] = 1.0,
    x_value: Validated[float] = 1.0,
    y_value: Validated[float] = 1.0,
) -> tuple[Float[np.ndarray, "token pair"], Float[np.ndarray, "token pair"]]:
    """Mixing of inputs and of labels by one softmax layer whose scores depend on positions alone.

    A token attends with weight `gain` to the two of its pair, itself included, with weight 1 to all others, to
    earlier tokens only if `masked`; what it attends to is added to it times `x_value` for inputs, `y_value` for
    labels. Without positions the gain is 1; `gain` is exp(score) of the own pair.

    Raises ValueError for pairs outside 1..5000, a gain that is not positive and values that are not numbers.

    Source: xing2024benefits, theorems 2 and 3 to 5 (without and with positions); derived in
    docs/derivations/token_mixing.
    """
    count = whole_number("pairs", pairs)
    require(
        count <= MOST_PAIRS,
        f"pairs must be at most {MOST_PAIRS} here; got {count}. Each token's mixing is stored.",
    )
    require(isinstance(masked, bool | np.bool_), f"masked must be True or False; got {masked!r}.")
    strength = checked_number("gain", gain, above=0.0, advice="It is an exponential.")
    pair = np.arange(2 * count) // 2
    weight = np.where(pair[:, None] == pair, strength, 1.0)
    weight = np.tril(weight) if masked else weight
    weight /= max(strength, 1.0)  # so that sums stay finite
    weight /= weight.sum(axis=1, keepdims=True)
    own = np.eye(2 * count)
    scales = [checked_number(name, value) for name, value in (("x_value", x_value), ("y_value", y_value))]
    return tuple((own + scale * weight)[:, role::2] for role, scale in enumerate(scales))  # type: ignore[return-value]


def attention_loss(
    pairs: Validated[int],
    *,
    dimension: Validated[int],
    masked: Validated[bool],
    gain: Validated[float] = 1.0,
    x_value: Validated[float] = 1.0,
    y_value: Validated[float] = 1.0,
) -> float:
    """Loss of mixing by attention at the best scale of the second layer, without label noise.

    Raises ValueError as attention_mixing and loss.

    Source: derived in docs/derivations/token_mixing.
    """
    mixing = attention_mixing(pairs, masked=masked, gain=gain, x_value=x_value, y_value=y_value)
    return best_loss(*mixing, dimension=dimension)


def matched_loss(pairs: Validated[int], *, dimension: Validated[int], noise: Validated[float] = 0.0) -> float:
    """Least loss where every pair is brought together perfectly: that of linear attention on joint tokens.

    noise + (d (1 + noise) + 1)/(D + d (1 + noise) + 1).

    Raises ValueError for fewer than one pair, a dimension below 1 and negative noise.

    Source: derived in docs/derivations/token_mixing.
    """
    count, ripple = whole_number("pairs", pairs), _noise(noise)
    spread = whole_number("dimension", dimension) * (1 + ripple) + 1
    return ripple + spread / (count + spread)


def best_value_scales(
    pairs: Validated[int],
    *,
    dimension: Validated[int],
    masked: Validated[bool],
    gain: Validated[float] = 1.0,
    noise: Validated[float] = 0.0,
) -> tuple[float, float]:
    """Values of inputs and labels with the least loss at the best scale of the second layer.

    The least of the minima found from several starts.

    Raises ValueError as attention_mixing and loss.

    Source: derived in docs/derivations/token_mixing.
    """

    def height(values: Float[np.ndarray, "2"]) -> float:
        mixing = attention_mixing(pairs, masked=masked, gain=gain, x_value=values[0], y_value=values[1])
        return best_loss(*mixing, dimension=dimension, noise=noise)

    starts = [(1.0, -0.1), (-0.1, 1.0), (1.0, 1.0), (-1.0, -1.0)]
    ends = [
        minimize(height, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12}) for start in starts
    ]
    x_value, y_value = min(ends, key=lambda end: end.fun).x
    return float(x_value), float(y_value)


def _sizes(
    x_mixing: Validated[Float[ArrayLike, "token pair"]],
    y_mixing: Validated[Float[ArrayLike, "token pair"]],
    dimension: Validated[int],
    noise: Validated[float],
) -> tuple[float, float]:
    """tr G and the bracket that multiplies c² in the loss."""
    a, b = numbers("x_mixing", x_mixing), numbers("y_mixing", y_mixing)
    require(
        a.ndim == 2 and a.shape == b.shape,
        f"x_mixing and y_mixing must be of one shape, (tokens, pairs); got {a.shape} and {b.shape}.",
    )
    largest = max(float(np.max(abs(part), initial=0.0)) for part in (a, b))
    require(largest <= MOST, f"x_mixing and y_mixing must be at most {MOST:g}; got {largest:g}.")
    size, ripple = whole_number("dimension", dimension), _noise(noise)
    joint = a.T @ b
    trace = float(np.trace(joint))
    return trace, trace**2 + float(np.sum(joint * joint.T)) + size * (1 + ripple) * float(np.sum(joint**2))


def _noise(noise: Validated[float]) -> float:
    return checked_number("noise", noise, at_least=0.0, advice="It is a variance.")
