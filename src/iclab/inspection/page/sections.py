"""The page of `iclab inspect`: one HTML file that holds all it shows and loads nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from iclab import __version__
from iclab.inspection.behavior import Joined
from iclab.inspection.page import charts
from iclab.inspection.page.groups import Group, groups, same, thinned
from iclab.inspection.page.steps import StepAxis, short
from iclab.inspection.rows import change_rows, integrity_rows, skipped_rows
from iclab.spectra.checkpoints.names import terminal
from iclab.spectra.observation.dynamics import SpectralDynamics

LARGEST = 20_000_000  # bytes of the page
_FIGURES, _ONE_FIGURE, _NUMBERS = 13_000_000, 3_000_000, 2_000_000  # bytes of all figures, of one, of the numbers
_ROWS, _CELL = 200, 600  # rows of a table, characters of a cell
Runs = Mapping[str, SpectralDynamics]


@dataclass(frozen=True)
class PageTable:
    """A table, its first rows, and a line that says how many more there are."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: int


@dataclass(frozen=True)
class Picture:
    """A figure, its title and what it shows."""

    svg: str
    title: str
    caption: str


@dataclass
class FigureBudget:
    """What is left for figures, and which were left out."""

    left: int = _FIGURES
    without: list[str] = field(default_factory=list)

    def take(self, title: str, caption: str, draw: Callable[[], str]) -> Iterator[Picture]:
        """The figure, if the budget has room for it; otherwise its title is kept."""
        svg = draw() if self.left > 0 else ""
        size = len(svg.encode())
        if svg and size <= min(self.left, _ONE_FIGURE):
            self.left -= size
            yield Picture(svg, title, caption)
        else:
            self.without.append(title)


@dataclass(frozen=True)
class Section:
    """What the page shows of one run."""

    name: str
    facts: str
    broken: bool
    integrity: PageTable
    curves: Sequence[Picture]
    maps: Sequence[Picture]
    trajectories: Sequence[Picture]
    changes: PageTable
    verdict: str
    troubles: PageTable
    skipped: PageTable
    notes: Sequence[str]


def page(runs: Runs, joined: Joined | None = None) -> str:
    """The whole page, at most 20 MB whatever it is of; a line says what was left out for that.

    Names out of files are text and nothing else: escaped in HTML and JSON, and drawn without formulas in figures.
    """
    from jinja2 import Environment, PackageLoader

    budget, there = FigureBudget(), {name: groups(dynamics) for name, dynamics in runs.items()}
    sections = [
        _section(name, dynamics, there, joined if index == 0 else None, budget, number=index)
        for index, (name, dynamics) in enumerate(runs.items())
    ]
    templates = Environment(loader=PackageLoader("iclab.inspection", "page"), autoescape=True, trim_blocks=True)
    return templates.get_template("page.html").render(
        sections=sections, numbers=_numbers(there), version=__version__, without=budget.without[:_ROWS],
        count=len(budget.without), unmatched=_left_out(joined), limit=LARGEST // 1_000_000,
    )  # fmt: skip


def _section(
    name: str,
    dynamics: SpectralDynamics,
    there: Mapping[str, tuple[Group, ...]],
    joined: Joined | None,
    budget: FigureBudget,
    *,
    number: int,
) -> Section:
    axis = StepAxis(dynamics.steps.astype(float))
    parts = [part for part in there[name] if part.measures]
    others = {other: found for other, found in there.items() if other != name}
    curves, maps, trajectories = [], [], []
    for index, group in enumerate(parts):  # by worth, so that what is left out is what matters least
        label = f"run{number}-group{index}"
        behavior = {} if joined is None else {one: values[group.order] for one, values in joined.columns.items()}
        twins = same(group, others)
        draw = partial(charts.curves, group, axis, behavior, twins, name=f"{label}-curves")
        curves += budget.take(f"{_told(group)} against step", _caption(group, twins), draw)
        if group.of_heads and "effective_rank" in group.measures:
            draw = partial(charts.bands, group, axis, "effective_rank", name=f"{label}-bands")
            curves += budget.take(f"{_told(group)}, effective rank by layer", _bands_caption(group), draw)
        if len(group.layers) > 1 and set(charts.MAPPED) & set(group.measures):
            draw = partial(charts.maps, group, axis, name=f"{label}-maps")
            caption = "Medians over heads; grey where nothing is defined." if group.of_heads else ""
            maps += budget.take(f"{_told(group)}, layer by step", caption, draw)
        if not any(np.isfinite(group.leading(series)).any() for series in group.matrices):
            continue
        draw = partial(charts.trajectories, group, axis, name=f"{label}-fans")
        trajectories += budget.take(f"{_told(group)}, singular values", _trajectories_caption(group), draw)
    return Section(
        _cell(name), _facts(dynamics), dynamics.integrity.broken, _integrity(dynamics), curves, maps, trajectories,
        _changes(dynamics, joined), _verdict(dynamics), _troubles(dynamics), _skipped(dynamics),
        [_cell(note) for note in list(dict.fromkeys(dynamics.notes))[:_ROWS]],
    )  # fmt: skip


def _facts(dynamics: SpectralDynamics) -> str:
    steps, matrices = dynamics.steps, dynamics.matrices
    span = f"steps {short(float(np.min(steps)))} to {short(float(np.max(steps)))}" if len(steps) else "no steps"
    heads = sum(series.head is not None for series in matrices)
    layers = len({(series.tower, series.layer) for series in matrices if series.layer is not None})
    said = [
        f"{len(steps)} checkpoints", span, dynamics.family or "family not known", f"{layers} layers",
        f"{heads} circuits of heads", f"{len(matrices) - heads} whole matrices", f"{dynamics.measured:,} numbers",
    ]  # fmt: skip
    if thinned(dynamics):
        said.append(f"lines go through {len(steps) - thinned(dynamics)} of the checkpoints, evenly chosen")
    return terminal("; ".join(said))


def _integrity(dynamics: SpectralDynamics) -> PageTable:
    return _table(("", "kind", "what was found"), integrity_rows(dynamics))


def _changes(dynamics: SpectralDynamics, joined: Joined | None) -> PageTable:
    rows = [
        (
            row.layer, row.head, row.matrix, row.measure.replace("_", " "), row.step, row.size, row.ratio,
            ", ".join(f"{name} at step {step}" for name, step in row.coincident),
        )
        for row in change_rows(dynamics, joined)
    ]  # fmt: skip
    header = ("layer", "head", "matrix", "measure", "from step", "by", "F over its threshold", "coincides with")
    return _table(header, rows)


def _verdict(dynamics: SpectralDynamics) -> str:
    if not dynamics.tested:
        return "No curve was long enough to be tested for a change."
    return (
        f"{len(dynamics.changes)} of {dynamics.tested} curves shift by more than 95 % of random walks do; of walks "
        f"alone one in twenty would. Uncertainty of the step: {dynamics.uncertainty}."
    )


def _troubles(dynamics: SpectralDynamics) -> PageTable:
    found: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], str] = {}
    for series in dynamics.matrices:
        for step, status, reason in zip(dynamics.steps.tolist(), series.status, series.reason, strict=True):
            if status != "ok":
                key = (status, reason, series.role)
                found[key] += 1
                head = "" if series.head is None else f", head {series.head}"
                layer = "" if series.layer is None else f"layer {series.layer}{head}, "
                first.setdefault(key, f"{layer}{series.matrix}, step {step}")
    rows = [
        (status, role, reason, str(count), first[status, reason, role])
        for (status, reason, role), count in found.most_common()
    ]
    return _table(("status", "matrix", "reason", "readings", "first"), rows)


def _skipped(dynamics: SpectralDynamics) -> PageTable:
    rows = [(name, reason, str(count) if count > 1 else "") for name, reason, count in skipped_rows(dynamics)]
    return _table(("tensor or file", "reason", "times"), rows)


def _left_out(joined: Joined | None) -> list[str]:
    if joined is None:
        return []
    said = {
        "Rows of the behavior without a checkpoint, not drawn: step ": joined.unmatched,
        "Checkpoints without a row of behavior: step ": joined.absent,
    }
    lines = [_cell(text + ", ".join(map(str, steps))) for text, steps in said.items() if steps]
    left_out = list(joined.columns)[charts.COLUMNS :]
    return lines + [_cell("Columns of the behavior that are not drawn: " + ", ".join(left_out))] * bool(left_out)


def _numbers(there: Mapping[str, tuple[Group, ...]]) -> list[dict]:
    """Medians over heads of every group, for programs that read the page; the first that fit."""
    found, size = [], 0
    for name, parts in there.items():
        for group in parts:
            for measure in group.measures:
                rows = group.by_layer(measure)
                size += 9 * rows.size + 12 * len(group.steps)
                if size > _NUMBERS:
                    return found
                found.append(
                    {
                        "run": _cell(name), "matrix": _cell(group.role), "tower": _cell(group.tower),
                        "measure": measure, "steps": group.steps.tolist(), "layers": list(group.layers),
                        "medians": [[_number(value) for value in row] for row in rows.tolist()],
                    }
                )  # fmt: skip
    return found


def _number(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> PageTable:
    shown = [[_cell(cell) for cell in row] for row in rows[:_ROWS]]
    return PageTable(header, shown, len(rows) - len(shown))


def _cell(text: str) -> str:
    more = len(text) - _CELL
    return terminal(text) if more <= 0 else f"{terminal(text[:_CELL])} … ({more} characters more)"


def _told(group: Group) -> str:
    title = charts.figure_text(group.title, longest=80)
    return title[0].upper() + title[1:]


def _caption(group: Group, others: Mapping[str, Group]) -> str:
    whole = f"{len(group.matrices)} heads" if group.of_heads else f"{len(group.matrices)} matrices"
    said = [
        f"{whole}: median in black, half of them within the dark band, all within the pale one; thin lines are "
        "layers, dark the first and yellow the last. Dashed grey: random matrices of the same shape, ± 2 spreads."
    ]
    said += [f"Dashed in color: the median of run {charts.figure_text(name)}." for name in others]
    return " ".join(said)


def _bands_caption(group: Group) -> str:
    drawn = len(charts.even(group.layers, 36))
    more = f" {drawn} of {len(group.layers)} layers, evenly chosen." if drawn < len(group.layers) else ""
    return f"Heads of each layer as bands of quantiles.{more}"


def _trajectories_caption(group: Group) -> str:
    drawn = len(charts.moved(group))
    values = max(series.leading.shape[1] for series in group.matrices)
    which = f"the {drawn} of {len(group.matrices)} that vary most" if drawn < len(group.matrices) else f"all {drawn}"
    return f"Up to {values} leading values, {which}."
