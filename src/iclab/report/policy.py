"""Policies of pages: scripts and styles that may run are named by their hashes."""

import base64
import hashlib

__all__ = ["hashed"]


def hashed(text: str) -> str:
    """The source of a policy that stands for an inline script or style of this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
