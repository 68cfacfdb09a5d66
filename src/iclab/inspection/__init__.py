"""The inspection of a folder of checkpoints: what was measured, as tables, files and a page."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.inspection import behavior as behavior
    from iclab.inspection import document as document
    from iclab.inspection import flags as flags
    from iclab.inspection import page as page
    from iclab.inspection import rows as rows
    from iclab.inspection import tables as tables

__all__ = ["behavior", "document", "flags", "page", "rows", "tables"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
