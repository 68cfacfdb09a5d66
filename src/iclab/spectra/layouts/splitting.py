"""Heads of a stored projection, and checks of its shape."""

from collections.abc import Iterable

import numpy as np

from iclab.numerics import require
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.layouts.geometry import Geometry
from iclab.spectra.layouts.rules import PARTS, Match

__all__ = ["Parts", "check", "check_axes", "check_norm", "check_widths", "head_dim_of", "rows", "split"]

Parts = dict[str, np.ndarray]
_GROUPED = ("part,head,dim", "group,part,dim")  # orders that allow fewer key heads than query heads


def rows(match: Match, geometry: Geometry, head_dim: int) -> tuple[int, str]:
    """Number of rows of all heads on the output index (input index for role o), and the arithmetic in words."""
    heads, kv_heads, role = geometry.heads, geometry.kv_heads, match.rule.role
    if role in ("q", "o"):
        return heads * head_dim, f"{heads} heads × {head_dim}"
    if role in ("k", "v"):
        return kv_heads * head_dim, f"{kv_heads} key/value heads × {head_dim}"
    if role == "kv":
        return 2 * kv_heads * head_dim, f"2 × {kv_heads} key/value heads × {head_dim}"
    return (heads + 2 * kv_heads) * head_dim, f"({heads} + 2 × {kv_heads} heads) × {head_dim}"


def check(match: Match, geometry: Geometry, head_dim: int) -> None:
    """Raise ValueError, naming the tensor and both sizes, unless its shape is heads × head size."""
    rule, shape = match.rule, match.tensor.shape
    if match.bias and rule.role == "o":
        return
    expected, words = rows(match, geometry, head_dim)
    if len(shape) == (2 if match.bias else 3):
        count = geometry.heads if rule.role in ("q", "o") else geometry.kv_heads
        found = (shape[0], shape[-1] if match.bias else shape[_head_axis(match)])
        require(found == (count, head_dim), _misfit(match, f"{found[0]} heads × {found[1]}", words))
        return
    axis = 0 if match.bias else _long_axis(match)
    require(shape[axis] == expected, _misfit(match, f"{shape[axis]} on axis {axis}", f"{expected} = {words}"))
    require(
        rule.role != "qkv" or rule.order in _GROUPED or geometry.heads == geometry.kv_heads,
        f"order {rule.order!r} of {quoted(match.tensor.name)} needs as many key/value heads as heads; got "
        f"{geometry.kv_heads} and {geometry.heads}. Grouped heads are {' or '.join(_GROUPED)}.",
    )
    require(
        geometry.heads % rule.shards == 0 and geometry.kv_heads % rule.shards == 0,
        f"shards must divide heads and key/value heads; got {rule.shards} shards of {quoted(match.tensor.name)}.",
    )


def check_axes(match: Match) -> None:
    """Raise ValueError unless an attention tensor has the axes of its rule.

    Weights have two, or three with heads first when the output axis is 1 or 2; biases one, or two with heads first.
    """
    rule, axes = match.rule, len(match.tensor.shape)
    stacked = not match.bias and rule.output_axis > 0 and rule.role not in PARTS
    known = {1, 2} if match.bias else {2} if rule.output_axis < 2 else set()
    require(
        axes in known | ({3} if stacked else set()) and not (match.bias and axes == 2 and rule.role in (*PARTS, "o")),
        f"{quoted(match.tensor.name)} (role {rule.role}, output axis {rule.output_axis}) must be a "
        f"{'bias' if match.bias else 'matrix, or matrices of heads'}; got shape {match.tensor.shape}.",
    )


def check_norm(match: Match, geometry: Geometry, head_dim: int) -> None:
    """Raise ValueError unless a gain has one number for each dimension that its norm is taken over."""
    role, shape = match.rule.role, match.tensor.shape
    require(len(shape) == 1, f"{quoted(match.tensor.name)} (role {role}) must be a vector; got shape {shape}.")
    if role == "norm":
        return
    heads = geometry.heads if role == "q_norm" else geometry.kv_heads
    length = heads * head_dim if geometry.norm_across_heads else head_dim
    require(
        shape == (length,),
        f"{quoted(match.tensor.name)} (role {role}) must have {length} numbers; got {shape[0]}. Check the head size.",
    )


def check_widths(matches: Iterable[Match]) -> None:
    """Raise ValueError unless the input norm of a layer and its output bias have the lengths of their vectors."""
    widths: dict[str, int] = {}
    for match in matches:
        if match.rule.role in ("q", "qkv", "o") and not match.bias:
            axis = match.rule.output_axis if match.rule.role == "o" else _input_axis(match)
            widths["output" if match.rule.role == "o" else "input"] = match.tensor.shape[axis]
    for match in matches:
        side = {"norm": "input", "o": "output"}.get(match.rule.role, "")
        if side and len(match.tensor.shape) == 1:
            require(
                match.tensor.shape == (widths[side],),
                f"{quoted(match.tensor.name)} must be as long as the {side} of attention, {widths[side]}; got "
                f"{match.tensor.shape[0]}.",
            )


def head_dim_of(match: Match, geometry: Geometry) -> int:
    """Head size from the shape of a matched weight."""
    if len(match.tensor.shape) == 3:
        return match.tensor.shape[_head_axis(match)]
    count, _ = rows(match, geometry, 1)
    length = match.tensor.shape[_long_axis(match)]
    require(
        length % count == 0,
        f"{quoted(match.tensor.name)} has {length} rows, which {count} heads cannot share. Check the heads.",
    )
    return length // count


def split(match: Match, geometry: Geometry, head_dim: int) -> Parts:
    """Parts of a weight as [head, dim, in], of an output weight as [head, out, dim], of a bias as [head, dim].

    Views of the stored array where its order of rows allows.
    """
    array, rule = match.tensor.array(), match.rule
    if rule.role == "o":
        return {"o": array if match.bias else _output(match, array, geometry, head_dim)}
    if array.ndim == (2 if match.bias else 3):
        return {rule.role: array if match.bias or rule.output_axis == 1 else array.swapaxes(1, 2)}
    stacked = array if match.bias else np.moveaxis(array, rule.output_axis, 0)
    pieces = [
        _ordered(
            piece, rule.role, rule.order, geometry.heads // rule.shards, geometry.kv_heads // rule.shards, head_dim
        )
        for piece in np.split(stacked, rule.shards)
    ]
    if len(pieces) == 1:
        return pieces[0]
    return {part: np.concatenate([piece[part] for piece in pieces]) for part in pieces[0]}


def _ordered(piece: np.ndarray, role: str, order: str, heads: int, kv_heads: int, head_dim: int) -> Parts:
    """Parts of rows in the given order."""
    rest = piece.shape[1:]
    parts = PARTS.get(role, (role,))
    if order == "group,part,dim":
        group = heads // kv_heads
        grouped = piece.reshape(kv_heads, group + 2, head_dim, *rest)
        query = grouped[:, :group].reshape(heads, head_dim, *rest)
        return {"q": query, "k": grouped[:, group], "v": grouped[:, group + 1]}
    if order == "part,head,dim":
        counts = [heads if part == "q" else kv_heads for part in parts]
        cuts = np.cumsum(counts)[:-1] * head_dim
        return {
            part: block.reshape(count, head_dim, *rest)
            for part, count, block in zip(parts, counts, np.split(piece, cuts), strict=True)
        }
    count = heads if role in ("q", "qkv") else kv_heads
    lengths = {"head": count, "dim": head_dim, "part": len(parts)}
    axes = (order or "head,dim").split(",")
    shaped = piece.reshape(*(lengths[axis] for axis in axes), *rest)
    if "part" not in axes:
        return {role: np.moveaxis(shaped, axes.index("head"), 0)}
    apart = np.moveaxis(shaped, (axes.index("part"), axes.index("head")), (0, 1))
    return dict(zip(parts, apart, strict=True))


def _output(match: Match, array: np.ndarray, geometry: Geometry, head_dim: int) -> np.ndarray:
    if array.ndim == 3:
        return array if match.rule.output_axis == 1 else array.swapaxes(1, 2)
    out_first = np.moveaxis(array, match.rule.output_axis, 0)
    lengths = {"head": geometry.heads, "dim": head_dim}
    axes = (match.rule.order or "head,dim").split(",")
    shaped = out_first.reshape(len(out_first), *(lengths[axis] for axis in axes))
    return np.moveaxis(shaped, 1 + axes.index("head"), 0)


def _long_axis(match: Match) -> int:
    """Axis of a two-axis weight along which heads are concatenated."""
    return 1 - match.rule.output_axis if match.rule.role == "o" else match.rule.output_axis


def _input_axis(match: Match) -> int:
    """Input axis of a weight other than an output weight."""
    return len(match.tensor.shape) - 1 - match.rule.output_axis + (len(match.tensor.shape) == 3)


def _head_axis(match: Match) -> int:
    """Axis of a three-axis weight within a head."""
    other = {1: 2, 2: 1}[match.rule.output_axis]
    return other if match.rule.role == "o" else match.rule.output_axis


def _misfit(match: Match, found: str, expected: str) -> str:
    return (
        f"{quoted(match.tensor.name)} (role {match.rule.role}, shape {match.tensor.shape}) has {found}; the config "
        f"says {expected}. Check the numbers of heads, their size and the axis of the output."
    )
