"""Linear attention: weights and how they act, one layer on the query's label, or a stack of layers."""

from iclab.attention.layers import (
    Layer,
    MergedAttention,
    SeparateAttention,
    aligned_separate,
    random_merged,
    random_separate,
    restricted_parts,
)

__all__ = [
    "Layer", "MergedAttention", "SeparateAttention", "aligned_separate", "random_merged", "random_separate",
    "restricted_parts",
]  # fmt: skip
