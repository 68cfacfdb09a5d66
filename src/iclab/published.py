"""Units of the published training code, in those of this library.

The code of arXiv 2501.16265 counts the query in its sequence length, does not divide attention by N, has a
learning rate on the full mean squared error, and plots against epochs. Here N counts labeled examples, the
sums over tokens are divided by N, and time = learning rate × step with the rate on half the mean squared error.
So weights and times differ by powers of N; `Units` holds them, and curves overlay without tuning by hand:

    units = separate_units(0.02, context_length(32))
    trajectory = separate_flow(moments, separate_start(4, 5, initial=0.01, units=units, rng=rng), units.time(epochs))

Source: zhang2025training, the code published with it; derived in docs/derivations/published_units.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.attention import MergedAttention, SeparateAttention, random_merged, random_separate
from iclab.numerics import Validated, positive, whole_number

__all__ = [
    "Units", "context_length", "eigenvalues", "merged_start", "merged_units", "separate_start", "separate_units",
    "small_separate_start", "token_units",
]  # fmt: skip

Array = np.ndarray
Layer = TypeVar("Layer", MergedAttention, SeparateAttention)


@dataclass(frozen=True)
class Units:
    """Factors between a published learning rate and published weights, and those of this library.

    Raises ValueError for a learning rate or a scale that is not positive and finite.
    """

    learning_rate: float  # of the published code, on the full mean squared error
    weight_scale: float  # our weights / the published weights, for each factor of a head

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            positive(name, value)

    @property
    def rate(self) -> float:
        """η, the learning rate that makes one step of ours one published epoch.

        Doubled for the half in our loss; the scale enters twice, through the weights and through their gradient.
        """
        return 2 * self.learning_rate * self.weight_scale**2

    @property
    def rounded_rate(self) -> float:
        """The rate to ten decimals, as those cases state it whose results were stored with it."""
        return round(self.rate, 10)

    def time(self, epochs: Validated[ArrayLike]) -> float | Float[Array, "*n"]:
        """Training time, in units of τ, after so many published epochs."""
        return self.rate * np.asarray(epochs, dtype=float)

    def epochs(self, time: Validated[ArrayLike]) -> float | Float[Array, "*n"]:
        """Published epochs, fractions of one included, after a training time in units of τ."""
        return np.asarray(time, dtype=float) / self.rate

    def ours(self, published: Layer) -> Layer:
        """The layer that predicts with our normalization what the published one predicts with its own."""
        return type(published)(*(self.weight_scale * np.asarray(part) for part in vars(published).values()))

    def published(self, ours: Layer) -> Layer:
        """The inverse of `ours`."""
        return type(ours)(*(np.asarray(part) / self.weight_scale for part in vars(ours).values()))


def context_length(sequence_length: Validated[int]) -> int:
    """Context length N of a published sequence length, which counts the query too.

    Raises ValueError for fewer than two tokens.
    """
    return whole_number("sequence_length", sequence_length, least=2) - 1


def merged_units(learning_rate: float, context_length: int) -> Units:
    """Units of merged key and query: two factors share the missing 1/N, so that the time of an epoch is 2 lr N.

    Raises ValueError for numbers that are not positive.
    """
    return Units(learning_rate, float(context_length) ** (1 / 2))


def separate_units(learning_rate: float, context_length: int) -> Units:
    """Units of separate key and query: three factors share the missing 1/N; the time of an epoch is 2 lr N^(2/3).

    Raises ValueError for numbers that are not positive.
    """
    return Units(learning_rate, float(context_length) ** (1 / 3))


def token_units(learning_rate: float) -> Units:
    """Units of the published runs with varying context lengths, whose outputs are divided by the tokens, n + 1.

    Weights are the same; give moments `normalization="tokens"`, and contexts the divisor lengths + 1.

    Raises ValueError for a learning rate that is not positive.
    """
    return Units(learning_rate, 1.0)


def eigenvalues(dimension: Validated[int]) -> tuple[float, ...]:
    """Published spectrum of the inputs: proportional to D, D−1, …, 1, of trace one.

    Raises ValueError for a dimension below 1.
    """
    ranks = np.arange(whole_number("dimension", dimension), 0, -1)
    return tuple(float(part) for part in ranks / ranks.sum())


def merged_start(
    dimension: int, heads: int, *, initial: float, units: Units, rng: np.random.Generator
) -> MergedAttention:
    """Published start of merged attention in our units: every entry has standard deviation `initial` in theirs."""
    return units.ours(random_merged(dimension, heads, scale=initial, rng=rng))


def separate_start(
    dimension: int, heads: int, rank: int = 1, *, initial: float, units: Units, rng: np.random.Generator
) -> SeparateAttention:
    """Start of separate attention in our units, as in the published figures.

    In theirs values have standard deviation `initial`, keys and queries `initial`/√(R(D+1)).
    """
    return units.ours(random_separate(dimension, heads, rank, scale=initial, rng=rng))


def small_separate_start(
    dimension: int, heads: int, rank: int = 1, *, initial: float, units: Units, rng: np.random.Generator
) -> SeparateAttention:
    """Start of separate attention in our units, as in the published code since December 2025.

    That code divides by the root of the size of each stacked weight: values are smaller than in the figures by
    √H (D+1), keys and queries by √H. Its drops come later than the figures show, or not at all.
    """
    start = random_separate(dimension, heads, rank, scale=initial / np.sqrt(heads), rng=rng)
    return units.ours(SeparateAttention(start.value / (dimension + 1), start.key, start.query))
