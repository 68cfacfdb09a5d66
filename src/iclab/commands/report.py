"""The command `iclab report`: studies, or one case of one's own, on one page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclab import __version__
from iclab.commands.flags.cases import asked
from iclab.commands.flags.options import Clock, Options, apart, chosen_preset
from iclab.commands.flags.parsing import parsed
from iclab.commands.studies import named
from iclab.commands.terminal import print_verdicts, writable
from iclab.commands.verdicts import exit_code
from iclab.commands.workers import fetched
from iclab.files import written_whole
from iclab.numerics import one_of, require, whole_number
from iclab.store import Store, write
from iclab.studies import STUDIES
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ABOUT", "Report", "report", "written_page"]

ABOUT = "Run studies and write one page with figures, verdicts and numbers; of one study with a case of your own."

EXAMPLES = (
    "iclab report", "iclab report --all", "iclab report staircase mode-staging",
    "iclab report staircase --eigenvalues .5 .3 .2 --context-length 8",
)  # fmt: skip


@dataclass(frozen=True)
class Report(Options):
    """Options of a page."""

    all: bool = False  # every study, not the headline ones alone
    processes: int = 2  # how many seeds run in parallel, on a core each


Shown = tuple[Study, str, Any, "xr.DataTree"]
"""A study, the name of the size of its case, the case, and its result."""


def report(words: Sequence[str]) -> int:
    """Compute what is missing, write the page, print the verdicts. Returns the exit code."""
    names, flags = apart([word for word in words if word != "--only"], Report)  # which version 0.1.0 asked for
    require("--only" not in words or bool(names), "only must hold at least one value; got none. Name a study.")
    studies = list(dict.fromkeys(named(name).name for name in names))
    cases: list[tuple[Study, str, Any, int]]
    if len(studies) == 1:
        study = STUDIES[studies[0]]
        size, preset = chosen_preset(study, flags)
        case, options = asked(study, preset.case, flags, Report, command="report")
        cases = [(study, size if case == preset.case else "own", case, _seeds(preset.seeds, options))]
    else:
        options = _options(flags)
        chosen = [STUDIES[name] for name in studies or STUDIES]
        if not (options.all or studies):
            chosen = [study for study in chosen if study.headline]
        presets = [(study, *chosen_preset(study, flags)) for study in chosen]
        cases = [(study, size, preset.case, _seeds(preset.seeds, options)) for study, size, preset in presets]
    processes = whole_number("processes", options.processes)
    for study, _, case, _ in cases:
        one_of("clock", options.clock, study.clocks(case))
    folder, store = writable(options.out or Path("report")), Store(writable(options.stored))
    asked_for = [(study, case, seeds) for study, _, case, seeds in cases]
    results = fetched(store, asked_for, processes=processes, quiet=options.quiet, published=options.published)
    shown = [(study, size, case, result) for (study, size, case, _), result in zip(cases, results, strict=True)]
    page = folder / "index.html"
    entries = written_page(page, shown, store, clock=options.clock)
    for entry in entries:
        print_verdicts(entry.name, entry.verdicts)
    print(f"page: {page}")
    return exit_code((verdict for entry in entries for verdict in entry.verdicts), strict=options.strict)


def written_page(path: Path, shown: Sequence[Shown], store: Store, *, clock: Clock) -> list[Any]:
    """The page of some results, written. Returns its entries."""
    from iclab.report import page

    entries = [_entry(*one, store, clock) for one in shown]
    text = page(entries, date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), version=__version__)
    with written_whole(path) as file:
        file.write_text(text, encoding="utf-8")
    return entries


def _options(flags: Sequence[str]) -> Report:
    """The options of a page of several studies. Raises ValueError, with what to do, for flags of a case."""
    try:
        return parsed(Report, flags, prog="iclab report", description=ABOUT, examples=EXAMPLES)
    except ValueError as error:
        if str(error).startswith("flags must be among"):
            raise ValueError(f"{error} Flags of a case need the name of one study: iclab report STUDY ...") from None
        raise


def _seeds(suggested: int, options: Report) -> int:
    return suggested if options.seeds is None else options.seeds


def _entry(study: Study, size: str, case: Any, result: "xr.DataTree", store: Store, clock: Clock) -> Any:
    from iclab import figures
    from iclab.report import Entry, files_of

    figure = figures.drawn(study, case, result, clock=clock)
    images = {form: figures.as_bytes(figure, form, name=study.name) for form in ("svg", "pdf")}
    stored = store.path(study, case)
    if not stored.exists():  # theory alone, which is not kept
        stored = store.folder / "tmp" / stored.name
        write(result, stored)
    downloads = files_of(stored, result, images, name=study.name)
    if stored.parent != store.folder:
        stored.unlink()
    return Entry(
        name=study.name,
        question=study.question,
        size=size,
        case=result.attrs["case"],
        verdicts=study.verdicts(result),
        unjudged=study.unjudged,
        figure=figures.inline(images["svg"], name=study.name),
        downloads=downloads,
        seconds=float(sum(result.attrs["seconds"])),
        seeds=[int(seed) for seed in result.attrs["seeds"]],
        origin={key: str(result.attrs[key]) for key in ("versions", "device", "precision", "iclab", "commit")},
    )
