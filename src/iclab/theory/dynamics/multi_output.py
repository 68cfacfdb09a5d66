"""Merged attention with several labels for each input."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, numbers, require
from iclab.theory.population import Moments

__all__ = ["multi_output_loss"]


def multi_output_loss(
    moments: Validated[Moments],
    value: Validated[Float[ArrayLike, "head O O"]],
    key_query: Validated[Float[ArrayLike, "head D D"]],
) -> float:
    """Squared error, summed over O labels, of merged attention with value matrices: ŷ = Σ V (1/N) Σ y xᵀ U x_q.

    Each label has its own task, all drawn from the law of `moments`, independently; the noise of the labels is
    independent too. L = O null − 2 Σ tr V_i ⟨U_i, B⟩ + Σ tr(V_i V_jᵀ) ⟨U_i, C U_j Λ⟩; least where
    Σ V_i ⊗ U_i = I ⊗ Γ*, at O times the least loss of one label. Units: squared label.

    Raises ValueError for shapes that do not fit.

    Source: derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    value, key_query = numbers("value", value), numbers("key_query", key_query)
    heads, size = len(value), moments.dimension
    require(
        value.ndim == 3 and value.shape[1] == value.shape[2],
        f"value must have shape (H, O, O); got {value.shape}.",
    )
    require(
        key_query.shape == (heads, size, size),
        f"key_query must have shape {(heads, size, size)}; got {key_query.shape}.",
    )
    linear = np.einsum("hoo,hij,ij->", value, key_query, moments.cross)
    held = moments.second @ key_query @ moments.input_covariance
    quadratic = np.einsum("gop,hop,gij,hij->", value, value, key_query, held, optimize=True)
    return float(value.shape[1] * moments.null_loss - 2 * linear + quadratic)
