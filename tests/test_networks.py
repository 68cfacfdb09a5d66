"""Networks: what they answer, where they start, how they train, against PyTorch and by laws."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.simulation import networks
from iclab.simulation.keys import key_of
from iclab.simulation.networks import Perceptron, Transformer, training
from iclab.simulation.sequences.batches import Batch

KEY = key_of(0)
CLOSE = 2e-5  # float32 numbers of order one, through a few layers
SMALL = Transformer(length=6, outputs=5, vocabulary=5, width=8, heads=2, mlp=12, gain=True)
REAL = Transformer(length=6, outputs=1, features=3, width=8, heads=2, causal=False)
OPTIONS: dict[str, dict[str, Any]] = {
    "gelu": {},
    "relu": {"activation": "relu"},
    "post": {"norm": "post"},
    "no norm": {"norm": "none"},
    "no gain": {"gain": False},
    "attention alone": {"mlp": 0, "layers": 3},
    "linear": {"attention": "linear"},
    "linear, all seen": {"attention": "linear", "causal": False},
    "all seen": {"causal": False},
    "shortformer": {"positions": "shortformer"},
    "rotary": {"positions": "rotary"},
    "no positions": {"positions": "none"},
    "tied": {"tied": True},
    "one head": {"heads": 1},
}


@dataclass(frozen=True)
class Cycle:
    """Next tokens of a few sequences, drawn once; each step takes some of them."""

    loss: ClassVar[str] = "cross-entropy"
    vocabulary: int = 5
    outputs: int = 5
    length: int = 6

    def fixed(self, key: Any) -> Any:
        return jax.random.randint(key, (16, self.length + 1), 0, self.vocabulary)

    def batch(self, fixed: Any, key: Any) -> Batch:
        rows = fixed[jax.random.randint(key, (8,), 0, 16)]
        return Batch(rows[:, :-1], rows[:, 1:] % self.outputs, jnp.ones((8, self.length)))


@dataclass(frozen=True)
class Lines:
    """Real tokens with a real label at the last position alone."""

    loss: ClassVar[str] = "square"

    def fixed(self, key: Any) -> tuple[()]:
        return ()

    def batch(self, fixed: Any, key: Any) -> Batch:
        tokens = jax.random.normal(key, (8, 6, 3))
        return Batch(tokens, tokens.sum(-1), jnp.zeros((8, 6)).at[:, -1].set(1.0))


ADAM = optax.adam(1e-2)


def drawn(config: networks.Network, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights of a network, its gains around one, drawn without JAX: nothing compiles for that."""
    rng = np.random.default_rng(seed)
    shapes = {name: part.shape for name, part in jax.eval_shape(config.start, KEY).items()}
    return {
        name: (
            rng.uniform(0.5, 1.5, shape) if len(shape) == 1 else rng.standard_normal(shape) / shape[1] ** 0.5
        ).astype(np.float32)
        for name, shape in shapes.items()
    }


def answers(config: networks.Network, weights: dict[str, np.ndarray], tokens: Any) -> np.ndarray:
    """What a network answers, operation by operation: many networks share what that compiles."""
    with jax.disable_jit():
        return networks.apply(config, weights, tokens)


def asked(config: Transformer, contexts: int = 3) -> np.ndarray:
    rng = np.random.default_rng(1)
    if config.vocabulary:
        return rng.integers(0, config.vocabulary, (contexts, config.length))
    return rng.standard_normal((contexts, config.length, config.features)).astype(np.float32)


def in_torch(config: Transformer, weights: dict[str, np.ndarray], tokens: np.ndarray) -> np.ndarray:
    """The same network of PyTorch's own parts in float64; rotations as complex numbers."""
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    part = {name: torch.from_numpy(np.array(array)).double() for name, array in weights.items()}
    length, width = tokens.shape[1], config.width

    def norm(x: Any, name: str) -> Any:
        return functional.layer_norm(x, (width,), part.get(f"{name}.weight"))

    def turned(x: Any) -> Any:
        half = config.head_dim // 2
        angles = torch.outer(torch.arange(length).double(), 10_000.0 ** (-torch.arange(half).double() / half))
        moved = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([moved.real, moved.imag], -1)

    def attention(x: Any, name: str) -> Any:
        asking = x + part["positions.weight"][:length] if config.positions == "shortformer" else x
        q, k, v = (
            functional.linear(rows, part[f"{name}.{which}.weight"]).unflatten(-1, (config.heads, -1)).transpose(1, 2)
            for rows, which in ((asking, "query"), (asking, "key"), (x, "value"))
        )
        if config.positions == "rotary":
            q, k = turned(q), turned(k)
        if config.attention == "softmax":
            heard = functional.scaled_dot_product_attention(q, k, v, is_causal=config.causal)
        else:
            scores = q @ k.mT / config.head_dim**0.5
            seen = torch.arange(1, length + 1)[:, None] if config.causal else length
            heard = (scores.tril() if config.causal else scores) / seen @ v
        return functional.linear(heard.transpose(1, 2).flatten(2), part[f"{name}.output.weight"])

    def mlp(x: Any, name: str) -> Any:
        hidden = functional.linear(x, part[f"{name}.mlp_in.weight"])
        hidden = (
            functional.relu(hidden) if config.activation == "relu" else functional.gelu(hidden, approximate="tanh")
        )
        return functional.linear(hidden, part[f"{name}.mlp_out.weight"])

    given = torch.from_numpy(np.array(tokens))  # what JAX gives cannot be written to, of which PyTorch warns
    if config.vocabulary:
        x = functional.embedding(given, part["embed.weight"])
    else:
        x = functional.linear(given.double(), part["read_in.weight"])
    if config.positions == "absolute":
        x = x + part["positions.weight"][:length]
    before, after = config.norm == "pre", config.norm == "post"
    for layer in range(config.layers):
        name = f"layers.{layer}"
        x = x + attention(norm(x, f"{name}.norm") if before else x, f"{name}.attention")
        x = norm(x, f"{name}.norm") if after else x
        if config.mlp:
            x = x + mlp(norm(x, f"{name}.mlp_norm") if before else x, name)
            x = norm(x, f"{name}.mlp_norm") if after else x
    x = norm(x, "final_norm") if before else x
    return functional.linear(x, part["embed.weight" if config.tied else "unembed.weight"]).numpy()


@pytest.mark.parametrize(
    ("base", "option"), [*((SMALL, option) for option in OPTIONS), (REAL, "no gain"), (REAL, "shortformer")]
)
def test_a_network_answers_as_pytorch_does(base: Transformer, option: str) -> None:
    config = replace(base, **OPTIONS[option])
    for contexts in (3, 8):  # fewer and more than there are tokens
        weights, tokens = drawn(config), asked(config, contexts)
        assert_allclose(answers(config, weights, tokens), in_torch(config, weights, tokens), atol=CLOSE, rtol=CLOSE)


def test_a_compiled_network_answers_as_its_operations_do() -> None:
    weights, tokens = drawn(SMALL), asked(SMALL)
    assert_allclose(networks.apply(SMALL, weights, tokens), answers(SMALL, weights, tokens), atol=CLOSE)


def test_a_perceptron_answers_as_written_out() -> None:
    config = Perceptron(vocabulary=7, outputs=4, length=3, width=5, hidden=6)
    weights, tokens = drawn(config), np.array([[0, 3, 6], [2, 2, 1]])
    embedded = np.concatenate([weights["embed.weight"][tokens[:, place]] for place in range(3)], axis=1)
    known = np.maximum(embedded @ weights["mlp_in.weight"].T, 0) @ weights["mlp_out.weight"].T
    assert_allclose(answers(config, weights, tokens)[:, 0], known, atol=CLOSE)


@pytest.mark.parametrize("positions", ["absolute", "shortformer", "rotary", "none"])
@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_the_last_position_alone_answers_as_it_does_among_all(positions: str, attention: str) -> None:
    for config, contexts in ((SMALL, 3), (SMALL, 8), (REAL, 3)):
        config = replace(config, positions=positions, attention=attention)
        weights, tokens = drawn(config), asked(config, contexts)
        last = answers(replace(config, last_only=True), weights, tokens)
        assert_allclose(last, answers(config, weights, tokens)[:, -1:], atol=CLOSE)


@pytest.mark.parametrize("positions", ["absolute", "rotary"])
def test_a_later_token_leaves_earlier_answers_unless_all_are_seen(positions: str) -> None:
    config = replace(SMALL, positions=positions)
    weights, tokens = drawn(config), asked(config)
    other = tokens.copy()
    other[:, 4:] = (other[:, 4:] + 1) % 5
    changed = [answers(one, weights, other) - answers(one, weights, tokens)
               for one in (config, replace(config, causal=False))]  # fmt: skip
    assert_array_equal(changed[0][:, :4], 0)
    assert np.abs(changed[0][:, 4:]).min(axis=(1, 2)).max() > 0
    assert np.abs(changed[1][:, :4]).max() > 1e-2


def test_shorter_sequences_are_answered_as_the_start_of_longer_ones() -> None:
    weights, tokens = drawn(SMALL), asked(SMALL)
    whole = answers(SMALL, weights, tokens)
    assert_allclose(answers(SMALL, weights, tokens[:, :4]), whole[:, :4], atol=CLOSE)


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_without_positions_and_mask_permuted_tokens_give_permuted_answers(attention: str) -> None:
    config = replace(SMALL, positions="none", causal=False, attention=attention)
    weights, tokens = drawn(config), asked(config)
    order = np.array([3, 0, 5, 1, 4, 2])
    assert_allclose(
        answers(config, weights, tokens[:, order]),
        answers(config, weights, tokens)[:, order],
        atol=CLOSE,
    )
    placed = replace(config, positions="absolute")
    weights = drawn(placed)
    moved = answers(placed, weights, tokens[:, order]) - answers(placed, weights, tokens)[:, order]
    assert np.abs(moved).max() > 1e-2


def test_rotary_positions_are_relative() -> None:
    config = replace(REAL, positions="rotary", attention="linear", norm="none", layers=1)
    weights, tokens = drawn(config), asked(config)[:, :3]
    moved = np.concatenate([np.zeros_like(tokens), tokens], axis=1)  # three places later, behind silence
    early, late = answers(config, weights, tokens), answers(config, weights, moved)[:, 3:]
    stream = tokens @ weights["read_in.weight"].T @ weights["unembed.weight"].T
    assert_allclose(late - stream, (early - stream) / 2, atol=CLOSE)  # shares are divided by twice as many tokens


def test_entries_at_the_start_have_variance_one_over_inputs() -> None:
    config = Transformer(length=96, outputs=80, vocabulary=96, width=64, heads=4, mlp=160, gain=True)
    weights = networks.initial(config, key=KEY)
    for name, part in weights.items():
        if part.ndim == 1:
            assert_array_equal(part, 1)
            continue
        spread = 5 * np.sqrt(2 / part.size)  # five standard errors of a variance
        assert_allclose(part.var() * part.shape[1], 1, rtol=spread, err_msg=name)
        assert abs(part.mean()) < 5 / np.sqrt(part.size * part.shape[1])
    parts = [part.ravel()[:1000] for part in weights.values() if part.ndim > 1]
    assert np.abs(np.corrcoef(parts) - np.eye(len(parts))).max() < 5 / np.sqrt(1000)


@pytest.mark.parametrize(("config", "data"), [(SMALL, Cycle()), (REAL, Lines())], ids=["cross-entropy", "square"])
def test_a_step_of_plain_descent_is_the_slope_of_the_loss(config: Transformer, data: Any) -> None:
    keys = training.roles(KEY)
    batch = data.batch(data.fixed(keys.fixed), jax.random.fold_in(keys.batches, 0))
    start = networks.initial(config, key=keys.start)
    state = networks.train(config, data, steps=1, optimizer=optax.sgd(1.0), key=KEY)
    slope = {name: start[name] - state["parameters"][name] for name in start}
    rng = np.random.default_rng(0)
    direction = {name: rng.standard_normal(part.shape) for name, part in start.items()}

    def loss(distance: float) -> float:
        """The loss by PyTorch's forward pass, in float64, written out."""
        moved = {name: part.astype(float) + distance * direction[name] for name, part in start.items()}
        outputs = in_torch(config, moved, np.asarray(batch.tokens))
        if data.loss == "square":
            each = (outputs[..., 0] - np.asarray(batch.target)) ** 2
        else:
            each = (
                np.log(np.exp(outputs).sum(-1))
                - np.take_along_axis(outputs, np.asarray(batch.target)[..., None], -1)[..., 0]
            )
        return float(np.average(each, weights=np.asarray(batch.weight)))

    known = (loss(1e-4) - loss(-1e-4)) / 2e-4
    assert_allclose(sum((slope[name] * direction[name]).sum() for name in start), known, rtol=1e-3)  # float32 slopes
    assert_allclose(state["loss"], loss(0.0), rtol=1e-5)


def test_parts_of_a_batch_have_the_loss_and_slope_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Cycle()
    batch = data.batch(data.fixed(KEY), KEY)
    batch = batch._replace(weight=jnp.arange(48.0).reshape(8, 6))
    start = drawn(SMALL)
    found = []
    for bytes_of_part in (2**30, 8 * SMALL.entries):
        monkeypatch.setattr(training, "CACHE", bytes_of_part)
        found.append(training._loss_and_gradient(SMALL, data.loss, start, batch))
    assert training._chunk_size(SMALL, 8) == 2
    assert training._chunk_size(SMALL, 7) == 7  # no part of a prime
    for whole, parts in zip(*map(jax.tree.leaves, found), strict=True):
        assert_allclose(parts, whole, atol=1e-6)
    assert_allclose(found[0][0], training.batch_loss(SMALL, data.loss, start, batch), rtol=1e-6)


def test_training_lowers_the_loss_and_is_the_same_for_the_same_key() -> None:
    losses: list[float] = []
    runs = [
        networks.train(SMALL, Cycle(), steps=[1, 300], optimizer=ADAM, key=key,
                       checkpoints=lambda step, state: losses.append(state["loss"]))
        for key in (KEY, KEY, key_of(1))
    ]  # fmt: skip
    assert losses[1] < losses[0] / 2
    for one, same, other in zip(*(run["parameters"].items() for run in runs), strict=True):
        assert_array_equal(one[1], same[1])
        assert np.any(one[1] != other[1])


def test_a_run_that_is_stopped_and_resumed_is_one_that_was_not() -> None:
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 4, 20)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.1))
    known: dict[int, Any] = {}
    networks.train(SMALL, Cycle(), steps=range(21), optimizer=optimizer, key=KEY, checkpoints=known.__setitem__)
    for stopped in (0, 7, 19):
        seen: list[int] = []
        again = networks.train(
            SMALL, Cycle(), steps=[3, 9, 20], optimizer=optimizer, key=KEY, resume=known[stopped],
            checkpoints=lambda step, state: seen.append(step),  # noqa: B023
        )  # fmt: skip
        assert seen == [step for step in (3, 9, 20) if step > stopped]
        for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(known[20]), strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize(("last", "said"), [(10, r"step 7: its loss is nan"), (6, r"step 6: its loss is \d")])
def test_weights_that_leave_the_finite_numbers_stop_the_run_and_say_the_step(last: int, said: str) -> None:
    kept: list[int] = []
    with pytest.raises(ArithmeticError, match=said):
        networks.train(
            SMALL, Cycle(), steps=[0, 3, last], key=KEY, checkpoints=lambda step, state: kept.append(step),
            optimizer=optax.sgd(lambda count: jnp.where(count < 5, 0.1, jnp.inf)),
        )  # fmt: skip
    assert kept == [0, 3]


def test_a_compiled_run_is_left_in_stretches_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def weights() -> dict[str, Any]:
        return networks.train(SMALL, Cycle(), steps=[3, 20], optimizer=ADAM, key=KEY)["parameters"]

    whole, stops = weights(), []
    advance = training._advance

    def noted(*given: Any) -> tuple:
        stops.append(given[-1])
        return advance(*given)

    monkeypatch.setattr(training, "_advance", noted)
    for name, value in {"STRETCH": 2, "PATIENCE": 0.0}.items():
        monkeypatch.setattr(training, name, value)
    parts = weights()
    assert stops == [2, 3, 5, 7, 9, 11, 13, 15, 17, 19, 20]
    for name, part in whole.items():
        assert_array_equal(parts[name], part)


def test_more_steps_compile_nothing_anew() -> None:
    networks.train(SMALL, Cycle(), steps=[2, 4], optimizer=ADAM, key=KEY)
    compiled = training._advance._cache_size()
    first = networks.train(SMALL, Cycle(), steps=9, optimizer=ADAM, key=key_of(5))
    networks.train(SMALL, Cycle(), steps=[10, 11], optimizer=ADAM, key=key_of(5), resume=first)
    assert training._advance._cache_size() == compiled


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 3}, "heads must divide the width; got 3 heads and width 8"),
        ({"heads": 8, "positions": "rotary"}, "rotary positions need heads of even size; got 1"),
        ({"vocabulary": 0}, "vocabulary 0 and features 0"),
        ({"features": 2}, "vocabulary 5 and features 2"),
        ({"outputs": 4, "tied": True}, "tied needs a vocabulary as large as the outputs"),
        ({"activation": "tanh"}, "activation must be one of gelu, relu"),
        ({"attention": None}, "attention must be one of softmax, linear"),
        ({"positions": "alibi"}, "positions must be one of"),
        ({"norm": True}, "norm must be one of pre, post, none"),
        ({"width": 8.0}, "width must be a whole number >= 1; got 8.0"),
        ({"layers": True}, "layers must be a whole number >= 1; got True"),
        ({"length": 0}, "length must be a whole number >= 1; got 0"),
        ({"layers": 10**8}, "layers must be at most 1000, since each is compiled by itself; got 100000000"),
        ({"mlp": -1}, "mlp must be a whole number >= 0; got -1"),
        ({"causal": "no"}, "causal must be a bool; got str"),
        ({"gain": 1}, "gain must be a bool; got int"),
    ],
)
def test_an_impossible_network_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (np.zeros((2, 7), int), "sequences of 1 to 6 tokens, which is what the network takes; got 2 of 7 tokens"),
        (np.zeros((2, 0), int), "got 2 of 0 tokens"),
        (np.zeros((0, 4), int), "got 0 of 4 tokens"),
        (np.zeros(4, int), r"axes \(context, position\); got shape \(4,\)"),
        ([[0, 5]], "tokens must be whole numbers from 0 to 4; got 0 to 5"),
        ([[-1, 2]], "tokens must be whole numbers from 0 to 4; got -1 to 2"),
        ([[0.0, 1.0]], "got an array of float64"),
        ([[True, False]], "got an array of bool"),
        ([["a", "b"]], "got an array of <U1"),
        ([[0], [1, 2]], "tokens must be one array"),
        (None, r"got shape \(\)"),
    ],
)
def test_tokens_that_do_not_suit_the_network_are_refused(tokens: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        answers(SMALL, drawn(SMALL), tokens)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (np.zeros((2, 4, 2)), r"axes \(context, position, 3\); got shape \(2, 4, 2\)"),
        (np.zeros((2, 4)), r"got shape \(2, 4\)"),
        (np.full((1, 2, 3), np.nan), "tokens must be finite"),
        (np.full((1, 2, 3), "a"), "tokens must be"),
    ],
)
def test_real_tokens_that_do_not_suit_the_network_are_refused(tokens: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        answers(REAL, drawn(REAL), tokens)


def test_weights_of_another_network_are_refused() -> None:
    with pytest.raises(ValueError, match=r"layers.0.mlp_in.weight is missing and must be \(12, 8\)"):
        answers(SMALL, drawn(replace(SMALL, mlp=0)), asked(SMALL))
    with pytest.raises(ValueError, match=r"unembed.weight is \(5, 8\) and must be absent"):
        answers(replace(SMALL, tied=True), drawn(SMALL), asked(SMALL))
    for value, message in [
        (np.nan, "the weight embed.weight must be finite"),
        (1e20, r"the weight embed.weight must be of entries up to 1e\+15; got 1e\+20"),
        (1j, "the weight embed.weight must be a number or an array of numbers"),
        ("a", "the weight embed.weight must be a number or an array of numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            answers(SMALL, drawn(SMALL) | {"embed.weight": np.full((5, 8), value)}, asked(SMALL))
    with pytest.raises(ValueError, match="parameters must map names to arrays; got list"):
        answers(SMALL, [1], asked(SMALL))  # type: ignore[arg-type]
    perceptron = Perceptron(5, 5)
    with pytest.raises(ValueError, match="sequences of 2 tokens, which is what the network takes; got 1 of 3"):
        answers(perceptron, drawn(perceptron), [[0, 1, 2]])


class Unhashable(Cycle):
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config": None}, "config must be a Transformer or a Perceptron; got NoneType"),
        ({"config": Transformer}, "config must be a Transformer or a Perceptron; got type"),
        ({"config": REAL}, "tokens of the data must be real, as the network reads them; got int32"),
        ({"config": replace(SMALL, length=5)}, "sequences of 1 to 5 tokens"),
        ({"config": replace(SMALL, last_only=True)}, r"must have the shape \(8, 1\) of the network's outputs"),
        ({"config": Perceptron(5, 5, 6), "data": Cycle()}, r"must have the shape \(8, 1\)"),
        ({"data": "periodic"}, "data must be such as those of simulation.sequences; got str without loss"),
        ({"data": Unhashable()}, "data must be hashable"),
        ({"data": Cycle(vocabulary=9)}, "tokens of the data must be whole numbers from 0 to 4; got 0 to 8"),
        ({"data": Cycle(vocabulary=5), "config": replace(SMALL, outputs=3)},
         "targets of the data must be whole numbers from 0 to 2; got 0 to 4"),
        ({"data": Lines(), "config": replace(REAL, outputs=2)}, "a square loss needs a network of one output; got 2"),
        ({"optimizer": "adam"}, "optimizer must be one of optax, such as optax.adam.*; got str"),
        ({"key": 0}, "key must be one key made by jax.random.key or simulation.keys.key_of; got int"),
        ({"key": jax.random.split(KEY)}, "key must be one key"),
        ({"steps": 0}, "steps must be a whole number >= 1; got 0"),
        ({"steps": True}, "steps must be a whole number >= 1; got True"),
        ({"steps": "10"}, "steps must be a whole number >= 0; got '1'"),
        ({"steps": None}, "steps must be a whole number >= 1; got None"),
        ({"steps": [1, 2.5]}, "steps must be a whole number >= 0; got 2.5"),
        ({"steps": [3, 3]}, r"steps must increase and be there; got \[3, 3\]"),
        ({"steps": []}, r"steps must increase and be there; got \[\]"),
        ({"steps": 2**31}, "steps must be at most 2147483647; got 2147483648"),
        ({"checkpoints": 3}, "checkpoints must be a function of step and state; got int"),
        ({"resume": 3}, "resume must be a State with step, parameters, optimizer, loss; got int"),
    ],
)  # fmt: skip
def test_training_refuses_what_does_not_belong_together(change: dict[str, Any], message: str) -> None:
    asked_for: dict[str, Any] = {"config": SMALL, "data": Cycle(), "steps": 2, "optimizer": ADAM, "key": KEY}
    given = asked_for | change
    with pytest.raises(ValueError, match=message):
        networks.train(given.pop("config"), given.pop("data"), **given)


@pytest.mark.parametrize("size", ["width", "length", "vocabulary", "mlp"])
def test_weights_beyond_memory_are_refused_before_they_are_drawn(size: str) -> None:
    for number in (10**12, 10**30):
        with pytest.raises(ValueError, match=r"the weights of the network must fit into .* GB of memory"):
            networks.initial(replace(SMALL, **{size: number}), key=KEY)


def test_a_rate_that_blows_up_weights_stops_the_run_though_norms_keep_the_loss_finite() -> None:
    with pytest.raises(ArithmeticError, match="left the finite numbers at step 1"):
        networks.train(SMALL, Cycle(), steps=1, optimizer=optax.sgd(1e25), key=KEY)


def test_a_state_of_another_run_is_not_resumed() -> None:
    state = networks.train(SMALL, Cycle(), steps=2, optimizer=ADAM, key=KEY)
    for change, message in [
        ({"optimizer": np.array(["low"])}, "the state of the resumed optimizer must be arrays of numbers"),
        ({"loss": "low"}, "the loss of resume must be a number"),
    ]:
        with pytest.raises(ValueError, match=message):
            networks.train(SMALL, Cycle(), steps=4, optimizer=ADAM, key=KEY, resume={**state, **change})
    with pytest.raises(ValueError, match="the state of the resumed optimizer must fit the optimizer"):
        networks.train(SMALL, Cycle(), steps=4, optimizer=optax.sgd(0.1), key=KEY, resume=state)
    tied = {**state, "parameters": {k: v for k, v in state["parameters"].items() if k != "unembed.weight"}}
    with pytest.raises(ValueError, match=r"unembed.weight is missing"):
        networks.train(SMALL, Cycle(), steps=4, optimizer=ADAM, key=KEY, resume=tied)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must not end before the step that is resumed; got 1 after step 2"):
        networks.train(SMALL, Cycle(), steps=1, optimizer=ADAM, key=KEY, resume=state)


def test_a_run_that_has_ended_is_given_back_as_it_is() -> None:
    ended = networks.train(SMALL, Cycle(), steps=2, optimizer=ADAM, key=KEY)
    seen: list[int] = []
    again = networks.train(
        SMALL, Cycle(), steps=[1, 2], optimizer=ADAM, key=KEY, resume=ended,
        checkpoints=lambda step, _: seen.append(step),
    )  # fmt: skip
    assert seen == []
    for one, other in zip(*map(jax.tree.leaves, (ended, again)), strict=True):
        assert_array_equal(one, other)


def test_single_precision_is_kept_whatever_the_setting() -> None:
    known = networks.train(SMALL, Cycle(), steps=3, optimizer=ADAM, key=KEY)
    with jax.enable_x64(True):
        found = networks.train(SMALL, Cycle(), steps=3, optimizer=ADAM, key=KEY)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(known), strict=True):
        assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
