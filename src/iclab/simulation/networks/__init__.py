"""Networks in JAX: their sizes, their start, their forward pass and their training.

Weights are a plain mapping from names to arrays in single precision; the names are those that `spectra` reads.
"""

from typing import TYPE_CHECKING

from iclab.moved import refusal
from iclab.simulation.networks.forward import apply, initial, patterns
from iclab.simulation.networks.parts import Network, Parameters
from iclab.simulation.networks.perceptrons import Perceptron
from iclab.simulation.networks.training import State, train
from iclab.simulation.networks.transformers import Transformer

__all__ = ["Network", "Parameters", "Perceptron", "State", "Transformer", "apply", "initial", "patterns", "train"]

if not TYPE_CHECKING:  # else every name would be one
    __getattr__ = refusal(__name__)
