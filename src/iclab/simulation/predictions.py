"""What a layer of linear attention answers on given contexts."""

import numpy as np
from jaxtyping import Float

from iclab.attention import Layer
from iclab.simulation.contexts import Contexts
from iclab.simulation.statistics import features

Array = np.ndarray


def predict(contexts: Contexts, layer: Layer) -> Float[Array, "*batch P"]:
    """The answer to the query of each context, ⟨T, φ⟩; leading axes of the layer come first.

    Raises ValueError for a layer of another dimension.
    """
    value, *rest = (np.asarray(part, dtype=float) for part in vars(layer).values())
    if layer.restricted:
        value = value[..., None]
    shape = "...ha,...hbc->...abc" if len(rest) == 1 else "...ha,...hrb,...hrc->...abc"
    acting = np.einsum(shape, value, *rest, optimize=True)
    cubic = features(contexts, layer)
    return acting.reshape(*acting.shape[:-3], cubic.shape[1]) @ cubic.T
