"""One attention layer under the names and orders of many families."""

from typing import Any

import numpy as np
from numpy.testing import assert_array_equal

from iclab.spectra import layouts
from iclab.spectra.checkpoints.tensors import of_array
from iclab.spectra.layouts import TensorPlan, from_config, from_mapping

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


def planned(tensors: dict[str, np.ndarray], config: dict[str, Any]) -> TensorPlan:
    return layouts.tensor_plan({name: of_array(name, array) for name, array in tensors.items()}, from_config(config))


def mapped(tensors: dict[str, np.ndarray], mapping: dict[str, Any]) -> TensorPlan:
    named = {name: of_array(name, array) for name, array in tensors.items()}
    return layouts.tensor_plan(named, from_mapping(mapping))


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


def assert_same(plan: TensorPlan) -> None:
    """The weights of the only layer are those at the top of this file."""
    weights = plan.attention(*next(iter(plan.layers)))
    for found, known in zip((weights.query, weights.key, weights.value, weights.output), (Q, K, V, O), strict=True):
        assert_array_equal(found, known)
    for found, known in zip((weights.query_bias, weights.key_bias, weights.value_bias), B, strict=True):
        assert found is None or (found == known).all()
