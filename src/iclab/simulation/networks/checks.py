"""Checks of networks, data, weights and tokens before anything is compiled."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from iclab.numerics import numbers, require
from iclab.simulation.networks.parts import LARGEST, Network
from iclab.simulation.sequences.batches import Batch, Data

__all__ = [
    "LOSSES", "check_batch", "checked_data", "checked_network", "checked_parameters", "checked_shapes",
    "checked_tokens",
]  # fmt: skip

LOSSES = ("cross-entropy", "square")


def checked_network(config: Any) -> Network:
    """The network. Raises ValueError unless it has a start and a forward pass, and can be compiled in."""
    _require_parts("config", config, ("length", "shortest", "start", "forward"), "a Transformer or a Perceptron")
    return config


def checked_data(data: Any) -> Data:
    """The data. Raises ValueError unless they draw batches, and can be compiled in."""
    _require_parts("data", data, ("loss", "fixed", "batch"), "such as those of simulation.sequences")
    require(data.loss in LOSSES, f"data.loss must be one of {', '.join(LOSSES)}; got {data.loss!r}.")
    return data


def checked_shapes(config: Network, data: Data, fixed: Any) -> Batch:
    """The shapes of a batch, without drawing one. Raises ValueError unless they suit the network."""
    key = jax.eval_shape(lambda: jax.random.key(0))
    batch = jax.eval_shape(data.batch, fixed, key)
    require(
        isinstance(batch, Batch) and all(hasattr(part, "shape") for part in batch),
        f"data.batch must give a Batch of arrays; got {type(batch).__name__}.",
    )
    whole = bool(getattr(config, "vocabulary", 0))
    require(
        jnp.issubdtype(batch.tokens.dtype, jnp.integer if whole else jnp.floating),
        f"tokens of the data must be {'whole numbers' if whole else 'real'}, as the network reads them; "
        f"got {batch.tokens.dtype}.",
    )
    _require_shape(config, batch.tokens.shape)
    outputs = jax.eval_shape(config.forward, jax.eval_shape(config.start, key), batch.tokens)
    require(
        batch.target.shape == batch.weight.shape == outputs.shape[:2],
        f"targets and weights of the data must have the shape {outputs.shape[:2]} of the network's outputs; got "
        f"{batch.target.shape} and {batch.weight.shape}.",
    )
    for name, array in {"targets": batch.target, "weights": batch.weight}.items():
        require(
            not jnp.issubdtype(array.dtype, jnp.complexfloating),
            f"{name} of the data must be real; got {array.dtype}.",
        )
    require(
        data.loss != "square" or outputs.shape[2] == 1,
        f"a square loss needs a network of one output; got {outputs.shape[2]}.",
    )
    require(
        data.loss != "cross-entropy" or jnp.issubdtype(batch.target.dtype, jnp.integer),
        f"targets of a cross-entropy must be whole numbers; got {batch.target.dtype}.",
    )
    return batch


def check_batch(config: Network, data: Data, batch: Batch) -> None:
    """Raise ValueError for numbers of a batch that lie outside the range of the network and the loss."""
    for name, part in {"tokens": batch.tokens, "targets": batch.target, "weights": batch.weight}.items():
        require(bool(jnp.all(jnp.isfinite(part))), f"{name} of the data must be finite; got NaN or infinity.")
    require(
        bool(jnp.sum(batch.weight) > 0),
        "weights of the data must have a positive sum in every batch, or no output counts; theirs is "
        f"{float(jnp.sum(batch.weight)):g}.",
    )
    vocabulary = getattr(config, "vocabulary", 0)
    if vocabulary:
        _require_below("tokens of the data", np.asarray(batch.tokens), vocabulary)
    if data.loss == "cross-entropy":
        _require_below("targets of the data", np.asarray(batch.target), getattr(config, "outputs", 0))


def checked_parameters(config: Network, parameters: Any) -> dict[str, Any]:
    """The weights by name, in single precision.

    Raises ValueError unless they have the names and shapes of the network and are finite real numbers, up to 1e15.
    """
    require(
        isinstance(parameters, Mapping),
        f"parameters must map names to arrays; got {type(parameters).__name__}.",
    )
    shapes = _shapes(config)
    found = {str(name): _shape(str(name), part) for name, part in parameters.items()}
    wrong = [
        f"{name} is {found.get(name, 'missing')} and must be {shapes.get(name, 'absent')}"
        for name in sorted(shapes.keys() | found.keys())
        if shapes.get(name) != found.get(name)
    ]
    require(not wrong, f"parameters must be those of the network: {'; '.join(wrong[:5])}.")
    return {str(name): _single(f"the weight {name}", part) for name, part in parameters.items()}


def _shape(name: str, part: Any) -> tuple[int, ...]:
    try:
        return np.shape(part)
    except ValueError:
        raise ValueError(f"the weight {name} must be one array; lists of different lengths are none.") from None


def _single(name: str, part: Any) -> np.ndarray:
    array = numbers(name, part)
    require(
        bool(np.all(np.abs(array) <= LARGEST)),
        f"{name} must be of entries up to {LARGEST:g}; got {np.abs(array).max(initial=0.0):.3g}.",
    )
    return array.astype(np.float32)


def checked_tokens(config: Network, tokens: Any) -> np.ndarray:
    """The tokens as an array. Raises ValueError unless they suit the network."""
    try:
        array = np.asarray(tokens)
    except ValueError:
        raise ValueError("tokens must be one array; sequences of different lengths are none.") from None
    _require_shape(config, array.shape)
    vocabulary = getattr(config, "vocabulary", 0)
    if not vocabulary:
        return _single("tokens", array)
    require(
        np.issubdtype(array.dtype, np.integer) and array.size > 0,
        f"tokens must be whole numbers from 0 to {vocabulary - 1}; got an array of {array.dtype}.",
    )
    _require_below("tokens", array, vocabulary)
    return array.astype(np.int32)


@lru_cache(maxsize=64)
def _shapes(config: Network) -> dict[str, tuple[int, ...]]:
    key = jax.eval_shape(lambda: jax.random.key(0))
    return {name: part.shape for name, part in jax.eval_shape(config.start, key).items()}


def _require_parts(name: str, thing: Any, parts: tuple[str, ...], such: str) -> None:
    missing = [part for part in parts if not hasattr(thing, part)]
    require(
        not missing and not isinstance(thing, type),
        f"{name} must be {such}; got {type(thing).__name__}{' without ' * bool(missing)}{', '.join(missing)}.",
    )
    try:
        hash(thing)
    except TypeError:
        raise ValueError(
            f"{name} must be hashable, to be part of what is compiled; {type(thing).__name__} is not. "
            "Make it a frozen dataclass of plain numbers."
        ) from None


def _require_shape(config: Network, shape: tuple[int, ...]) -> None:
    vocabulary, features = getattr(config, "vocabulary", 0), getattr(config, "features", 0)
    axes = "(context, position)" if vocabulary else f"(context, position, {features})"
    require(
        len(shape) == (2 if vocabulary else 3) and (bool(vocabulary) or shape[-1] == features),
        f"tokens must have the axes {axes}; got shape {shape}.",
    )
    least, most = config.shortest, config.length
    require(
        shape[0] >= 1 and least <= shape[1] <= most,
        f"there must be sequences of {least if least == most else f'{least} to {most}'} tokens, which is what the "
        f"network takes; got {shape[0]} of {shape[1]} tokens.",
    )


def _require_below(name: str, array: np.ndarray, bound: int) -> None:
    require(
        array.min() >= 0 and array.max() < bound,
        f"{name} must be whole numbers from 0 to {bound - 1}; got {array.min()} to {array.max()}.",
    )
