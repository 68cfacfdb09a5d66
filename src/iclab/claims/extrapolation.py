"""Extrapolation of a gap to infinite size or vanishing rate, for every seed on its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from iclab.claims.judgement import ROUNDING
from iclab.claims.seeds import over_seeds

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
    gaps: Float[Array, "seed entry size"],
    sizes: Float[Array, "size"],
    orders: Sequence[float] = (1.0, 2.0),
    *,
    kept: Bool[Array, "seed entry"] | None = None,
) -> Extrapolated:
    """Gaps a of a + b/size^order + ..., by least squares with weights from the scatter that entries of a size share.

    The last of the orders is the next one: it is left out. The error of the model is the larger one of two changes of
    the mean: a with the next order, and a without the smallest size. Residuals of the fit, with the next order where
    sizes are enough, that are larger than the errors of the means (F test, 1 %) show another order. All seeds count,
    unless `kept` says otherwise.
    """
    seeds, entries, count = gaps.shape
    if count <= len(orders):
        nothing = np.full((seeds, entries), np.nan)
        return Extrapolated(nothing, np.full(entries, np.inf), fits=False)
    *own, second = (np.asarray(sizes, dtype=float) ** -order for order in orders)
    counting = np.ones(gaps.shape, dtype=bool) if kept is None else np.repeat(kept[:, :, None], count, axis=2)
    mean, scatter, seeds_kept = over_seeds(gaps, counting)
    spread = _shared_scatter(scatter)
    weights = 1 / np.maximum(spread, max(float(np.max(spread)) * 1e-3, ROUNDING))
    whole = _operator(own, weights)
    changes = [mean @ (_operator([*own, second], weights) - whole)]
    smallest = int(np.argmax(second))
    larger = np.arange(count) != smallest
    changes.append(mean[:, larger] @ _operator([power[larger] for power in own], weights[larger]) - mean @ whole)
    model = np.nan_to_num(np.max(np.abs(changes), axis=0), nan=0.0)  # of an entry that is missing in some seed
    return Extrapolated(
        gaps @ whole, model, fits=_fits(mean, scatter, seeds_kept[:, 0], [*own, second][: count - 2], weights)
    )


def _shared_scatter(scatter: Float[Array, "entry size"]) -> Float[Array, "size"]:
    """The median scatter of the entries of each size; 0 where none is known."""
    found = np.zeros(scatter.shape[1])
    known = ~np.isnan(scatter).all(axis=0)
    if known.any():
        found[known] = np.nanmedian(scatter[:, known], axis=0)
    return found


def _operator(powers: Sequence[Float[Array, "size"]], weights: Float[Array, "size"]) -> Float[Array, "size"]:
    """The weights of gaps of which the intercept of the fit is the sum."""
    design = np.stack([np.ones_like(weights), *(power / np.max(power) for power in powers)], axis=1)
    return np.linalg.pinv(weights[:, None] * design)[0] * weights


def _fits(
    mean: Float[Array, "entry size"],
    scatter: Float[Array, "entry size"],
    seeds: Int[Array, "entry"],
    powers: Sequence[Array],
    weights: Array,
) -> bool:
    """True where residuals of the means are no larger than their errors, in every entry."""
    from scipy import special

    error = np.fmax(scatter, _shared_scatter(scatter)) / np.sqrt(seeds)[:, None]
    if np.all(np.nan_to_num(error) <= ROUNDING):
        return True
    design = np.stack([np.ones(len(weights)), *(power / np.max(power) for power in powers)], axis=1)
    rest = mean - mean @ (np.linalg.pinv(weights[:, None] * design) * weights).T @ design.T
    freedom = len(weights) - design.shape[1]
    ratio = np.sum((rest / np.maximum(error, ROUNDING)) ** 2, axis=1) / freedom
    return not np.any(ratio > special.fdtri(freedom, np.maximum(seeds - 1, 1), 1 - MISFIT / len(mean)))
