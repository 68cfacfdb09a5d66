"""Conventions of training code: what its loss is, by what it divides attention, and so what one step is in theory.

Theory takes the moments of the summary as the code divides it, so that weights stay as they are; its time is
η × step with η the learning rate on half the mean squared error. A code whose loss is f times the mean squared error
steps by its learning rate times the gradient of that, so that η = 2 f lr.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab.attention import Layer, MergedAttention
from iclab.numerics import Checked, OneOf, Positive, one_of, require, whole_number

__all__ = ["LOSSES", "NORMALIZATIONS", "PUBLISHED", "Conventions", "PublishedCode"]

LOSSES = ("mean", "half", "sum")
NORMALIZATIONS = {"1/N": "length", "none": "none", "1/(N+1)": "tokens"}
"""Divisors of the sum over tokens, with the names that the moments have for them."""


@dataclass(frozen=True)
class PublishedCode:
    """The conventions of one published code."""

    loss: str
    normalization: str
    words: str


PUBLISHED = {
    "2501.16265": PublishedCode("mean", "none", "merged or separate key and query, contexts of one length"),
    "2501.16265-lengths": PublishedCode("mean", "1/(N+1)", "contexts of several lengths, divided by their tokens"),
    "2504.12916": PublishedCode("half", "1/N", "modes of two factors; its loss is half a sum over outputs, here one"),
}
"""Published codes by their arXiv number."""


@dataclass(frozen=True)
class Conventions(Checked):
    """The way a run was trained: plain gradient descent, and in which units.

    `loss` is what the learning rate acts on and what the log shows: the mean of squared errors over sequences, half
    of it, or their sum. `normalization` is the divisor of the sum over the tokens of a context. The run saw
    `sequences` in every step, or a fresh `batch` in each. `start` are its weights at step 0, in its own units; where
    they are unknown `attention` and `heads` say what they were.

    Raises ValueError for impossible numbers, unknown names, both kinds of data, and a sum over unknown many.
    """

    learning_rate: Positive
    loss: Annotated[str, OneOf(LOSSES)] = "mean"
    normalization: Annotated[str, OneOf(tuple(NORMALIZATIONS))] = "1/N"
    sequences: int | None = None  # P, of the training set
    batch: int | None = None  # B, fresh sequences in every step
    start: Layer | None = None  # weights at step 0
    attention: Annotated[str, OneOf(("merged", "separate"))] = "merged"  # of a start that is not known
    heads: int | None = None  # of a start that is not known; D unless stated

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sequences", "batch", "heads"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name))
        require(
            self.sequences is None or self.batch is None,
            f"a run must be trained on a set of sequences or on fresh batches; got {self.sequences} sequences and a "
            f"batch of {self.batch}. State one.",
        )
        require(
            self.loss != "sum" or self.drawn is not None,
            "loss 'sum' must come with the number of sequences that it sums; got none. State --sequences or --batch.",
        )

    @classmethod
    def published(cls, arxiv: str, learning_rate: float, **others: object) -> "Conventions":
        """The conventions of a published code. Raises ValueError, with all numbers, for an unknown one."""
        code = PUBLISHED[one_of("published", arxiv, PUBLISHED)]
        return cls(learning_rate, code.loss, code.normalization, **others)  # pyright: ignore[reportArgumentType]

    @property
    def drawn(self) -> int | None:
        """Sequences whose errors enter one step."""
        return self.batch if self.sequences is None else self.sequences

    @property
    def kind(self) -> str:
        """The kind of attention, "merged" or "separate"."""
        if self.start is None:
            return self.attention
        return "merged" if isinstance(self.start, MergedAttention) else "separate"

    @property
    def scale(self) -> float:
        """Loss of the log / mean squared error."""
        return {"mean": 1.0, "half": 0.5, "sum": float(self.drawn or 1)}[self.loss]

    @property
    def rate(self) -> float:
        """η: one step of the run in the time of theory."""
        return 2 * self.scale * self.learning_rate

    def errors(self, losses: Float[np.ndarray, "record"]) -> Float[np.ndarray, "record"]:
        """Mean squared errors from the losses of the log."""
        return losses / self.scale

    def others(self) -> "Iterator[Conventions]":
        """The same run in every other convention that can be stated of it."""
        for loss in LOSSES:
            for normalization in NORMALIZATIONS:
                if (loss, normalization) != (self.loss, self.normalization) and (loss != "sum" or self.drawn):
                    yield replace(self, loss=loss, normalization=normalization)

    @property
    def switches(self) -> str:
        """The conventions as flags."""
        return f"--loss {self.loss} --normalization {self.normalization}"

    def plain(self) -> dict[str, object]:
        """The conventions as JSON takes them; of the weights their shape."""
        known = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "start"}
        kind = None if self.start is None else type(self.start).__name__
        return {**known, "start": kind}
