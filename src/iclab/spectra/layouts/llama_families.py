"""Families with names after Llama: grouped heads, rotary positions, a norm without mean."""

from iclab.spectra.circuits.weights import Rotary
from iclab.spectra.layouts.forms import AFFINE, NORM, Config, Family, fused, rotary_geometry, separate, unembedding
from iclab.spectra.layouts.geometry import Geometry, first, rotary, sizes
from iclab.spectra.layouts.rules import Rule

MOST_LAYERS = 10_000  # that a config is believed to have


def phi3(config: Config) -> Family:
    """Phi-3: fused in attention and in the MLP."""
    rules = [
        fused(r"layers\.(?P<layer>\d+)\.self_attn\.qkv_proj", "part,head,dim"),
        Rule(r"layers\.(?P<layer>\d+)\.self_attn\.o_proj" + AFFINE, "o"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.gate_up_proj" + AFFINE, "mlp_in", blocks=2),
        *_llama_rest("input_layernorm"),
    ]
    return rules, rotary_geometry(config, norm_centered=False)


def _llama_rest(norm: str) -> list[Rule]:
    return [
        *([Rule(rf"layers\.(?P<layer>\d+)\.{norm}" + NORM, "norm")] if norm else []),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.(?:gate|up)_proj" + AFFINE, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.down_proj" + AFFINE, "mlp_out"),
        Rule(r"embed_tokens\.weight", "embed"),
        *unembedding("lm_head"),
    ]


def _llama_names(norm: str = "input_layernorm", *, head_norms: bool = False) -> list[Rule]:
    norms = [Rule(rf"layers\.(?P<layer>\d+)\.self_attn\.{x}_norm\.weight", f"{x}_norm") for x in "qk"]
    return [*separate(r"layers\.(?P<layer>\d+)\.self_attn"), *(norms if head_norms else []), *_llama_rest(norm)]


def llama(config: Config) -> Family:
    """Llama, Mistral, Qwen2."""
    return _llama_names(), rotary_geometry(config, norm_centered=False)


def qwen3(config: Config) -> Family:
    """Qwen3: a norm of each head on queries and keys."""
    return _llama_names(head_norms=True), rotary_geometry(config, norm_centered=False)


def olmo2(config: Config) -> Family:
    """OLMo2: norms over all heads together, and none before attention."""
    return _llama_names("", head_norms=True), rotary_geometry(config, norm_centered=False, norm_across_heads=True)


def mixtral(config: Config) -> Family:
    """Mixtral: attention of Llama, experts one by one in files and stacked in memory."""
    experts = [
        Rule(r"layers\.(?P<layer>\d+)\.block_sparse_moe\.experts\.\d+\.w[13]\.weight", "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.block_sparse_moe\.experts\.\d+\.w2\.weight", "mlp_out"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.experts\.gate_up_proj", "mlp_in", output_axis=1, blocks=2),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.experts\.down_proj", "mlp_out", output_axis=1),
    ]
    return [*_llama_names(), *experts], rotary_geometry(config, norm_centered=False)


def gemma(config: Config) -> Family:
    """Gemma 1 to 3: gains stored less one, a scale of their own."""
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
        for layer in range(min(first(config, "num_hidden_layers") or 26, MOST_LAYERS))
    ]
    full = rotary(config, head_dim, theta=1e6, layer_type="full_attention")
    local = {} if "rope_parameters" in config else {"rope_theta": config.get("rope_local_base_freq", 1e4)}
    near = {key: value for key, value in config.items() if key != "rope_scaling"} | local
    sliding = rotary(near, head_dim, layer_type="sliding_attention")
    return tuple(full if kind == "full_attention" else sliding for kind in kinds)
