"""Diagonal two-factor weights that fit drawn contexts best: the end of training on a finite sample.

The prediction of output α is p_α Σ_β H_αβ q_β x_β with H = (1/N) Σ y xᵀ of the context, so its empirical loss is
quadratic in p at given q and in q at given p. Each is solved in turn until neither moves.
"""

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from iclab.numerics import Validated, require, whole_number
from iclab.problem import Regression
from iclab.simulation.linear.transformer_sgd import TokenLaw, TokenShape, fresh_tokens

__all__ = ["SETTLED", "SWEEPS", "least_weights"]

Array = np.ndarray
SWEEPS = 5000  # of the two solutions in turn, at most
SETTLED = 1e-10  # relative change of a strength in one sweep at which they stop


def least_weights(
    problem: Regression, sequences: Validated[tuple[int, ...]], *, key: PRNGKeyArray
) -> tuple[Float[Array, "sequences D"], Float[Array, "sequences D"]]:
    """(p, q) of least squared error on the first P of the drawn contexts, for each P in `sequences`.

    Tasks are diagonal and fresh for every context; every output's label carries the noise. Starts at p = q = 1.

    Raises ValueError for sizes below 1 and mixed context lengths, ArithmeticError where the weights do not settle.
    """
    lengths, sizes = problem.context_lengths, [whole_number("sequences", size) for size in sequences]
    require(len(lengths) == 1, f"context_length must be one number here; got {lengths}. Fit one at a time.")
    law = TokenLaw(np.sqrt(problem.eigenvalues), np.sqrt(problem.task_spectrum), float(np.sqrt(problem.noise)), None)
    with jax.enable_x64(True):
        tokens, label = map(np.asarray, _drawn(key, law, TokenShape(lengths[0], max(sizes), noisy=True)))
    (inputs, labels), query = np.split(tokens[:, :-1], 2), tokens[: problem.dimension, -1]
    features = np.einsum("anP,bnP,bP->abP", labels, inputs, query, optimize=True) / lengths[0]
    fitted = [_fitted(features[..., :size], label[:, :size]) for size in sizes]
    p, q = np.moveaxis(np.array(fitted), 1, 0)
    return p, q


_drawn = jax.jit(fresh_tokens, static_argnames="shape")


def _fitted(features: Float[Array, "D D P"], label: Float[Array, "D P"]) -> Float[Array, "2 D"]:
    """(p, q) of least mean square of label_α − p_α Σ_β features_αβ q_β."""
    count = label.shape[1]
    signal = np.einsum("abP,aP->ab", features, label) / count
    curvature = np.matmul(features, features.transpose(0, 2, 1)) / count
    p, q = np.ones((2, len(label)))
    strength = p * q
    for _ in range(SWEEPS):
        p = signal @ q / np.einsum("abc,b,c->a", curvature, q, q)
        q = np.linalg.solve(np.einsum("abc,a->bc", curvature, p**2), p @ signal)
        before, strength = strength, p * q
        if np.max(np.abs(strength - before)) <= SETTLED * np.max(np.abs(strength)):
            return np.stack([p, q])
    raise ArithmeticError(f"the weights did not settle within {SWEEPS} sweeps. Draw more sequences.")
