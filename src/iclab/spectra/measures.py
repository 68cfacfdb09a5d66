"""Measures of the spectrum of one matrix, of two, and of the balance between the factors of attention."""

from iclab.spectra.balance import Balance, Imbalance, balance, imbalance
from iclab.spectra.ranks import (
    effective_rank,
    energy_rank,
    nuclear_rank,
    participation_ratio,
    rank_measures,
    singular_values,
    spectral_gap,
    stable_rank,
)
from iclab.spectra.rounding import numerical_rank
from iclab.spectra.subspaces import (
    Basis,
    basis,
    consecutive_overlaps,
    overlap_of,
    principal_angles,
    procrustes_distance,
    subspace_distance,
    subspace_overlap,
    turnover,
)

__all__ = [
    "Balance",
    "Basis",
    "Imbalance",
    "balance",
    "basis",
    "consecutive_overlaps",
    "effective_rank",
    "energy_rank",
    "imbalance",
    "nuclear_rank",
    "numerical_rank",
    "overlap_of",
    "participation_ratio",
    "principal_angles",
    "procrustes_distance",
    "rank_measures",
    "singular_values",
    "spectral_gap",
    "stable_rank",
    "subspace_distance",
    "subspace_overlap",
    "turnover",
]
