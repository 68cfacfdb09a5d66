"""Circuits of attention heads, kept as two factors: query-key and output-value.

Query-key: M = W_Qᵀ W_K, the score of two inputs at offset 0. Output-value: M = W_O W_V, the map from an attended
input to the output of the head. Both are invariant under W_Q → A W_Q, W_K → A⁻ᵀ W_K, so they are measured rather than
the factors. A query head uses the key and value head of its group.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Float, Shaped

from iclab.numerics import Validated, require
from iclab.spectra.circuits.grouping import Layers, group_size, kv_head, layer_of, rotary_rows, rotated
from iclab.spectra.circuits.weights import AttentionWeights, Rotary
from iclab.spectra.measures.factors import Product, float64, gram
from iclab.spectra.measures.rounding import product_rank
from iclab.spectra.measures.spectrum import Gram, Spectrum, leading_spectrum, product_spectrum, spectrum

__all__ = [
    "HeadSpectra",
    "averaged_query_key",
    "head_spectra",
    "leading_spectrum",
    "output_value",
    "product_singular_values",
    "query_key",
    "query_key_at",
    "spectrum",
]  # fmt: skip


@dataclass(frozen=True)
class HeadSpectra:
    """Spectra of one query head, and the numerical ranks of its two circuits."""

    head: int
    query_key: Spectrum
    averaged_query_key: Spectrum | None  # key side; None without a rotary embedding
    output_value: Spectrum
    query_key_rank: int
    output_value_rank: int


def product_singular_values(
    left: Shaped[np.ndarray, "m r"], right: Shaped[np.ndarray, "r n"]
) -> Float[np.ndarray, "value"]:
    """Singular values of left @ right, largest first, without forming the product.

    `spectrum(Product(left, right))` has also the route of the computation and its noise floor.

    Raises ValueError for shapes that do not multiply, and for entries that are not finite.

    Source: derived in docs/derivations/spectra.
    """
    return spectrum(Product(np.asarray(left), np.asarray(right))).values


def query_key(
    weights: Validated[Layers], layer: Validated[int], head: Validated[int], *, fold: bool = False
) -> Product:
    """W_Qᵀ W_K of a query head and its key head: the circuit at offset 0, width × width.

    Of the stored weights; `fold` includes the gain of the input norm on both sides, and its centering where that norm
    centers. Biases are left out. A norm on queries and keys, and a rotary embedding, act between the factors and are
    not included: `notes` list them.

    Raises ValueError for a layer or head that does not exist, heads that do not divide evenly, and `fold` without an
    input norm.

    Source: derived in docs/derivations/spectra.
    """
    one = layer_of(weights, layer)
    key = kv_head(one, head)
    notes = _notes(one) + (("input norm folded in",) if fold else ())
    query, key = one.query[head], one.key[key]
    stored = (query.dtype, key.dtype)
    if fold:
        query, key = _folded(one, query), _folded(one, key)
    return Product(query.T, key, stored, notes)


def query_key_at(
    weights: Validated[Layers],
    layer: Validated[int],
    head: Validated[int],
    *,
    offset: int | float,
    fold: bool = False,
) -> Product:
    """W_Qᵀ R(offset) W_K, the circuit between a query and the key `offset` positions after it.

    Raises ValueError as `query_key` does, and without a rotary embedding or its frequencies.

    Source: su2024roformer, eq. 16; derived in docs/derivations/spectra.
    """
    still = query_key(weights, layer, head, fold=fold)
    key = rotated(layer_of(weights, layer).rotary, float64(still.right), offset)
    notes = (*(note for note in still.notes if note != _STILL), f"offset {offset:g}")
    return Product(still.left, key, still.stored, notes)


def averaged_query_key(
    weights: Validated[Layers],
    layer: Validated[int],
    head: Validated[int],
    *,
    side: Validated[Literal["key", "query"]] = "key",
    fold: bool = False,
) -> Product:
    """D W_K with DᵀD the mean of R(φ)ᵀ W_Q W_Qᵀ R(φ) over independent uniform phases: the long-offset limit.

    Its squared singular values are those of the second moment of the circuit on the side of the key; side="query"
    swaps the two. D is diagonal on rotary pairs, |W_Q,f|_F/√2 each, and a root of W_Q,0 W_Q,0ᵀ on the rows without
    rotary embedding; blocks between them are zero.

    Raises ValueError as `query_key` does, for another side and for a layer without rotary embedding.

    Source: derived in docs/derivations/spectra.
    """
    require(side in ("key", "query"), f"side must be 'key' or 'query'; got {side!r}.")
    rotary = layer_of(weights, layer).rotary
    require(rotary is not None, "weights must have a rotary embedding; got none. Use query_key: it has no offset.")
    still = query_key(weights, layer, head, fold=fold)
    other, read = (still.left.T, still.right) if side == "key" else (still.right, still.left.T)
    other = float64(other)
    first, second, rest = rotary_rows(rotary, len(other))
    size = np.sqrt(0.5 * (np.sum(other[first] ** 2, axis=1) + np.sum(other[second] ** 2, axis=1)))
    root = np.zeros((len(other), len(other)))
    root[first, first], root[second, second] = size, size
    if rest.size:
        block = np.linalg.qr(other[rest].T, mode="r")
        root[rest[: len(block), None], rest] = block
    notes = (*(note for note in still.notes if note != _STILL), f"averaged over offsets, {side} side")
    return Product(root, read, (still if side == "key" else still.T).stored, notes)


def output_value(
    weights: Validated[Layers], layer: Validated[int], head: Validated[int], *, fold: bool = False
) -> Product:
    """W_O W_V of a query head and its value head, width out × width. Biases are left out.

    `fold` includes the gain of the input norm on the input side.

    Raises ValueError as `query_key` does.

    Source: derived in docs/derivations/spectra.
    """
    one = layer_of(weights, layer)
    value = one.value[kv_head(one, head)]
    output = one.output[head]
    stored = (output.dtype, value.dtype)
    notes = ("input norm folded in",) if fold else ()
    return Product(output, _folded(one, value) if fold else value, stored, notes)


def head_spectra(weights: Validated[Layers], layer: Validated[int], *, fold: bool = False) -> Iterator[HeadSpectra]:
    """Spectra of all query heads of a layer, with the Gram of each key and value head taken once for its group.

    Holds one head of each kind in float64 at a time. Raises ValueError as `query_key` does, during the iteration.

    Source: derived in docs/derivations/spectra.
    """
    one = layer_of(weights, layer)
    group = group_size(one)
    for kv in range(len(one.key)):
        first = kv * group
        key = gram(query_key(weights, layer, first, fold=fold).right.T)
        value = gram(output_value(weights, layer, first, fold=fold).right.T)
        for head in range(first, first + group):
            circuit = query_key(weights, layer, head, fold=fold)
            written = output_value(weights, layer, head, fold=fold)
            query, output = gram(circuit.left), gram(written.left)
            scores = product_spectrum(query, key, partial(_same, circuit))
            moved = product_spectrum(output, value, partial(_same, written))
            averaged = None
            if one.rotary is not None:
                alone = partial(averaged_query_key, weights, layer, head, fold=fold)
                averaged = product_spectrum(_averaged(one.rotary, query), key, alone)
            ranks = product_rank(scores, circuit, query, key), product_rank(moved, written, output, value)
            yield HeadSpectra(head, scores, averaged, moved, *ranks)


def _averaged(rotary: Rotary, query: Gram) -> Gram:
    """Gram DᵀD of the averaged circuit from that of the queries; both have trace 1."""
    small, scale = query
    first, second, rest = rotary_rows(rotary, len(small))
    mean = np.zeros_like(small)
    mean[first, first] = mean[second, second] = 0.5 * (small[first, first] + small[second, second])
    mean[rest[:, None], rest] = small[rest[:, None], rest]
    return mean, scale


def _same(product: Product) -> Product:
    return product


_STILL = "at offset 0: positions turn queries and keys"


def _notes(weights: AttentionWeights) -> tuple[str, ...]:
    notes = {
        _STILL: weights.rotary is not None,
        "a norm on queries and keys stands between the factors and is not in them": weights.query_key_norm
        is not None,
        "biases left out": weights.query_bias is not None or weights.key_bias is not None,
    }
    return tuple(note for note, holds in notes.items() if holds)


def _folded(weights: AttentionWeights, rows: Shaped[np.ndarray, "dim width"]) -> Float[np.ndarray, "dim width"]:
    """Rows with the input norm folded in: rows diag(gain) (I − 11ᵀ/n), the last factor for a centered norm."""
    norm = weights.input_norm
    if norm is None:
        raise ValueError("weights must have an input norm to fold; got none. Leave fold out.")
    gained = float64(rows) * float64(norm.gain)
    return gained - np.mean(gained, axis=1, keepdims=True) if norm.centered else gained
