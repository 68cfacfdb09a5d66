"""Finished cells that wait for their part."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from iclab.store.cells import Cell, cells_of
from iclab.store.parts import Parts

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["FLUSH", "Buffer"]

FLUSH = 10.0  # seconds; more work than that is never lost to a process that is killed, but for the cell under way


class Buffer:
    """Results that become a part after ten seconds, at the end of the `with` block, and at an error or interrupt."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._waiting: list[Cell] = []
        self._last = time.monotonic()

    def __enter__(self) -> "Buffer":
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def add(self, result: "xr.DataTree") -> None:
        """Keep a result until the next part is due."""
        self.keep(cells_of(result))

    def keep(self, cells: Iterable[Cell]) -> None:
        """Keep cells until the next part is due."""
        self._waiting += cells
        if time.monotonic() - self._last >= FLUSH:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one part."""
        self._parts.publish(self._waiting)
        self._waiting = []
        self._last = time.monotonic()
