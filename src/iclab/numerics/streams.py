"""Seeds of random streams whose draws are constants, like the nodes of a quadrature."""

__all__ = ["FIXED_STREAM"]

FIXED_STREAM = 20240518
"""Seed of the stream behind quadratures and example pools: the same call gives the same result."""
