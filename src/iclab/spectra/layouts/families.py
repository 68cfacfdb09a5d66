"""The families of models whose tensors are known by name, and what their configs say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from iclab.numerics import require
from iclab.spectra.layouts.geometry import Geometry, first, rotary, sizes
from iclab.spectra.layouts.rules import Rule
from iclab.spectra.weights import Rotary

Config = Mapping[str, Any]
_W = r"\.(?:weight|bias)"
_NORM = r"\.(?:weight|bias|gamma|beta)"


@dataclass(frozen=True)
class Layout:
    """What names mean and how heads lie: all that is needed to read the tensors of one model."""

    family: str
    rules: tuple[Rule, ...]
    geometry: Geometry
    text_only: bool = False  # whether towers for images and sound have sizes of their own


def from_config(config: Config) -> Layout:
    """The layout that a config.json describes; the text part of a config that nests one.

    Raises ValueError for a family that is not known: nothing is guessed from shapes.
    """
    nested = config.get("text_config")
    if isinstance(nested, Mapping):
        inner = {**nested, "model_type": nested.get("model_type", config.get("model_type"))}
        found = from_config(inner)
        return Layout(found.family, found.rules, found.geometry, text_only=True)
    family = config.get("model_type")
    require(
        isinstance(family, str) and family in FAMILIES,
        f"model_type must be one of {', '.join(sorted(FAMILIES))}; got {family!r}. "
        "Write a mapping of your tensors for another model.",
    )
    rules, geometry = FAMILIES[str(family)](config)
    return Layout(str(family), tuple(rules), geometry)


def _fused(match: str, order: str, axis: int = 0) -> Rule:
    return Rule(match + _W, "qkv", order, axis)


def _separate(stem: str, names: str = "q_proj k_proj v_proj o_proj") -> list[Rule]:
    return [Rule(rf"{stem}\.{name}{_W}", role) for name, role in zip(names.split(), "qkvo", strict=False)]


def _head(*names: str) -> list[Rule]:
    return [Rule(rf"{name}\.(?:weight|bias)", "unembed") for name in names]


def _gpt2(config: Config) -> tuple[list[Rule], Geometry]:
    return _gpt2_names(axis=1), sizes(config, tied=config.get("tie_word_embeddings", True))


def _nanogpt(config: Config) -> tuple[list[Rule], Geometry]:
    return _gpt2_names(axis=0), sizes(config, tied=True)


def _gpt2_names(axis: int) -> list[Rule]:
    return [
        _fused(r"h\.(?P<layer>\d+)\.attn\.c_attn", "part,head,dim", axis),
        Rule(r"h\.(?P<layer>\d+)\.attn\.c_proj" + _W, "o", output_axis=axis),
        Rule(r"h\.(?P<layer>\d+)\.ln_1" + _NORM, "norm"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.c_fc" + _W, "mlp_in", output_axis=axis),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.c_proj" + _W, "mlp_out", output_axis=axis),
        Rule(r"w[tp]e\.weight", "embed"),
        *_head("lm_head"),
    ]


def _gpt_neo(config: Config) -> tuple[list[Rule], Geometry]:
    rules = [
        *_separate(r"h\.(?P<layer>\d+)\.attn\.attention", "q_proj k_proj v_proj out_proj"),
        Rule(r"h\.(?P<layer>\d+)\.ln_1" + _NORM, "norm"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.c_fc" + _W, "mlp_in"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.c_proj" + _W, "mlp_out"),
        Rule(r"w[tp]e\.weight", "embed"),
        *_head("lm_head"),
    ]
    return rules, sizes(config, scale=1.0, tied=config.get("tie_word_embeddings", True))


def _gptj(config: Config) -> tuple[list[Rule], Geometry]:
    rules = [
        *_separate(r"h\.(?P<layer>\d+)\.attn", "q_proj k_proj v_proj out_proj"),
        Rule(r"h\.(?P<layer>\d+)\.ln_1" + _NORM, "norm"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.fc_in" + _W, "mlp_in"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.fc_out" + _W, "mlp_out"),
        Rule(r"wte\.weight", "embed"),
        *_head("lm_head"),
    ]
    return rules, _turned(config, pairing="interleaved")


def _gpt_neox(config: Config) -> tuple[list[Rule], Geometry]:
    rules = [
        _fused(r"layers\.(?P<layer>\d+)\.attention\.query_key_value", "head,part,dim"),
        Rule(r"layers\.(?P<layer>\d+)\.attention\.dense" + _W, "o"),
        Rule(r"layers\.(?P<layer>\d+)\.input_layernorm" + _NORM, "norm"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.dense_h_to_4h" + _W, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.dense_4h_to_h" + _W, "mlp_out"),
        Rule(r"embed_in\.weight", "embed"),
        *_head("embed_out", "lm_head"),
    ]
    return rules, _turned(config, fraction=0.25)


def _bloom(config: Config) -> tuple[list[Rule], Geometry]:
    rules = [*_bloom_names("head,part,dim", "input_layernorm"), Rule(r"word_embeddings\.weight", "embed")]
    return rules, sizes(config, tied=config.get("tie_word_embeddings", True))


def _bloom_names(order: str, norm: str) -> list[Rule]:
    return [
        _fused(r"h\.(?P<layer>\d+)\.self_attention\.query_key_value", order),
        Rule(r"h\.(?P<layer>\d+)\.self_attention\.dense" + _W, "o"),
        Rule(rf"h\.(?P<layer>\d+)\.(?:{norm})" + _NORM, "norm"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.dense_h_to_4h" + _W, "mlp_in"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.dense_4h_to_h" + _W, "mlp_out"),
        *_head("lm_head"),
    ]


def _falcon(config: Config) -> tuple[list[Rule], Geometry]:
    heads = sizes(config).heads
    if config.get("new_decoder_architecture"):
        order, kv_heads = "group,part,dim", first(config, "num_kv_heads") or heads
    elif config.get("multi_query", True):
        order, kv_heads = "part,head,dim", 1  # the config says num_kv_heads = heads
    else:
        order, kv_heads = "head,part,dim", heads
    rules = [*_bloom_names(order, "input_layernorm|ln_attn"), Rule(r"word_embeddings\.weight", "embed")]
    tied = config.get("tie_word_embeddings", True)
    if config.get("alibi"):
        return rules, sizes(config, kv_heads=kv_heads, tied=tied)
    return rules, _turned(config, kv_heads=kv_heads, tied=tied)


def _mpt(config: Config) -> tuple[list[Rule], Geometry]:
    rules = [
        _fused(r"blocks\.(?P<layer>\d+)\.attn\.Wqkv", "part,head,dim"),
        Rule(r"blocks\.(?P<layer>\d+)\.attn\.out_proj" + _W, "o"),
        Rule(r"blocks\.(?P<layer>\d+)\.norm_1" + _NORM, "norm"),
        Rule(r"blocks\.(?P<layer>\d+)\.ffn\.up_proj" + _W, "mlp_in"),
        Rule(r"blocks\.(?P<layer>\d+)\.ffn\.down_proj" + _W, "mlp_out"),
        Rule(r"wte\.weight", "embed"),
        *_head("lm_head"),
    ]
    return rules, sizes(config, tied=config.get("tie_word_embeddings", True))


def _phi3(config: Config) -> tuple[list[Rule], Geometry]:
    rules = [
        _fused(r"layers\.(?P<layer>\d+)\.self_attn\.qkv_proj", "part,head,dim"),
        Rule(r"layers\.(?P<layer>\d+)\.self_attn\.o_proj" + _W, "o"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.gate_up_proj" + _W, "mlp_in", blocks=2),
        *_llama_rest("input_layernorm"),
    ]
    return rules, _turned(config, norm_centered=False)


def _llama_rest(norm: str) -> list[Rule]:
    return [
        *([Rule(rf"layers\.(?P<layer>\d+)\.{norm}" + _NORM, "norm")] if norm else []),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.(?:gate|up)_proj" + _W, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.down_proj" + _W, "mlp_out"),
        Rule(r"embed_tokens\.weight", "embed"),
        *_head("lm_head"),
    ]


def _llama_names(norm: str = "input_layernorm", *, head_norms: bool = False) -> list[Rule]:
    norms = [Rule(rf"layers\.(?P<layer>\d+)\.self_attn\.{x}_norm\.weight", f"{x}_norm") for x in "qk"]
    return [*_separate(r"layers\.(?P<layer>\d+)\.self_attn"), *(norms if head_norms else []), *_llama_rest(norm)]


def _llama(config: Config) -> tuple[list[Rule], Geometry]:
    return _llama_names(), _turned(config, norm_centered=False)


def _qwen3(config: Config) -> tuple[list[Rule], Geometry]:
    return _llama_names(head_norms=True), _turned(config, norm_centered=False)


def _olmo2(config: Config) -> tuple[list[Rule], Geometry]:
    return _llama_names("", head_norms=True), _turned(config, norm_centered=False, norm_across_heads=True)


def _mixtral(config: Config) -> tuple[list[Rule], Geometry]:
    experts = [
        Rule(r"layers\.(?P<layer>\d+)\.block_sparse_moe\.experts\.\d+\.w[13]\.weight", "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.block_sparse_moe\.experts\.\d+\.w2\.weight", "mlp_out"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.experts\.gate_up_proj", "mlp_in", output_axis=1, blocks=2),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.experts\.down_proj", "mlp_out", output_axis=1),
    ]
    return [*_llama_names(), *experts], _turned(config, norm_centered=False)


def _gemma(config: Config) -> tuple[list[Rule], Geometry]:
    return _llama_names(head_norms=str(config["model_type"]).startswith("gemma3")), _gemma_geometry(config)


def _gemma_geometry(config: Config) -> Geometry:
    scalar = first(config, "query_pre_attn_scalar")
    geometry = sizes({"head_dim": 256, **config}, tied=config.get("tie_word_embeddings", True))
    return Geometry(
        geometry.heads,
        geometry.kv_heads,
        geometry.head_dim,
        _gemma_rotaries(config, geometry.head_dim or 256),
        scale=None if scalar is None else float(scalar) ** -0.5,
        softcap=first(config, "attn_logit_softcapping"),
        norm_gain="1+weight",
        norm_centered=False,
        tied=geometry.tied,
    )


def _gemma_rotaries(config: Config, head_dim: int) -> tuple[Rotary | None, ...]:
    """One rotation, or for gemma3 one for each layer by its kind: sliding window or full."""
    if not str(config["model_type"]).startswith("gemma3"):
        return (rotary(config, head_dim),)
    every = first(config, "sliding_window_pattern") or 6
    kinds = first(config, "layer_types") or [
        "full_attention" if (layer + 1) % every == 0 else "sliding_attention"
        for layer in range(first(config, "num_hidden_layers") or 26)
    ]
    full = rotary(config, head_dim, theta=1e6, layer_type="full_attention")
    local = {} if "rope_parameters" in config else {"rope_theta": config.get("rope_local_base_freq", 1e4)}
    near = {key: value for key, value in config.items() if key != "rope_scaling"} | local
    sliding = rotary(near, head_dim, layer_type="sliding_attention")
    return tuple(full if kind == "full_attention" else sliding for kind in kinds)


def _opt(config: Config) -> tuple[list[Rule], Geometry]:
    before = config.get("do_layer_norm_before", True)
    rules = [
        *_separate(r"layers\.(?P<layer>\d+)\.self_attn", "q_proj k_proj v_proj out_proj"),
        *([Rule(r"layers\.(?P<layer>\d+)\.self_attn_layer_norm" + _NORM, "norm")] if before else []),
        Rule(r"layers\.(?P<layer>\d+)\.fc1" + _W, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.fc2" + _W, "mlp_out"),
        Rule(r"embed_(?:tokens|positions)\.weight", "embed"),
        *_head("lm_head"),
    ]
    return rules, sizes(config, tied=config.get("tie_word_embeddings", True))


def _bert(config: Config) -> tuple[list[Rule], Geometry]:
    rules = [
        *_separate(r"layer\.(?P<layer>\d+)\.attention\.self", "query key value"),
        Rule(r"layer\.(?P<layer>\d+)\.attention\.output\.dense" + _W, "o"),
        Rule(r"layer\.(?P<layer>\d+)\.intermediate\.dense" + _W, "mlp_in"),
        Rule(r"layer\.(?P<layer>\d+)\.output\.dense" + _W, "mlp_out"),
        Rule(r"embeddings\.(?:word|position|token_type)_embeddings\.weight", "embed"),
        *_head(r"predictions\.decoder"),
    ]
    return rules, sizes(config, tied=config.get("tie_word_embeddings", True))


def _vit(config: Config) -> tuple[list[Rule], Geometry]:
    rules = [
        *_separate(r"layer\.(?P<layer>\d+)\.attention\.attention", "query key value"),
        Rule(r"layer\.(?P<layer>\d+)\.attention\.output\.dense" + _W, "o"),
        *_separate(r"layers\.(?P<layer>\d+)\.attention"),
        Rule(r"layers?\.(?P<layer>\d+)\.layernorm_before" + _NORM, "norm"),
        Rule(r"layer\.(?P<layer>\d+)\.intermediate\.dense" + _W, "mlp_in"),
        Rule(r"layer\.(?P<layer>\d+)\.output\.dense" + _W, "mlp_out"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.fc1" + _W, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.fc2" + _W, "mlp_out"),
    ]
    return rules, sizes(config)


def _torch(config: Config) -> tuple[list[Rule], Geometry]:
    """torch.nn.MultiheadAttention, alone or in a stack of encoder or decoder layers."""
    at = r"(?:layers\.(?P<layer>\d+)\.)?(?P<kind>self_attn\.|multihead_attn\.)?"
    rules = [
        Rule(at + r"in_proj_(?:weight|bias)", "qkv", "part,head,dim"),
        *(Rule(at + rf"{part}_proj_weight", part) for part in "qkv"),
        Rule(at + r"out_proj" + _W, "o"),
        Rule(at + r"bias_[kv]", "skip"),
        Rule(r"layers\.(?P<layer>\d+)\.linear1" + _W, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.linear2" + _W, "mlp_out"),
    ]
    return rules, sizes(config)


def _transformer_lens(config: Config) -> tuple[list[Rule], Geometry]:
    at = r"blocks\.(?P<layer>\d+)\."
    rules = [
        *(Rule(at + rf"attn\.{form}_{part.upper()}", part, output_axis=2) for part in "q" for form in "Wb"),
        *(Rule(at + rf"attn\._?{form}_{part.upper()}", part, output_axis=2) for part in "kv" for form in "Wb"),
        *(Rule(at + rf"attn\.{form}_O", "o", output_axis=2) for form in "Wb"),
        Rule(at + r"ln1\.[wb]", "norm"),
        Rule(at + r"mlp\.(?:W_in|W_gate|b_in)", "mlp_in", output_axis=1),
        Rule(at + r"mlp\.(?:W_out|b_out)", "mlp_out", output_axis=1),
        Rule(r"embed\.W_E|pos_embed\.W_pos", "embed"),
        Rule(r"unembed\.[Wb]_U", "unembed", output_axis=1),
    ]
    return rules, _plain(config)


def _iclab(config: Config) -> tuple[list[Rule], Geometry]:
    rules = [
        *_separate(r"layers\.(?P<layer>\d+)\.attention", "query key value output"),
        Rule(r"layers\.(?P<layer>\d+)\.norm" + _NORM, "norm"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp_in" + _W, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp_out" + _W, "mlp_out"),
        Rule(r"embed\.weight", "embed"),
        *_head("unembed"),
    ]
    return rules, _plain(config)


def _plain(config: Config) -> Geometry:
    """Sizes, and the rotation where the config states one: rotary = {fraction, pairing, theta}."""
    stated = config.get("rotary")
    if not stated:
        return sizes(config)
    require(isinstance(stated, Mapping), f"rotary must be a table such as {{fraction = 0.25}}; got {stated!r}.")
    unknown = sorted(set(stated) - {"fraction", "pairing", "theta"})
    require(not unknown, f"rotary has the entries fraction, pairing and theta; got {', '.join(unknown)}.")
    pairing = stated.get("pairing", "half")
    require(pairing in ("half", "interleaved"), f'pairing must be "half" or "interleaved"; got {pairing!r}.')
    return _turned(config, pairing=pairing, fraction=stated.get("fraction", 1.0), theta=stated.get("theta", 1e4))


def _turned(
    config: Config, *, pairing: str = "half", fraction: float = 1.0, theta: float = 1e4, **other: Any
) -> Geometry:
    geometry = sizes(config, **other)
    require(geometry.head_dim is not None, "the config must give head_dim or hidden_size, to know what is rotated.")
    turn = rotary(config, geometry.head_dim or 0, pairing=pairing, fraction=fraction, theta=theta)
    return sizes(config, rotaries=(turn,), **other)


FAMILIES: dict[str, Callable[[Config], tuple[list[Rule], Geometry]]] = {
    "gpt2": _gpt2, "nanogpt": _nanogpt, "gpt_neo": _gpt_neo, "gptj": _gptj, "gpt_neox": _gpt_neox,
    "bloom": _bloom, "falcon": _falcon, "mpt": _mpt, "phi3": _phi3, "llama": _llama, "mistral": _llama,
    "qwen2": _llama, "qwen3": _qwen3, "gemma": _gemma, "gemma2": _gemma, "gemma3": _gemma, "gemma3_text": _gemma,
    "olmo2": _olmo2, "mixtral": _mixtral, "opt": _opt, "bert": _bert, "vit": _vit,
    "torch": _torch, "transformer_lens": _transformer_lens, "iclab": _iclab,
}  # fmt: skip
