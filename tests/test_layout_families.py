"""Attention rebuilt from what the reader returns, against the real model of each family."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.spectra import checkpoints, layouts
from iclab.spectra.circuits.weights import AttentionWeights, InputNorm, Rotary
from iclab.spectra.layouts import Layout, TensorPlan

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

HEADS, SIZE, WIDTH, LENGTH, LAYER = 4, 8, 32, 7, 1
SLOPES = 2.0 ** (-2 * np.arange(1, HEADS + 1))  # of ALiBi for four heads: 2^(-8h/4)


@dataclass(frozen=True)
class Family:
    """A tiny model of one family: its class, its config, and the module that projects attention's output."""

    name: str
    config: dict[str, Any]
    output: str  # path of the output projection below the layer
    layer: str  # path of a layer, its number left open
    attention: str  # path below the layer of the module that attention's input enters
    causal: bool = True
    alibi: str = ""  # "after" or "before" the scaling
    probabilities: bool = True
    fast: bool = False
    label: str = ""


SELF, LLAMA = ("self_attn.o_proj", "layers.{}", "self_attn"), {
    "hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": 2, "num_hidden_layers": 2,
    "intermediate_size": 48, "vocab_size": 50, "head_dim": SIZE,
}  # fmt: skip
GPT = {"n_embd": WIDTH, "n_head": HEADS, "n_layer": 2, "n_positions": 32, "vocab_size": 50}
PLAIN = {
    "hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": 2, "intermediate_size": 48,
    "vocab_size": 50, "max_position_embeddings": 32,
}  # fmt: skip
FUSED = ("self_attention.dense", "h.{}", "self_attention")
FALCON = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": 2, "vocab_size": 50, "bias": True}
CAPS = {"query_pre_attn_scalar": 16, "attn_logit_softcapping": 5.0}
FAMILIES = [
    Family("gpt2", GPT, "attn.c_proj", "h.{}", "attn", fast=True),
    Family("gpt_neo", {"hidden_size": WIDTH, "num_heads": HEADS, "num_layers": 2, "window_size": 32,
           "attention_types": [[["global", "local"], 1]], "vocab_size": 50, "max_position_embeddings": 32},
           "attn.attention.out_proj", "h.{}", "attn.attention"),
    Family("gptj", {**GPT, "rotary_dim": 4}, "attn.out_proj", "h.{}", "attn"),
    Family("gpt_neox", PLAIN, "attention.dense", "layers.{}", "attention", fast=True),
    Family("gpt_neox", {**PLAIN, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
           "partial_rotary_factor": 0.5}}, "attention.dense", "layers.{}", "attention", label="half rotated"),
    Family("bloom", {"hidden_size": WIDTH, "n_head": HEADS, "n_layer": 2, "vocab_size": 50}, *FUSED, alibi="after"),
    Family("falcon", {**FALCON, "multi_query": True, "new_decoder_architecture": False}, *FUSED, fast=True,
           label="one key"),
    Family("falcon", {**FALCON, "multi_query": False, "new_decoder_architecture": False}, *FUSED, fast=True,
           label="equal heads"),
    Family("falcon", {**FALCON, "multi_query": False, "new_decoder_architecture": False, "alibi": True}, *FUSED,
           alibi="before", probabilities=False, label="ALiBi"),
    Family("falcon", {**FALCON, "num_kv_heads": 2, "new_decoder_architecture": True}, *FUSED, fast=True,
           label="grouped"),
    Family("mpt", {"d_model": WIDTH, "n_heads": HEADS, "n_layers": 2, "vocab_size": 50, "max_seq_len": 32},
           "attn.out_proj", "blocks.{}", "attn", alibi="after"),
    Family("phi3", {**LLAMA, "pad_token_id": 0}, *SELF),
    Family("phi3", {**LLAMA, "pad_token_id": 0, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
           "partial_rotary_factor": 0.5}}, *SELF, label="half rotated"),
    Family("llama", {**LLAMA, "attention_bias": True}, *SELF, fast=True),
    Family("llama", {**LLAMA, "rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0,
           "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}, *SELF,
           label="stretched"),
    Family("mistral", LLAMA, *SELF),
    Family("mixtral", {**LLAMA, "num_local_experts": 2}, *SELF),
    Family("qwen2", LLAMA, *SELF),
    Family("qwen3", {**LLAMA, "head_dim": 16}, *SELF),
    Family("gemma", {**LLAMA, "head_dim": 16}, *SELF),
    Family("gemma2", {**LLAMA, "head_dim": 16, **CAPS}, *SELF),
    Family("gemma3_text", {**LLAMA, "head_dim": 16, "query_pre_attn_scalar": 16,
           "layer_types": ["sliding_attention", "full_attention"]}, *SELF),
    Family("olmo2", LLAMA, *SELF),
    Family("opt", {**PLAIN, "ffn_dim": 48, "word_embed_proj_dim": WIDTH}, "self_attn.out_proj", "decoder.layers.{}",
           "self_attn"),
    Family("bert", PLAIN, "attention.output.dense", "encoder.layer.{}", "attention.self", causal=False),
    Family("vit", {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": 2,
           "intermediate_size": 48, "image_size": 8, "patch_size": 4}, "attention.o_proj", "layers.{}", "attention",
           causal=False),
]  # fmt: skip


def family_cases() -> list[Any]:
    """Each family; the slower half waits for the slow run."""
    return [
        pytest.param(
            family, id=f"{family.name} {family.label}".strip(), marks=() if family.fast else pytest.mark.slow
        )
        for family in FAMILIES
    ]


def drawn(module: Any, seed: int = 0) -> Any:
    """The module with weights N(0, .3²), gains around one and no bias zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
            if parameter.ndim == 1 and name.endswith("weight"):
                parameter += 1
    return module.eval()


Seen = tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]


def watched(model: Any, family: Family) -> Seen:
    """What enters attention of one layer, its probabilities, what leaves its output projection, the layer's input."""
    layer = model.get_submodule(family.layer.format(LAYER))
    seen: dict[str, Any] = {}

    def entered(module: Any, args: Any, kwargs: Any) -> None:
        seen["input"] = args[0] if args else kwargs["hidden_states"]

    layer.get_submodule(family.attention).register_forward_pre_hook(entered, with_kwargs=True)
    layer.register_forward_pre_hook(lambda module, args: seen.update(stream=args[0]))
    layer.get_submodule(family.output).register_forward_hook(lambda module, args, out: seen.update(output=out))
    torch.manual_seed(1)
    inputs = {"pixel_values": torch.randn(1, 3, 8, 8)} if family.name == "vit" else {
        "input_ids": torch.randint(0, 50, (1, LENGTH))
    }  # fmt: skip
    with torch.no_grad():
        answer = model(**inputs, output_attentions=family.probabilities)
    attended = answer.attentions[LAYER][0].numpy() if family.probabilities else None
    length = seen["input"].shape[-2]
    into, out, stream = (seen[name].reshape(length, -1).numpy() for name in ("input", "output", "stream"))
    return into, attended, out, stream


def turned(vectors: np.ndarray, rotary: Rotary) -> np.ndarray:
    """Queries or keys [head, position, dim], each pair turned as a complex number."""
    half = rotary.dimensions // 2
    pairs = (
        np.arange(2 * half).reshape(2, half) if rotary.pairing == "half" else np.arange(2 * half).reshape(half, 2).T
    )
    phases = np.exp(1j * np.outer(np.arange(vectors.shape[1]), rotary.frequencies))
    moved = (vectors[..., pairs[0]] + 1j * vectors[..., pairs[1]]) * phases
    result = vectors.copy()
    result[..., pairs[0]], result[..., pairs[1]] = moved.real, moved.imag
    return result


def rebuilt(
    plan: TensorPlan, weights: AttentionWeights, inputs: np.ndarray, family: Family
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities [head, i, j] and output of attention, in float64."""
    geometry, x = plan.layout.geometry, inputs.astype(float)

    def projected(weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        return np.einsum("hed,id->hie", weight.astype(float), x) + (0 if bias is None else bias[:, None])

    query = projected(weights.query, weights.query_bias)
    key = projected(weights.key, weights.key_bias)
    value = projected(weights.value, weights.value_bias)
    if weights.query_key_norm:
        norm = weights.query_key_norm
        axes = (0, 2) if norm.across_heads else (2,)
        query, key = (
            vectors
            / np.sqrt((vectors**2).mean(axes, keepdims=True) + 1e-6)
            * np.reshape(gain, (-1, 1, plan.head_dim))
            for vectors, gain in ((query, norm.query), (key, norm.key))
        )
    if weights.rotary:
        query, key = turned(query, weights.rotary), turned(key, weights.rotary)
    group = len(query) // len(key)
    scale = plan.head_dim**-0.5 if geometry.scale is None else geometry.scale
    scores = query @ np.repeat(key, group, 0).swapaxes(1, 2)
    slopes = SLOPES[:, None, None] * np.arange(len(x)) if family.alibi else 0.0
    scores = (scores + slopes) * scale if family.alibi == "before" else scores * scale + slopes
    if geometry.softcap:
        scores = geometry.softcap * np.tanh(scores / geometry.softcap)
    if family.causal:
        scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    attended = np.exp(scores - scores.max(-1, keepdims=True))
    attended /= attended.sum(-1, keepdims=True)
    output = np.einsum("hie,hde->id", attended @ np.repeat(value, group, 0), weights.output.astype(float))
    bias = plan.output_bias(*next(iter(plan.layers)))
    return attended, output if bias is None else output + plan.output_bias(*list(plan.layers)[LAYER])


def misread(layout: Layout) -> Layout:
    """The same sizes in the other row order, or the other pairing where there is one key/value head."""
    geometry = layout.geometry
    fused = next((rule for rule in layout.rules if rule.role == "qkv"), None)
    if geometry.kv_heads == 1:
        wrong = replace(geometry.rotaries[0], pairing="interleaved")
        return replace(layout, geometry=replace(geometry, rotaries=(wrong,)))
    chosen = fused or next(rule for rule in layout.rules if rule.role == "q")
    if fused is None:
        order = "dim,head"
    elif fused.order == "part,head,dim":
        order = "head,part,dim" if geometry.heads == geometry.kv_heads else "group,part,dim"
    else:
        order = "part,head,dim"
    rules = tuple(replace(rule, order=order) if rule.role == chosen.role else rule for rule in layout.rules)
    return replace(layout, rules=rules)


def gaps(read: TensorPlan, seen: Seen, family: Family) -> tuple[float, float]:
    """Largest gap of probabilities, and of outputs relative to the largest output."""
    inputs, attended, output, _ = seen
    ours, ours_out = rebuilt(read, read.attention(*list(read.layers)[LAYER]), inputs, family)
    gap = 0.0 if attended is None else float(np.max(np.abs(ours - attended)))
    return gap, float(np.max(np.abs(ours_out - output)) / np.max(np.abs(output)))


def normed(stream: np.ndarray, norm: InputNorm | None, floor: float) -> np.ndarray:
    """What attention is fed from the residual stream."""
    if norm is None:
        return stream
    moved = stream - stream.mean(1, keepdims=True) * norm.centered
    scaled = moved / np.sqrt((moved**2).mean(1, keepdims=True) + floor) * norm.gain
    return scaled if norm.bias is None else scaled + norm.bias


@pytest.mark.parametrize("family", family_cases())
def test_the_tensors_of_a_family_rebuild_its_attention_and_the_other_row_order_does_not(family: Family) -> None:
    attention = {"attn_implementation": "eager" if family.probabilities else "sdpa"}
    config = transformers.AutoConfig.for_model(family.name, **family.config, **attention)
    model = drawn(transformers.AutoModel.from_config(config, **attention))
    seen = watched(model, family)
    contents = checkpoints.of_states([model.state_dict()])[0].open()
    layout = layouts.from_config(config.to_dict())
    plan = layouts.tensor_plan(contents.tensors, layout)
    probability, output = gaps(plan, seen, family)
    assert probability <= 1e-5  # float32 scores of order ten
    assert output <= 1e-5
    norm = plan.attention(*list(plan.layers)[LAYER]).input_norm
    floors = ("layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps")
    floor = next((getattr(config, name) for name in floors if hasattr(config, name)), 1e-5)
    assert_allclose(normed(seen[3].astype(float), norm, floor), seen[0], atol=1e-5)  # float32 numbers of order one
    wrong = gaps(layouts.tensor_plan(contents.tensors, misread(layout)), seen, family)
    assert max(wrong) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("family", family_cases())
def test_what_a_family_saves_is_read_as_what_it_holds(family: Family, tmp_path: Path) -> None:
    config = transformers.AutoConfig.for_model(family.name, **family.config)
    model = drawn(transformers.AutoModel.from_config(config))
    model.save_pretrained(tmp_path)
    saved = layouts.planned(checkpoints.read(tmp_path)[0].open())
    held = layouts.tensor_plan(checkpoints.of_states([model.state_dict()])[0].open().tensors, saved.layout)
    stated = layouts.from_config(config.to_dict()).geometry
    assert replace(saved.layout.geometry, rotaries=(None,)) == replace(stated, rotaries=(None,))
    turns = [
        [turn and (turn.dimensions, turn.pairing) for turn in one.rotaries] for one in (saved.layout.geometry, stated)
    ]
    assert turns[0] == turns[1]
    assert len(saved.layers) == len(held.layers) == 2
    for ours, theirs in zip(saved.layers, held.layers, strict=True):
        for part in ("query", "key", "value", "output"):
            assert_array_equal(getattr(saved.attention(*ours), part), getattr(held.attention(*theirs), part))
    contents = [sorted(matrix.array().tobytes() for matrix in plan.matrices) for plan in (saved, held)]
    assert contents[0] == contents[1]
    unknown = [entry.name for entry in saved.skipped if "no name of a" in entry.reason]
    assert all(re.search(r"gate\.weight|pooler|patch|cls_token|position_embeddings", name) for name in unknown), (
        unknown
    )


@pytest.mark.parametrize("widths", [{}, {"kdim": 12, "vdim": 10}])
def test_the_attention_of_torch_is_rebuilt(widths: dict[str, int]) -> None:
    module = drawn(torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, **widths))
    generator = torch.Generator().manual_seed(2)
    query, key, value = (
        torch.randn(LENGTH, widths.get(name, WIDTH), generator=generator) for name in ("none", "kdim", "vdim")
    )
    with torch.no_grad():
        output, attended = module(query, key, value, average_attn_weights=False)
    contents = checkpoints.of_states([module.state_dict()])[0].open()
    layout = layouts.from_config({"model_type": "torch", "num_attention_heads": HEADS})
    plan = layouts.tensor_plan(contents.tensors, layout)
    weights = plan.attention("", 0)
    q, k, v = (
        np.einsum("hed,id->hie", weight, x.numpy()) + bias[:, None]
        for weight, bias, x in (
            (weights.query, weights.query_bias, query),
            (weights.key, weights.key_bias, key),
            (weights.value, weights.value_bias, value),
        )
    )
    scores = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(SIZE))
    ours = scores / scores.sum(-1, keepdims=True)
    assert_allclose(ours, attended.numpy(), atol=1e-5)
    ours_out = np.einsum("hie,hde->id", ours @ v, weights.output) + plan.output_bias("", 0)
    assert_allclose(ours_out, output.numpy(), atol=1e-5 * np.abs(output.numpy()).max())
