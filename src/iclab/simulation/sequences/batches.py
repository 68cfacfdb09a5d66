"""What networks train on: tokens, what is to be answered at each of them, and which answers count."""

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


class Batch(NamedTuple):
    """Sequences side by side. Their loss is the mean over positions, by `weight`, of a loss against `target`."""

    tokens: Any  # whole numbers (sequence, position), or numbers (sequence, position, feature)
    target: Any  # (sequence, position)
    weight: Any  # (sequence, position), 0 where an answer does not count


class Data(Protocol):
    """A law of batches, as plain numbers, so that it is part of what is compiled.

    Its methods are made of JAX and run inside a compiled loop, in single precision whatever the setting. `fixed`
    draws once what all batches share, and a batch depends on that and on its own key alone.
    """

    loss: ClassVar[str]
    """How an answer is judged: "cross-entropy" or "square"."""

    @property
    def length(self) -> int:
        """Tokens of a sequence."""
        ...

    @property
    def outputs(self) -> int:
        """Numbers that a network answers at a position."""
        ...

    def fixed(self, key: "PRNGKeyArray") -> Any:
        """What is drawn once."""
        ...

    def batch(self, fixed: Any, key: "PRNGKeyArray") -> Batch:
        """A batch to train on."""
        ...
