"""Predictions of a layer of linear attention on given contexts."""

import numpy as np
from jaxtyping import Float

from iclab.attention import Layer
from iclab.simulation.linear.contexts import Contexts
from iclab.simulation.linear.loop import require_dimension

__all__ = ["predict"]

Array = np.ndarray


def predict(contexts: Contexts, layer: Layer) -> Float[Array, "*batch P"]:
    """The prediction for the query of each context, Σ aᵀ M B x_q over heads; leading axes of the layer come first.

    Raises ValueError for a layer of another dimension.
    """
    require_dimension(layer, contexts.dimension, "contexts")
    value, *rest = (np.asarray(part, dtype=float) for part in vars(layer).values())
    tokens = contexts.tokens
    values, keys = (tokens[..., -1:], tokens[..., :-1]) if layer.restricted else (tokens, tokens)
    value = value[..., None] if layer.restricted else value
    shape = "...ha,...hbc->...abc" if len(rest) == 1 else "...ha,...hrb,...hrc->...abc"
    acting = np.einsum(shape, value, *rest, optimize=True)
    summary = values.transpose(0, 2, 1) @ keys / contexts.divisor[:, None, None]
    cubic = (summary[..., None] * contexts.query[:, None, None, :]).reshape(len(tokens), -1)
    return acting.reshape(*acting.shape[:-3], cubic.shape[1]) @ cubic.T
