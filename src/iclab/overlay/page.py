"""The page of a comparison, and its numbers as plain values."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from iclab import __version__, figures
from iclab.overlay.comparing import Comparison
from iclab.overlay.figure import SIZE, draw
from iclab.provenance import environment

__all__ = ["QUESTION", "case_of", "page", "table"]

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


def page(comparison: Comparison, *, name: str, date: str) -> str:
    """The comparison as one self-contained page."""
    from iclab.report import Download, Entry
    from iclab.report import page as whole

    figure = figures.sketched(lambda figure: draw(comparison, figure), size=SIZE)
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
