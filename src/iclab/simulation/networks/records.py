"""Descriptions of networks and runs as JSON: for readers of the weights, and to tell two runs apart."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from iclab.numerics import require
from iclab.simulation.networks.parts import BASE, Network
from iclab.simulation.networks.perceptrons import Perceptron
from iclab.simulation.networks.transformers import Transformer

__all__ = ["KINDS", "described", "differences", "network_of", "stated"]

KINDS: dict[str, type] = {kind.__name__: kind for kind in (Transformer, Perceptron)}


def stated(network: Network) -> dict[str, Any]:
    """The config.json of a network: the fields that readers of weights use, and all that rebuilds it as "network"."""
    config: dict[str, Any] = {"model_type": "iclab"}
    if isinstance(network, Transformer):
        config |= {
            "hidden_size": network.width,
            "num_attention_heads": network.heads,
            "num_hidden_layers": network.layers,
            "tie_word_embeddings": network.tied,
            "do_layer_norm_before": network.norm == "pre",
            "positions": network.positions,
        }
        if network.positions == "rotary":
            config["rotary"] = {"fraction": 1.0, "pairing": "half", "theta": BASE}
    elif isinstance(network, Perceptron):
        config |= {"hidden_size": network.width, "num_hidden_layers": 0}
    require(
        type(network) in KINDS.values(),
        f"a network on disk must be a {' or a '.join(KINDS)}; got {type(network).__name__}.",
    )
    return config | {"network": described("network", network)}


def network_of(config: Mapping[str, Any]) -> Network:
    """The network of a config.json. Raises ValueError for one that was not written here."""
    fields_of = dict(found) if isinstance(found := config.get("network"), Mapping) else {}
    kind = fields_of.pop("kind", None)
    require(
        isinstance(kind, str) and kind in KINDS,
        f'config.json must state its "network", a {" or a ".join(KINDS)}; got {kind!r}.',
    )
    unknown = sorted(set(fields_of) - {field.name for field in fields(KINDS[kind])})
    require(not unknown, f"config.json must state fields of a {kind}; it does not have {', '.join(unknown)}.")
    try:
        return KINDS[kind](**fields_of)
    except TypeError as error:
        raise ValueError(f"config.json must state a whole {kind}; {error}.") from None


def described(name: str, thing: Any) -> Any:
    """A dataclass of numbers, words and other such dataclasses, as JSON holds it; infinities as words.

    Raises ValueError, with its name, for anything else.
    """
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = {field.name: described(f"{name}.{field.name}", getattr(thing, field.name)) for field in fields(thing)}
        return {"kind": type(thing).__name__, **parts}
    if isinstance(thing, np.generic):
        thing = thing.item()
    if isinstance(thing, list | tuple):
        return [described(f"{name}[{index}]", part) for index, part in enumerate(thing)]
    if isinstance(thing, float) and not np.isfinite(thing):
        return str(thing)
    require(
        thing is None or isinstance(thing, bool | int | float | str),
        f"{name} must be made of numbers, words and dataclasses of them, to be written down; "
        f"got {type(thing).__name__}.",
    )
    return thing


def differences(there: Any, here: Any) -> list[str]:
    """Differences of two descriptions, in words."""
    ours, theirs = dict(_flat("", here)), dict(_flat("", there))
    names = [*ours, *(name for name in theirs if name not in ours)]
    absent = "nothing"
    return [
        f"{name} is {theirs.get(name, absent)!r} there and {ours.get(name, absent)!r} here"
        for name in names
        if name not in ours or name not in theirs or theirs[name] != ours[name]
    ]


def _flat(name: str, thing: Any) -> list[tuple[str, Any]]:
    if not isinstance(thing, Mapping):
        return [(name, thing)]
    return [leaf for key, part in thing.items() for leaf in _flat(f"{name}.{key}" if name else str(key), part)]
