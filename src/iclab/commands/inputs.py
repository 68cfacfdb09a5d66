"""Flags that give data in the place of a spectrum: --inputs, --covariance."""

from collections.abc import Sequence
from typing import Any

__all__ = ["measured"]


def measured(words: Sequence[str]) -> tuple[list[str], Any]:
    """The flags with the spectrum of data in their place."""
    return list(words), None
