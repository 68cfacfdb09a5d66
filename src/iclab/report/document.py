"""One page of studies that is complete without a script: figures inline, numbers once as netCDF, tables beside it.

Computes nothing: it shows results, verdicts and figures that it is handed.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclab import __version__
from iclab.claims import ALARM, Verdict
from iclab.files import written_whole
from iclab.report import links, tables
from iclab.report.mathml import mathml
from iclab.report.policy import hashed

if TYPE_CHECKING:
    from iclab.study import Formula

__all__ = ["MEDIA", "Drawing", "Entry", "File", "Moving", "page", "shown", "verdict_table", "write"]

MEDIA = {"nc": "application/x-netcdf", "csv": "text/csv", "pdf": "application/pdf", "svg": "image/svg+xml"}
PIXELS = 96  # of a page in an inch


@dataclass(frozen=True)
class File:
    """A file to take along: inside the page, or in a folder beside it."""

    name: str
    content: bytes
    inside: bool = False

    @property
    def address(self) -> str:
        """The whole file as a data: address, or its path below the page."""
        if not self.inside:
            return f"files/{self.name}"
        medium = MEDIA[self.name.rsplit(".", 1)[-1]]
        return f"data:{medium};base64,{base64.b64encode(self.content).decode()}"


@dataclass(frozen=True)
class Drawing:
    """A figure as SVG elements: as wide as it was designed, and in one column for narrow pages."""

    wide: str
    narrow: str
    width: float
    """Inches of the wide form."""
    caption: str = ""

    @property
    def pixels(self) -> int:
        """Width of the wide form on a page."""
        return round(PIXELS * self.width)


@dataclass(frozen=True)
class Entry:
    """One study on the page."""

    name: str
    question: str
    case: str
    """The case as JSON."""
    verdicts: Sequence[Verdict]
    drawing: Drawing
    files: Sequence[File]
    seconds: float
    seeds: Sequence[int]
    origin: Mapping[str, str]
    """Versions, device and commit."""
    answer: str = ""
    """The answer of this case, in one sentence or two."""
    command: str = ""
    """The case as a command."""
    unjudged: Mapping[str, str] = field(default_factory=dict)
    """Variables of theory that are drawn and not judged, with the reason."""
    formulas: Sequence["Formula"] = ()
    symbols: Sequence[tuple[str, str, str]] = ()
    """Symbol, words and unit of each variable."""
    bands: Sequence[tuple[str, str, str]] = ()
    """Levels and drop times with what the sampling of data leaves open of them."""

    @property
    def title(self) -> str:
        """First line of the question."""
        return self.question.strip().split("\n")[0]

    @property
    def paragraphs(self) -> list[str]:
        """The question without its first line, as HTML."""
        return links.paragraphs(self.question)

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The case as rows of a table, nested fields with a dot."""
        return tables.parameters(self.case)

    @property
    def outcome(self) -> str:
        """The number of claims of each outcome, in few words."""
        if not self.verdicts:
            return "theory alone"
        words = [verdict.outcome for verdict in self.verdicts]
        parts = (("hold", "holds"), ("open", "open"), ("fail", "does not hold"))
        counts = [(words.count(outcome), word) for word, outcome in parts if outcome in words]
        return ", ".join(f"{count} of {len(words)} {word}" for count, word in counts)


@dataclass(frozen=True)
class Moving:
    """The page that figures of a report open in their place, its script, and the state of it for each study."""

    html: str
    script: str
    states: Mapping[str, str]

    @property
    def literal(self) -> str:
        """The page as JSON that no text within can end."""
        return json.dumps(self.html, ensure_ascii=False).replace("<", "\\u003c")


def page(entries: Sequence[Entry], *, date: str, version: str = __version__, moving: Moving | None = None) -> str:
    """The whole report as HTML, with figures that move where there is a page for them."""
    claims = sum(len(entry.verdicts) for entry in entries)
    widths = sorted({entry.drawing.pixels for entry in entries})
    title = entries[0].title if len(entries) == 1 else "iclab report"
    return _rendered(
        "page.html", entries=entries, claims=claims, alarms=ALARM * claims, widths=widths, title=title, date=date,
        version=version, moving=moving, script=_script(), policy=_policy(moving),
    )  # fmt: skip


def write(folder: Path, entries: Sequence[Entry], moving: Moving | None = None) -> Path:
    """Write index.html with its files beside it; the path of the page. Each file is written whole or not at all.

    Raises OSError for a folder that cannot be written.
    """
    beside = {file.address: file.content for entry in entries for file in entry.files if not file.inside}
    named = links.documents([entry.question for entry in entries])
    beside |= {path: text.encode() for path, text in named}
    beside["index.html"] = page(
        entries, date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), moving=moving
    ).encode()
    for path, content in beside.items():
        with written_whole(folder / path) as file:
            file.write_bytes(content)
    return folder / "index.html"


def shown(entry: Entry) -> str:
    """One study as an element of a notebook: question, answer, figure and verdicts."""
    return _rendered("shown.html", entry=entry)


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Verdicts as an element of a notebook."""
    return _rendered("verdicts.html", verdicts=verdicts)


def _script() -> str:
    return files("iclab.report").joinpath("moving.js").read_text(encoding="utf-8")


def _policy(moving: Moving | None) -> str:
    """The policy of a page: no script may run but that which opens the explorer, and the explorer's."""
    alone = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    if moving is None:
        return alone
    return f"{alone} blob:; worker-src blob:; script-src {hashed(_script())} {hashed(moving.script)}"


def _rendered(template: str, **shown: Any) -> str:
    return _templates().get_template(template).render(**shown)


@cache
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader

    templates = Environment(
        loader=PackageLoader("iclab", "report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    templates.globals |= {"mathml": mathml, "measured": tables.measured}
    templates.filters |= {"plain": tables.plain, "unbroken": tables.unbroken}
    return templates
