"""The page of `iclab inspect`: one HTML file that holds all it shows and loads nothing."""

from iclab.inspection.page.sections import LARGEST, page

__all__ = ["LARGEST", "page"]
