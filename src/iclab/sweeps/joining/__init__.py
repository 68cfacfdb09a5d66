"""Joining: one labeled dataset of all cells of a sweep, its files, and the page with curves, maps and verdicts."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.sweeps.joining import drawing, forms, joined, page, stacks, verdicts

__all__ = ["drawing", "forms", "joined", "page", "stacks", "verdicts"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
