"""Weights at the start of training, and the forward pass of a network for given weights."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from iclab.numerics import Validated
from iclab.simulation.keys import checked_key
from iclab.simulation.memory import exhaustion_reported
from iclab.simulation.networks.checks import checked_network, checked_parameters, checked_tokens
from iclab.simulation.networks.parts import Network, Parameters
from iclab.simulation.networks.sizes import require_outputs

__all__ = ["apply", "initial", "patterns"]


def initial(config: Validated[Network], *, key: Validated[PRNGKeyArray]) -> Parameters:
    """Weights at the start of training, by name.

    Raises ValueError unless it is given a network and a key.
    """
    with jax.enable_x64(False):
        return {name: np.asarray(part) for name, part in checked_network(config).start(checked_key(key)).items()}


def apply(config: Any, parameters: Any, tokens: Any) -> Float[np.ndarray, "context position output"]:
    """Outputs of a network: predictions, or the logits of the next token.

    `tokens` are (context, position) whole numbers below the vocabulary, or (context, position, feature).

    Raises ValueError for tokens of another kind or shape, for sequences longer than the positions, for weights of
    another network, and where an intermediate array exceeds memory.
    """
    checked = checked_tokens(checked_network(config), tokens)
    with jax.enable_x64(False), exhaustion_reported():
        require_outputs(config, checked)
        weights = checked_parameters(config, parameters)
        return np.asarray(_applied(config, weights, jnp.asarray(checked)))


def patterns(config: Any, parameters: Any, tokens: Any) -> Float[np.ndarray, "context layer head position position"]:
    """Attention weights of every layer and head of a transformer with outputs at every position.

    Raises ValueError as `apply` does, and for a network with an output at the last position alone.
    """
    checked = checked_tokens(checked_network(config), tokens)
    with jax.enable_x64(False), exhaustion_reported():
        require_outputs(config, checked)
        return np.asarray(_patterns(config, checked_parameters(config, parameters), jnp.asarray(checked)))


_applied = jax.jit(lambda config, parameters, tokens: config.forward(parameters, tokens), static_argnums=0)
_patterns = jax.jit(lambda config, parameters, tokens: config.patterns(parameters, tokens), static_argnums=0)
