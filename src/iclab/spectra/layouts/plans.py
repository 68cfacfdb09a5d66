"""Tensor plans: the layers, matrices and skipped tensors of a checkpoint, from names and shapes alone."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from iclab.numerics import require
from iclab.spectra.checkpoints.content import Content
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.series import Contents
from iclab.spectra.checkpoints.tensors import Skipped, Tensor
from iclab.spectra.circuits.weights import AttentionWeights, InputNorm, QueryKeyNorm
from iclab.spectra.layouts.adapters import adapted
from iclab.spectra.layouts.families import Layout, layout_of
from iclab.spectra.layouts.rules import ATTENTION, PARTS, Match, TowerLayer, matched, unwrapped
from iclab.spectra.layouts.skipping import no_role, unreadable
from iclab.spectra.layouts.splitting import check, check_axes, check_norm, check_widths, head_dim_of, split

__all__ = ["Matrix", "TensorPlan", "planned", "tensor_plan"]

_POSITIONS = re.compile(r"wpe|pos|token_type")  # embeddings that are not of tokens


@dataclass(frozen=True)
class Matrix:
    """One matrix outside attention, or of an attention layer that is not whole: [output, input] when read."""

    name: str
    role: str
    tower: str
    layer: int
    tensor: Tensor
    output_axis: int = 0
    block: tuple[int, int] = (0, 1)  # index and number of blocks on the output axis
    expert: int | None = None  # of a tensor that stacks experts on its first axis

    @property
    def shape(self) -> tuple[int, int]:
        """Output and input size."""
        two = self.tensor.shape if self.expert is None else self.tensor.shape[1:]
        axis = self.output_axis - (self.expert is not None)
        return two[axis] // self.block[1], two[1 - axis]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Output and input size, with the inner size between them for a product of smaller inner size."""
        out, into = self.shape
        inner = self.tensor.inner
        return self.shape if inner is None or inner >= min(out, into) else (out, inner, into)

    def array(self) -> np.ndarray:
        """Entries of the matrix, a view of the stored array."""
        whole = self.tensor.array()
        two = whole if self.expert is None else whole[self.expert]
        rows = np.moveaxis(two, self.output_axis - (self.expert is not None), 0)
        which, count = self.block
        return rows[which * len(rows) // count : (which + 1) * len(rows) // count]


@dataclass(frozen=True)
class TensorPlan:
    """Roles of all tensors of one checkpoint: each is in a layer, in `matrices` or in `skipped`.

    A tower is a stack of layers, named by the module path in front of their numbers.
    """

    layout: Layout
    layers: Mapping[TowerLayer, tuple[Match, ...]]
    matrices: tuple[Matrix, ...]
    skipped: tuple[Skipped, ...]
    head_dim: int
    notes: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()  # names of one tied matrix

    def attention(self, tower: str, layer: int) -> AttentionWeights:
        """Attention weights of one layer, in their stored dtype."""
        geometry = self.layout.geometry
        found: dict[str, np.ndarray] = {}
        for match in self.layers[tower, layer]:
            if match.rule.role in ATTENTION:
                parts = split(match, geometry, self.head_dim)
                found |= {part + ("_bias" if match.bias else ""): array for part, array in parts.items()}
        roles = {match.rule.role: match for match in self.layers[tower, layer] if not match.bias}
        return AttentionWeights(
            query=found["q"],
            key=found["k"],
            value=found["v"],
            output=found["o"],
            query_bias=found.get("q_bias"),
            key_bias=found.get("k_bias"),
            value_bias=found.get("v_bias"),
            rotary=geometry.rotary(layer),
            query_key_norm=self._query_key_norm(roles),
            input_norm=self._input_norm(self.layers[tower, layer]),
        )

    def output_bias(self, tower: str, layer: int) -> np.ndarray | None:
        """Bias of the attention output, or None."""
        biases = [match for match in self.layers[tower, layer] if match.rule.role == "o" and match.bias]
        return biases[0].tensor.array() if biases else None

    def _query_key_norm(self, roles: Mapping[str, Match]) -> QueryKeyNorm | None:
        if "q_norm" not in roles or "k_norm" not in roles:
            return None
        query, key = (self._gain(roles[role].tensor) for role in ("q_norm", "k_norm"))
        return QueryKeyNorm(query, key, across_heads=self.layout.geometry.norm_across_heads)

    def _input_norm(self, matches: tuple[Match, ...]) -> InputNorm | None:
        norms = [match for match in matches if match.rule.role == "norm"]
        gains = [match.tensor for match in norms if not _norm_bias(match)]
        biases = [match.tensor for match in norms if _norm_bias(match)]
        if not gains:
            return None
        bias = biases[0].array() if biases else None
        return InputNorm(self._gain(gains[0]), bias, self.layout.geometry.norm_centered)

    def _gain(self, tensor: Tensor) -> np.ndarray:
        stored = tensor.array()
        return stored if self.layout.geometry.norm_gain == "weight" else 1 + stored.astype(np.float64)


def tensor_plan(
    tensors: Mapping[str, Tensor], layout: Layout, *, known: Mapping[str, Content] | None = None
) -> TensorPlan:
    """Tensor plan of a checkpoint.

    Embeddings of equal content in `known` are one tied matrix, as those of one storage are.

    Raises ValueError, naming the tensors, for two of one role in a layer, for one that two rules match and for a
    size that does not fit the heads.
    """
    plain, wrappers = unwrapped(tensors)
    readable, skipped = {}, []
    for name, tensor in tensors.items():
        reason = unreadable(tensor, tensors)
        if reason:
            skipped.append(Skipped(name, reason))
        else:
            readable[plain[name]] = tensor
    found, unknown = matched(readable, layout.rules)
    if layout.text_only:
        other = [match for match in found if _not_text(match.tower)]
        found = [match for match in found if not _not_text(match.tower)]
        skipped += [
            Skipped(m.tensor.name, "tower for images or sound; the config read is of the text") for m in other
        ]
    skipped += [Skipped(tensor.name, no_role(tensor, layout.family)) for tensor in unknown]
    skipped += [Skipped(m.tensor.name, "skipped by the mapping") for m in found if m.rule.role == "skip"]
    found = [match for match in found if match.rule.role != "skip"]
    head_dim = _checked(found, layout)
    layers, loose, notes = _layers(found)
    matrices, vectors = _matrices([*loose, *(m for m in found if _outside(m))])
    skipped += vectors
    matrices, aliases = _tied(matrices, layout, known or {})
    if wrappers:
        notes = [f"names are read without {', '.join(wrappers)}", *notes]
    if readable and not any(match.rule.role in ATTENTION for match in found) and layout.family != "mapped":
        notes.append(f"no tensor has a name of the attention of a {layout.family} model: is it of that family?")
    notes = [*layout.caveats, *notes]
    return TensorPlan(layout, layers, tuple(matrices), tuple(skipped), head_dim, tuple(notes), aliases)


def _outside(match: Match) -> bool:
    return match.rule.role in ("mlp_in", "mlp_out", "embed", "unembed")


def _not_text(tower: str) -> bool:
    return any(word in part for part in tower.split(".") for word in ("vision", "visual", "audio", "image"))


def _norm_bias(match: Match) -> bool:
    return match.bias or match.tensor.name.endswith("ln1.b")


def _checked(found: list[Match], layout: Layout) -> int:
    """Head size. Raises ValueError for an attention tensor that does not fit it."""
    attention = [match for match in found if match.rule.role in ATTENTION]
    for match in attention:
        check_axes(match)
    weights = [match for match in attention if not match.bias]
    geometry = layout.geometry
    head_dim = geometry.head_dim or (head_dim_of(weights[0], geometry) if weights else 0)
    for match in attention:
        check(match, geometry, head_dim)
    for match in found:
        if match.rule.role in ("norm", "q_norm", "k_norm"):
            check_norm(match, geometry, head_dim)
    return head_dim


def _layers(found: list[Match]) -> tuple[dict[TowerLayer, tuple[Match, ...]], list[Match], list[str]]:
    """Complete attention layers in order; the tensors of the incomplete ones, with a note on each of those."""
    by_layer: dict[TowerLayer, list[Match]] = defaultdict(list)
    for match in found:
        if not _outside(match):
            by_layer[match.tower_layer].append(match)
    layers, loose, notes = {}, [], []
    for layer in sorted(by_layer):
        missing = _missing(by_layer[layer])
        if missing:
            loose += by_layer[layer]
            where = f"layer {layer[1]}" + (f" of {quoted(layer[0])}" if layer[0] else "")
            notes.append(f"{where} has no {', '.join(missing)}: its tensors are read as single matrices")
        else:
            check_widths(by_layer[layer])
            layers[layer] = tuple(by_layer[layer])
    return layers, loose, notes


def _missing(matches: list[Match]) -> list[str]:
    """Projections that a layer lacks. Raises ValueError when two tensors have one role in it."""
    owner: dict[str, str] = {}
    for match in matches:
        bias = " bias" if (_norm_bias(match) if match.rule.role == "norm" else match.bias) else ""
        for part in PARTS.get(match.rule.role, (match.rule.role,)):
            key = part + bias
            require(
                key not in owner,
                f"one tensor must be {key} of layer {match.layer}; both {quoted(owner.get(key, ''))} and "
                f"{quoted(match.tensor.name)} are. Name one of them with role skip.",
            )
            owner[key] = match.tensor.name
    norms = [norm for norm in ("q_norm", "k_norm") if norm not in owner]
    return [part for part in "qkvo" if part not in owner] + (norms if len(norms) == 1 else [])


def _matrices(found: list[Match]) -> tuple[list[Matrix], list[Skipped]]:
    """Matrices of these tensors, and the tensors that are vectors."""
    matrices, skipped = [], []
    for match in found:
        tensor, rule = match.tensor, match.rule
        axes = len(tensor.shape)
        if match.bias or axes not in (2, 3) or rule.output_axis >= axes:
            reason = "a vector: it has no spectrum" if match.bias or axes < 2 else f"no matrix: it has {axes} axes"
            skipped.append(Skipped(tensor.name, reason))
            continue
        stacked = len(tensor.shape) == 3
        for expert in range(tensor.shape[0]) if stacked else (None,):
            for block in range(rule.blocks):
                label = (
                    tensor.name + (f"[{expert}]" if stacked else "") + (f"[block {block}]" if rule.blocks > 1 else "")
                )
                axis = rule.output_axis or (1 if stacked else 0)
                cut = (block, rule.blocks)
                matrices.append(Matrix(label, rule.role, match.tower, match.layer, tensor, axis, cut, expert))
    return matrices, skipped


def _tied(
    matrices: list[Matrix], layout: Layout, known: Mapping[str, Content]
) -> tuple[list[Matrix], tuple[tuple[str, str], ...]]:
    """Each matrix once, and pairs of names of tied ones, also where the file leaves one of them out."""
    kept, aliases, owner = [], [], {}
    for matrix in matrices:
        one = known.get(matrix.name) if matrix.role in ("embed", "unembed") else None
        same = matrix.tensor.storage if one is None or one.zero else one.digest
        key = (same, matrix.expert, matrix.block)
        if same is not None and key in owner:
            aliases.append((owner[key], matrix.name))
        else:
            owner[key] = matrix.name
            kept.append(matrix)
    embeddings = [matrix.name for matrix in kept if matrix.role == "embed" and not _POSITIONS.search(matrix.name)]
    unembeddings = [matrix.name for matrix in kept if matrix.role == "unembed"]
    if layout.geometry.tied and not aliases and bool(embeddings) != bool(unembeddings):
        aliases.append((embeddings[0], "the unembedding") if embeddings else (unembeddings[0], "the embedding"))
    return kept, tuple(aliases)


def planned(
    contents: Contents,
    layout: Layout | None = None,
    *,
    base: Mapping[str, Tensor] | None = None,
    known: Mapping[str, Content] | None = None,
) -> TensorPlan:
    """Tensor plan of an opened checkpoint, its adapters applied to the tensors of `base` or read alone.

    Without a layout the family is that of the checkpoint's config; `known` contents identify tied embeddings that are
    stored twice.

    Raises ValueError as `tensor_plan` does, and for a config without a family.
    """
    read = layout or layout_of(contents.config)
    applied = adapted(contents.tensors, contents.adapter, read, base=base)
    made = tensor_plan(applied.tensors, read, known=known)
    return replace(
        made,
        skipped=(*contents.skipped, *made.skipped),
        notes=(*contents.notes, *applied.notes, *made.notes),
    )
