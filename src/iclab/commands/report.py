"""The command `iclab report`: studies, or one case of one's own, on one page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclab.commands.flags.cases import asked
from iclab.commands.flags.options import Options, apart, chosen_preset
from iclab.commands.flags.parsing import parsed
from iclab.commands.inputs import measured, measured_case, theory_alone
from iclab.commands.studies import named
from iclab.commands.terminal import print_verdicts, writable
from iclab.commands.verdicts import exit_code
from iclab.commands.workers import fetched, side_by_side
from iclab.numerics import one_of, require, whole_number
from iclab.provenance import cores
from iclab.store import Store
from iclab.store.view import netcdf
from iclab.studies import STUDIES
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr

    from iclab.report import Entry

__all__ = ["ABOUT", "Report", "entries_of", "report"]

ABOUT = "Run studies and write one page with figures, verdicts and numbers; of one study with a case of your own."

EXAMPLES = (
    "iclab report", "iclab report --all", "iclab report staircase mode-staging",
    "iclab report staircase --eigenvalues .5 .3 .2 --context-length 8", "iclab report staircase --inputs X.npy",
)  # fmt: skip


@dataclass(frozen=True)
class Report(Options):
    """Options of a page."""

    all: bool = False  # every study, not the headline ones alone
    processes: int | None = None  # seeds, then figures, in parallel, on a core each; default: as many as cores


Shown = tuple[Study, Any, "xr.DataTree"]
"""A study, a case, and its result."""

Drawn = tuple[str, Any, "xr.DataTree", bytes, str]
"""The name of a study, a case, its result, the file that holds it, and the clock of its figure."""

MANY = 4  # entries, from which on processes that begin anew draw them sooner than one


def report(words: Sequence[str]) -> int:
    """Compute what is missing, write the page, print the verdicts. Returns the exit code."""
    from iclab.explorer import moving
    from iclab.report import write

    words, sample = measured(words)
    if sample is not None and (code := theory_alone(words, sample)) is not None:
        return code
    names, flags = apart([word for word in words if word != "--only"], Report)  # which version 0.1.0 asked for
    require("--only" not in words or bool(names), "only must hold at least one value; got none. Name a study.")
    studies = list(dict.fromkeys(named(name).name for name in names))
    require(sample is None or len(studies) == 1, f"--inputs must go to one study; got {len(studies)}. Name one.")
    cases: list[tuple[Study, Any, int]]
    if len(studies) == 1:
        study = STUDIES[studies[0]]
        preset = chosen_preset(study, flags)
        case, options = asked(study, preset.case, flags, Report, command="report")
        cases = [(study, measured_case(case, sample), _seeds(preset.seeds, options))]
    else:
        options = _options(flags)
        chosen = [STUDIES[name] for name in studies or STUDIES]
        if not (options.all or studies):
            chosen = [study for study in chosen if study.headline]
        presets = [(study, chosen_preset(study, flags)) for study in chosen]
        cases = [(study, preset.case, _seeds(preset.seeds, options)) for study, preset in presets]
    processes = None if options.processes is None else whole_number("processes", options.processes)
    for study, case, _ in cases:
        one_of("clock", options.clock, study.clocks(case))
    folder, store = writable(options.out or Path("report")), Store(writable(options.stored))
    results = fetched(store, cases, processes=processes, quiet=options.quiet, published=options.published)
    shown = [(study, case, result) for (study, case, _), result in zip(cases, results, strict=True)]
    entries = entries_of(shown, store, clock=options.clock, processes=processes or cores())
    page = write(folder, entries, moving(shown))
    for entry in entries:
        print_verdicts(entry.name, entry.verdicts)
    print(f"page: {page}")
    return exit_code((verdict for entry in entries for verdict in entry.verdicts), strict=options.strict)


def entries_of(shown: Sequence[Shown], store: Store, *, clock: str, processes: int = 1) -> "list[Entry]":
    """The entries of a page of some results; of many, so many processes draw the figures."""
    jobs = [(study.name, case, result, _netcdf(store.path(study, case), result), clock)
            for study, case, result in shown]  # fmt: skip
    if processes == 1 or len(jobs) < MANY:
        return [_entered(job) for job in jobs]
    drawn = {id(job): entry for job, entry in side_by_side(_entered, jobs, processes=processes)}
    return [drawn[id(job)] for job in jobs]


def _entered(job: Drawn) -> "Entry":
    from iclab.report import entry

    name, case, result, netcdf, clock = job
    return entry(STUDIES[name], case, result, netcdf, clock=clock)


def _netcdf(path: Path, result: "xr.DataTree") -> bytes:
    """The stored file of a result; theory alone is not kept, and is written anew."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return netcdf(result)


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
