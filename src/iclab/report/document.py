"""One self-contained page of studies: figures inline, numbers as downloads, nothing from outside.

Computes nothing: it shows results, verdicts and figures that it is handed.
"""

import base64
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclab.claims import ALARM, Verdict

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["MEDIA", "Download", "Entry", "csv", "files_of", "page"]

MEDIA = {"nc": "application/x-netcdf", "csv": "text/csv", "pdf": "application/pdf", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class Download:
    """A file that the page carries inside itself."""

    name: str
    content: bytes

    @property
    def uri(self) -> str:
        """The whole file as a data: address."""
        medium = MEDIA[self.name.rsplit(".", 1)[-1]]
        return f"data:{medium};base64,{base64.b64encode(self.content).decode()}"


@dataclass(frozen=True)
class Entry:
    """One study on the page."""

    name: str
    question: str
    size: str
    """Name of the preset: quick, full or published."""
    case: str
    """The case as JSON."""
    verdicts: Sequence[Verdict]
    figure: str
    """The figure as SVG."""
    downloads: Sequence[Download]
    seconds: float
    seeds: Sequence[int]
    origin: dict[str, str]
    """Versions, device and commit."""
    unjudged: Mapping[str, str] = field(default_factory=dict)
    """Variables of theory that are drawn and not judged, with the reason."""

    @property
    def title(self) -> str:
        """First line of the question."""
        return self.question.strip().split("\n")[0]

    @property
    def paragraphs(self) -> list[str]:
        """The question without its first line, as HTML: what stands between asterisks is stressed."""
        parts = (html.escape(" ".join(part.split())) for part in self.question.strip().split("\n\n")[1:])
        return [re.sub(r"\*([^*]+)\*", r"<em>\1</em>", part) for part in parts]

    @property
    def answer(self) -> str:
        """The answer of this case in its own numbers, as a sentence."""
        if not self.verdicts:
            return ""
        held = [verdict for verdict in self.verdicts if verdict.holds]
        said = [f"{verdict.meaning.rstrip('.')} ({verdict.number}, asked {verdict.bound})" for verdict in held]
        others = [f"{verdict.word}: {verdict.meaning.rstrip('.')}" for verdict in self.verdicts if not verdict.holds]
        return ". ".join([*said, *others]) + "."

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The case as rows of a table, nested fields with a dot."""
        return list(_rows(json.loads(self.case)))


def page(entries: Sequence[Entry], *, date: str, version: str) -> str:
    """The whole report as HTML."""
    from jinja2 import Environment, PackageLoader

    templates = Environment(loader=PackageLoader("iclab", "report"), autoescape=True, trim_blocks=True)
    claims = sum(len(entry.verdicts) for entry in entries)
    shown = {"entries": entries, "claims": claims, "alarms": ALARM * claims}
    return templates.get_template("page.html").render(date=date, version=version, **shown)


def csv(result: "xr.DataTree") -> bytes:
    """All numbers of a result as one long table: group, variable, one column for each axis, value."""
    import pandas as pd

    tables = []
    for node in result.subtree:
        for name, array in node.to_dataset(inherit=False).data_vars.items():
            # a single number has no axes, and no data frame of its own
            table = pd.DataFrame({"value": [array.item()]}) if array.ndim == 0 else _table(array)
            table.insert(0, "variable", name)
            table.insert(0, "group", node.path.lstrip("/"))
            tables.append(table)
    whole = pd.concat(tables, ignore_index=True)
    columns = [column for column in whole.columns if column != "value"]
    return whole[[*columns, "value"]].to_csv(index=False, float_format="%.12g").encode()


def files_of(path: Path, result: "xr.DataTree", figures: dict[str, bytes], *, name: str) -> list[Download]:
    """The downloads of one study: its stored result, the same as CSV, and its figure in each form."""
    drawn = [Download(f"{name}.{form}", content) for form, content in figures.items()]
    return [Download(f"{name}.nc", path.read_bytes()), Download(f"{name}.csv", csv(result)), *drawn]


def _table(array: "xr.DataArray") -> "pd.DataFrame":
    return array.rename("value").to_dataframe().reset_index()


def _rows(case: dict[str, Any], prefix: str = "") -> Any:
    for key, value in case.items():
        if isinstance(value, dict):
            yield from _rows(value, f"{prefix}{key}.")
        else:
            shown = ", ".join(map(_shown, value)) if isinstance(value, list) else _shown(value)
            yield f"{prefix}{key}".replace("_", "-"), shown


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
