"""Roles, orders and sizes: the same weights under every name, and what does not fit is refused."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.spectra import layouts
from iclab.spectra.checkpoints import Contents
from iclab.spectra.checkpoints.ledger import contents
from iclab.spectra.layouts import Plan, from_config, from_mapping
from iclab.spectra.layouts.rules import unwrapped
from iclab.spectra.tensors import of_array

HEADS, SIZE, WIDTH = 3, 2, 5
RNG = np.random.default_rng(0)
Q, K, V = RNG.standard_normal((3, HEADS, SIZE, WIDTH))
BQ, BK, BV = RNG.standard_normal((3, HEADS, SIZE))
O = RNG.standard_normal((HEADS, WIDTH, SIZE))  # noqa: E741
FLAT = {"q": Q, "k": K, "v": V}
QKV = np.stack([Q, K, V])  # part, head, dim, in
B = np.stack([BQ, BK, BV])
OUT = O.transpose(1, 0, 2).reshape(WIDTH, -1)  # [out, head·dim]
SIZES = {"num_attention_heads": HEADS, "head_dim": SIZE}


def rows(array: np.ndarray, leading: int = 3) -> np.ndarray:
    """All but the last axes as one."""
    return array.reshape(-1, *array.shape[leading:])


def planned(tensors: dict[str, np.ndarray], config: dict[str, Any]) -> Plan:
    return layouts.plan({name: of_array(name, array) for name, array in tensors.items()}, from_config(config))


def mapped(tensors: dict[str, np.ndarray], mapping: dict[str, Any]) -> Plan:
    return layouts.plan({name: of_array(name, array) for name, array in tensors.items()}, from_mapping(mapping))


PART, HEAD = rows(QKV), rows(QKV.swapaxes(0, 1))
PART_BIAS, HEAD_BIAS = rows(B), rows(B.swapaxes(0, 1))
SEPARATE = {part: array.reshape(-1, WIDTH) for part, array in FLAT.items()}
NAMES = {
    "gpt2": {
        "h.0.attn.c_attn.weight": PART.T, "h.0.attn.c_attn.bias": PART_BIAS, "h.0.attn.c_proj.weight": OUT.T,
    },
    "nanogpt": {
        "h.0.attn.c_attn.weight": PART, "h.0.attn.c_attn.bias": PART_BIAS, "h.0.attn.c_proj.weight": OUT,
    },
    "gpt_neox": {
        "layers.0.attention.query_key_value.weight": HEAD, "layers.0.attention.query_key_value.bias": HEAD_BIAS,
        "layers.0.attention.dense.weight": OUT,
    },
    "llama": {f"layers.0.self_attn.{part}_proj.weight": array for part, array in SEPARATE.items()}
    | {f"layers.0.self_attn.{part}_proj.bias": b.reshape(-1) for part, b in zip("qkv", B, strict=True)}
    | {"layers.0.self_attn.o_proj.weight": OUT},
    "vit": {
        f"layer.0.attention.attention.{name}.{kind}": array.reshape(HEADS * SIZE, *array.shape[2:])
        for name, pair in zip(("query", "key", "value"), zip(QKV, B, strict=True), strict=True)
        for kind, array in zip(("weight", "bias"), pair, strict=True)
    } | {"layer.0.attention.output.dense.weight": OUT},
    "transformer_lens": {
        **{f"blocks.0.attn.W_{part.upper()}": array.swapaxes(1, 2) for part, array in FLAT.items()},
        **{f"blocks.0.attn.b_{part}": array for part, array in zip("QKV", B, strict=True)},
        "blocks.0.attn.W_O": O.swapaxes(1, 2),
    },
    "torch": {"layers.0.self_attn.in_proj_weight": PART, "layers.0.self_attn.in_proj_bias": PART_BIAS,
              "layers.0.self_attn.out_proj.weight": OUT},
    "iclab": {
        **{f"layers.0.attention.{name}.weight": array.reshape(-1, WIDTH)
           for name, array in zip(("query", "key", "value"), QKV, strict=True)},
        **{f"layers.0.attention.{name}.bias": b.reshape(-1)
           for name, b in zip(("query", "key", "value"), B, strict=True)},
        "layers.0.attention.output.weight": OUT,
    },
}  # fmt: skip


def assert_same(plan: Plan) -> None:
    """The weights of the only layer are those at the top of this file."""
    weights = plan.attention(*next(iter(plan.layers)))
    for found, known in zip((weights.query, weights.key, weights.value, weights.output), (Q, K, V, O), strict=True):
        assert_array_equal(found, known)
    for found, known in zip((weights.query_bias, weights.key_bias, weights.value_bias), B, strict=True):
        assert found is None or (found == known).all()


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


def test_every_tensor_is_analysed_or_skipped_with_its_reason() -> None:
    others = {
        "h.0.attn.bias": np.ones((1, 1, 4, 4)),
        "h.0.attn.masked_bias": np.array(-1e4),
        "h.0.ln_2.weight": np.ones(WIDTH),
        "h.0.attn.rotary_emb.inv_freq": np.ones(2),
        "position_ids": np.arange(4),
        "h.0.mlp.c_fc.bias": np.ones(WIDTH),
        "h.0.extra.weight": np.ones((2, 2)),
        "h.0.packed.weight": np.ones((2, 2), np.int8),
        "h.0.code.qweight": np.ones((2, 2), np.int32),
        "h.0.empty": np.ones((0, 2)),
    }
    tensors = NAMES["gpt2"] | others | {"wte.weight": np.ones((7, WIDTH)), "h.0.mlp.c_fc.weight": np.ones((WIDTH, 6))}
    plan = planned(tensors, {"model_type": "gpt2", **SIZES})
    reasons = {entry.name: entry.reason for entry in plan.skipped}
    assert set(reasons) == set(others)
    assert reasons["h.0.attn.bias"] == reasons["position_ids"] == "buffer"
    assert "dequantise" in reasons["h.0.packed.weight"]
    assert "dequantise" in reasons["h.0.code.qweight"]
    assert "mapping" in reasons["h.0.extra.weight"]
    assert "vector" in reasons["h.0.mlp.c_fc.bias"]
    assert {(matrix.name, matrix.shape) for matrix in plan.matrices} == {
        ("wte.weight", (7, WIDTH)),
        ("h.0.mlp.c_fc.weight", (6, WIDTH)),
    }


def test_block_scaled_codes_are_skipped_and_plain_ones_read() -> None:
    import ml_dtypes

    codes = SEPARATE["q"].astype(ml_dtypes.float8_e4m3fn)
    tensors = NAMES["llama"] | {"layers.0.self_attn.q_proj.weight": codes}
    assert list(planned(tensors, {"model_type": "llama", **SIZES}).layers)
    tensors |= {"layers.0.self_attn.q_proj.weight_scale_inv": np.ones((1, 1))}
    plan = planned(tensors, {"model_type": "llama", **SIZES})
    assert not plan.layers
    assert any("scales" in entry.reason for entry in plan.skipped)
    assert "no q" in plan.notes[0]
    assert {matrix.role for matrix in plan.matrices} == {"k", "v", "o"}


def test_experts_are_the_same_matrices_one_by_one_and_stacked() -> None:
    first, second, down = (
        RNG.standard_normal((2, 4, WIDTH)),
        RNG.standard_normal((2, 4, WIDTH)),
        RNG.standard_normal((2, WIDTH, 4)),
    )
    at = "layers.0.block_sparse_moe.experts"
    files = {
        f"{at}.{e}.{name}.weight": array[e]
        for e in (0, 1)
        for name, array in (("w1", first), ("w3", second), ("w2", down))
    }
    memory = {
        "layers.0.mlp.experts.gate_up_proj": np.concatenate([first, second], 1),
        "layers.0.mlp.experts.down_proj": down,
    }
    config = {"model_type": "mixtral", "num_attention_heads": HEADS, "head_dim": SIZE, "hidden_size": None}
    apart, stacked = (planned(NAMES["llama"] | tensors, config).matrices for tensors in (files, memory))
    for one in (apart, stacked):
        assert [matrix.shape for matrix in one if matrix.role == "mlp_in"] == [(4, WIDTH)] * 4
    keys = [sorted(matrix.array().tobytes() for matrix in one) for one in (apart, stacked)]
    assert keys[0] == keys[1]


def test_a_fused_gate_is_cut_from_its_partner() -> None:
    both = RNG.standard_normal((8, WIDTH))
    plan = planned({"layers.0.mlp.gate_up_proj.weight": both}, {"model_type": "phi3", **SIZES})
    assert_array_equal([matrix.array() for matrix in plan.matrices], [both[:4], both[4:]])


def test_a_tied_head_is_counted_once_whether_it_is_stored_or_not() -> None:
    embedding = RNG.standard_normal((7, WIDTH))
    stored = {"wte.weight": embedding, "lm_head.weight": embedding}
    for tensors in (stored, {"wte.weight": embedding, "wpe.weight": np.ones((4, WIDTH))}):
        plan = planned(NAMES["gpt2"] | tensors, {"model_type": "gpt2", **SIZES})
        assert [matrix.name for matrix in plan.matrices if matrix.name != "wpe.weight"] == ["wte.weight"]
        assert plan.aliases[0][0] == "wte.weight"
    apart = {"wte.weight": embedding, "lm_head.weight": embedding.copy()}
    stored_twice = Contents({name: of_array(name, array) for name, array in (NAMES["gpt2"] | apart).items()})
    layout = from_config({"model_type": "gpt2", **SIZES})
    assert len(layouts.planned(stored_twice, layout).matrices) == 2
    assert len(layouts.planned(stored_twice, layout, known=contents(stored_twice)).matrices) == 1
    assert len(planned(apart, {"model_type": "gpt2", "tie_word_embeddings": False, **SIZES}).matrices) == 2


def test_a_head_that_is_stored_in_place_of_its_embedding_is_the_same_matrix() -> None:
    tensors = NAMES["gpt2"] | {"lm_head.weight": np.ones((7, WIDTH))}
    plan = planned(tensors, {"model_type": "gpt2", **SIZES})
    assert [matrix.role for matrix in plan.matrices] == ["unembed"]
    assert plan.aliases == (("lm_head.weight", "the embedding"),)


def test_raw_parameters_are_skipped_with_reasons_and_read_by_a_mapping() -> None:
    tensors = {"mix.wq": Q, "mix.wk": K, "mix.wv": V, "mix.wo": O}
    plan = planned(tensors, {"model_type": "gpt2", **SIZES})
    assert (dict(plan.layers), plan.matrices) == ({}, ())
    assert {entry.name for entry in plan.skipped} == set(tensors)
    rules = [{"match": f"w{role}", "role": role, "output_axis": 1} for role in "qkvo"]
    assert_same(mapped(tensors, {"heads": HEADS, "tensor": rules}))


@pytest.mark.parametrize(("heads", "kv_heads"), [(14, 2), (4, 1), (1, 1)])
def test_grouped_single_and_lone_heads_are_read(heads: int, kv_heads: int) -> None:
    shapes = {"q": (heads * 2, 5), "k": (kv_heads * 2, 5), "v": (kv_heads * 2, 5), "o": (5, heads * 2)}
    tensors = {f"layers.0.self_attn.{part}_proj.weight": np.ones(shape) for part, shape in shapes.items()}
    config = {"model_type": "qwen2", "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": 2}
    weights = planned(tensors, config).attention("", 0)
    assert (weights.query.shape, weights.key.shape) == ((heads, 2, 5), (kv_heads, 2, 5))
    with pytest.raises(ValueError, match=r"must divide|k_proj"):
        planned(tensors, {**config, "num_key_value_heads": 3})


def test_one_norm_of_two_leaves_a_layer_that_is_not_whole() -> None:
    tensors = NAMES["llama"] | {"layers.0.self_attn.q_norm.weight": np.ones(SIZE)}
    plan = planned(tensors, {"model_type": "qwen3", **SIZES})
    assert not plan.layers
    assert any("k_norm" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"model_type": "qwen3"}, "pass a norm"),
        ({"model_type": "gemma2", "attn_logit_softcapping": 50.0}, "tanh"),
        ({"model_type": "mpt", "attn_config": {"clip_qkv": 8}}, "clipped"),
        ({"model_type": "transformer_lens"}, "folded"),
        ({"model_type": "llama", "rope_scaling": {"type": "yarn", "factor": 2.0}}, "yarn"),
        ({"model_type": "llama", "quantization_config": {"bits": 4}}, "quantised"),
    ],
)
def test_what_circuits_leave_out_is_said(config: dict[str, Any], word: str) -> None:
    assert any(word in note for note in from_config({**SIZES, **config}).caveats)


def test_cross_attention_is_a_tower_of_its_own_and_unequal_widths_are_read() -> None:
    self_, cross = "layers.0.self_attn", "layers.0.multihead_attn"
    tensors = {
        f"{self_}.in_proj_weight": PART, f"{self_}.out_proj.weight": OUT, f"{cross}.out_proj.weight": OUT,
        f"{cross}.q_proj_weight": SEPARATE["q"], f"{cross}.k_proj_weight": np.ones((HEADS * SIZE, 4)),
        f"{cross}.v_proj_weight": np.ones((HEADS * SIZE, 3)), f"{cross}.in_proj_bias": PART_BIAS,
        f"{cross}.bias_k": np.ones((1, 1, 6)),
    }  # fmt: skip
    plan = planned(tensors, {"model_type": "torch", "num_attention_heads": HEADS})
    assert list(plan.layers) == [("multihead_attn", 0), ("self_attn", 0)]
    weights = plan.attention("multihead_attn", 0)
    assert (weights.key.shape, weights.value.shape) == ((HEADS, SIZE, 4), (HEADS, SIZE, 3))
    assert_array_equal(weights.key_bias, BK)
    assert plan.head_dim == SIZE
    assert [entry.name for entry in plan.skipped] == [f"{cross}.bias_k"]


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_parameters": {"rope_theta": 100.0, "rope_type": "default", "partial_rotary_factor": 0.5}},
        {"rotary_pct": 0.5, "rotary_emb_base": 100.0},
        {"partial_rotary_factor": 0.5, "rope_theta": 100.0, "rope_scaling": None},
    ],
)
def test_rotation_is_read_from_configs_of_either_version(rope: dict[str, Any]) -> None:
    rotary = from_config(
        {"model_type": "gpt_neox", "num_attention_heads": 2, "hidden_size": 16, **rope}
    ).geometry.rotary(0)
    assert rotary is not None
    assert (rotary.dimensions, rotary.pairing) == (4, "half")
    assert_allclose(rotary.frequencies, [1, 0.1])  # 100^(-2f/4)


def test_a_quarter_is_rotated_where_the_config_of_pythia_says_nothing() -> None:
    rotary = from_config({"model_type": "gpt_neox", "num_attention_heads": 2, "hidden_size": 16}).geometry.rotary(0)
    assert rotary is not None
    assert rotary.dimensions == 2


def test_stretched_rotation_of_an_unknown_rule_has_no_frequencies() -> None:
    rope = {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}}
    rotary = from_config({"model_type": "llama", **SIZES, **rope}).geometry.rotary(0)
    assert rotary is not None
    assert rotary.frequencies is None


def test_a_null_head_size_is_the_width_over_the_heads() -> None:
    config = {"model_type": "mixtral", "num_attention_heads": 4, "hidden_size": 32, "head_dim": None}
    assert from_config(config).geometry.head_dim == 8


def test_the_first_falcon_has_one_key_whatever_its_config_says() -> None:
    config = {
        "model_type": "falcon",
        "num_attention_heads": 4,
        "num_kv_heads": 4,
        "hidden_size": 32,
        "multi_query": True,
    }
    assert from_config(config).geometry.kv_heads == 1


def test_gemma_stores_its_gain_less_one() -> None:
    tensors = NAMES["llama"] | {"layers.0.input_layernorm.weight": np.full(WIDTH, 0.5)}
    norm = planned(tensors, {"model_type": "gemma", **SIZES}).attention("", 0).input_norm
    assert norm is not None
    assert_array_equal(norm.gain, np.full(WIDTH, 1.5))
    assert not norm.centered


TENSOR = {"match": "w", "role": "q"}


@pytest.mark.parametrize(
    ("mapping", "word"),
    [
        ({"tensor": [TENSOR]}, "must give heads"),
        ({"heads": 3}, "at least one"),
        ({"heads": 3, "tensor": []}, "at least one"),
        ({"heads": 3, "tensor": [TENSOR], "layers": 3}, "layers"),
        ({"heads": 3, "tensor": [{"role": "q"}]}, "must give match"),
        ({"heads": 3, "tensor": [{**TENSOR, "orders": 1}]}, "orders"),
        ({"heads": 3, "tensor": [{**TENSOR, "role": "query"}]}, "role must be"),
        ({"heads": 3, "tensor": [{**TENSOR, "match": "("}]}, "regular expression"),
        ({"heads": 3, "tensor": [{**TENSOR, "role": "qkv"}]}, "order"),
        ({"heads": 3, "tensor": [{**TENSOR, "order": "dim"}]}, "order of role q"),
        ({"heads": 3, "tensor": [{**TENSOR, "output_axis": 3}]}, "output_axis"),
        ({"heads": 3, "tensor": [{**TENSOR, "shards": 0}]}, "shards"),
        ({"heads": 3, "tensor": [{**TENSOR, "shards": True}]}, "shards"),
        ({"heads": 3, "tensor": [TENSOR], "rotary": {"fraction": 0.5}}, "head_dim"),
        ({"heads": 3, "head_dim": 4, "tensor": [TENSOR], "rotary": {"part": 0.5}}, "rotary"),
        ({"heads": 3, "head_dim": 4, "tensor": [TENSOR], "rotary": {"pairing": "all"}}, "pairing"),
        ({"heads": 3, "head_dim": 4, "tensor": [TENSOR], "rotary": {"fraction": 2}}, "fraction"),
        ({"heads": 3, "tensor": [TENSOR], "norm_gain": "2"}, "norm_gain"),
        ({"heads": "3", "tensor": [TENSOR]}, "num_attention_heads|heads"),
    ],
)
def test_a_mapping_that_is_wrong_is_refused_by_entry(mapping: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        from_mapping(mapping)


def test_a_mapping_is_a_toml_file(tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_text(
        "heads = 3\nhead_dim = 2\nrotary = {fraction = 1.0, pairing = 'interleaved'}\n"
        "[[tensor]]\nmatch = 'blocks\\.(?P<layer>\\d+)\\.attn\\.qkv\\.weight'\n"
        "role = 'qkv'\norder = 'head,part,dim'\n"
        "[[tensor]]\nmatch = 'blocks\\.(?P<layer>\\d+)\\.attn\\.proj\\.weight'\nrole = 'o'\n"
    )
    tensors = {"net.blocks.7.attn.qkv.weight": HEAD, "net.blocks.7.attn.proj.weight": OUT}
    plan = layouts.plan({name: of_array(name, array) for name, array in tensors.items()}, from_mapping(path))
    assert list(plan.layers) == [("net", 7)]
    assert_same(plan)
    rotary = plan.attention("net", 7).rotary
    assert rotary is not None
    assert rotary.pairing == "interleaved"
    path.write_text("heads = ")
    with pytest.raises(ValueError, match="TOML"):
        from_mapping(path)


def test_the_mapping_in_the_documentation_is_one() -> None:
    page = (Path(__file__).parents[1] / "docs/checkpoints.md").read_text()
    layout = from_mapping(tomllib.loads(page.split("```toml")[1].split("```")[0]))
    assert [rule.role for rule in layout.rules] == ["qkv", "o"]
    rotary = layout.geometry.rotary(0)
    assert rotary is not None
    assert rotary.dimensions == 16


@pytest.mark.parametrize(
    ("family", "entries"),
    [
        ("llama", {"rope_parameters": [1]}),
        ("llama", {"rope_theta": "x"}),
        ("llama", {"rope_parameters": {"rope_type": "llama3"}}),
        ("llama", {"partial_rotary_factor": [2]}),
        ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 0}}),
        ("llama", {"hidden_size": "32"}),
        ("llama", {"head_dim": 10**12}),
        ("llama", {"num_attention_heads": 10**12, "head_dim": 2}),
        ("llama", {"head_dim": 1.5}),
        ("gemma2", {"query_pre_attn_scalar": [1]}),
        ("gemma2", {"query_pre_attn_scalar": -1}),
        ("gemma2", {"query_pre_attn_scalar": 0}),
        ("gemma2", {"attn_logit_softcapping": "x"}),
        ("gpt2", {"rope_scaling": "x"}),
        ("mpt", {"attn_config": 3}),
        ("gemma3", {"layer_types": 3}),
        ("falcon", {"new_decoder_architecture": True, "num_kv_heads": "x"}),
    ],
)
def test_a_config_with_other_things_than_numbers_is_refused(family: str, entries: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must"):
        from_config({"model_type": family, "num_attention_heads": 4, "hidden_size": 32, **entries})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Contents({name: of_array(name, array) for name, array in NAMES["gpt2"].items()}),
        lambda: Contents({}, config={}),
    ],
)
def test_without_a_family_nothing_is_guessed(make: Callable[[], Contents]) -> None:
    with pytest.raises(ValueError, match="family of the model"):
        layouts.planned(make())
