"""Encoders, modules of PyTorch, TransformerLens and the networks of this library."""

from iclab.spectra.layouts.forms import AFFINE, NORM, Config, Family, mapped_geometry, separate, unembedding
from iclab.spectra.layouts.geometry import sizes
from iclab.spectra.layouts.rules import Rule

__all__ = ["bert", "iclab", "opt", "torch", "transformer_lens", "vit"]


def opt(config: Config) -> Family:
    """OPT."""
    before = config.get("do_layer_norm_before", True)
    rules = [
        *separate(r"layers\.(?P<layer>\d+)\.self_attn", "q_proj k_proj v_proj out_proj"),
        *([Rule(r"layers\.(?P<layer>\d+)\.self_attn_layer_norm" + NORM, "norm")] if before else []),
        Rule(r"layers\.(?P<layer>\d+)\.fc1" + AFFINE, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.fc2" + AFFINE, "mlp_out"),
        Rule(r"embed_(?:tokens|positions)\.weight", "embed"),
        *unembedding("lm_head"),
    ]
    return rules, sizes(config, tied=config.get("tie_word_embeddings", True))


def bert(config: Config) -> Family:
    """BERT: post-norm, so that no norm feeds a projection of its own layer."""
    rules = [
        *separate(r"layer\.(?P<layer>\d+)\.attention\.self", "query key value"),
        Rule(r"layer\.(?P<layer>\d+)\.attention\.output\.dense" + AFFINE, "o"),
        Rule(r"layer\.(?P<layer>\d+)\.intermediate\.dense" + AFFINE, "mlp_in"),
        Rule(r"layer\.(?P<layer>\d+)\.output\.dense" + AFFINE, "mlp_out"),
        Rule(r"embeddings\.(?:word|position|token_type)_embeddings\.weight", "embed"),
        *unembedding(r"predictions\.decoder"),
    ]
    return rules, sizes(config, tied=config.get("tie_word_embeddings", True))


def vit(config: Config) -> Family:
    """ViT, with its names in files and in memory."""
    rules = [
        *separate(r"layer\.(?P<layer>\d+)\.attention\.attention", "query key value"),
        Rule(r"layer\.(?P<layer>\d+)\.attention\.output\.dense" + AFFINE, "o"),
        *separate(r"layers\.(?P<layer>\d+)\.attention"),
        Rule(r"layers?\.(?P<layer>\d+)\.layernorm_before" + NORM, "norm"),
        Rule(r"layer\.(?P<layer>\d+)\.intermediate\.dense" + AFFINE, "mlp_in"),
        Rule(r"layer\.(?P<layer>\d+)\.output\.dense" + AFFINE, "mlp_out"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.fc1" + AFFINE, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.mlp\.fc2" + AFFINE, "mlp_out"),
    ]
    return rules, sizes(config)


def torch(config: Config) -> Family:
    """torch.nn.MultiheadAttention, alone or in a stack of encoder or decoder layers."""
    at = r"(?:layers\.(?P<layer>\d+)\.)?(?:(?P<kind>self_attn|multihead_attn)\.)?"
    rules = [
        Rule(at + r"in_proj_(?:weight|bias)", "qkv", "part,head,dim"),
        *(Rule(at + rf"{part}_proj_weight", part) for part in "qkv"),
        Rule(at + r"out_proj" + AFFINE, "o"),
        Rule(at + r"bias_[kv]", "skip"),
        Rule(r"layers\.(?P<layer>\d+)\.linear1" + AFFINE, "mlp_in"),
        Rule(r"layers\.(?P<layer>\d+)\.linear2" + AFFINE, "mlp_out"),
    ]
    return rules, sizes(config)


def transformer_lens(config: Config) -> Family:
    """TransformerLens: three axes with heads first."""
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
    return rules, mapped_geometry(config)


def iclab(config: Config) -> Family:
    """Networks trained by this library; a post-norm feeds no projection of its own layer."""
    layer = r"layers\.(?P<layer>\d+)\."
    rules = [
        *separate(layer + "attention", "query key value output"),
        *([Rule(layer + "norm" + NORM, "norm")] if config.get("do_layer_norm_before", True) else []),
        Rule(rf"(?:{layer})?mlp_in" + AFFINE, "mlp_in"),
        Rule(rf"(?:{layer})?mlp_out" + AFFINE, "mlp_out"),
        Rule(r"(?:embed|positions|read_in)\.weight", "embed"),
        Rule(layer + r"attention\.relative\.weight", "skip"),
        *unembedding("unembed"),
    ]
    if config.get("num_hidden_layers") == 0:  # no attention, hence no heads: their number is never used
        config = {"num_attention_heads": 1, **config}
    return rules, mapped_geometry(config)
