"""The page of a comparison, and its numbers as plain values."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab import figures
from iclab.overlay.comparing import Comparison
from iclab.overlay.figure import SIZE, caption, draw
from iclab.provenance import device, environment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from iclab.report import Entry

__all__ = ["QUESTION", "answer", "case_of", "drawn", "entry", "fragment", "table", "written"]

QUESTION = """Does this run follow the theory of its problem?

Theory is the gradient flow of the population loss from the weights at step 0, in the units of the run. Training sets
of the same size are drawn and descended on in the same way: their scatter is the sampling error of the run, and a
right run lies among them. Nothing is fitted. A run that lies elsewhere was trained otherwise than stated, or on
another problem.
"""
ORIGIN = ("versions", "precision", "iclab", "commit")


def answer(comparison: Comparison) -> str:
    """The answer in a sentence or two: the verdicts together, then hints and what was found in the log."""
    outcomes = [one.outcome for one in comparison.verdicts]
    wrong = [one.measure for one in comparison.verdicts if one.outcome == "does not hold"]
    if wrong:
        said = f"No: {', '.join(wrong)} beyond what 999 of 1000 right runs have."
    elif "holds" in outcomes:
        shown = [
            f"{one.measure} {one.number} ({one.bound} of right runs)" for one in comparison.verdicts if one.holds
        ]
        said = f"Yes, as far as a run of this size can tell: {'; '.join(shown)}."
    else:
        said = "This run cannot tell."
    return " ".join([said, *(f"{text[0].upper()}{text[1:]}." for text in (*comparison.hints, *comparison.notes))])


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
    rows = np.stack([*columns.values()], axis=1)
    lines = [",".join(columns), *(",".join(f"{number:.10g}" for number in row) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def drawn(comparison: Comparison) -> "Figure":
    """The figure of a comparison."""
    return figures.sketched(lambda figure: draw(comparison, figure), size=SIZE)


def entry(comparison: Comparison, *, command: str = "") -> "Entry":
    """The comparison as an entry of a page; `command` is the line that made it."""
    from iclab.report import Drawing, Entry, File

    wide, narrow = drawn(comparison), figures.stacked(lambda figure: draw(comparison, figure))
    images = {form: figures.as_bytes(wide, form, name="compare") for form in ("svg", "pdf")}
    drawing = Drawing(
        wide=figures.inline(images["svg"], name="compare"),
        narrow=figures.inline(figures.as_bytes(narrow, "svg", name="compare"), name="compare-narrow"),
        width=wide.get_figwidth(),
        caption=caption(comparison),
    )
    known = environment() | {"device": device()}
    return Entry(
        name="compare",
        question=QUESTION,
        answer=answer(comparison),
        command=command or "iclab.compare(times, losses, problem, conventions)",
        case=json.dumps(case_of(comparison)),
        verdicts=comparison.verdicts,
        drawing=drawing,
        files=[
            File("compare.csv", table(comparison)),
            *(File(f"compare.{form}", image) for form, image in images.items()),
        ],
        seconds=comparison.seconds,
        seeds=range(0 if comparison.draws is None else len(comparison.draws)),
        origin={name: known[name] for name in ORIGIN},
    )


def fragment(comparison: Comparison) -> str:
    """The comparison as an element of a notebook."""
    from iclab.report import shown

    return shown(entry(comparison))


def written(comparison: Comparison, folder: Path, *, command: str = "") -> Path:
    """The page of a comparison in a folder, its files beside it. Returns the path of the page."""
    from iclab.report import write

    return write(folder, [entry(comparison, command=command)])
