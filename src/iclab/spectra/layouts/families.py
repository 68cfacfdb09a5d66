"""Families of models, by the names of their tensors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from iclab.numerics import require
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.layouts import gpt_families as gpt
from iclab.spectra.layouts import llama_families as llama
from iclab.spectra.layouts import other_families as other
from iclab.spectra.layouts.caveats import caveats
from iclab.spectra.layouts.forms import Config, Family
from iclab.spectra.layouts.geometry import Geometry
from iclab.spectra.layouts.rules import Rule

__all__ = ["FAMILIES", "Layout", "from_config", "layout_of"]


@dataclass(frozen=True)
class Layout:
    """Rules for the names of a model's tensors, and the geometry of its heads."""

    family: str
    rules: tuple[Rule, ...]
    geometry: Geometry
    text_only: bool = False  # True where towers for images and sound have other sizes
    caveats: tuple[str, ...] = ()  # parts of the model's computation that its circuits leave out


def from_config(config: Config) -> Layout:
    """Layout of a config.json; of the text part of a config that nests one.

    Raises ValueError for an unknown family: nothing is guessed from shapes.
    """
    require(isinstance(config, Mapping), f"config must be a mapping, as in config.json; got {type(config).__name__}.")
    nested = config.get("text_config")
    if isinstance(nested, Mapping):
        inner = {**nested, "model_type": nested.get("model_type", config.get("model_type"))}
        found = from_config(inner)
        return replace(found, text_only=True)
    family = config.get("model_type")
    require(
        isinstance(family, str) and family in FAMILIES,
        f"model_type must be one of {', '.join(sorted(FAMILIES))}; got {quoted(str(family))}. "
        "Write a mapping of your tensors for another model.",
    )
    try:
        rules, geometry = FAMILIES[str(family)](config)
        notes = caveats(rules, geometry, config)
    except (TypeError, AttributeError, KeyError, ArithmeticError) as error:
        raise ValueError(
            f"the config of a {family} model must hold numbers and tables where its library writes them; "
            f"reading it failed: {type(error).__name__}. Is it the config.json of this model?"
        ) from None
    return Layout(str(family), tuple(rules), geometry, caveats=notes)


def layout_of(config: Config) -> Layout:
    """Layout of the config that comes with a checkpoint. Raises ValueError for none, and for an unknown family."""
    require(
        "model_type" in config,
        "the family of the model must be known; there is no config.json with a model_type. Give the config of the "
        "model (of the base model for an adapter) or a mapping of its tensors.",
    )
    return from_config(config)


FAMILIES: dict[str, Callable[[Config], Family]] = {
    "gpt2": gpt.gpt2, "nanogpt": gpt.nanogpt, "gpt_neo": gpt.gpt_neo, "gptj": gpt.gptj, "gpt_neox": gpt.gpt_neox,
    "bloom": gpt.bloom, "falcon": gpt.falcon, "mpt": gpt.mpt,
    "llama": llama.llama, "mistral": llama.llama, "qwen2": llama.llama, "qwen3": llama.qwen3, "phi3": llama.phi3,
    "gemma": llama.gemma, "gemma2": llama.gemma, "gemma3": llama.gemma, "gemma3_text": llama.gemma,
    "olmo2": llama.olmo2, "mixtral": llama.mixtral,
    "opt": other.opt, "bert": other.bert, "vit": other.vit,
    "torch": other.torch, "transformer_lens": other.transformer_lens, "iclab": other.iclab,
}  # fmt: skip
"""Rules and geometry of a config, by its model_type; users set "torch" and "transformer_lens"."""
