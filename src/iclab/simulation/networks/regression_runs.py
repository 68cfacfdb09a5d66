"""Networks that pretrain on sets of sequences drawn once, and the errors of networks on contexts of regression."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from iclab.numerics import checks_its_fields, require, whole_number
from iclab.simulation.networks import apply
from iclab.simulation.networks.optimizers import WARM_UP, adam, warmed_adam
from iclab.simulation.networks.parts import Network
from iclab.simulation.networks.sizes import require_outputs
from iclab.simulation.networks.training import State, batch_loss, roles, train
from iclab.simulation.sequences import Batch, FixedRegression, RegressionContexts

__all__ = [
    "FirstSequences", "FreshContexts", "Predictions", "SetErrors", "TrainedRun", "predictions_in_training",
    "set_errors",
]  # fmt: skip

Array = np.ndarray


@dataclass(frozen=True)
class _OfContexts:
    """Common part of data on contexts of regression: the law of a context."""

    loss: ClassVar[str] = "square"

    contexts: RegressionContexts

    @property
    def length(self) -> int:
        """Tokens of a sequence."""
        return self.contexts.length

    @property
    def outputs(self) -> int:
        """Entries of the output of a network at a position."""
        return self.contexts.outputs


@checks_its_fields
@dataclass(frozen=True)
class FirstSequences(_OfContexts):
    """The first few of a set of sequences: sets of all sizes are compiled and drawn as the largest one.

    Raises ValueError for more sequences than are drawn, and for fewer than a batch holds.
    """

    sequences: int  # n, contexts seen in pretraining
    drawn: int  # contexts of the largest set

    def __post_init__(self) -> None:
        checked = FixedRegression(self.contexts, self.sequences)
        object.__setattr__(self, "sequences", checked.sequences)
        object.__setattr__(self, "drawn", whole_number("drawn", self.drawn))
        require(
            self.sequences <= self.drawn,
            f"sequences must be at most those drawn, {self.drawn}; got {self.sequences}.",
        )

    def fixed(self, key: PRNGKeyArray) -> tuple[Any, Batch]:
        """The tasks, and the sequences."""
        tasks, every = _set(FixedRegression(replace(self.contexts, batch_size=1), self.drawn), key)
        return tasks, Batch(*(part[: self.sequences] for part in _at_queries(self.contexts, every)))

    def batch(self, fixed: tuple[Any, Batch], key: PRNGKeyArray) -> Batch:
        """Several of the sequences, or all in their order."""
        return FixedRegression(self.contexts, self.sequences).batch(fixed, key)


@dataclass(frozen=True)
class FreshContexts(_OfContexts):
    """Contexts that are fresh in every batch, with the loss where labels are predicted, at all inputs or the last."""

    def fixed(self, key: PRNGKeyArray) -> Any:
        """The tasks of the pool."""
        return self.contexts.fixed(key)

    def batch(self, fixed: Any, key: PRNGKeyArray) -> Batch:
        """New contexts."""
        return _at_queries(self.contexts, self.contexts.batch(fixed, key))


class SetErrors(NamedTuple):
    """Mean squared errors of a network: on contexts of new tasks, and on the sequences that it was trained on."""

    icl: float
    train: float


def set_errors(
    config: Network, data: FirstSequences, *, steps: int, rate: float, tested: int, key: PRNGKeyArray
) -> SetErrors:
    """Errors after Adam at a constant learning rate on a set of sequences, with `tested` contexts of new tasks.

    Raises ValueError as `train` does, and for more contexts than fit in memory, before the run.
    """
    tokens = jax.ShapeDtypeStruct((max(tested, data.sequences), data.length, data.contexts.features), np.float32)
    require_outputs(config, tokens)
    for_run, for_test = jax.random.split(key)
    state = train(config, data, steps=steps, optimizer=adam(rate), key=for_run)
    fixed = data.fixed(roles(for_run).fixed)
    new = _contexts(replace(data.contexts, batch_size=1), tested, "new", fixed[0], for_test)
    return SetErrors(
        *(float(_loss(config, state["parameters"], batch)) for batch in (_at_queries(data.contexts, new), fixed[1]))
    )


class Predictions(NamedTuple):
    """Predictions of a network on given contexts at several steps of its training."""

    inputs: Float[Array, "P example D"]
    labels: Float[Array, "P example"]
    predictions: Float[Array, "step P query"]


class TrainedRun(NamedTuple):
    """Predictions during one run of training, on each kind of contexts, and the pool of its tasks."""

    predictions: dict[str, Predictions]
    pool: Float[Array, "K entry"]


def predictions_in_training(
    config: Network,
    law: RegressionContexts,
    *,
    steps: Sequence[int],
    rate: float,
    tested: int,
    kinds: tuple[str, ...] = ("new",),
    key: PRNGKeyArray,
) -> TrainedRun:
    """Predictions at given steps of training by Adam on fresh contexts.

    The learning rate warms up and then falls as a cosine. There are `tested` contexts of each kind: "new" ones of new
    tasks, "known" ones of the law of training. The last step ends the run.

    Raises ValueError for steps that do not increase or do not outlast the warm-up.
    """
    require(
        max(steps, default=0) > WARM_UP,
        f"steps must outlast the {WARM_UP} of the warm-up; got {tuple(steps)}.",
    )
    for_run, for_test = jax.random.split(key)
    fixed = law.fixed(roles(for_run).fixed)
    batches = {
        kind: _contexts(law, tested, kind, fixed, one)
        for kind, one in zip(kinds, jax.random.split(for_test, len(kinds)), strict=True)
    }
    found: dict[str, list[Array]] = {kind: [] for kind in kinds}

    def record(_: int, state: State) -> None:
        for kind, batch in batches.items():
            predictions = apply(config, state["parameters"], np.asarray(batch.tokens))
            found[kind].append(predictions[:, law.query_positions, 0].astype(float))

    train(
        config,
        FreshContexts(law),
        steps=steps,
        optimizer=warmed_adam(rate, steps=steps[-1]),
        key=for_run,
        checkpoints=record,
    )

    def predictions_of(kind: str) -> Predictions:
        inputs, labels = law.examples(batches[kind])
        return Predictions(np.asarray(inputs, dtype=float), np.asarray(labels, dtype=float), np.array(found[kind]))

    return TrainedRun({kind: predictions_of(kind) for kind in kinds}, np.asarray(fixed, dtype=float))


def _at_queries(law: RegressionContexts, batch: Batch) -> Batch:
    if law.form == "interleaved":
        return batch
    return batch._replace(target=batch.target[:, law.query_positions], weight=batch.weight[:, law.query_positions])


_set = jax.jit(lambda data, key: data.fixed(key), static_argnums=0)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _contexts(law: RegressionContexts, count: int, kind: str, fixed: Any, key: jax.Array) -> Batch:
    return law.test(fixed, key, count) if kind == "new" else replace(law, batch_size=count).batch(fixed, key)


@partial(jax.jit, static_argnums=0)
def _loss(config: Network, parameters: Any, batch: Batch) -> jax.Array:
    return batch_loss(config, "square", parameters, batch)
