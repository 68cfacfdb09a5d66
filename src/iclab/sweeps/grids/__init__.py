"""Grids: their axes, the fields of cases that they move, the studies that answer, and the plans made of them."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.sweeps.grids import axes, fields, plan, sources

__all__ = ["axes", "fields", "plan", "sources"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
