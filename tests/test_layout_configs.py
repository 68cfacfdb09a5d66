"""What a config or a mapping says, and what it must not say."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.spectra import layouts
from iclab.spectra.checkpoints import Contents
from iclab.spectra.checkpoints.tensors import of_array
from iclab.spectra.layouts import from_config, from_mapping
from tests.same_weights import HEAD, NAMES, OUT, SIZES, WIDTH, assert_same, planned


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
    plan = layouts.tensor_plan({name: of_array(name, array) for name, array in tensors.items()}, from_mapping(path))
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
