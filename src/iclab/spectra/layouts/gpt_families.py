"""Families with names after GPT: fused or separate projections of equal heads, and Falcon."""

from iclab.spectra.layouts.forms import AFFINE, NORM, Config, Family, fused, rotary_geometry, separate, unembedding
from iclab.spectra.layouts.geometry import first, sizes
from iclab.spectra.layouts.rules import Rule


def gpt2(config: Config) -> Family:
    """GPT-2: fused, stored [in, out]."""
    return _gpt2_names(axis=1), sizes(config, tied=config.get("tie_word_embeddings", True))


def nanogpt(config: Config) -> Family:
    """nanoGPT: the names of GPT-2, stored [out, in]."""
    return _gpt2_names(axis=0), sizes(config, tied=True)


def _gpt2_names(axis: int) -> list[Rule]:
    return [
        fused(r"h\.(?P<layer>\d+)\.attn\.c_attn", "part,head,dim", axis),
        Rule(r"h\.(?P<layer>\d+)\.attn\.c_proj" + AFFINE, "o", output_axis=axis),
        Rule(r"h\.(?P<layer>\d+)\.ln_1" + NORM, "norm"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.c_fc" + AFFINE, "mlp_in", output_axis=axis),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.c_proj" + AFFINE, "mlp_out", output_axis=axis),
        Rule(r"w[tp]e\.weight", "embed"),
        *unembedding("lm_head"),
    ]


def gpt_neo(config: Config) -> Family:
    """GPT-Neo: scores that are not divided."""
    rules = [
        *separate(r"h\.(?P<layer>\d+)\.attn\.attention", "q_proj k_proj v_proj out_proj"),
        Rule(r"h\.(?P<layer>\d+)\.ln_1" + NORM, "norm"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.c_fc" + AFFINE, "mlp_in"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.c_proj" + AFFINE, "mlp_out"),
        Rule(r"w[tp]e\.weight", "embed"),
        *unembedding("lm_head"),
    ]
    return rules, sizes(config, scale=1.0, tied=config.get("tie_word_embeddings", True))


def gptj(config: Config) -> Family:
    """GPT-J: interleaved rotation."""
    rules = [
        *separate(r"h\.(?P<layer>\d+)\.attn", "q_proj k_proj v_proj out_proj"),
        Rule(r"h\.(?P<layer>\d+)\.ln_1" + NORM, "norm"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.fc_in" + AFFINE, "mlp_in"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.fc_out" + AFFINE, "mlp_out"),
        Rule(r"wte\.weight", "embed"),
        *unembedding("lm_head"),
    ]
    return rules, rotary_geometry(config, pairing="interleaved")


def gpt_neox(config: Config) -> Family:
    """GPT-NeoX and Pythia: query, key and value of each head together."""
    rules = [
        fused(r"layers\.(?P<layer>\d+)\.attention\.query_key_value", "head,part,dim"),
        Rule(r"layers\.(?P<layer>\d+)\.attention\.dense" + AFFINE, "o"),
        Rule(r"layers\.(?P<layer>\d+)\.input_layernorm" + NORM, "norm"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.dense_h_to_4h" + AFFINE, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.dense_4h_to_h" + AFFINE, "mlp_out"),
        Rule(r"embed_in\.weight", "embed"),
        *unembedding("embed_out", "lm_head"),
    ]
    return rules, rotary_geometry(config, fraction=0.25)


def bloom(config: Config) -> Family:
    """BLOOM: query, key and value of each head together."""
    rules = [*_bloom_names("head,part,dim", "input_layernorm"), Rule(r"word_embeddings\.weight", "embed")]
    return rules, sizes(config, tied=config.get("tie_word_embeddings", True))


def _bloom_names(order: str, norm: str) -> list[Rule]:
    return [
        fused(r"h\.(?P<layer>\d+)\.self_attention\.query_key_value", order),
        Rule(r"h\.(?P<layer>\d+)\.self_attention\.dense" + AFFINE, "o"),
        Rule(rf"h\.(?P<layer>\d+)\.(?:{norm})" + NORM, "norm"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.dense_h_to_4h" + AFFINE, "mlp_in"),
        Rule(r"h\.(?P<layer>\d+)\.mlp\.dense_4h_to_h" + AFFINE, "mlp_out"),
        *unembedding("lm_head"),
    ]


def falcon(config: Config) -> Family:
    """Falcon in its three layouts; configs of the first say as many key/value heads as heads where there is one."""
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
    return rules, rotary_geometry(config, kv_heads=kv_heads, tied=tied)


def mpt(config: Config) -> Family:
    """MPT: fused, part by part."""
    rules = [
        fused(r"blocks\.(?P<layer>\d+)\.attn\.Wqkv", "part,head,dim"),
        Rule(r"blocks\.(?P<layer>\d+)\.attn\.out_proj" + AFFINE, "o"),
        Rule(r"blocks\.(?P<layer>\d+)\.norm_1" + NORM, "norm"),
        Rule(r"blocks\.(?P<layer>\d+)\.ffn\.up_proj" + AFFINE, "mlp_in"),
        Rule(r"blocks\.(?P<layer>\d+)\.ffn\.down_proj" + AFFINE, "mlp_out"),
        Rule(r"wte\.weight", "embed"),
        *unembedding("lm_head"),
    ]
    return rules, sizes(config, tied=config.get("tie_word_embeddings", True))
