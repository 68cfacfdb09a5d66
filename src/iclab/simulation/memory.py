"""How much memory there is, and what would not fit."""

import os

import jax

from iclab.numerics import require


def machine_memory() -> float:
    """Bytes of memory of the device that computes."""
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
    if limit is not None:
        return float(limit)
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8e9  # a system that does not tell


def require_memory(names: str, numbers: float) -> None:
    """Raises ValueError, with the names of the sizes to lower, where so many numbers of 8 bytes do not fit."""
    need, have = 8.0 * numbers, machine_memory()
    require(
        need <= have, f"{names} must fit into {have / 1e9:.3g} GB of memory; got {need / 1e9:.3g} GB. Lower them."
    )
