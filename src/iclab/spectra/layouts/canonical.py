"""Canonical names: one for each tensor of a series, in whatever wrapper, prefix or stack a checkpoint has it."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from iclab.spectra.checkpoints.series import Contents
from iclab.spectra.checkpoints.tensors import Tensor
from iclab.spectra.layouts.rules import unwrapped

__all__ = ["aligned", "canonical"]

_DEEPEST = 3  # components of a prefix
_STACKED = re.compile(r"(?P<at>.*)mlp\.experts\.(?P<which>gate_up|down)_proj")  # Mixtral's experts in memory
_SINGLE = {"gate_up": ("w1", "w3"), "down": ("w2",)}


def canonical(contents: Contents, names: Collection[str] = (), *, family: str = "") -> Contents:
    """Contents with canonical names: without wrappers, in the prefixes of `names`, stacked experts one by one.

    `names` are those of another checkpoint of the series. Experts are taken apart for the families that keep them
    one by one in files and stacked in memory.

    Raises ValueError when two names become one.
    """
    plain, wrappers = unwrapped(contents.tensors)
    found = {plain[name]: tensor for name, tensor in contents.tensors.items()}
    notes = [f"names are read without {', '.join(wrappers)}"] if wrappers else []
    if family == "mixtral" and any(_STACKED.fullmatch(name) for name in found):
        found = {name: one for name, tensor in found.items() for name, one in _experts(name, tensor)}
        notes.append("stacked experts are read one by one, under the names that they have in files")
    moved = aligned(found, names)
    if any(name != new for name, new in moved.items()):
        notes.append("prefixes of names are read as at the last checkpoint")
    tensors = {moved[name]: replace(tensor, name=moved[name]) for name, tensor in found.items()}
    return replace(contents, tensors=tensors, notes=(*contents.notes, *notes))


def aligned(names: Iterable[str], reference: Collection[str]) -> dict[str, str]:
    """Names in the prefix of the reference: the exchange of two prefixes that makes most of them names of it.

    Names stay as they are where no exchange makes at least half of them names of the reference, and more than are so
    without one, and where two would become one.
    """
    known, given = set(reference), list(names)
    before = sum(name in known for name in given)
    if not known or before == len(given):
        return {name: name for name in given}
    heads: dict[str, list[str]] = {}
    for name in known:
        for head, tail in _cuts(name):
            heads.setdefault(tail, []).append(head)
    pairs = Counter(
        (head, other)
        for name in given
        for head, tail in _cuts(name)
        for other in heads.get(tail, ())
        if head != other
    )
    for (head, other), _ in pairs.most_common(8):
        moved = {name: _exchanged(name, head, other, known) for name in given}
        hits = sum(name in known for name in moved.values())
        if len(set(moved.values())) == len(given) and hits > before and 2 * hits >= len(given):
            return moved
    return {name: name for name in given}


def _cuts(name: str) -> Iterator[tuple[str, str]]:
    """Prefixes of a name without numbers in them, each with the rest."""
    parts = name.split(".")
    for count in range(min(_DEEPEST + 1, len(parts))):
        if any(part.isdigit() for part in parts[:count]):
            return
        yield ".".join(parts[:count]), ".".join(parts[count:])


def _exchanged(name: str, head: str, other: str, known: Collection[str]) -> str:
    if name in known or (head and not name.startswith(f"{head}.")):
        return name
    tail = name.removeprefix(f"{head}.") if head else name
    new = f"{other}.{tail}" if other else tail
    return new if head or new in known else name


def _experts(name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Experts of a stacked tensor, each under its own name; the tensor itself where it is none."""
    hit = _STACKED.fullmatch(name)
    parts = _SINGLE[hit["which"]] if hit else ()
    if hit is None or len(tensor.shape) != 3 or tensor.shape[1] % len(parts):
        yield name, tensor
        return
    count, rows, columns = tensor.shape
    for expert in range(count):
        for index, part in enumerate(parts):
            cut = slice(index * rows // len(parts), (index + 1) * rows // len(parts))
            single = f"{hit['at']}block_sparse_moe.experts.{expert}.{part}.weight"
            storage = None if tensor.storage is None else (tensor.storage, expert, part)
            load = partial(_slice, tensor, expert, cut)
            yield single, Tensor(single, (rows // len(parts), columns), tensor.dtype, load, storage)


def _slice(tensor: Tensor, expert: int, rows: slice) -> np.ndarray:
    return tensor.array()[expert, rows]
