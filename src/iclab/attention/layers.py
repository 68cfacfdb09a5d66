"""Multi-head linear attention, as it acts on the query's label.

Tokens are (x, y) pairs and a query (x_q, 0); with M = XXᵀ/N the prediction of a head is aᵀ M B x_q. Only the
last row of its value matrix, a, and the first D columns of its key-query matrix, B, reach the prediction.
The restricted model keeps the entries that act on labels in a and on inputs in B; then M shrinks to the
summary h = (1/N) Σ y x, and the whole layer is one matrix: prediction hᵀ Γ x_q.

Source: zhang2025training, sections 2.3 and 2.4.
"""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checks_its_fields, numbers, require

__all__ = [
    "Layer", "MergedAttention", "SeparateAttention", "aligned_separate", "random_merged", "random_separate",
    "restricted_parts",
]  # fmt: skip


@checks_its_fields
@dataclass(frozen=True)
class MergedAttention:
    """Attention whose key and query are one matrix for each head.

    Restricted: value (H,), key_query (H, D, D). Unrestricted: value (H, D+1), key_query (H, D+1, D); the last
    entry of a value row, and the first D rows of a key-query matrix, are the restricted ones. Leading axes
    (time, seed) may stand before both.

    Raises ValueError when the two shapes do not fit each other.
    """

    value: Float[np.ndarray, "..."]  # (*batch, H) if restricted, else (*batch, H, D+1)
    key_query: Float[np.ndarray, "*batch head key_entry D"]

    def __post_init__(self) -> None:
        _hold_arrays(self)
        value, key_query = self.value.shape, self.key_query.shape
        lead = len(key_query) - 2
        restricted = len(key_query) >= 3 and value == key_query[:lead] and key_query[-2] == key_query[-1]
        free = (
            len(key_query) >= 3
            and value == (*key_query[:lead], key_query[-1] + 1)
            and key_query[-2] == key_query[-1] + 1
        )
        require(
            restricted or free,
            "value and key_query must have shapes (H,) and (H, D, D), or (H, D+1) and (H, D+1, D); "
            f"got {value} and {key_query}.",
        )

    @property
    def restricted(self) -> bool:
        """True where the layer acts through the summary alone."""
        return self.key_query.shape[-2] == self.key_query.shape[-1]

    @property
    def heads(self) -> int:
        """H, the number of heads."""
        return self.key_query.shape[-3]

    @property
    def dimension(self) -> int:
        """D, the number of entries of an input."""
        return self.key_query.shape[-1]

    def __getitem__(self, index: int) -> "MergedAttention":
        """The layer at one index of the first leading axis, as at one time of a trajectory."""
        return MergedAttention(self.value[index], self.key_query[index])

    def gamma(self) -> Float[np.ndarray, "*batch D D"]:
        """Γ = Σ v U. Raises ValueError for an unrestricted layer, which acts through more than the summary."""
        _require_restricted(self.restricted)
        return np.einsum("...h,...hij->...ij", self.value, self.key_query)

    def unrestricted(self) -> "MergedAttention":
        """The same layer with all entries that reach the prediction, the added ones zero."""
        _require_restricted(self.restricted)
        return MergedAttention(
            _with_input_entries(self.value, self.dimension), _with_label_entry(self.key_query, axis=-2)
        )


@checks_its_fields
@dataclass(frozen=True)
class SeparateAttention:
    """Attention with separate keys and queries, R of each for every head.

    Restricted: value (H,), key (H, R, D), query (H, R, D). Unrestricted: value (H, D+1), key (H, R, D+1),
    query (H, R, D). Leading axes (time, seed) may stand before all three.

    Raises ValueError when the shapes do not fit each other.
    """

    value: Float[np.ndarray, "..."]  # (*batch, H) if restricted, else (*batch, H, D+1)
    key: Float[np.ndarray, "*batch head rank key_entry"]
    query: Float[np.ndarray, "*batch head rank D"]

    def __post_init__(self) -> None:
        _hold_arrays(self)
        value, key, query = self.value.shape, self.key.shape, self.query.shape
        lead = len(query) - 2
        restricted = len(query) >= 3 and value == query[:lead] and key == query
        free = len(query) >= 3 and value == (*query[:lead], query[-1] + 1) and key == (*query[:-1], query[-1] + 1)
        require(
            restricted or free,
            "value, key and query must have shapes (H,), (H, R, D), (H, R, D), or (H, D+1), (H, R, D+1), (H, R, D); "
            f"got {value}, {key}, {query}.",
        )

    @property
    def restricted(self) -> bool:
        """True where the layer acts through the summary alone."""
        return self.key.shape == self.query.shape

    @property
    def heads(self) -> int:
        """H, the number of heads."""
        return self.query.shape[-3]

    @property
    def rank(self) -> int:
        """R, key-query pairs for each head."""
        return self.query.shape[-2]

    @property
    def dimension(self) -> int:
        """D, the number of entries of an input."""
        return self.query.shape[-1]

    def __getitem__(self, index: int) -> "SeparateAttention":
        """The layer at one index of the first leading axis, as at one time of a trajectory."""
        return SeparateAttention(self.value[index], self.key[index], self.query[index])

    def gamma(self) -> Float[np.ndarray, "*batch D D"]:
        """Γ = Σ v Kᵀ Q. Raises ValueError for an unrestricted layer, which acts through more than the summary."""
        _require_restricted(self.restricted)
        pairs = (*self.query.shape[:-3], -1, self.dimension)
        held = np.reshape(self.value[..., None, None] * self.key, pairs)
        return np.swapaxes(held, -1, -2) @ np.reshape(self.query, pairs)

    def unrestricted(self) -> "SeparateAttention":
        """The same layer with all entries that reach the prediction, the added ones zero."""
        _require_restricted(self.restricted)
        return SeparateAttention(
            _with_input_entries(self.value, self.dimension), _with_label_entry(self.key, axis=-1), self.query
        )


def _hold_arrays(layer: "Layer") -> None:
    """Turn the fields of a layer into arrays of floating numbers; those that are stay."""
    for entry in fields(layer):
        part = np.asarray(getattr(layer, entry.name))
        object.__setattr__(layer, entry.name, part.astype(float) if part.dtype.kind in "iub" else part)


def _with_input_entries(
    value: Float[np.ndarray, "*batch head"], dimension: int
) -> Float[np.ndarray, "*batch head entry"]:
    """(H,) → (H, D+1): a value row acts on D input entries, then on the label."""
    return np.concatenate([np.zeros((*value.shape, dimension)), value[..., None]], axis=-1)


def _with_label_entry(weights: np.ndarray, *, axis: int) -> np.ndarray:
    """D → D+1 entries along an axis: the last one acts on the label."""
    pad = [(0, 0)] * weights.ndim
    pad[axis] = (0, 1)
    return np.pad(weights, pad)


def _require_restricted(restricted: bool) -> None:
    require(
        restricted,
        "the layer must be restricted, value of shape (H,); got one with D+1 value entries for each head. "
        "Such a layer acts through more than the summary: compare predictions or losses instead.",
    )


def random_merged(dimension: int, heads: int, *, scale: float, rng: np.random.Generator) -> MergedAttention:
    """A restricted merged layer with independent normal entries of standard deviation `scale`."""
    value = scale * rng.standard_normal(heads)
    return MergedAttention(value, scale * rng.standard_normal((heads, dimension, dimension)))


def random_separate(
    dimension: int, heads: int, rank: int = 1, *, scale: float, rng: np.random.Generator
) -> SeparateAttention:
    """A restricted separate layer whose heads have equal scales.

    Values have standard deviation `scale`, key and query entries `scale`/√(R(D+1)), so that value, keys and
    queries of a head have norms of the same size.
    """
    spread = scale / np.sqrt(rank * (dimension + 1))
    shape = (heads, rank, dimension)
    value = scale * rng.standard_normal(heads)
    return SeparateAttention(value, spread * rng.standard_normal(shape), spread * rng.standard_normal(shape))


def aligned_separate(initial: Validated[Float[ArrayLike, "D"]]) -> SeparateAttention:
    """One rank-one head for each input direction, its value, key and query of the same length `initial`."""
    strength = numbers("initial", initial)
    require(strength.ndim == 1, f"initial must be one number for each direction; got shape {strength.shape}.")
    directions = np.diag(strength)[:, None, :]
    return SeparateAttention(strength, directions, directions)


Layer = MergedAttention | SeparateAttention


def restricted_parts(start: Validated[Layer], kind: type[Layer], dimension: int) -> tuple[np.ndarray, ...]:
    """Arrays of one restricted layer, value first. Raises ValueError for any other start."""
    require(isinstance(start, kind), f"start must be a {kind.__name__}; got {type(start).__name__}.")
    require(
        start.restricted,
        "start must be restricted, value of shape (H,); got D+1 value entries for each head. Its flow is not closed "
        "in Γ: start from the restricted entries, or train the layer by simulation.",
    )
    require(
        start.dimension == dimension,
        f"start must have the dimension of the problem, D = {dimension}; got {start.dimension}.",
    )
    parts = tuple(np.asarray(getattr(start, entry.name), dtype=float) for entry in fields(start))
    require(parts[0].ndim == 1, f"start must be one layer; got values of shape {parts[0].shape}. Take one at a time.")
    require(all(bool(np.all(np.isfinite(part))) for part in parts), "start must be finite; got NaN or infinity.")
    return parts
