"""Conserved quantities of training: the balance between the factors of attention."""

import numpy as np
from jaxtyping import Float

from iclab.attention import Layer, MergedAttention
from iclab.numerics import Validated, instance, numbers

__all__ = ["conserved"]


def conserved(weights: Validated[Layer]) -> Float[np.ndarray, "*batch quantity"]:
    """Functions of the weights that gradient flow keeps, on the population and on any sample.

    Merged: value_i · value_j − ⟨U_i, U_j⟩ for all pairs of heads i <= j. Separate, head by head: |value|² − |K|²,
    then K Kᵀ − Q Qᵀ for all pairs of its key-query pairs r <= s. Restricted and unrestricted layers alike; leading
    axes (time, seed) stay. Gradient descent lets them drift at first order in its learning rate, one step at
    second; weight decay γ lets them fall as exp(−2γt). Units: those of the weights, squared.

    Raises ValueError for anything but a layer.

    Source: zhang2025training, section 4.2; merged and rank R derived in docs/derivations/dynamics.
    """
    instance("weights", weights, Layer)
    value = numbers("value", weights.value)
    value = value[..., None] if weights.restricted else value
    if isinstance(weights, MergedAttention):
        return _pairs(_gram(value) - _gram(_flat(weights.key_query)))
    key, query = numbers("key", weights.key), numbers("query", weights.query)
    size = np.sum(value**2, axis=-1) - np.sum(_flat(key) ** 2, axis=-1)
    balance = _pairs(_gram(key) - _gram(query))
    return np.concatenate([size[..., None], balance], axis=-1).reshape(*size.shape[:-1], -1)


def _flat(factor: Float[np.ndarray, "*batch row column"]) -> Float[np.ndarray, "*batch entry"]:
    array = np.asarray(factor, dtype=float)
    return array.reshape(*array.shape[:-2], -1)


def _gram(rows: Float[np.ndarray, "*batch row entry"]) -> Float[np.ndarray, "*batch row row"]:
    return rows @ np.swapaxes(rows, -1, -2)


def _pairs(matrix: Float[np.ndarray, "*batch n n"]) -> Float[np.ndarray, "*batch pair"]:
    return matrix[(..., *np.triu_indices(matrix.shape[-1]))]
