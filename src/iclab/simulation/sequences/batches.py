"""Batches that networks train on: tokens, the target at each of them, and the weight of its loss."""

from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from jaxtyping import PRNGKeyArray

__all__ = ["Batch", "Data"]


class Batch(NamedTuple):
    """Sequences and their targets. The loss of a batch is the mean over positions, weighted by `weight`."""

    tokens: Any  # whole numbers (sequence, position), or numbers (sequence, position, feature)
    target: Any  # (sequence, position)
    weight: Any  # (sequence, position), 0 where the output does not count


@runtime_checkable
class Data(Protocol):
    """A law of batches, as plain numbers, so that it is part of what is compiled.

    Its methods are made of JAX and run inside a compiled loop, in single precision whatever the setting. `fixed`
    draws once what all batches share, and a batch depends on that and on its own key alone.
    """

    loss: ClassVar[str]
    """The loss of an output: "cross-entropy" or "square"."""

    def fixed(self, key: PRNGKeyArray) -> Any:
        """The part of the data that is drawn once."""
        ...

    def batch(self, fixed: Any, key: PRNGKeyArray) -> Batch:
        """A batch to train on."""
        ...
