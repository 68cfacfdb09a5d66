"""Models as users hand them to `watch`: below wrappers, with adapters, and of classes that `inspect` reads."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import iclab
from iclab.spectra.observation.models import adapter_of, config_of

torch = pytest.importorskip("torch")
HEADS, WIDTH, LAYERS = 2, 16, 2


@dataclass
class GPTConfig:
    """Settings of nanoGPT's class."""

    block_size: int = 8
    vocab_size: int = 40
    n_layer: int = LAYERS
    n_head: int = HEADS
    n_embd: int = WIDTH
    dropout: float = 0.0
    bias: bool = False


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = torch.nn.ModuleDict(
            {"c_attn": torch.nn.Linear(WIDTH, 3 * WIDTH), "c_proj": torch.nn.Linear(WIDTH, WIDTH)}
        )


class GPT(torch.nn.Module):
    """nanoGPT's names, without a forward pass."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.config = config
        self.transformer = torch.nn.ModuleDict({"h": torch.nn.ModuleList(Block() for _ in range(LAYERS))})


class Wrapped(torch.nn.Module):
    """What data-parallel wrappers do: one more level of names, and no config."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module


class Compiled(torch.nn.Module):
    """What compilers do: one more level of names, through which attributes are found."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._orig_mod = module
        self.config = module.config


def norms(model: Any, **options: Any) -> dict[tuple[int | None, int | None, str], float]:
    watcher = iclab.watch(model, **options)
    assert watcher(0)
    return {(row.layer, row.head, row.matrix): row.norm for row in watcher.rows if row.measure == "stable_rank"}


def query_key_norm(fused: np.ndarray, head: int) -> float:
    """Norm of the circuit of a head, of a fused weight stored [out, in]."""
    size = WIDTH // HEADS
    query, key = (fused[part * WIDTH + head * size :][:size] for part in (0, 1))
    return float(np.linalg.norm(query.T @ key))


@pytest.mark.parametrize("config", [GPTConfig(), SimpleNamespace(**vars(GPTConfig())), vars(GPTConfig())])
def test_a_bare_model_of_nanogpt_needs_no_config(config: Any) -> None:
    model = GPT(config)
    found = norms(model)
    for layer in range(LAYERS):
        fused = model.transformer["h"][layer].attn["c_attn"].weight.detach().numpy().astype(float)
        for head in range(HEADS):
            assert_allclose(found[layer, head, "QK"], query_key_norm(fused, head), rtol=1e-6)


def test_wrappers_change_neither_names_nor_numbers() -> None:
    plain = norms(GPT(GPTConfig()))
    assert norms(Wrapped(GPT(GPTConfig()))) == plain
    assert norms(Wrapped(Wrapped(GPT(GPTConfig())))) == plain
    assert norms(Compiled(GPT(GPTConfig()))) == plain
    assert norms(Wrapped(Compiled(GPT(GPTConfig())))) == plain


@pytest.mark.parametrize("config", [None, SimpleNamespace(n_layer=2), {"hidden": 4}, "gpt2", 3])
def test_a_model_of_unknown_family_is_refused_with_what_to_give(config: Any) -> None:
    with pytest.raises(ValueError, match=r"family of the model must be known.*Give config= or mapping="):
        iclab.watch(GPT(config))


@dataclass
class LoraConfig:
    """Settings of a LoRA adapter, as PEFT holds them."""

    r: int = 2
    lora_alpha: int = 6
    fan_in_fan_out: bool = False

    def to_dict(self) -> dict[str, Any]:
        return vars(self)


def test_adapters_of_a_model_are_applied_as_its_own_config_says() -> None:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((3 * WIDTH, WIDTH))
    left, right = rng.standard_normal((3 * WIDTH, 2)), rng.standard_normal((2, WIDTH))
    at = "base_model.model.transformer.h.0.attn."
    state = {
        at + "c_attn.base_layer.weight": base, at + "c_attn.lora_A.default.weight": right,
        at + "c_attn.lora_B.default.weight": left, at + "c_proj.weight": rng.standard_normal((WIDTH, WIDTH)),
    }  # fmt: skip
    model = SimpleNamespace(
        state_dict=lambda: state, config=GPTConfig(), peft_config={"default": LoraConfig()}, active_adapter="default"
    )
    found = norms(model)
    for head in range(HEADS):
        assert_allclose(found[0, head, "QK"], query_key_norm(base + 3 * left @ right, head), rtol=1e-5)
    assert adapter_of(model) == {"r": 2, "lora_alpha": 6, "fan_in_fan_out": False}
    assert adapter_of(GPT(GPTConfig())) is None


def test_the_active_one_of_several_adapters_is_taken() -> None:
    configs = {"first": LoraConfig(r=1), "second": LoraConfig(r=4)}
    model = SimpleNamespace(peft_config=configs, active_adapter="second")
    assert (adapter_of(model) or {})["r"] == 4


@pytest.mark.slow  # for the imports; the adapters above are without them
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_a_model_of_peft_is_watched() -> None:
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=1, n_head=HEADS, n_embd=WIDTH, vocab_size=40, n_positions=8)
    settings = peft.LoraConfig(r=2, lora_alpha=6, target_modules=["c_attn"], fan_in_fan_out=True)
    model = peft.get_peft_model(transformers.GPT2LMHeadModel(config), settings)
    assert config_of(model)["model_type"] == "gpt2"
    layer = model.base_model.model.transformer.h[0].attn.c_attn
    with torch.no_grad():
        layer.lora_B["default"].weight.normal_()
    merged = (
        layer.weight.detach().numpy().T
        + 3 * (layer.lora_B["default"].weight @ layer.lora_A["default"].weight).detach().numpy()
    )
    assert_allclose(norms(model)[0, 1, "QK"], query_key_norm(merged.astype(float), 1), rtol=1e-5)
