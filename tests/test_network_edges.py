"""Networks at their edges: numbers that no token has, data that are no data, sizes beyond memory."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_array_equal

from iclab.problem import Pool
from iclab.simulation import memory, networks
from iclab.simulation.keys import key_of
from iclab.simulation.networks import Perceptron, Transformer, runs, sizes, training
from iclab.simulation.sequences.batches import Batch
from iclab.study import Preset, Study
from tests.test_networks import REAL, SMALL, Cycle, Lines, drawn

KEY = key_of(0)
SGD = optax.sgd(1e-2)
MANY = Transformer(length=8, outputs=2, vocabulary=100, layers=1, width=4, heads=1)


def answered(config: Transformer, tokens: jax.Array) -> np.ndarray:
    return np.asarray(config.forward(drawn(config), tokens))


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int16])
@pytest.mark.parametrize("contexts", [3, 130])  # fewer than there are tokens, and more
def test_tokens_of_few_bits_are_those_of_many(kind: type, contexts: int) -> None:
    tokens = np.random.default_rng(0).integers(0, 100, (contexts, 8))
    assert_array_equal(answered(MANY, jnp.asarray(tokens.astype(kind))), answered(MANY, jnp.asarray(tokens)))


@pytest.mark.parametrize("token", [-1, 100, 2**29, 2**31 - 1])  # times 8, the last two are counted as 0 and -8
@pytest.mark.parametrize("contexts", [3, 130])
def test_a_token_that_is_none_answers_with_none(token: int, contexts: int) -> None:
    tokens = jnp.zeros((contexts, 8), jnp.int32).at[1, 2].set(token)
    found = answered(MANY, tokens)
    assert np.isnan(found[1, 2:]).all()
    assert np.isfinite(np.delete(found, 1, axis=0)).all()


@dataclass(frozen=True)
class Odd:
    """Batches of other data with one part changed."""

    data: Any
    part: str  # of the batch
    change: Any  # of that part

    @property
    def loss(self) -> Any:
        return self.data.loss

    def fixed(self, key: jax.Array) -> Any:
        return self.data.fixed(key)

    def batch(self, fixed: Any, key: jax.Array) -> Batch:
        batch = self.data.batch(fixed, key)
        return batch._replace(**{self.part: self.change(getattr(batch, self.part))})


def missing(array: jax.Array) -> jax.Array:
    return array.at[0, 0].set(jnp.nan)


@pytest.mark.parametrize(
    ("data", "part", "change", "message"),
    [
        (Lines(), "tokens", missing, "tokens of the data must be finite; got NaN or infinity"),
        (Lines(), "target", missing, "targets of the data must be finite"),
        (Lines(), "weight", missing, "weights of the data must be finite"),
        (
            Lines(),
            "weight",
            jnp.zeros_like,
            "weights of the data must have a positive sum in every batch.*theirs is 0",
        ),
        (Lines(), "weight", lambda weight: 1j * weight, "weights of the data must be real; got complex64"),
        (Lines(), "target", lambda target: 1j * target, "targets of the data must be real; got complex64"),
        (Cycle(), "tokens", lambda tokens: tokens + 2**29, "tokens of the data must be whole numbers from 0 to 4"),
        (
            Cycle(),
            "target",
            lambda target: target - 1,
            "targets of the data must be whole numbers from 0 to 4; got -1",
        ),
    ],
)
def test_data_are_refused_by_what_is_wrong_with_them(data: Any, part: str, change: Any, message: str) -> None:
    config, odd = SMALL if isinstance(data, Cycle) else REAL, Odd(data, part, change)
    with pytest.raises(ValueError, match=message):
        networks.train(
            config,
            odd,  # type: ignore[arg-type]
            steps=1,
            optimizer=SGD,
            key=KEY,
        )


@pytest.mark.parametrize("optimizer", [optax.lbfgs(), optax.masked(SGD, {"another": True}), optax.sgd("high")])  # type: ignore[arg-type]
def test_an_optimizer_that_needs_more_than_slopes_is_refused(optimizer: Any) -> None:
    with pytest.raises(ValueError, match="optimizer must change weights by their gradients alone; it does not"):
        networks.train(SMALL, Cycle(), steps=1, optimizer=optimizer, key=KEY)


def test_an_optimizer_that_remembers_a_random_key_is_refused() -> None:
    noisy = optax.chain(optax.add_noise(0.1, 0.5, 3), SGD)
    with pytest.raises(ValueError, match="the state of the optimizer must be numbers alone; it has a random key"):
        networks.train(SMALL, Cycle(), steps=1, optimizer=noisy, key=KEY)


@pytest.mark.parametrize("checkpoints", [lambda: None, lambda step: None, lambda step, state, more: None])
def test_checkpoints_that_take_something_else_are_refused_before_the_run(checkpoints: Any) -> None:
    with pytest.raises(ValueError, match="checkpoints must be a function of step and state"):
        networks.train(SMALL, Cycle(), steps=1, optimizer=SGD, key=KEY, checkpoints=checkpoints)


def test_real_tokens_that_single_precision_does_not_hold_are_refused() -> None:
    with pytest.raises(ValueError, match=r"tokens must be of entries up to 1e\+15; got 1e\+300"):
        networks.apply(REAL, drawn(REAL), np.full((1, 6, 3), 1e300))


def test_a_ragged_weight_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"the weight unembed\.weight must be one array"):
        networks.apply(SMALL, drawn(SMALL) | {"unembed.weight": [[1.0], [1.0, 2.0]]}, [[0]])


SIZES = {
    "softmax": (Transformer(64, 20, 20, width=32, heads=4, mlp=128), np.zeros((16, 64), np.int32)),
    "linear, last": (
        Transformer(64, 1, features=3, width=32, attention="linear", causal=False, last_only=True),
        np.zeros((16, 64, 3), np.float32),
    ),
    "many outputs": (Transformer(32, 3000, 30, width=32, layers=1), np.zeros((16, 32), np.int32)),
    "perceptron": (Perceptron(20, 20, hidden=512), np.zeros((300, 2), np.int32)),
}


@pytest.mark.slow  # holds our estimate against one compiler's: after an upgrade look at both before the factor
@pytest.mark.parametrize("name", list(SIZES))
def test_sizes_are_below_what_a_compiler_takes_but_not_far(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, tokens = SIZES[name]
    weights = drawn(config)
    loss, target = ("square", np.float32) if config.outputs == 1 else ("cross-entropy", np.int32)
    place = jax.eval_shape(config.forward, weights, tokens).shape[:2]
    batch = Batch(tokens, np.zeros(place, target), np.ones(place, np.float32))
    slopes = jax.jit(lambda weights, batch: jax.grad(training.batch_loss, 2)(config, loss, weights, batch))
    asked: list[float] = []
    monkeypatch.setattr(sizes, "require_memory", lambda _, numbers, each: asked.append(each * numbers))
    sizes.require_outputs(config, tokens)
    sizes.require_gradients(config, tokens, len(tokens))
    for told, program in zip(
        asked, (jax.jit(config.forward).lower(weights, tokens), slopes.lower(weights, batch)), strict=True
    ):
        found: Any = program.compile().memory_analysis()
        taken = found.temp_size_in_bytes + found.output_size_in_bytes
        assert taken / 5 < told <= taken


def test_answers_and_runs_beyond_memory_are_refused_before_they_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    long = replace(SMALL, length=10**5, positions="none")  # scores of one context: 2 heads, 1e10 numbers of 4 bytes
    tokens = np.zeros((1, 10**5), np.int32)
    monkeypatch.setattr(memory, "machine_memory", lambda: 1e10)
    said = "batch size, length and sizes of the network must fit into 10 GB of memory; got 80 GB"
    with pytest.raises(ValueError, match=said):
        networks.apply(long, drawn(long), tokens)
    with pytest.raises(ValueError, match=said):
        runs.accuracy(long, drawn(long), Batch(tokens, tokens, tokens))
    data = replace(Cycle(), length=10**5)
    with pytest.raises(ValueError, match=r"must fit into 10 GB of memory; got \d+ GB"):
        networks.train(long, data, steps=1, optimizer=SGD, key=KEY)
    monkeypatch.setattr(memory, "machine_memory", lambda: 1e12)
    sizes.require_outputs(long, tokens)


def test_a_device_without_memory_left_is_said_in_words() -> None:
    said = r"all arrays must fit into .* GB of memory; RESOURCE_EXHAUSTED.* Lower"
    with pytest.raises(MemoryError, match=said), memory.exhaustion_reported():
        jnp.zeros(2**45, jnp.float32).block_until_ready()

    def simulation(case: Any, *, key: Any) -> Any:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")

    case = Pool(np.eye(2))  # any frozen dataclass
    study = Study("s", "Q", 1, {"quick": Preset(case)}, lambda case: {}, simulation, lambda view, figure: None, ())
    with pytest.raises(MemoryError, match="Out of memory allocating 9 bytes"):
        study.run(seeds=1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"), memory.exhaustion_reported():
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")
