"""Memory of the device, and errors for arrays that would not fit."""

import contextlib
import os
from collections.abc import Iterator

import jax

from iclab.numerics import require

__all__ = ["exhaustion_reported", "machine_memory", "require_memory"]


def machine_memory() -> float:
    """Bytes of memory of the device that computes."""
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
    if limit is not None:
        return float(limit)
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8e9  # a system that does not report it


def require_memory(names: str, numbers: float | int, *, each: int = 8) -> None:
    """Raise ValueError, with the names of the sizes to lower, unless so many numbers of `each` bytes fit."""
    need, have = float(each) * numbers, machine_memory()
    require(
        need <= have, f"{names} must fit into {have / 1e9:.3g} GB of memory; got {need / 1e9:.3g} GB. Lower them."
    )


@contextlib.contextmanager
def exhaustion_reported() -> Iterator[None]:
    """Raise MemoryError, with what to lower, where the device runs out of memory in the block."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        reason = str(error).splitlines()[0]
        raise MemoryError(
            f"all arrays must fit into {machine_memory() / 1e9:.3g} GB of memory; {reason} Lower batch size or sizes."
        ) from None
