"""The weights at step 0 of a run, from a file: the entries that reach the prediction."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float

from iclab.attention import Layer, MergedAttention, SeparateAttention
from iclab.numerics import Validated, require

__all__ = ["read_start", "start_of", "turned"]

KINDS = (("value", "key_query"), ("value", "key", "query"))


def read_start(path: Validated[str | Path], dimension: int) -> Layer:
    """The start in a .npz, .safetensors or PyTorch file with tensors value and key_query, or value, key and query.

    Shapes as start_of takes them. Raises ValueError for a file without these names, with those that there are, and
    for other shapes.
    """
    from iclab.spectra import checkpoints

    contents = checkpoints.read(path)[0].open()
    return start_of({name: tensor.array() for name, tensor in contents.tensors.items()}, dimension)


def start_of(arrays: Mapping[str, np.ndarray], dimension: int) -> Layer:
    """The start in arrays by name; each may be restricted, unrestricted, or the whole matrix of a head.

    value (H,), (H, D+1) or (H, D+1, D+1), whose last row acts; key_query (H, D, D), (H, D+1, D) or (H, D+1, D+1);
    key and query (H, R, D) or (H, R, D+1): of queries and the columns of key_query the first D act. What labels
    and inputs have beyond the restricted entries is dropped where all of it is zero.

    Raises ValueError for other names and shapes.
    """
    kind = next((names for names in KINDS if all(name in arrays for name in names)), None)
    if kind is None:
        listed = ", ".join(repr(name) for name in arrays) or "none"
        raise ValueError(f"start must hold value and key_query, or value, key and query; got {listed}. Rename them.")
    parts = {name: np.asarray(arrays[name], dtype=float) for name in kind}
    shapes = ", ".join(f"{name} {part.shape}" for name, part in parts.items())
    d = dimension
    value = parts["value"]
    heads = value.shape[:1]
    fits = value.shape in {heads, (*heads, d + 1), (*heads, d + 1, d + 1)} and value.ndim > 0
    for name in kind[1:]:
        shape = parts[name].shape
        rows = (d, d + 1) if name == "key_query" else shape[1:2]
        fits &= len(shape) == 3 and shape[:1] == heads and shape[1] in rows and shape[2] in (d, d + 1)
    rest = "key_query (H, D, D)" if len(kind) == 2 else "key and query (H, R, D)"
    require(
        fits,
        f"start must have value (H,) and {rest}, or as many entries with labels, for D = {d} as the problem; got "
        f"{shapes}. Give the weights of that dimension.",
    )
    return _layer(parts, d)


def turned(start: Layer, directions: Float[np.ndarray, "D D"] | None) -> Layer:
    """The layer for inputs in new coordinates, along `directions` in the columns.

    Raises ValueError where the directions are not known.
    """
    if directions is None:
        raise ValueError(
            "directions of the inputs must be known to turn a start into them; these inputs have too many."
        )
    d, parts = len(directions), vars(start)
    turn = np.eye(d + 1)
    turn[:d, :d] = directions
    labeled = directions if start.restricted else turn
    value = parts["value"] if start.restricted else parts["value"] @ turn
    if isinstance(start, MergedAttention):
        return MergedAttention(value, labeled.T @ start.key_query @ directions)
    return SeparateAttention(value, start.key @ labeled, start.query @ directions)


def _layer(parts: Mapping[str, np.ndarray], d: int) -> Layer:
    value = parts["value"][:, -1] if parts["value"].ndim == 3 else parts["value"]
    keys = parts.get("key_query", parts.get("key"))
    assert keys is not None
    labeled = keys.shape[-2 if "key_query" in parts else -1] == d + 1
    merged = "key_query" in parts
    keys = keys[..., :d] if merged else keys
    rest = () if merged else (parts["query"][..., :d],)
    extra = keys[:, d:] if merged else keys[..., d:]
    outside = np.any(extra) or (value.ndim == 2 and np.any(value[:, :-1]))
    kind = MergedAttention if merged else SeparateAttention
    if outside or (labeled and value.ndim == 2):
        whole = value if value.ndim == 2 else np.concatenate([np.zeros((len(value), d)), value[:, None]], axis=1)
        if not labeled:
            pad = [(0, 0), (0, 1), (0, 0)] if merged else [(0, 0), (0, 0), (0, 1)]
            keys = np.pad(keys, pad)
        return kind(whole, keys, *rest)
    value = value[:, -1] if value.ndim == 2 else value
    keys = keys[:, :d] if merged else keys[..., :d]
    return kind(value, keys, *rest)
