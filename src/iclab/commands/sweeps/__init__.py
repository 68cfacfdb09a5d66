"""The commands of sweeps: `iclab sweep` with `work`, `status` and `cancel`, and `iclab collect`."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.commands.sweeps import around, collect, display, flags, page, sweep

__all__ = ["around", "collect", "display", "flags", "page", "sweep"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
