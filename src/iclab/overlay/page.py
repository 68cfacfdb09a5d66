"""The page of a comparison, and its numbers as plain values."""

import html
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab import __version__, figures
from iclab.files import written_whole
from iclab.overlay.comparing import Comparison
from iclab.overlay.figure import SIZE, draw
from iclab.provenance import environment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["QUESTION", "case_of", "drawn", "fragment", "page", "table", "written"]

QUESTION = """Does this run follow the theory of its problem?

Theory is the gradient flow of the population loss from the weights at step 0, in the units of the run. Training sets
of the same size are drawn and descended on in the same way: their scatter is the sampling error of the run, and a
right run lies among them. Nothing is fitted. A run that lies elsewhere was trained otherwise than stated, or on
another problem.
"""


def case_of(comparison: Comparison) -> dict[str, Any]:
    """Problem and conventions as plain values."""
    return {"problem": asdict(comparison.problem), **comparison.conventions.plain()}


def table(comparison: Comparison) -> bytes:
    """The curves as CSV: clock, run, theory, and the drawn training sets."""
    columns = {comparison.log.name: comparison.log.clock, "run": comparison.run}
    if comparison.theory is not None:
        columns["theory"] = comparison.theory
    for i, row in enumerate([] if comparison.draws is None else comparison.draws):
        columns[f"drawn_{i}"] = row
    lines = [
        ",".join(columns),
        *(",".join(f"{x:.10g}" for x in row) for row in np.stack([*columns.values()], axis=1)),
    ]
    return ("\n".join(lines) + "\n").encode()


def drawn(comparison: Comparison) -> "Figure":
    """The figure of a comparison."""
    return figures.sketched(lambda figure: draw(comparison, figure), size=SIZE)


def fragment(comparison: Comparison) -> str:
    """The comparison for a notebook: what it says, its figure and its verdicts."""
    svg = figures.inline(figures.as_bytes(drawn(comparison), "svg", name="compare"), name="compare")
    said = "".join(f"<p>{html.escape(text)}</p>" for text in (*comparison.hints, *comparison.notes))
    cells = [(one.meaning, one.number, one.bound, one.noticed or "–", one.word) for one in comparison.verdicts]
    head = "".join(f"<th>{title}</th>" for title in ("claim", "95 %", "asked", "would notice", "verdict"))
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in cells)
    return f"<div>{said}{svg}<table><tr>{head}</tr>{rows}</table></div>"


def written(comparison: Comparison, path: Path, *, name: str | None = None) -> Path:
    """The page of a comparison in a file, written whole."""
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    name = name or f"{comparison.conventions.kind} key and query"
    with written_whole(path) as file:
        file.write_text(page(comparison, name=name, date=date), encoding="utf-8")
    return path


def page(comparison: Comparison, *, name: str, date: str) -> str:
    """The comparison as one self-contained page."""
    from iclab.report import Download, Entry
    from iclab.report import page as whole

    figure = drawn(comparison)
    images = {form: figures.as_bytes(figure, form, name="compare") for form in ("svg", "pdf")}
    files = {"compare.csv": table(comparison), **{f"compare.{form}": image for form, image in images.items()}}
    remarks = "".join(f"\n*{text[0].upper()}{text[1:]}.*\n" for text in (*comparison.hints, *comparison.notes))
    entry = Entry(
        name=name,
        question=QUESTION + remarks,
        size="own",
        case=json.dumps(case_of(comparison)),
        verdicts=comparison.verdicts,
        figure=figures.inline(images["svg"], name="compare"),
        downloads=[Download(file, content) for file, content in files.items()],
        seconds=0.0,
        seeds=[],
        origin=environment(),
    )
    return whole([entry], date=date, version=__version__)
