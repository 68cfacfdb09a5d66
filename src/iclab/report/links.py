"""Links of a page: papers on arXiv, and derivations and findings, which are copied beside it."""

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["documents", "linked", "paragraphs"]

_PAPER = re.compile(r"\barXiv[: ](\d{4}\.\d{4,5})")
_SHEET = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title}</title></head>
<body style="font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem">
<main><h1>{title}</h1><pre style="white-space: pre-wrap; font: inherit">{text}</pre></main></body></html>
"""
_DOCUMENT = re.compile(r"\bdocs/(derivations|studies)/([\w-]+)")


def paragraphs(question: str) -> list[str]:
    """The question without its first line, as HTML: stressed where it has asterisks, code where it has backticks."""
    parts = (linked(" ".join(part.split())) for part in question.strip().split("\n\n")[1:])
    return [re.sub(r"`([^`]+)`", r"<code>\1</code>", re.sub(r"\*([^*]+)\*", r"<em>\1</em>", part)) for part in parts]


def linked(text: str) -> str:
    """Text as HTML, with links to the papers and documents that it names."""
    found = _PAPER.sub(r'<a href="https://arxiv.org/abs/\1">arXiv \1</a>', html.escape(text))

    def document(match: re.Match[str]) -> str:
        place = f"docs/{match[1]}/{match[2]}"
        return f'<a href="{place}.html">{place}</a>' if _source(match[1], match[2]) else match[0]

    return _DOCUMENT.sub(document, found)


def documents(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Path below the page and content, as HTML, of each document that texts name and that is at hand."""
    named = dict.fromkeys(match for text in texts for match in _DOCUMENT.findall(text))
    for folder, name in named:
        if (source := _source(folder, name)) is not None:
            yield f"docs/{folder}/{name}.html", _page(name, source.read_text(encoding="utf-8"))


def _source(folder: str, name: str) -> Path | None:
    """The document in an installed package, or in the checkout that holds it."""
    package = Path(__file__).resolve().parents[1]
    places = (package / "docs" / folder / f"{name}.md", package.parents[1] / "docs" / folder / f"{name}.md")
    return next((place for place in places if place.is_file()), None)


def _page(title: str, text: str) -> str:
    return _SHEET.format(title=html.escape(title), text=linked(text))
