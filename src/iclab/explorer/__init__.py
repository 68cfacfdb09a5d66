"""The explorer: one page that opens from disk, where controls move the theory and stored runs lie over it."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.explorer.document import Page as Page
    from iclab.explorer.document import moving as moving
    from iclab.explorer.document import page as page
    from iclab.explorer.document import page_of as page_of

__all__ = ["Page", "moving", "page", "page_of"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(
        __name__, __all__, dict.fromkeys(__all__, "iclab.explorer.document"), unlisted=("mirrors", "reference")
    )
