"""Errors of a readout on contexts that are drawn token by token: the witness of exact errors."""

import numpy as np
from jaxtyping import Float

from iclab.problem import ContextLaw

__all__ = ["scored"]

CONTEXTS, QUERIES = 384, 32  # drawn contexts, and queries of each


def scored(readout: Float[np.ndarray, "D feature"], law: ContextLaw, stream: np.random.Generator) -> float:
    """Mean squared error of a readout on drawn queries of drawn contexts, the noise of the target included."""
    d, n, root, squares = law.dimension, law.context_length, law.input_root / np.sqrt(law.dimension), []
    for task in law.tasks.draw(CONTEXTS, stream):
        x = stream.standard_normal((n + QUERIES, d)) @ root
        y = x @ task + np.sqrt(law.noise) * stream.standard_normal(n + QUERIES)
        features = np.append(d / n * (y[:n] @ x[:n]), np.mean(y[:n] ** 2))
        squares.append(np.mean((y[n:] - x[n:] @ (readout @ features)) ** 2))
    return float(np.mean(squares))
