"""Roles, orders and sizes: the same weights under every name, and what does not fit is refused."""

import re
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from iclab.spectra.layouts.rules import unwrapped
from tests.same_weights import (
    HEADS,
    NAMES,
    OUT,
    QKV,
    RNG,
    SEPARATE,
    SIZE,
    SIZES,
    WIDTH,
    assert_same,
    mapped,
    planned,
    rows,
)


@pytest.mark.parametrize("family", NAMES)
def test_the_same_weights_in_every_layout_are_the_same(family: str) -> None:
    plan = planned(NAMES[family], {"model_type": family, "partial_rotary_factor": 1.0, **SIZES})
    assert_same(plan)
    assert plan.attention(*next(iter(plan.layers))).query_bias is not None
    assert plan.skipped == ()


ORDERS = {
    "part,head,dim": (0, 1, 2, 3),
    "head,part,dim": (1, 0, 2, 3),
    "part,dim,head": (0, 2, 1, 3),
    "head,dim,part": (1, 2, 0, 3),
    "dim,head,part": (2, 1, 0, 3),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis", [0, 1])
def test_a_mapping_reads_every_order_of_rows(order: str, axis: int) -> None:
    stored = rows(QKV.transpose(ORDERS[order]))
    tensors = {"net.blk.0.mix.w": stored if axis == 0 else stored.T, "net.blk.0.mix.out": OUT}
    rules = [
        {"match": r"blk\.(?P<layer>\d+)\.mix\.w", "role": "qkv", "order": order, "output_axis": axis},
        {"match": r"blk\.(?P<layer>\d+)\.mix\.out", "role": "o"},
    ]
    assert_same(mapped(tensors, {"heads": HEADS, "head_dim": SIZE, "tensor": rules}))


def test_tensor_parallel_parts_are_read_part_by_part() -> None:
    heads = RNG.standard_normal((3, 4, SIZE, WIDTH))
    stacked = np.concatenate([rows(heads[:, :2]), rows(heads[:, 2:])])  # [q0 k0 v0 | q1 k1 v1]
    output = np.zeros((WIDTH, 4 * SIZE))
    rules = [{"match": "w", "role": "qkv", "order": "part,head,dim", "shards": 2}, {"match": "o", "role": "o"}]
    mapping = {"heads": 4, "head_dim": SIZE, "tensor": rules}
    weights = mapped({"w": stacked, "o": output}, mapping).attention("", 0)
    assert_array_equal([weights.query, weights.key, weights.value], heads)
    rules[0]["shards"] = 1
    wrong = mapped({"w": stacked, "o": output}, mapping).attention("", 0)
    assert not np.array_equal(wrong.query, heads[0])


def test_keys_and_values_of_one_tensor_and_grouped_heads_are_read() -> None:
    query, (key, value) = RNG.standard_normal((4, SIZE, WIDTH)), RNG.standard_normal((2, 2, SIZE, WIDTH))
    stacked = {"q": query.reshape(-1, WIDTH), "kv": rows(np.stack([key, value])), "o": np.zeros((WIDTH, 4 * SIZE))}
    rules = [{"match": name, "role": name} | ({"order": "part,head,dim"} if name == "kv" else {}) for name in stacked]
    weights = mapped(stacked, {"heads": 4, "kv_heads": 2, "head_dim": SIZE, "tensor": rules}).attention("", 0)
    assert_array_equal(weights.key, key)
    assert_array_equal(weights.value, value)
    grouped = np.concatenate(
        [np.concatenate([query[:2], key[:1], value[:1]]), np.concatenate([query[2:], key[1:], value[1:]])]
    )
    fused = {"w": rows(grouped, 2), "o": np.zeros((WIDTH, 4 * SIZE))}
    rules = [{"match": "w", "role": "qkv", "order": "group,part,dim"}, {"match": "o", "role": "o"}]
    weights = mapped(fused, {"heads": 4, "kv_heads": 2, "head_dim": SIZE, "tensor": rules}).attention("", 0)
    for found, known in ((weights.query, query), (weights.key, key), (weights.value, value)):
        assert_array_equal(found, known)


@pytest.mark.parametrize(
    ("prefix", "tower"),
    [
        ("", ""),
        ("model.", "model"),
        ("module.", ""),
        ("_orig_mod.", ""),
        ("module._orig_mod.module.model.", "model"),
        ("base_model.model.model.", "model"),
        ("model._orig_mod.", "model"),
        ("student.encoder.", "student.encoder"),
    ],
)
def test_wrappers_go_and_what_stands_before_a_layer_is_its_tower(prefix: str, tower: str) -> None:
    tensors = {prefix + name: array for name, array in NAMES["llama"].items()}
    plan = planned(tensors, {"model_type": "llama", **SIZES})
    assert list(plan.layers) == [(tower, 0)]
    wrapped = any(word in prefix for word in ("module", "_orig_mod", "base_model"))
    assert bool(plan.notes) == wrapped
    assert_same(plan)


def test_names_that_become_one_are_refused_together() -> None:
    with pytest.raises(ValueError, match=r"'module\.w'.*'w'"):
        unwrapped(["w", "module.w"])
    assert unwrapped(["module"]) == ({"module": "module"}, ())


def test_two_towers_are_two_rows() -> None:
    tensors = {f"{tower}.{name}": array for tower in ("text", "other") for name, array in NAMES["llama"].items()}
    assert list(planned(tensors, {"model_type": "llama", **SIZES}).layers) == [("other", 0), ("text", 0)]


def test_a_tower_for_images_is_skipped_where_the_config_is_of_the_text() -> None:
    tensors = NAMES["llama"] | {f"vision_tower.{name}": array[:2] for name, array in NAMES["llama"].items()}
    plan = planned(tensors, {"model_type": "llava", "text_config": {"model_type": "llama", **SIZES}})
    assert list(plan.layers) == [("", 0)]
    assert {entry.name.split(".")[0] for entry in plan.skipped} == {"vision_tower"}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"num_attention_heads": 4}, r"c_attn.*4 heads"),
        ({"head_dim": 3}, r"c_attn.*× 3"),
        ({"num_key_value_heads": 2}, "must divide heads"),
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"num_attention_heads": None}, "number of heads"),
        ({"model_type": "new"}, "model_type must be one of .*gpt2.*mapping"),
        ({"model_type": None}, "model_type"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_before_any_number_is_read(change: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        planned(NAMES["gpt2"], {"model_type": "gpt2", **SIZES, **change})


def test_a_linear_weight_read_as_one_stored_in_out_is_refused() -> None:
    with pytest.raises(ValueError, match=r"c_attn.*axis of the output"):
        planned(NAMES["nanogpt"], {"model_type": "gpt2", **SIZES})


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (3, 2, 5), (2, 2, 2, 2)])
def test_a_tensor_of_another_shape_is_refused_by_name(family: str, shape: tuple[int, ...]) -> None:
    config = {"model_type": family, "partial_rotary_factor": 1.0, **SIZES}
    for name, right in NAMES[family].items():
        flat = right.ndim < 3 and shape == (right.size,)  # a bias may be stored flat
        if right.shape != shape and not flat:
            with pytest.raises(ValueError, match=re.escape(name)):
                planned(NAMES[family] | {name: np.ones(shape)}, config)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_output_axis_that_a_tensor_lacks_is_refused(axis: int) -> None:
    rules = [{"match": "w", "role": "q", "output_axis": axis}]
    shape = (HEADS * SIZE, WIDTH) if axis == 2 else (2,) * (4 - axis)
    with pytest.raises(ValueError, match=r"'w' .*(?:must be a|has)"):
        mapped({"w": np.ones(shape)}, {"heads": HEADS, "head_dim": SIZE, "tensor": rules})


@pytest.mark.parametrize(
    ("name", "array", "word"),
    [
        ("layers.0.input_layernorm.weight", np.ones(WIDTH + 1), "as long as the input"),
        ("layers.0.input_layernorm.weight", np.ones((WIDTH, 1)), "must be a vector"),
        ("layers.0.self_attn.o_proj.bias", np.ones(WIDTH + 1), "as long as the output"),
        ("layers.0.self_attn.q_norm.weight", np.ones(SIZE + 1), "must have 2 numbers"),
    ],
)
def test_gains_and_biases_of_another_length_are_refused(name: str, array: np.ndarray, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        planned(NAMES["llama"] | {name: array}, {"model_type": "qwen3", **SIZES})


def test_two_tensors_in_one_part_are_refused_together() -> None:
    tensors = NAMES["vit"] | {"layers.0.attention.q_proj.weight": SEPARATE["q"]}
    with pytest.raises(ValueError, match=r"both 'layer\.0\.attention.*' and 'layers\.0\.attention\.q_proj"):
        planned(tensors, {"model_type": "vit", **SIZES})


def test_a_tensor_that_two_rules_claim_is_refused() -> None:
    rules = [{"match": "w", "role": "q"}, {"match": ".", "role": "k"}]
    with pytest.raises(ValueError, match=r"matches both 'w' and '\.'"):
        mapped({"w": SEPARATE["q"]}, {"heads": HEADS, "tensor": rules})
