"""Low-rank adapters (LoRA): the change of a weight, alone or added to a base."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from iclab.numerics import require, whole_number
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.tensors import Tensor
from iclab.spectra.layouts.families import Layout
from iclab.spectra.layouts.rules import rule_of, unwrapped

__all__ = ["Adapted", "adapted"]

_FACTOR = re.compile(r"(?P<path>.+)\.lora_(?P<side>[AB])(?:\.(?P<adapter>[^.]+))?\.weight")
_EMBEDDING = re.compile(r"(?P<path>.+)\.lora_embedding_(?P<side>[AB])(?:\.(?P<adapter>[^.]+))?")
_SLICE = 2**24  # entries of a product that are formed at a time


@dataclass(frozen=True)
class Adapted:
    """Tensors with adapters applied, or their changes alone, and notes."""

    tensors: Mapping[str, Tensor]
    notes: tuple[str, ...] = ()


def adapted(
    tensors: Mapping[str, Tensor],
    adapter: Mapping[str, Any] | None,
    layout: Layout,
    *,
    base: Mapping[str, Tensor] | None = None,
) -> Adapted:
    """Weights with their adapters applied to a base, or without a base the changes (α/r) B A alone.

    `adapter` is adapter_config.json. Tensors without adapters pass through. The layout decides which weights are
    stored [out, in]: configs leave fan_in_fan_out false where their library corrects it.

    Raises ValueError for DoRA, whose change is no product of its factors, for several adapters at once, and
    for factors that do not fit each other or their base, naming them, and for a base without adapters.
    """
    plain, wrappers = unwrapped(tensors)
    dora = next((name for name in tensors if "lora_magnitude_vector" in name), None)
    require(
        dora is None and not (adapter or {}).get("use_dora"),
        "DoRA rescales rows by a trained magnitude, so its change is not B A; "
        f"got {quoted(dora) if dora else 'use_dora in adapter_config.json'}. Merge it into the base and read that.",
    )
    factors = _factors(tensors, plain)
    require(
        bool(factors) or base is None,
        "a base is for adapters (lora_A, lora_B); this checkpoint has none. Leave the base out.",
    )
    if not factors:
        return Adapted(tensors)
    require(
        adapter is not None,
        "adapters need their adapter_config.json, for r and lora_alpha; it is not there. Copy it to their folder.",
    )
    below, passed = _below(tensors, plain, factors, base)
    changed: dict[str, Tensor] = dict(passed)
    zero = []
    for path, pair in factors.items():
        on = below.get(path)
        tensor = _changed(path, pair, adapter or {}, layout, on)
        if not (np.any(pair["A"].array()) and np.any(pair["B"].array())):
            zero.append(path)
        changed[tensor.name] = tensor
    alone = "alone: the changes they make, and circuits of changes are not those of the model, for which give a base"
    notes = [f"{len(factors)} adapters are read {'on their base' if below else alone}"]
    if wrappers:
        notes.append(f"names are read without {', '.join(wrappers)}")
    if zero:
        notes.append(f"{len(zero)} of {len(factors)} adapters are zero (untrained B), {quoted(zero[0])} the first")
    return Adapted(changed, tuple(notes))


def _factors(tensors: Mapping[str, Tensor], plain: Mapping[str, str]) -> dict[str, dict[str, Tensor]]:
    """Two factors of each adapted weight, by the path of its module."""
    found: dict[str, dict[str, Tensor]] = {}
    adapters: set[str] = set()
    for name, tensor in tensors.items():
        require(
            not _EMBEDDING.fullmatch(plain[name]),
            f"adapters of embeddings are not read; got {quoted(name)}. Merge the adapter into its base.",
        )
        hit = _FACTOR.fullmatch(plain[name])
        if hit:
            adapters.add(hit["adapter"] or "")
            found.setdefault(hit["path"], {})[hit["side"]] = tensor
    require(
        len(adapters) <= 1,
        f"one adapter is read at a time; got {', '.join(quoted(name) for name in sorted(adapters))}. Save one alone.",
    )
    for path, pair in found.items():
        require(
            len(pair) == 2, f"an adapter needs lora_A and lora_B; {quoted(path)} has lora_{next(iter(pair))} alone."
        )
        left, right = pair["B"].shape, pair["A"].shape
        require(
            len(left) == len(right) == 2 and left[1] == right[0],
            f"lora_B and lora_A of {quoted(path)} must share their rank; got shapes {left} and {right}.",
        )
    return found


def _below(
    tensors: Mapping[str, Tensor],
    plain: Mapping[str, str],
    factors: Mapping[str, Any],
    base: Mapping[str, Tensor] | None,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Base weight of each adapted module, and the tensors that pass through."""
    own = {plain[name]: tensor for name, tensor in tensors.items() if not _FACTOR.fullmatch(plain[name])}
    if base is not None:
        short, _ = unwrapped(base)
        own = {short[name]: tensor for name, tensor in base.items()} | own
    below, passed = {}, {}
    for name, tensor in own.items():
        path = name.removesuffix(".weight").removesuffix(".base_layer")
        if path in factors and name.endswith(".weight"):
            below[path] = tensor
        else:
            passed[name.replace(".base_layer.", ".")] = tensor
    absent = [path for path in factors if path not in below]
    require(
        base is None or not absent,
        f"each adapter needs its weight in the base; {quoted(absent[0] if absent else '')} has none. "
        "Is it the base that was adapted?",
    )
    return below, passed


def _scale(path: str, adapter: Mapping[str, Any], rank: int) -> float:
    """Factor of B A: α/r, or α/√r with use_rslora."""
    alpha = _patterned(path, adapter, "alpha_pattern", "lora_alpha")
    require(
        isinstance(alpha, int | float) and math.isfinite(alpha),
        f"lora_alpha must be a finite number; got {quoted(str(alpha))} for {quoted(path)}.",
    )
    return float(alpha) / (math.sqrt(rank) if adapter.get("use_rslora") else rank)


def _patterned(path: str, adapter: Mapping[str, Any], patterns: str, default: str) -> Any:
    """Entry of the first pattern that matches whole components at the end of the path, else the default one."""
    table = adapter.get(patterns) or {}
    require(isinstance(table, Mapping), f"{patterns} of an adapter must be a table; got {quoted(str(table))}.")
    for pattern, value in table.items():
        require(
            not set(pattern) & set("({") and sum(map(pattern.count, "*+")) <= 2,
            f"patterns of an adapter must be paths, with two wildcards at most; got {quoted(pattern)}. "
            "Others could take forever to match.",
        )
        try:
            fits = re.fullmatch(rf"(?:.*\.)?(?:{pattern})", path)
        except re.error:
            raise ValueError(f"patterns of an adapter must be regular expressions; got {quoted(pattern)}.") from None
        if fits:
            return value
    return adapter.get(default)


def _changed(
    path: str, pair: Mapping[str, Tensor], adapter: Mapping[str, Any], layout: Layout, base: Tensor | None
) -> Tensor:
    """Weight with its change, or the change alone, formed in float32 when it is read."""
    out, into = pair["B"].shape[0], pair["A"].shape[1]
    rank = whole_number("r", _patterned(path, adapter, "rank_pattern", "r"))
    require(
        pair["A"].shape[0] == rank,
        f"the rank of {quoted(path)} must be the {rank} of adapter_config.json; got {pair['A'].shape[0]}.",
    )
    name = f"{path}.weight"
    rule = rule_of(name, layout.rules)
    transposed = bool(adapter.get("fan_in_fan_out")) if rule is None else rule.output_axis == 1
    shape = (into, out) if transposed else (out, into)
    require(
        base is None or base.shape == shape,
        f"the adapter of {quoted(path)} must have the shape of its base; got {shape} and "
        f"{base.shape if base else ()}. Is it the base that was adapted?",
    )
    load = _product(pair, _scale(path, adapter, rank), transposed, base)
    return Tensor(name, shape, np.dtype(np.float32), load, inner=rank if base is None else None)


def _product(
    pair: Mapping[str, Tensor], scale: float, transposed: bool, base: Tensor | None
) -> Callable[[], np.ndarray]:
    def load() -> np.ndarray:
        left, right = (pair[side].array().astype(np.float32) for side in "BA")
        change = (scale * left) @ right
        change = change.T if transposed else change
        if base is None:
            return change
        stored, rows = base.array(), max(1, _SLICE // change.shape[1])
        for start in range(0, len(change), rows):
            change[start : start + rows] += stored[start : start + rows].astype(np.float32)
        return change

    return load
