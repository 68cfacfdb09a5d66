"""The command `iclab report`: studies on one self-contained page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iclab.commands.studies import named
from iclab.commands.terminal import parsed, print_verdicts, progress, writable
from iclab.commands.verdicts import exit_code
from iclab.numerics import whole_number
from iclab.store import Store
from iclab.studies import STUDIES

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
    from iclab.report import entry, write

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
    entries = [
        entry(study, presets[study.name].case, result, store.path(study, presets[study.name].case).read_bytes())
        for study, result in results
    ]
    page = write(folder, entries)
    for one in entries:
        print_verdicts(one.name, one.verdicts)
    print(f"page: {page}")
    return exit_code((verdict for one in entries for verdict in one.verdicts), strict=options.strict)
