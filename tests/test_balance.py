"""The balance between the factors of attention, on training runs by automatic differentiation."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.spectra.circuits import balance, imbalance
from iclab.spectra.circuits.weights import AttentionWeights, QueryKeyNorm, Rotary

HEADS, SHARED, DIM, WIDTH, LENGTH = 6, 2, 4, 10, 6
TIME = 1.0  # rate × steps
FULL = Rotary(DIM, "half", np.array([1.0, 0.3]))
PARTIAL = Rotary(2, "interleaved", np.array([0.7]))
BY_HEAD = QueryKeyNorm(np.ones(DIM), np.ones(DIM))
ACROSS = QueryKeyNorm(np.ones(HEADS * DIM), np.ones(SHARED * DIM), across_heads=True)


def start(*, biased: bool = False, **parts) -> AttentionWeights:
    rng = np.random.default_rng(0)
    weights = AttentionWeights(
        query=0.3 * rng.standard_normal((HEADS, DIM, WIDTH)),
        key=0.3 * rng.standard_normal((SHARED, DIM, WIDTH)),
        value=0.3 * rng.standard_normal((SHARED, DIM, WIDTH)),
        output=0.3 * rng.standard_normal((HEADS, WIDTH, DIM)),
        **parts,
    )
    if not biased:
        return weights
    return replace(
        weights,
        query_bias=0.3 * rng.standard_normal((HEADS, DIM)),
        key_bias=0.3 * rng.standard_normal((SHARED, DIM)),
        value_bias=0.3 * rng.standard_normal((SHARED, DIM)),
    )


def trained(weights: AttentionWeights, rate: float, *, decay: float = 0.0, adam: bool = False) -> AttentionWeights:
    """Causal softmax attention with a gain in front, trained on 16 sequences by PyTorch for a fixed rate × steps."""
    torch = pytest.importorskip("torch", reason="the training runs are PyTorch's")
    names = ("query", "key", "value", "output", "query_bias", "key_bias", "value_bias")
    given = {name: getattr(weights, name) for name in names if getattr(weights, name) is not None}
    part = {name: torch.tensor(array, requires_grad=True) for name, array in given.items()}
    extra = [torch.ones(WIDTH, dtype=torch.float64, requires_grad=True)]  # gain in front
    rng = np.random.default_rng(1)
    x, y = (torch.tensor(rng.standard_normal((16, LENGTH, WIDTH))) for _ in range(2))
    mask = torch.triu(torch.full((LENGTH, LENGTH), -torch.inf, dtype=torch.float64), 1)

    def heads(name: str, inputs, group: int):
        found = torch.einsum("btd,hed->bhte", inputs, part[name])
        if f"{name}_bias" in part:
            found = found + part[f"{name}_bias"][:, None]
        if weights.query_key_norm is not None and name != "value":
            axes = (1, 3) if weights.query_key_norm.across_heads else (3,)
            found = found / torch.sqrt(torch.mean(found**2, dim=axes, keepdim=True))
        if weights.rotary is not None and name != "value":
            found = turned(found)
        return found.repeat_interleave(group, dim=1)

    def turned(rows):
        turn, half = weights.rotary, weights.rotary.dimensions // 2
        angles = torch.arange(LENGTH, dtype=torch.float64)[:, None] * torch.tensor(turn.frequencies)
        columns = list(rows.unbind(-1))
        for f in range(half):
            a, b = (f, f + half) if turn.pairing == "half" else (2 * f, 2 * f + 1)
            cos, sin = torch.cos(angles[:, f]), torch.sin(angles[:, f])
            columns[a], columns[b] = rows[..., a] * cos - rows[..., b] * sin, rows[..., a] * sin + rows[..., b] * cos
        return torch.stack(columns, -1)

    every = [*part.values(), *extra]
    kind = torch.optim.AdamW if adam else torch.optim.SGD
    optimizer = kind(every, lr=rate, weight_decay=decay)
    for _ in range(round(TIME / rate)):
        inputs = x * extra[0]
        query, key, value = heads("query", inputs, 1), heads("key", inputs, 3), heads("value", inputs, 3)
        attention = torch.softmax(query @ key.transpose(-1, -2) / DIM**0.5 + mask, dim=-1)
        answer = torch.einsum("bhte,hde->btd", attention @ value, part["output"])
        optimizer.zero_grad()
        torch.mean((answer - y) ** 2).mul(3).backward()
        optimizer.step()
    return replace(weights, **{name: tensor.detach().numpy() for name, tensor in part.items()})


def broken(weights: AttentionWeights, rate: float, **how) -> tuple[float, float]:
    """The largest imbalance of query-key and of output-value over the key heads."""
    found = imbalance(balance(weights), balance(trained(weights, rate, **how)))
    return float(np.max(found.query_key)), float(np.max(found.output_value))


def test_trace_and_norm_of_a_drawn_balance_are_the_known_numbers() -> None:
    stream = np.random.RandomState(1).standard_normal
    query, key = stream((3, 4, 10)), stream((4, 10))
    weights = AttentionWeights(query, key[None], key[None], query.transpose(0, 2, 1))
    kept = balance(weights).unrotated[0]
    assert_allclose([np.trace(kept), np.linalg.norm(kept)], [55.57885669574304, 36.272701874343156], rtol=1e-9)


@pytest.mark.parametrize(
    "weights",
    [
        pytest.param(start(), id="grouped"),
        pytest.param(start(biased=True), id="biased"),
        pytest.param(start(rotary=FULL), id="rotary"),
        pytest.param(start(rotary=PARTIAL, biased=True), id="partly rotary"),
        pytest.param(start(query_key_norm=BY_HEAD), id="normed by head"),
        pytest.param(start(query_key_norm=ACROSS), id="normed across heads"),
    ],
)
def test_gradient_descent_keeps_the_balance_to_first_order_in_its_rate(weights: AttentionWeights) -> None:
    coarse, fine = broken(weights, 0.02), broken(weights, 0.005)
    for large, small in zip(coarse, fine, strict=True):
        assert small < 0.01
        assert_allclose(large / small, 4, rtol=0.05)  # four times the rate


def test_laws_that_do_not_hold_are_broken() -> None:
    # the matrix law behind a rotation, both laws behind a norm, and norms head by head where it is taken across
    end = trained(start(rotary=FULL), 0.005)
    plain = [balance(replace(one, rotary=None)) for one in (start(), end)]
    assert np.min(imbalance(*plain).query_key) > 0.1
    assert np.max(imbalance(*plain).output_value) < 0.01
    end = trained(start(query_key_norm=BY_HEAD), 0.005)
    for rotary in (None, FULL):
        wrong = [balance(replace(one, query_key_norm=None, rotary=rotary)) for one in (start(), end)]
        assert np.min(imbalance(*wrong).query_key) > 0.1
    end = trained(start(query_key_norm=ACROSS), 0.005)
    wrong = [balance(replace(one, query_key_norm=BY_HEAD)) for one in (start(), end)]
    assert np.max(imbalance(*wrong).query_key) > 0.1


def test_nothing_is_kept_between_rotated_and_other_rows() -> None:
    kept = balance(start(rotary=PARTIAL))
    assert kept.unrotated.shape == (SHARED, 2, 2)
    assert kept.pairs.shape == (SHARED, 1)
    whole = balance(start()).unrotated
    assert_allclose(kept.unrotated, whole[:, 2:, 2:])
    assert_allclose(kept.pairs[:, 0], whole[:, 0, 0] + whole[:, 1, 1])


@pytest.mark.parametrize("weights", [start(), start(rotary=FULL, biased=True), start(query_key_norm=BY_HEAD)])
def test_weight_decay_lets_the_balance_fall_as_expected(weights: AttentionWeights) -> None:
    end = balance(trained(weights, 0.005, decay=0.5))
    first = balance(weights)
    parts = [name for name in ("output_value", "unrotated", "pairs", "norms") if getattr(first, name).size]
    left = [np.linalg.norm(getattr(end, name)) / np.linalg.norm(getattr(first, name)) for name in parts]
    assert_allclose(left, np.exp(-2 * 0.5 * TIME), rtol=0.01)  # first order in the rate
    found = imbalance(first, end, decay=0.5 * TIME)
    assert max(np.max(found.query_key), np.max(found.output_value)) < 0.01
    assert np.min(imbalance(first, end).output_value) > 0.05


def test_adam_does_not_keep_the_balance() -> None:
    assert min(broken(start(), 0.02, adam=True)) > 0.1


def test_the_balance_scales_as_the_weights_squared_and_imbalance_not_at_all() -> None:
    one, other = start(rotary=PARTIAL), replace(start(rotary=PARTIAL), query=0.5 * start().query)
    whole = imbalance(balance(one), balance(other))
    for scale in (1e-30, 1e30):
        scaled = [
            balance(
                replace(w, query=scale * w.query, key=scale * w.key, value=scale * w.value, output=scale * w.output)
            )
            for w in (one, other)
        ]
        assert_allclose(scaled[0].pairs, scale**2 * balance(one).pairs, rtol=1e-12)
        assert_allclose(imbalance(*scaled).query_key, whole.query_key, rtol=1e-12)


def test_where_nothing_moved_the_imbalance_is_undefined() -> None:
    still = imbalance(balance(start()), balance(start()))
    assert np.all(np.isnan(still.query_key))
    assert np.all(np.isnan(still.output_value))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: balance(replace(start(), key=np.ones((4, DIM, WIDTH)))), "divide evenly"),
        (lambda: balance(replace(start(), query=np.full((HEADS, DIM, WIDTH), np.nan))), "finite"),
        (lambda: imbalance(balance(start()), balance(start(rotary=FULL))), "one layer"),
        (lambda: imbalance(balance(start()), balance(start()), decay=-1), "decay"),
    ],
)
def test_what_has_no_balance_is_named(call, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()
