"""Networks in JAX: what they are, where they start, what they answer, how they are trained.

Weights are a plain mapping from names to arrays in single precision; the names are those that `spectra` reads.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from iclab.numerics import require
from iclab.simulation.network_parts import Network, Parameters
from iclab.simulation.network_training import State, train
from iclab.simulation.perceptrons import Perceptron
from iclab.simulation.transformers import Transformer

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

__all__ = ["Network", "Parameters", "Perceptron", "State", "Transformer", "apply", "initial", "train"]


def initial(config: Network, *, key: "PRNGKeyArray") -> Parameters:
    """Weights at the start of training, by name."""
    return {name: np.asarray(part) for name, part in config.start(key).items()}


def apply(
    config: Network, parameters: Mapping[str, Any], tokens: Any
) -> Float[np.ndarray, "context position output"]:
    """Outputs of a network: real answers, or the logits of the next token.

    `tokens` are (context, position) whole numbers below the vocabulary, or (context, position, feature).

    Raises ValueError for tokens of another kind or shape, and for sequences longer than the positions.
    """
    tokens = checked_tokens(config, tokens)
    return np.asarray(_applied(config, dict(parameters), jnp.asarray(tokens)))


_applied = jax.jit(lambda config, parameters, tokens: config.answer(parameters, tokens), static_argnums=0)


def checked_tokens(config: Network, tokens: Any) -> np.ndarray:
    """The tokens as an array. Raises ValueError unless they suit the network."""
    array = np.asarray(tokens)
    vocabulary, features = getattr(config, "vocabulary", 0), getattr(config, "features", 0)
    axes = "(context, position)" if vocabulary else f"(context, position, {features})"
    require(
        array.ndim == (2 if vocabulary else 3) and (bool(vocabulary) or array.shape[-1] == features),
        f"tokens must have the axes {axes}; got shape {array.shape}.",
    )
    require(
        1 <= array.shape[1] <= config.length,
        f"a sequence must have 1 to {config.length} tokens, the length of the network; got {array.shape[1]}.",
    )
    if not vocabulary:
        return array.astype(np.float32)
    whole = np.issubdtype(array.dtype, np.integer)
    require(
        whole and array.size > 0 and array.min() >= 0 and array.max() < vocabulary,
        f"tokens must be whole numbers from 0 to {vocabulary - 1}; got "
        + (f"{array.min()} to {array.max()}." if whole and array.size else f"an array of {array.dtype}."),
    )
    return array.astype(np.int32)
