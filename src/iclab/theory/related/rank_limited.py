"""Linear attention of limited rank under label noise at test time.

A layer of rank r that was pretrained to its optimum has learned the r modes of largest contribution to the loss; its
losses are the plateaus of separate key and query. Tested in contexts with more label noise, every mode adds to the
error in proportion to that noise, so that large ranks can be worse. Losses include the noise of the query's label.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from iclab.numerics import (
    Validated,
    Values,
    checked_covariance,
    instance,
    nonnegative,
    numbers,
    require,
    whole_number,
)
from iclab.theory.population import Moments, loss, modes, moments_from
from iclab.theory.related.parity_heads import parity_loss, parity_strengths, parity_test_loss

__all__ = [
    "TestContexts", "best_rank", "contexts", "critical_noise", "crossover", "parity_loss", "parity_strengths",
    "parity_test_loss", "relabeled_contexts", "test_loss",
]  # fmt: skip

TIE = 1e-12  # relative to the loss of predicting nothing: ranks closer than this are equally good


@dataclass(frozen=True)
class TestContexts:
    """Test contexts of a frozen layer, before noise is added to their labels."""

    clean: Moments
    context_length: int  # M, labeled examples before the query


def contexts(
    input_covariance: Validated[Float[np.ndarray, "D D"]],
    context_length: Validated[int],
    *,
    task_covariance: Validated[Float[np.ndarray, "D D"] | None] = None,
) -> TestContexts:
    """Test contexts labeled by the task of the query, drawn from a covariance (default: identity).

    Raises ValueError for matrices that are no covariances and for lengths below 1.

    Source: zhang2025training, eq. 15; derived in docs/derivations/rank_limited.
    """
    length = whole_number("context_length", context_length)
    return TestContexts(moments_from(input_covariance, length, task_covariance=task_covariance), length)


def relabeled_contexts(
    input_covariance: Validated[Float[np.ndarray, "D D"]],
    context_length: Validated[int],
    *,
    context_task: Validated[Float[ArrayLike, "D"]],
    target_task: Validated[Float[ArrayLike, "D"]],
) -> TestContexts:
    """Test contexts labeled by another task than the query; the tasks differ by irrelevant features.

    Where both are the same, this is one task in place of an average over tasks.

    Raises ValueError for a matrix that is no covariance, lengths below 1, tasks that are not D finite numbers.

    Source: derived in docs/derivations/rank_limited.
    """
    length = whole_number("context_length", context_length)
    size = len(checked_covariance("input_covariance", input_covariance))
    context, target = _task("context_task", context_task, size), _task("target_task", target_task, size)
    law = moments_from(input_covariance, length, task_covariance=np.outer(context, context))
    summary, cross = law.input_covariance @ context, law.input_covariance @ target
    clean = Moments(np.outer(summary, cross), law.second, law.input_covariance, float(target @ cross))
    return TestContexts(clean, length)


def test_loss(
    pretrained: Validated[Moments],
    tested: Validated[TestContexts],
    *,
    rank: Validated[int],
    noise: Validated[ArrayLike],
) -> Values:
    """Loss of the best layer of a rank, frozen after pretraining, in test contexts with label noise.

    Affine in the noise, a variance, which may be an array. The query's label has it too: the error against clean
    targets is this loss minus the noise.

    Raises ValueError for a rank outside 1..D, for negative noise and for tests of another dimension.

    Source: shi2024larger, abstract (larger models are more easily misled by noise); derived in
    docs/derivations/rank_limited.
    """
    clean, slope = _by_rank(pretrained, tested)
    chosen = _checked_rank("rank", rank, pretrained)
    return (clean[chosen] + slope[chosen] * nonnegative("noise", noise))[()]


def best_rank(
    pretrained: Validated[Moments], tested: Validated[TestContexts], noise: Validated[ArrayLike] = 0.0
) -> np.integer | Int[np.ndarray, "*noise"]:
    """Rank of least test loss at a level of label noise, by comparison of all ranks; 0: predict nothing.

    The smallest of ranks that are equally good: modes without contribution are not counted.

    Raises ValueError for negative noise and for tests of another dimension.

    Source: derived in docs/derivations/rank_limited.
    """
    clean, slope = _by_rank(pretrained, tested)
    heights = clean + slope * nonnegative("noise", noise)[..., None]
    good = heights <= heights.min(-1, keepdims=True) + TIE * heights[..., :1]
    return np.argmax(good, axis=-1)[()]


def critical_noise(pretrained: Validated[Moments], tested: Validated[TestContexts]) -> Float[np.ndarray, "mode"]:
    """Label noise of the test up to which each mode, added to all of larger contribution, lowers the test loss.

    Largest contribution first. Where inputs and tasks commute it is M ω (2/u − λ) − tr ΩΛ − λω with the mode's Γ
    entry u, for any other modes; for clean pretraining at the length of the test and Ω = I it is (N + 1) λ + tr Λ. A
    negative number means that the mode hurts at any noise; a mode without contribution has 0.

    Raises ValueError for tests with another input covariance than that of pretraining: there modes may interact.

    Source: derived in docs/derivations/rank_limited.
    """
    _require_fit(pretrained, tested)
    inputs = pretrained.input_covariance
    require(
        bool(np.allclose(tested.clean.input_covariance, inputs, rtol=1e-10, atol=0)),
        "tested must have the input covariance of pretraining; got another one. Compare test_loss of two ranks.",
    )
    held, law = modes(pretrained), tested.clean
    # modes do not interact here, so that no difference of two losses is taken, in which small modes would drown
    helps = 2 * _along(law.cross, held.left, held.right) - _along(law.second, held.left, held.left)
    costs = _along(law.input_covariance, held.left, held.left) / tested.context_length
    return np.divide(helps, costs, out=np.zeros(len(helps)), where=held.contribution > 0)


def crossover(
    pretrained: Validated[Moments], tested: Validated[TestContexts], smaller: Validated[int], larger: Validated[int]
) -> float:
    """Label noise of the test at which two ranks have equal loss; below it the larger one is better.

    Negative where the larger rank is worse at any noise.

    Raises ValueError for ranks outside 1..D or not in order, and where noise affects both alike.

    Source: derived in docs/derivations/rank_limited.
    """
    instance("pretrained", pretrained, Moments)
    low, high = (_checked_rank(name, rank, pretrained) for name, rank in (("smaller", smaller), ("larger", larger)))
    require(low < high, f"smaller must be below larger; got {smaller} and {larger}.")
    clean, slope = _by_rank(pretrained, tested)
    require(
        bool(slope[high] > slope[low] * (1 + TIE)),
        f"larger must add modes that noise enters to those of rank {smaller}; got {larger}. Lower it.",
    )
    return float((clean[low] - clean[high]) / (slope[high] - slope[low]))


def _by_rank(
    pretrained: Validated[Moments], tested: Validated[TestContexts]
) -> tuple[Float[np.ndarray, "rank"], Float[np.ndarray, "rank"]]:
    """Test loss without noise, and its derivative in the noise, at ranks 0..D."""
    _require_fit(pretrained, tested)
    held = modes(pretrained)
    gamma = np.cumsum(np.einsum("im,jm->mij", held.left, held.right), axis=0)
    gamma = np.concatenate([np.zeros((1, *gamma.shape[1:])), gamma])
    inputs = tested.clean.input_covariance
    spread = np.einsum("rij,rij->r", gamma, inputs @ gamma @ inputs)
    return np.asarray(loss(tested.clean, gamma)), 1 + spread / tested.context_length


def _along(
    matrix: Float[np.ndarray, "D D"], left: Float[np.ndarray, "D mode"], right: Float[np.ndarray, "D mode"]
) -> Float[np.ndarray, "mode"]:
    """leftᵀ matrix right of each mode."""
    return np.einsum("im,ij,jm->m", left, matrix, right)


def _require_fit(pretrained: Validated[Moments], tested: Validated[TestContexts]) -> None:
    instance("pretrained", pretrained, Moments)
    instance("tested", tested, TestContexts)
    require(
        tested.clean.dimension == pretrained.dimension,
        f"tested must have the dimension of pretraining, {pretrained.dimension}; got {tested.clean.dimension}.",
    )


def _checked_rank(name: str, rank: Validated[int], moments: Moments) -> int:
    whole = whole_number(name, rank)
    require(whole <= moments.dimension, f"{name} must be between 1 and D = {moments.dimension}; got {rank!r}.")
    return whole


def _task(name: str, task: Validated[ArrayLike], dimension: int) -> Float[np.ndarray, "D"]:
    vector = numbers(name, task)
    require(
        vector.shape == (dimension,) and bool(np.all(np.isfinite(vector))),
        f"{name} must be {dimension} finite numbers, one for each input; got {task!r}.",
    )
    return vector
