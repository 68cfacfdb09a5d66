"""Comments on the fields of a dataclass: their help texts, in the source of the class."""

import inspect
import re
from dataclasses import is_dataclass
from functools import lru_cache

__all__ = ["comment_on"]


def comment_on(kind: type, name: str) -> str:
    """The comment behind a field, in the class that states it last; empty where there is none."""
    found = (_comments(base).get(name) for base in kind.__mro__ if is_dataclass(base))
    return next((text for text in found if text), "")


@lru_cache
def _comments(kind: type) -> dict[str, str]:
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        return {}
    return dict(re.findall(r"^    (\w+): .*?  # (.*)$", source, flags=re.MULTILINE))
