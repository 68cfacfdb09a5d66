"""Low-rank adapters: what they change, in the words of the library that trains them."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.spectra import layouts
from iclab.spectra.checkpoints import Contents
from iclab.spectra.checkpoints.tensors import of_array
from iclab.spectra.layouts import from_config

CONFIG = {"model_type": "llama", "num_attention_heads": 2, "hidden_size": 4}
ADAPTER = {"r": 2, "lora_alpha": 6}
PATH = "base_model.model.model.layers.0.self_attn"


def contents(tensors: dict[str, np.ndarray], **adapter: Any) -> Contents:
    named = {name: of_array(name, array) for name, array in tensors.items()}
    return Contents(named, config=CONFIG, adapter={**ADAPTER, **adapter})


def factors(*parts: str, zero: bool = False) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    found = {}
    for part in parts:
        found[f"{PATH}.{part}_proj.lora_A.weight"] = rng.standard_normal((2, 4))
        found[f"{PATH}.{part}_proj.lora_B.weight"] = rng.standard_normal((4, 2)) * (not zero)
    return found


@pytest.mark.parametrize(
    ("entries", "scale"),
    [
        ({}, 3.0),  # 6/2
        ({"use_rslora": True}, 6 / np.sqrt(2)),
        ({"alpha_pattern": {"q_proj": 1}}, 0.5),
        ({"alpha_pattern": {"j_proj": 1, "layers.0.self_attn.q_proj": 4}}, 2.0),
        ({"r": 8, "rank_pattern": {"q_proj": 2}}, 3.0),
    ],
)
def test_an_adapter_alone_is_its_scaled_product(entries: dict[str, Any], scale: float) -> None:
    named = factors("q")
    plan = layouts.planned(contents(named, **entries))
    (matrix,) = plan.matrices
    left, right = named[f"{PATH}.q_proj.lora_B.weight"], named[f"{PATH}.q_proj.lora_A.weight"]
    assert_allclose(matrix.array(), scale * left @ right, rtol=1e-5)  # formed in float32
    assert (matrix.role, matrix.layer) == ("q", 0)
    assert any("alone" in note for note in plan.notes)


def test_a_base_is_changed_where_adapters_are_and_kept_elsewhere() -> None:
    rng = np.random.default_rng(1)
    base = {f"model.layers.0.self_attn.{part}_proj.weight": rng.standard_normal((4, 4)) for part in "qkvo"}
    named = factors("q", "v")
    plan = layouts.planned(contents(named), base={name: of_array(name, array) for name, array in base.items()})
    weights = plan.attention("model", 0)
    stored = base["model.layers.0.self_attn.q_proj.weight"]
    change = 3 * named[f"{PATH}.q_proj.lora_B.weight"] @ named[f"{PATH}.q_proj.lora_A.weight"]
    assert_allclose(weights.query.reshape(4, 4), stored + change, atol=1e-5)  # formed in float32
    assert_allclose(weights.key.reshape(4, 4), base["model.layers.0.self_attn.k_proj.weight"])


def test_an_untrained_adapter_is_said_to_be_zero() -> None:
    plan = layouts.planned(contents(factors("q", "v", zero=True)))
    assert any("2 of 2 adapters are zero" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({f"{PATH}.q_proj.lora_magnitude_vector": np.ones(4)}, "DoRA"),
        ({f"{PATH}.q_proj.lora_B.weight": np.ones((4, 3))}, "share their rank"),
        ({f"{PATH}.k_proj.lora_A.weight": np.ones((2, 4))}, "lora_A alone"),
        ({f"{PATH}.q_proj.lora_A.other.weight": np.ones((2, 4))}, "one adapter"),
        ({f"{PATH}.embed.lora_embedding_A": np.ones((2, 4))}, "embeddings"),
    ],
)
def test_what_is_no_plain_adapter_is_refused_by_name(change: dict[str, np.ndarray], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        layouts.planned(contents({**factors("q"), **change}))


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        ({"use_dora": True}, "DoRA"),
        ({"r": 4}, "rank of"),
        ({"r": None}, "r must"),
        ({"lora_alpha": "x"}, "lora_alpha"),
        ({"rank_pattern": {"(a+)+b": 2}}, "wildcards"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(entries: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        layouts.planned(contents(factors("q"), **entries))


def test_an_adapter_without_its_config_is_refused() -> None:
    bare = contents(factors("q"))
    with pytest.raises(ValueError, match=r"adapter_config\.json"):
        layouts.planned(dataclasses.replace(bare, adapter=None))


def test_an_adapter_of_another_base_is_refused() -> None:
    other = {
        "model.layers.0.self_attn.q_proj.weight": of_array("model.layers.0.self_attn.q_proj.weight", np.ones((6, 4)))
    }
    with pytest.raises(ValueError, match="shape of its base"):
        layouts.planned(contents(factors("q")), base=other)
    with pytest.raises(ValueError, match="has none"):
        layouts.planned(contents(factors("q")), base={})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
@pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to False:UserWarning")  # the config then stays wrong
@pytest.mark.parametrize("rslora", [False, True])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_merged_weights_are_those_of_the_training_library(family: str, rslora: bool, tmp_path: Any) -> None:
    torch, peft, transformers = (pytest.importorskip(name) for name in ("torch", "peft", "transformers"))
    from iclab.spectra import checkpoints

    sizes = {
        "gpt2": {"n_embd": 32, "n_head": 4, "n_layer": 1, "vocab_size": 50, "bos_token_id": 0, "eos_token_id": 0},
        "llama": {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1,
                  "intermediate_size": 48, "vocab_size": 50},
    }  # fmt: skip
    config = transformers.AutoConfig.for_model(family, **sizes[family])
    model = transformers.AutoModelForCausalLM.from_config(config)
    base = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    targets = {"gpt2": ["c_attn", "attn.c_proj"], "llama": ["q_proj", "k_proj", "v_proj", "o_proj"]}[family]
    recipe = peft.LoraConfig(
        r=4, lora_alpha=8, target_modules=targets, use_rslora=rslora, rank_pattern={targets[1]: 2},
        fan_in_fan_out=family == "gpt2" and rslora,
    )  # fmt: skip
    trained = peft.get_peft_model(model, recipe)
    with torch.no_grad():
        for name, parameter in trained.named_parameters():
            if "lora_B" in name:
                parameter.normal_()
    trained.save_pretrained(tmp_path)
    below = checkpoints.of_states([base])[0].open().tensors
    read = layouts.planned(checkpoints.read(tmp_path)[0].open(), from_config(config.to_dict()), base=below)
    wrapped = layouts.planned(
        Contents(
            checkpoints.of_states([{name: tensor.clone() for name, tensor in trained.state_dict().items()}])[0]
            .open()
            .tensors,
            adapter=checkpoints.read(tmp_path)[0].open().adapter,
        ),
        from_config(config.to_dict()),
    )
    merged = checkpoints.of_states([trained.merge_and_unload().state_dict()])[0].open()
    known = layouts.tensor_plan(merged.tensors, from_config(config.to_dict()))
    for plan in (read, wrapped):
        ours, theirs = (one.attention(*next(iter(one.layers))) for one in (plan, known))
        for part in ("query", "key", "value", "output"):
            assert_allclose(getattr(ours, part), getattr(theirs, part), atol=1e-5)  # float32 sums of order one
