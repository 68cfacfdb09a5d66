"""Balance laws of a layer along a series: the violation of each since the first checkpoint."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from iclab.spectra.circuits.balance import Imbalance, balance, imbalance
from iclab.spectra.circuits.grouping import group_size
from iclab.spectra.circuits.weights import AttentionWeights, QueryKeyNorm, Rotary
from iclab.spectra.measures import null
from iclab.spectra.observation.measurements import Comparison, MatrixKey, Measurement, failed
from iclab.spectra.observation.selection import BALANCE, Selection

__all__ = ["ROLES", "of_balance"]

ROLES = ("QK balance", "OV balance")
_DRAWS, _STREAM = 32, 20250417


def of_balance(
    weights: AttentionWeights, tower: str, layer: int, selection: Selection, comparison: Comparison
) -> Iterator[Measurement]:
    """Violations of the two laws of each key head since the first checkpoint that is read, see `imbalance`.

    The head of these measurements is the key head; with a norm across heads there is one law of queries and keys for
    the layer. Weight decay is not corrected for.
    """
    shape = (weights.query.shape[2], *weights.key.shape[1:])
    try:
        now = balance(weights)
        comparison.first = comparison.first or now
        found = imbalance(comparison.first, now)
    except ValueError as error:
        norm = weights.query_key_norm
        for role in ROLES:
            one_law = role == ROLES[0] and norm is not None and norm.across_heads
            for head in (None,) if one_law else sorted(_kv_heads(weights, selection)):
                yield failed(MatrixKey(tower, layer, head, role), role, error, shape)
        return
    levels = _levels(_Form.of(weights))
    kept = _kv_heads(weights, selection)
    for role, values, level in zip(ROLES, (found.query_key, found.output_value), levels, strict=True):
        whole = len(values) != len(weights.key)
        for head, value in enumerate(values):
            if whole or head in kept:
                key = MatrixKey(tower, layer, None if whole else head, role)
                yield Measurement(key, role, shape, measures={BALANCE[0]: float(value)}, level=level)


@dataclass(frozen=True)
class _Form:
    """Properties of a layer that determine the null levels of its laws."""

    heads: int
    key_heads: int
    query: tuple[int, int]  # rows of a head, columns including the bias
    value: tuple[int, int]
    width_out: int
    rotated: int
    pairing: str
    normed: bool
    across: bool

    @classmethod
    def of(cls, weights: AttentionWeights) -> "_Form":
        """Form of a layer; of one key head where there is no norm across heads."""
        rotary, norm = weights.rotary, weights.query_key_norm
        across = norm is not None and norm.across_heads
        return cls(
            len(weights.query) if across else group_size(weights),
            len(weights.key) if across else 1,
            (weights.query.shape[1], weights.query.shape[2] + (weights.query_bias is not None)),
            (weights.value.shape[1], weights.value.shape[2] + (weights.value_bias is not None)),
            weights.output.shape[1],
            0 if rotary is None else rotary.dimensions,
            "half" if rotary is None else rotary.pairing,
            norm is not None,
            across,
        )

    def drawn(self, rng: np.random.Generator) -> AttentionWeights:
        """Random weights with the Grams of Gaussian ones of one variance."""

        def grams(count: int, rows: int, columns: int) -> Float[np.ndarray, "head rows few"]:
            return np.stack([null.gaussian_core(rng, columns, rows).T for _ in range(count)])

        rotary = Rotary(self.rotated, "interleaved" if self.pairing == "interleaved" else "half")
        weights = AttentionWeights(
            query=grams(self.heads, *self.query),
            key=grams(self.key_heads, *self.query),
            value=grams(self.key_heads, *self.value),
            output=grams(self.heads, self.value[0], self.width_out).transpose(0, 2, 1),
            rotary=rotary if self.rotated else None,
        )
        ones = np.ones(1)
        return replace(weights, query_key_norm=QueryKeyNorm(ones, ones, self.across)) if self.normed else weights


@lru_cache(maxsize=64)
def _levels(form: _Form) -> tuple[tuple[float, float], tuple[float, float]]:
    """Mean and spread of both imbalances between two independent random layers."""
    rng = np.random.default_rng(_STREAM)
    draws = [_unrelated(form, rng) for _ in range(_DRAWS)]
    return _summary([one.query_key for one in draws]), _summary([one.output_value for one in draws])


def _unrelated(form: _Form, rng: np.random.Generator) -> Imbalance:
    return imbalance(balance(form.drawn(rng)), balance(form.drawn(rng)))


def _summary(found: list[Float[np.ndarray, "group"]]) -> tuple[float, float]:
    values = np.concatenate(found)
    return float(np.mean(values)), float(np.std(values, ddof=1))


def _kv_heads(weights: AttentionWeights, selection: Selection) -> set[int]:
    group = group_size(weights)
    return {head // group for head in (range(len(weights.query)) if selection.heads is None else selection.heads)}
