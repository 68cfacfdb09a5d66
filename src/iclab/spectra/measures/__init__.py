"""Measures of spectra: ranks of one matrix, overlaps and distances of two."""

from typing import TYPE_CHECKING

from iclab.moved import refusal
from iclab.spectra.measures.ranks import (
    effective_rank,
    energy_rank,
    nuclear_rank,
    participation_ratio,
    rank_measures,
    singular_values,
    spectral_gap,
    stable_rank,
)
from iclab.spectra.measures.rounding import numerical_rank
from iclab.spectra.measures.subspaces import (
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
    "Basis",
    "basis",
    "consecutive_overlaps",
    "effective_rank",
    "energy_rank",
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

if not TYPE_CHECKING:  # else every name would be one
    __getattr__ = refusal(__name__)
