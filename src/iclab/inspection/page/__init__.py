"""Page of `iclab inspect`: one self-contained HTML file."""

from iclab.inspection.page.sections import LARGEST, page

__all__ = ["LARGEST", "page"]
