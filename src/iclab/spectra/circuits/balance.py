"""The balance between the factors of attention, which gradient flow conserves and other optimizers do not."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from iclab.numerics import Validated, require
from iclab.spectra.circuits.grouping import group_size, rotary_rows
from iclab.spectra.circuits.weights import AttentionWeights
from iclab.spectra.measures.factors import float64

__all__ = ["Balance", "Imbalance", "balance", "imbalance"]


@dataclass(frozen=True)
class Balance:
    """Conserved quantities of gradient flow in one attention layer. Parts for which a layer has no law are empty.

    For each key head: `unrotated`, Σ_g Q Qᵀ − K Kᵀ over its query heads and over the rows without rotary embedding;
    `pairs`, Σ_g |Q_f|² − |K_f|² for each rotary pair f; `output_value`, V Vᵀ − Σ_g OᵀO. With a norm on queries
    and keys neither of the first two holds: `norms` has |Q|² of each query head of the group, then |K|²; where
    the norm is taken across heads it has one row, |Q|² and |K|² of all. Biases count as one more column.

    `query_gram` and `value_gram`, Σ_g Q Qᵀ and V Vᵀ, give the scale of a change.
    """

    unrotated: Float[np.ndarray, "kv_head rest rest"]
    pairs: Float[np.ndarray, "kv_head pair"]
    norms: Float[np.ndarray, "group norm"]
    output_value: Float[np.ndarray, "kv_head value_dim value_dim"]
    query_gram: Float[np.ndarray, "kv_head dim dim"]
    value_gram: Float[np.ndarray, "kv_head value_dim value_dim"]


@dataclass(frozen=True)
class Imbalance:
    """Violation of the balance laws, relative to the change of the Gram; nan where that has not changed."""

    query_key: Float[np.ndarray, "group"]
    output_value: Float[np.ndarray, "kv_head"]


def balance(weights: AttentionWeights) -> Balance:
    """Balance of one layer: constant under gradient flow, decaying as exp(−2 Σ η·decay) under weight decay.

    Grouped queries, biases, rotary pairs, partly rotated heads and norms on queries and keys have each their law,
    see `Balance`; the stored weights are the right ones also after the gain of a layer norm. Gradient descent
    breaks the laws at first order in its learning rate η; Adam does not conserve them. Units: those of the weights,
    squared.

    Raises ValueError where query heads do not divide evenly among key heads, and for entries that are not finite.

    Source: derived in docs/derivations/spectra.
    """
    queries, keys = _grams(weights.query, weights.query_bias), _grams(weights.key, weights.key_bias)
    group = group_size(weights)
    values = _grams(weights.value, weights.value_bias)
    outputs = np.stack([_gram(head.T) for head in weights.output])
    unrotated, pairs, norms = _query_key_laws(weights, queries, keys)
    return Balance(
        unrotated,
        pairs,
        norms,
        values - outputs.reshape(len(values), group, *values.shape[1:]).sum(axis=1),
        queries.reshape(len(keys), group, *keys.shape[1:]).sum(axis=1),
        values,
    )


def imbalance(start: Balance, now: Balance, *, decay: Validated[float] = 0.0) -> Imbalance:
    """|D(now) − D(start) exp(−2 decay)| / |change of the Gram|, head by head: a diagnostic, not an assertion.

    `decay` is the sum of learning rate × weight decay over the steps in between. Small under gradient descent with a
    small learning rate, of order one under Adam. A norm across heads has one number for the layer.

    Raises ValueError for balances of layers of different shape and for a negative decay.

    Source: derived in docs/derivations/spectra.
    """
    require(np.isfinite(decay) and decay >= 0, f"decay must be finite and >= 0; got {decay!r}.")
    shapes = [[part.shape for part in vars(one).values()] for one in (start, now)]
    require(shapes[0] == shapes[1], "start and now must be balances of one layer; got different shapes.")
    fall = np.exp(-2 * decay)

    def broken(part: str, groups: int) -> Float[np.ndarray, "group"]:
        left = getattr(now, part) - fall * getattr(start, part)
        return np.sum(left.reshape(groups, -1) ** 2, axis=1)

    def moved(gram: str, groups: int) -> Float[np.ndarray, "group"]:
        return np.sum((getattr(now, gram) - getattr(start, gram)).reshape(groups, -1) ** 2, axis=1)

    heads = len(now.query_gram)
    groups = len(now.norms) or heads
    query_key = broken("norms", groups) if len(now.norms) else broken("unrotated", heads) + broken("pairs", heads)
    return Imbalance(
        _share(query_key, moved("query_gram", groups)),
        _share(broken("output_value", heads), moved("value_gram", heads)),
    )


def _query_key_laws(
    weights: AttentionWeights, queries: Float[np.ndarray, "head dim dim"], keys: Float[np.ndarray, "kv_head dim dim"]
) -> tuple[
    Float[np.ndarray, "kv_head rest rest"], Float[np.ndarray, "kv_head pair"], Float[np.ndarray, "group norm"]
]:
    """Parts `unrotated`, `pairs` and `norms` of the balance, from the Grams of the heads."""
    heads, dim = keys.shape[:2]
    grouped = queries.reshape(heads, -1, dim, dim)
    if weights.query_key_norm is not None:
        norms = np.trace(np.concatenate([grouped, keys[:, None]], axis=1), axis1=2, axis2=3)
        if weights.query_key_norm.across_heads:
            norms = np.array([[np.sum(norms[:, :-1]), np.sum(norms[:, -1])]])
        return np.zeros((heads, 0, 0)), np.zeros((heads, 0)), norms
    difference = grouped.sum(axis=1) - keys
    first, second, rest = rotary_rows(weights.rotary, dim)
    diagonal = np.diagonal(difference, axis1=1, axis2=2)
    unrotated = difference[:, rest[:, None], rest]
    return unrotated, diagonal[:, first] + diagonal[:, second], np.zeros((0, 0))


def _gram(
    rows: Shaped[np.ndarray, "dim width"], bias: Shaped[np.ndarray, "dim"] | None = None
) -> Float[np.ndarray, "dim dim"]:
    """rows rowsᵀ with the bias as one more column."""
    matrix = float64(rows)
    return matrix @ matrix.T + (0.0 if bias is None else np.outer(float64(bias), float64(bias)))


def _grams(
    weights: Shaped[np.ndarray, "head dim width"], biases: Shaped[np.ndarray, "head dim"] | None
) -> Float[np.ndarray, "head dim dim"]:
    return np.stack([_gram(rows, None if biases is None else biases[h]) for h, rows in enumerate(weights)])


def _share(broken: Float[np.ndarray, "group"], moved: Float[np.ndarray, "group"]) -> Float[np.ndarray, "group"]:
    return np.sqrt(np.divide(broken, moved, out=np.full(len(moved), np.nan), where=moved > 0))
