"""The command `iclab report`: studies on one self-contained page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclab import __version__
from iclab.commands.studies import named
from iclab.commands.terminal import parsed, print_verdicts, progress, writable
from iclab.commands.verdicts import exit_code
from iclab.files import written_whole
from iclab.numerics import whole_number
from iclab.store import Store
from iclab.studies import STUDIES
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Report", "report"]


@dataclass(frozen=True)
class Report:
    """Run studies and write one self-contained page with figures, verdicts and downloads."""

    all: bool = False  # every study, not the headline ones alone
    full: bool = False  # the full case of each study instead of the quick one
    only: tuple[str, ...] = ()  # names of the studies to show
    out: Path = Path("report")  # folder of index.html and of the results behind it
    processes: int = 2  # how many seeds run in parallel, on a core each
    strict: bool = False  # exit 1 where a claim does not hold, 3 where one is open
    debug: bool = False  # show the traceback of an error


def report(words: Sequence[str]) -> int:
    """Compute what is missing, write the page, print the verdicts. Returns the exit code."""
    from iclab.commands.workers import fill
    from iclab.report import page

    options = parsed(Report, words, prog="iclab report", description=Report.__doc__ or "")
    studies = [named(name) for name in options.only or STUDIES]
    if not (options.all or options.only):
        studies = [study for study in studies if study.headline]
    processes = whole_number("processes", options.processes)
    folder = writable(options.out)
    store = Store(writable(folder / "results"))
    size = "full" if options.full else "quick"
    presets = {study.name: study.presets[size] for study in studies}
    missing = {
        study.name: (preset.case, store.missing(study, preset.case, preset.seeds))
        for study in studies
        for preset in (presets[study.name],)
    }
    with progress() as bars:
        fill(store, missing, processes=processes, bars=bars)
    results = [(study, store.fetch(study, presets[study.name].case, presets[study.name].seeds)) for study in studies]
    entries = [_entry(study, size, result, store) for study, result in results]
    text = page(entries, date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), version=__version__)
    with written_whole(folder / "index.html") as file:
        file.write_text(text, encoding="utf-8")
    for entry in entries:
        print_verdicts(entry.name, entry.verdicts)
    print(f"page: {folder / 'index.html'}")
    return exit_code((verdict for entry in entries for verdict in entry.verdicts), strict=options.strict)


def _entry(study: Study, size: str, result: "xr.DataTree", store: Store) -> Any:
    from iclab import figures
    from iclab.report import Entry, files_of

    case = study.presets[size].case
    figure = figures.drawn(study, case, result)
    images = {form: figures.as_bytes(figure, form, name=study.name) for form in ("svg", "pdf")}
    return Entry(
        name=study.name,
        question=study.question,
        size=size,
        case=result.attrs["case"],
        verdicts=study.verdicts(result),
        unjudged=study.unjudged,
        figure=figures.inline(images["svg"], name=study.name),
        downloads=files_of(store.path(study, case), result, images, name=study.name),
        seconds=float(sum(result.attrs["seconds"])),
        seeds=[int(seed) for seed in result.attrs["seeds"]],
        origin={key: str(result.attrs[key]) for key in ("versions", "device", "precision", "iclab", "commit")},
    )
