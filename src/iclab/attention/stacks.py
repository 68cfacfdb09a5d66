"""A stack of linear attention, whose layers pass labels on to each other.

Tokens are the columns z_i = (x_i, y_i), i = 1 … N, and the query (x_q, 0) last. Layer l adds V_l Z M Zᵀ A_l Z / N to
Z, M = diag(1, …, 1, 0): the query is no key. The answer is minus the label of the query after the last layer. The
restricted stack has V_l zero but for −v_l at (label, label), and A_l zero but for an input block U_l. Then inputs
stay, labels of the context become residuals, and the stack is descent in the context, w ← w + G_l (1/N) Σ (y − wᵀx) x
with G_l = v_l U_lᵀ. Without M, or with all entries free, it is another model.

Source: bordelon2025theory, abstract (tied layers); the blocks are derived in docs/derivations/depth.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, checks_its_fields, magnitude_number, numbers, require, whole_number

__all__ = ["StackedAttention", "random_stack", "stack_of"]

Array = np.ndarray


@checks_its_fields
@dataclass(frozen=True)
class StackedAttention:
    """L layers of linear attention with one head each.

    Restricted: value (L,), key_query (L, D, D). Unrestricted: value and key_query (L, D+1, D+1), the label last.
    Leading axes (time, seed) may stand before both. With `masked` False the query is a key too.

    Raises ValueError when the two shapes do not fit each other.
    """

    value: Float[np.ndarray, "..."]  # (*batch, L) if restricted, else (*batch, L, D+1, D+1)
    key_query: Float[np.ndarray, "*batch layer entry entry"]
    masked: bool = True

    def __post_init__(self) -> None:
        for name in ("value", "key_query"):
            part = np.asarray(getattr(self, name))
            object.__setattr__(self, name, part.astype(float) if part.dtype.kind in "iub" else part)
        value, (*lead, rows, columns) = self.value.shape, (0, 0, *self.key_query.shape)
        lead, whole = tuple(lead[2:]), value == self.key_query.shape and rows >= 2
        require(
            len(lead) >= 1 and lead[-1] >= 1 and rows == columns and (value == lead or whole),
            "value and key_query must have shapes (L,) and (L, D, D), or both (L, D+1, D+1), with L >= 1; "
            f"got {value} and {self.key_query.shape}.",
        )

    @property
    def restricted(self) -> bool:
        """True where layers write labels alone, and read inputs alone as keys and queries."""
        return self.value.shape != self.key_query.shape

    @property
    def depth(self) -> int:
        """L, the number of layers."""
        return self.key_query.shape[-3]

    @property
    def dimension(self) -> int:
        """D, the number of entries of an input."""
        return self.key_query.shape[-1] - (not self.restricted)

    def __getitem__(self, index: int) -> "StackedAttention":
        """The stack at one index of the first leading axis, as at one time of a trajectory.

        Raises ValueError for a stack without leading axes, whose first axis is that of the layers.
        """
        require(self.key_query.ndim > 3, "a stack must have leading axes to be indexed; got one stack alone.")
        return StackedAttention(self.value[index], self.key_query[index], self.masked)

    def gammas(self) -> Float[np.ndarray, "*batch layer D D"]:
        """Γ_l = v_l U_l = G_lᵀ, whose rows act on the summary. Raises ValueError for an unrestricted stack."""
        self._require_restricted()
        return self.value[..., None, None] * self.key_query

    def unrestricted(self) -> "StackedAttention":
        """The same stack with all entries, the added ones zero. Raises ValueError for one that has them."""
        self._require_restricted()
        size = self.dimension + 1
        value = np.zeros((*self.key_query.shape[:-2], size, size))
        value[..., -1, -1] = -self.value
        pad = [(0, 0)] * (self.key_query.ndim - 2) + [(0, 1)] * 2
        return StackedAttention(value, np.pad(self.key_query, pad), self.masked)

    def predictions(
        self,
        inputs: Validated[Float[ArrayLike, "*batch N D"]],
        labels: Validated[Float[ArrayLike, "*batch N"]],
        query: Validated[Float[ArrayLike, "*batch D"]],
    ) -> Float[np.ndarray, "*batch"]:
        """Answers to the queries of many contexts, token by token, as attention computes them.

        Raises ValueError for shapes that do not fit each other or the stack, and for a stack with leading axes.
        """
        x, y, q = numbers("inputs", inputs), numbers("labels", labels), numbers("query", query)
        size = self.dimension
        require(
            x.ndim >= 2 and x.shape[-1] == size and y.shape == x.shape[:-1] and q.shape == (*x.shape[:-2], size),
            f"inputs, labels and query must have shapes (..., N, {size}), (..., N), (..., {size}); got {x.shape}, "
            f"{y.shape}, {q.shape}.",
        )
        require(
            self.key_query.ndim == 3, "predictions must be those of one stack; got leading axes. Take one of them."
        )
        stack, length = self.unrestricted() if self.restricted else self, x.shape[-2]
        tokens = np.zeros((*x.shape[:-2], size + 1, length + 1))
        tokens[..., :-1, :-1], tokens[..., -1, :-1], tokens[..., :-1, -1] = np.swapaxes(x, -1, -2), y, q
        for value, key_query in zip(stack.value, stack.key_query, strict=True):
            keys = tokens[..., : length if self.masked else length + 1]
            tokens = tokens + value @ (keys @ np.swapaxes(keys, -1, -2)) @ key_query @ tokens / length
        return -tokens[..., -1, -1]

    def _require_restricted(self) -> None:
        require(
            self.restricted,
            "the stack must be restricted, value of shape (L,); got whole value matrices. Such a stack may rewrite "
            "inputs: compare predictions or losses instead.",
        )


def stack_of(gammas: Validated[Float[ArrayLike, "layer D D"]]) -> StackedAttention:
    """The restricted stack of given Γ_l, values 1. Raises ValueError for what is no list of square matrices."""
    matrices = numbers("gammas", gammas)
    require(
        matrices.ndim == 3 and matrices.shape[1] == matrices.shape[2] and len(matrices) > 0,
        f"gammas must be a list of square matrices, one for each layer; got shape {matrices.shape}.",
    )
    return StackedAttention(np.ones(len(matrices)), matrices)


def random_stack(
    dimension: Validated[int], depth: Validated[int], *, scale: Validated[float], rng: np.random.Generator
) -> StackedAttention:
    """A restricted stack with independent normal entries of standard deviation `scale`.

    Raises ValueError for a dimension or a depth below 1, and for a negative scale.
    """
    size, layers = whole_number("dimension", dimension), whole_number("depth", depth)
    spread = magnitude_number("scale", scale, zero=True)
    return StackedAttention(spread * rng.standard_normal(layers), spread * rng.standard_normal((layers, size, size)))
