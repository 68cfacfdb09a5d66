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
from iclab.attention.stacks import StackedAttention, random_stack, stack_of

__all__ = [
    "Layer", "MergedAttention", "SeparateAttention", "StackedAttention", "aligned_separate", "random_merged",
    "random_separate", "random_stack", "restricted_parts", "stack_of",
]  # fmt: skip
