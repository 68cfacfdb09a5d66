"""What of a checkpoint is analysed, what is skipped, and why."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from iclab.spectra import layouts
from iclab.spectra.checkpoints import Contents
from iclab.spectra.checkpoints.ledger import contents
from iclab.spectra.checkpoints.tensors import of_array
from iclab.spectra.layouts import from_config
from tests.same_weights import (
    BK,
    HEADS,
    NAMES,
    OUT,
    PART,
    PART_BIAS,
    RNG,
    SEPARATE,
    SIZE,
    SIZES,
    WIDTH,
    K,
    O,
    Q,
    V,
    assert_same,
    mapped,
    planned,
)


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
    assert "dequantize" in reasons["h.0.packed.weight"]
    assert "dequantize" in reasons["h.0.code.qweight"]
    assert "mapping" in reasons["h.0.extra.weight"]
    assert "vector" in reasons["h.0.mlp.c_fc.bias"]
    assert {(matrix.name, matrix.shape) for matrix in plan.matrices} == {
        ("wte.weight", (7, WIDTH)),
        ("h.0.mlp.c_fc.weight", (6, WIDTH)),
    }


def test_codes_of_8_bits_are_skipped_with_and_without_scales() -> None:
    import ml_dtypes

    codes = SEPARATE["q"].astype(ml_dtypes.float8_e4m3fn)
    tensors = NAMES["llama"] | {"layers.0.self_attn.q_proj.weight": codes}
    for scale in (None, "weight_scale_inv", "weight_scale", "scale", "scales", "weight.scale", "scale_weight"):
        scales = {} if scale is None else {f"layers.0.self_attn.q_proj.{scale}": np.ones((1, 1))}
        plan = planned(tensors | scales, {"model_type": "llama", **SIZES})
        assert not plan.layers
        (reason,) = (entry.reason for entry in plan.skipped if entry.name.endswith("q_proj.weight"))
        assert ("without a known scale" if scale is None else "multiply the scales in") in reason
        assert {entry.name for entry in plan.skipped} >= set(scales)
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
        ({"model_type": "llama", "quantization_config": {"bits": 4}}, "quantized"),
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
