"""A model in training: its weights, its config and its adapter, as `inspect` would find them in a file."""

from collections.abc import Callable, Mapping
from typing import Any

from iclab.numerics import require
from iclab.spectra.checkpoints.state_dicts import config_of_arguments, plain

__all__ = ["Source", "adapter_of", "config_of", "source_of"]

Source = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
_INNER = ("module", "_orig_mod")  # where wrappers for several devices and compilers keep the model


def source_of(model: Any) -> Source:
    """The state of a model: its state_dict, or the mapping or function that it is."""
    source: Source | None = getattr(model, "state_dict", model)
    require(
        isinstance(source, Mapping) or callable(source),
        f"model must have a state_dict, or be a mapping or a function; got {type(model).__name__}.",
    )
    assert source is not None
    return source


def config_of(model: Any) -> Mapping[str, Any]:
    """The config of a Hugging Face model, or of nanoGPT's class, below wrappers.

    Raises ValueError for a model of unknown family.
    """
    config: Any = next((one.config for one in _layers(model) if getattr(one, "config", None) is not None), None)
    found = config.to_dict() if hasattr(config, "to_dict") else plain(config)
    found = found if "model_type" in found else config_of_arguments(found)
    require(
        "model_type" in found,
        "the family of the model must be known; it has no config that says it. Give config= or mapping=.",
    )
    return found


def adapter_of(model: Any) -> Mapping[str, Any] | None:
    """The config of the active adapter of a PEFT model, or None."""
    for one in _layers(model):
        configs = getattr(one, "peft_config", None)
        if isinstance(configs, Mapping) and configs:
            active = getattr(one, "active_adapter", None)
            chosen = configs.get(active if isinstance(active, str) else None, next(iter(configs.values())))
            return chosen.to_dict() if hasattr(chosen, "to_dict") else plain(chosen)
    return None


def _layers(model: Any) -> list[Any]:
    """The model and what its wrappers hold, from the outside in."""
    found = [model]
    while True:
        children = getattr(found[-1], "_modules", None)
        held = [children.get(name) for name in _INNER] if isinstance(children, Mapping) else []
        inner = next((one for one in held if one is not None), None)
        if inner is None:
            return found
        found.append(inner)
