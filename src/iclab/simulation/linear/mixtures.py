"""Mixtures of sequences: some need the context, the others one task that weights can store."""

from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from numpy.typing import ArrayLike

from iclab.numerics import Validated, require
from iclab.problem import Regression, checked_mixture
from iclab.simulation.linear.contexts import Contexts
from iclab.simulation.linear.contexts import draw as draw_contexts

__all__ = ["draw"]

Array = np.ndarray


def draw(
    problem: Regression,
    in_context_fraction: Validated[float],
    in_weight_task: Validated[ArrayLike],
    *,
    sequences: int,
    random_labels: bool = False,
    key: PRNGKeyArray,
) -> Contexts:
    """A mixture of P `sequences`: first ⌊P p⌋ with a fresh task each, then the others with the in-weight task w*.

    All labels are wᵀx + noise. With `random_labels` the in-weight sequences keep the query's label w*ᵀx_q + noise
    and have independent N(0, 1) + noise in the context. As published: |w*| = √D; true labels for 0 < p ≤ 1;
    random labels for p = 0 and for the in-weight test.

    Raises ValueError for a fraction outside [0, 1], a task that is not D finite numbers, fewer than one sequence.
    """
    task = np.array(checked_mixture(problem, in_context_fraction, in_weight_task))
    require(sequences >= 1, f"sequences must be at least 1; got {sequences!r}.")
    fresh_key, stored_key, label_key = jax.random.split(key, 3)
    fresh = int(sequences * in_context_fraction)
    parts = []
    if fresh > 0:
        parts.append(draw_contexts(problem, fresh, key=fresh_key))
    if fresh < sequences:
        silent = replace(problem, task_eigenvalues=(0.0,) * problem.dimension)
        noise = draw_contexts(silent, sequences - fresh, key=stored_key)
        clean = _normal(noise, label_key) if random_labels else noise.inputs @ task
        parts.append(_labeled(noise, clean, noise.query @ task))
    return Contexts(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])))


def _normal(contexts: Contexts, key: PRNGKeyArray) -> Float[Array, "P N"]:
    """Independent N(0, 1) for each example of each context, zero beyond its length."""
    shape = contexts.labels.shape
    with jax.enable_x64(True):
        labels = np.asarray(jax.random.normal(key, shape, float))
    return np.where(np.arange(shape[1]) < contexts.lengths[:, None], labels, 0.0)


def _labeled(noise: Contexts, labels: Float[Array, "P N"], target: Float[Array, "P"]) -> Contexts:
    """Contexts whose labels are noise so far, with the labels themselves added."""
    tokens = noise.tokens.copy()
    tokens[:, :-1, -1] += labels
    return replace(noise, tokens=tokens, target=noise.target + target)
