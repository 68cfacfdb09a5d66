"""The page of a sweep: its progress, verdicts over the grid, curves and maps; one file, nothing from outside."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from iclab import __version__, figures
from iclab.claims import ALARM
from iclab.sweeps.grids.plan import SweepPlan
from iclab.sweeps.joining.drawing import Drawing, claim_drawing, curves, number_drawing
from iclab.sweeps.joining.joined import joined
from iclab.sweeps.joining.verdicts import GridVerdicts, judged
from iclab.sweeps.progress import progress_of
from iclab.sweeps.state import State

__all__ = ["SweepPage", "page_of"]

_MOST = 12  # figures of numbers


@dataclass(frozen=True)
class SweepPage:
    """A page, and the verdicts that it shows."""

    text: str
    verdicts: Sequence[GridVerdicts]


def page_of(folder: Path, plans: Sequence[SweepPlan]) -> SweepPage:
    """The page of plans that make one grid, verdicts those of the first. Raises ValueError before a cell is done."""
    from jinja2 import Environment, PackageLoader

    plan = plans[0]
    tree = joined(folder, plans)
    own = tree if len(plans) == 1 else joined(folder, [plan])
    names = [str(name) for name in tree["cells"].to_dataset().status.dims if name != "seed"]
    verdicts = judged(folder, plan)
    claims = [_svg(claim_drawing(claim, own, names), f"claim-{place}") for place, claim in enumerate(verdicts)]
    paths = curves(tree, names)
    numbers = [_svg(number_drawing(path, tree, names), f"number-{i}") for i, path in enumerate(paths[:_MOST])]
    shown = {
        "title": plan.study.title, "study": plan.study.name, "lines": progress_of(State(folder, plan)).lines(),
        "axes": [(axis.title, len(axis), str(axis.points[0]), str(axis.points[-1])) for axis in plan.axes],
        "seeds": len(plan.seeds), "base": json.dumps(json.loads(tree.attrs["base"]), indent=1), "alarm": ALARM,
        "claims": list(zip(verdicts, claims, strict=True)), "numbers": numbers, "left": max(0, len(paths) - _MOST),
        "more": names[2:], "plan": plan.id, "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": __version__,
    }  # fmt: skip
    templates = Environment(loader=PackageLoader("iclab.sweeps", "joining"), autoescape=True, trim_blocks=True)
    return SweepPage(templates.get_template("page.html").render(**shown), verdicts)


def _svg(draw: Drawing, name: str) -> str:
    figure = figures.sketched(draw, size=(6.0, 3.6))
    return figures.inline(figures.as_bytes(figure, "svg", name=name), name=name)
