"""Extrapolation of a gap to infinite size or vanishing rate, for every seed on its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.claims.judgement import ROUNDING

__all__ = ["Extrapolated", "extrapolated"]

Array = np.ndarray
MISFIT = 0.01  # chance that a fit of the right order is refused


@dataclass(frozen=True, eq=False)
class Extrapolated:
    """Gaps at infinite size for every seed, and the error of the fit."""

    gap: Float[Array, "seed entry"]
    model: Float[Array, "entry"]
    fits: bool  # false where sizes are too few or too small for the stated order


def extrapolated(
    gaps: Float[Array, "seed entry size"], sizes: Float[Array, "size"], orders: Sequence[float] = (1.0, 2.0)
) -> Extrapolated:
    """Gaps a of a + b/size^order + ..., by least squares with weights from the scatter that entries of a size share.

    The last of the orders is the next one: it is left out. The error of the model is the larger one of two changes of
    the mean: a with the next order, and a without the smallest size. Residuals of the fit, with the next order where
    sizes are enough, that are larger than the errors of the means (F test, 1 %) show another order.
    """
    seeds, entries, count = gaps.shape
    if count <= len(orders):
        nothing = np.full((seeds, entries), np.nan)
        return Extrapolated(nothing, np.full(entries, np.inf), fits=False)
    *own, second = (np.asarray(sizes, dtype=float) ** -order for order in orders)
    spread = _shared_scatter(gaps)
    weights = 1 / np.maximum(spread, max(float(np.max(spread)) * 1e-3, ROUNDING))
    whole = _operator(own, weights)
    mean = gaps.mean(axis=0)
    changes = [mean @ (_operator([*own, second], weights) - whole)]
    smallest = int(np.argmax(second))
    kept = np.arange(count) != smallest
    changes.append(mean[:, kept] @ _operator([power[kept] for power in own], weights[kept]) - mean @ whole)
    model = np.nan_to_num(np.max(np.abs(changes), axis=0), nan=0.0)  # of an entry that is missing in some seed
    return Extrapolated(gaps @ whole, model, fits=_fits(gaps, [*own, second][: count - 2], weights))


def _shared_scatter(gaps: Float[Array, "seed entry size"]) -> Float[Array, "size"]:
    """The median scatter of the entries of each size."""
    if len(gaps) < 2 or np.isnan(gaps).any(axis=0).all():
        return np.zeros(gaps.shape[2])
    return np.nan_to_num(np.nanmedian(gaps.std(axis=0, ddof=1), axis=0))


def _operator(powers: Sequence[Float[Array, "size"]], weights: Float[Array, "size"]) -> Float[Array, "size"]:
    """The weights of gaps of which the intercept of the fit is the sum."""
    design = np.stack([np.ones_like(weights), *(power / np.max(power) for power in powers)], axis=1)
    return np.linalg.pinv(weights[:, None] * design)[0] * weights


def _fits(gaps: Float[Array, "seed entry size"], powers: Sequence[Array], weights: Array) -> bool:
    """True where residuals of the means are no larger than their errors, in every entry."""
    from scipy import special

    seeds, entries, count = gaps.shape
    error = np.fmax(gaps.std(axis=0, ddof=1), _shared_scatter(gaps)) / np.sqrt(seeds) if seeds > 1 else gaps[0] * 0
    if np.all(np.nan_to_num(error) <= ROUNDING):
        return True
    design = np.stack([np.ones(count), *(power / np.max(power) for power in powers)], axis=1)
    mean = gaps.mean(axis=0)
    rest = mean - mean @ (np.linalg.pinv(weights[:, None] * design) * weights).T @ design.T
    freedom = count - design.shape[1]
    ratio = np.sum((rest / np.maximum(error, ROUNDING)) ** 2, axis=1) / freedom
    return not np.any(ratio > special.fdtri(freedom, seeds - 1, 1 - MISFIT / entries))
