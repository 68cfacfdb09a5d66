"""Documents of `iclab inspect` that a page is sent with."""

import json
from pathlib import Path
from typing import Any

from iclab.numerics import require

__all__ = ["LARGEST", "inspected"]

LARGEST = 1.4e6  # bytes of a document: with it the page is below 2 MB
SCHEMA = 1  # of documents that the page reads


def inspected(path: Path) -> dict[str, Any]:
    """The document in a file. Raises ValueError for another kind of file, and for one too large to be sent."""
    require(path.is_file(), f"a document must be results.json of iclab inspect; got {path}, where no file is.")
    size = path.stat().st_size
    require(
        size <= LARGEST,
        f"a document must have at most {LARGEST / 1e6:g} MB to be sent with the page; got {size / 1e6:.1f} MB. "
        "Inspect fewer layers or measures, or open the file in the page.",
    )
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_none)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"a document must be the JSON of iclab inspect; {path.name} is not ({error}).") from None
    known = isinstance(content, dict) and isinstance(content.get("table"), list) and "fans" in content
    require(known, f"a document must be results.json of iclab inspect; {path.name} is another JSON.")
    require(
        content.get("schema") == SCHEMA,
        f"a document must have schema {SCHEMA}; {path.name} has {content.get('schema')!r}. Inspect again.",
    )
    return content


def _none(_: str) -> None:
    return None
