"""Related systems: attention of limited rank, heads with one parity each, classification by patterns."""

from iclab.theory.related import parity_heads, pattern_matching, rank_limited

__all__ = ["parity_heads", "pattern_matching", "rank_limited"]
