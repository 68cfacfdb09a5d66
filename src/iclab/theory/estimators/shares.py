"""The place of a model between strategies: from its predictions, and those of the strategies on the same contexts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checked_laws, numbers, require

__all__ = ["MixtureShares", "Standing", "mixture_shares", "share"]

_ITERATIONS = 20_000
_ENOUGH = 1e-9  # by which a step may still raise a weight, relatively


@dataclass(frozen=True)
class Standing:
    """A model between two strategies: where its predictions N project on the line from G to M, and what is beside it.

    rest and off_line are mean squares, as distance = |M − G|².
    """

    projection: float  # s = ⟨N − G, M − G⟩/|M − G|², not clipped
    rest: float  # |N − G − share (M − G)|², to the segment
    off_line: float  # |N − G|² − s² |M − G|², to the line
    distance: float  # |M − G|²

    @property
    def share(self) -> float:
        """Share of the memorizing strategy, s clipped to 0 … 1: 1 is memory, 0 inference. See `neither` first."""
        return float(np.clip(self.projection, 0.0, 1.0))

    @property
    def neither(self) -> bool:
        """True where the model is so far from both strategies that its share says nothing: rest > ½ |M − G|²."""
        return self.rest > 0.5 * self.distance

    def __str__(self) -> str:
        beside = f"rest {self.rest:.3g} beside |M - G|² = {self.distance:.3g}"
        return (
            f"neither, {beside}" if self.neither else f"share {self.share:.3g} of the memorizing strategy, {beside}"
        )


@dataclass(frozen=True)
class MixtureShares:
    """Weights of several strategies, which add up to 1, and the mean divergence in nats of the model from the mix."""

    weights: Float[np.ndarray, "strategy"]
    rest: float

    @property
    def largest(self) -> int:
        """The number of the strategy with the largest weight."""
        return int(np.argmax(self.weights))


def share(
    predictions: Validated[Float[ArrayLike, "*n"]],
    memorizing: Validated[Float[ArrayLike, "*n"]],
    generalizing: Validated[Float[ArrayLike, "*n"]],
) -> Standing:
    """The place of predictions between those of both strategies, all three on the same contexts and of one shape.

    Numbers, as in regression, or laws of the next token; every entry counts alike. With mean squares the relative
    distance of wurgaft2025rational is the share that is clipped here.

    Raises ValueError for shapes that differ, for predictions that are not finite, and for strategies that agree.

    Source: wurgaft2025rational, sec. 4 (relative distance); derived in docs/derivations/strategies.
    """
    n, m, g = (
        numbers(name, given)
        for name, given in (("predictions", predictions), ("memorizing", memorizing), ("generalizing", generalizing))
    )
    require(
        n.shape == m.shape == g.shape and n.size > 0,
        f"predictions, memorizing and generalizing must have one shape; got {n.shape}, {m.shape} and {g.shape}. Ask "
        "all three on the same contexts.",
    )
    line, off = m - g, n - g
    distance = float(np.mean(line**2))
    require(
        distance > 0, "memorizing and generalizing must differ; got the same predictions, between which is nothing."
    )
    projection = float(np.mean(off * line)) / distance
    near = float(np.clip(projection, 0.0, 1.0))
    return Standing(
        projection,
        rest=float(np.mean((off - near * line) ** 2)),
        off_line=float(np.mean((off - projection * line) ** 2)),
        distance=distance,
    )


def mixture_shares(
    predictions: Validated[Float[ArrayLike, "*n S"]], strategies: Validated[Sequence[Float[ArrayLike, "*n S"]]]
) -> MixtureShares:
    """Weights of the mixture of laws that is nearest to the predicted laws, by mean divergence KL(model ‖ mixture).

    Expectation maximization: the problem is convex, every step lowers the divergence, weights add up to 1.

    Raises ValueError for predictions and strategies that are no laws or differ in shape, and for no strategy.

    Source: wurgaft2025rational, sec. 4 (mixed outputs); derived in docs/derivations/strategies.
    """
    given = [np.asarray(law) for law in strategies]
    require(len(given) > 0, "strategies must be one or more; got none.")
    model = np.atleast_2d(checked_laws("predictions", predictions))
    laws = np.array([np.atleast_2d(checked_laws(f"strategies[{i}]", law)) for i, law in enumerate(given)])
    require(
        laws.shape[1:] == model.shape,
        f"strategies must have the shape of predictions, {model.shape}; got {laws.shape[1:]}.",
    )
    model, laws = model.reshape(-1, model.shape[-1]), laws.reshape(len(laws), -1, model.shape[-1])
    laws = np.maximum(laws, 1e-300)
    weights = np.full(len(laws), 1 / len(laws))
    for _ in range(_ITERATIONS):
        gain = np.einsum("ns,kns->k", model / np.tensordot(weights, laws, 1), laws) / len(model)
        weights = weights * gain
        if gain.max() < 1 + _ENOUGH:
            break
    mixed = np.tensordot(weights, laws, 1)
    logs = np.log(np.where(model > 0, model, 1.0) / np.where(model > 0, mixed, 1.0))
    return MixtureShares(weights / weights.sum(), float(np.mean(np.sum(model * logs, axis=-1))))
