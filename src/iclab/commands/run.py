"""The command `iclab run`: the question of one study, with a case of one's own."""

import hashlib
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from iclab import __version__
from iclab.claims import Verdict
from iclab.commands.flags.cases import asked
from iclab.commands.flags.helptext import listed, wrapped
from iclab.commands.flags.options import Options, apart, chosen_preset
from iclab.commands.inputs import FLAGS, measured, measured_case, print_bands, sampled, theory_alone
from iclab.commands.studies import named
from iclab.commands.terminal import note, print_verdicts, writable
from iclab.commands.verdicts import SCHEMA, as_json, exit_code
from iclab.commands.workers import fetched
from iclab.files import written_whole
from iclab.numerics import one_of, require, whole_number
from iclab.store import Store, digest
from iclab.studies import STUDIES
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ABOUT", "RunOptions", "run"]

ABOUT = "Put the question of one study: theory, simulation, verdict and figure."


@dataclass(frozen=True)
class RunOptions(Options):
    """Options of a run."""

    processes: int | None = None  # seeds in parallel, on a core each; default: as many as cores in a long run, else 1
    format: tuple[Literal["pdf", "svg", "png"], ...] = ("pdf",)  # forms of the figure
    figure_size: Literal["study", "slide", "column", "page"] = "study"  # 13.3 × 7.5, 3.4 or 7 inches wide, or its own
    page: bool = False  # write the page of this case too, into a folder of its own
    json: bool = False  # print the verdicts as JSON instead of a table


def run(words: Sequence[str]) -> int:
    """Put one question: compute what is missing, draw the figure, print the verdicts. Returns the exit code."""
    words, sample = measured(words)
    if sample is not None and (code := theory_alone(words, sample)) is not None:
        return code
    names, flags = apart(words, RunOptions)
    if not names and {"-h", "--help"} & set(flags):
        print(_help())
        raise SystemExit(0)
    require(len(names) < 2, f"a run must be of one study; got {', '.join(names)}. `iclab report` takes several.")
    study = named(names[0] if names else "")
    preset = chosen_preset(study, flags)
    case, options = asked(study, preset.case, flags, RunOptions, command="run")
    case = measured_case(case, sample)
    processes = None if options.processes is None else whole_number("processes", options.processes)
    seeds = preset.seeds if options.seeds is None else options.seeds
    store, written = _opened(options, study, case, seeds)
    shown = options.out or options.stored
    one_of("clock", options.clock, study.clocks(case))
    result = fetched(
        store, [(study, case, seeds)], processes=processes, quiet=options.quiet, published=options.published
    )[0]
    whole = store.path(study, case)  # every seed; the figure shows those asked for, and is named for them
    stem = f"{whole.stem}-seeds-{len(study.asked(seeds))}"
    figures = _drawn(study, case, result, shown / stem, options) if written else []
    numbers = whole if study.asked(seeds) or study.simulation is None else None
    verdicts = study.verdicts(result)
    code = exit_code(verdicts, strict=options.strict)
    found = None if sample is None else sampled(study, case)
    page = None
    if options.page and written:
        from iclab.commands.report import entries_of
        from iclab.report import write

        page = write(shown / f"{stem}-page", entries_of([(study, case, result)], store, clock=options.clock))
    if options.json:
        inputs = {} if found is None else {"inputs": found.plain()}
        print(json.dumps(_summary(study, result, verdicts, numbers, figures, page) | inputs, allow_nan=False))
        return code
    print_verdicts(study.name, verdicts)
    if found is not None:
        print_bands(found)
    print(f"numbers: {numbers}" if numbers else "theory alone: no seeds were asked for, and nothing is kept")
    for figure in figures:
        print(f"figure:  {figure}")
    if page is not None:
        print(f"page:    {page}")
    return code


def _help() -> str:
    rows = [(study.name, study.title) for study in STUDIES.values()]
    lines = [
        "usage: iclab run STUDY [FLAGS]", "", ABOUT, "`iclab run STUDY --help` lists the flags of its case.", "",
        *wrapped(FLAGS, 78), "",
        "studies:", *listed(rows), "", "examples:", "  iclab run staircase",
        "  iclab run abrupt-drop --eigenvalues 1 .6 .3 --context-length 20 --page", "  iclab run staircase --help",
    ]  # fmt: skip
    return "\n".join(lines)


def _opened(options: RunOptions, study: Study, case: Any, seeds: int) -> tuple[Store, bool]:
    """The store of a folder, and True where it can be written; one that cannot still shows what is stored.

    Raises ValueError for a folder that cannot be written and does not hold all that is asked for.
    """
    folder = options.stored
    try:
        writable(options.out or folder)
        return Store(writable(folder)), True
    except ValueError:
        if not (folder.is_dir() and study.asked(seeds)):
            raise
        store = Store(folder)
        if store.missing(study, case, seeds):
            raise
        note(f"{folder} cannot be written: what is stored there is shown, and no figure is drawn")
        return store, False


def _drawn(study: Study, case: Any, result: "xr.DataTree", stem: Path, options: RunOptions) -> list[Path]:
    """The figure in each form, drawn unless its files are of this very result. Returns the files."""
    stamp = _stamp(study, case, result, options)
    paths = [Path(f"{stem}.{form}") for form in dict.fromkeys(options.format)]
    missing = [path for path in paths if not (path.exists() and stamp.encode() in path.read_bytes())]
    if missing:
        from iclab import figures

        figure = figures.drawn(study, case, result, clock=options.clock, size=options.figure_size)
        for path in missing:
            with written_whole(path) as file:
                file.write_bytes(figures.as_bytes(figure, path.suffix[1:], name=study.name, stamp=stamp))
    return paths


def _stamp(study: Study, case: Any, result: "xr.DataTree", options: RunOptions) -> str:
    """A word that names all that a figure follows from: numbers, options, and the code that draws."""
    drawing = [Path(inspect.getfile(study.figure)), *sorted((Path(__file__).parents[1] / "figures").glob("*.py"))]
    ages = [path.stat().st_mtime_ns for path in drawing if path.exists()]
    sampling = getattr(getattr(case, "problem", None), "sampling", None)
    whole = f"{__version__} {digest(result)} {options.clock} {options.figure_size} {ages} {sampling}"
    return f"iclab-{hashlib.sha256(whole.encode()).hexdigest()[:32]}"


def _summary(
    study: Study,
    result: "xr.DataTree",
    verdicts: Sequence[Verdict],
    path: Path | None,
    figures: Sequence[Path],
    page: Path | None,
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "study": study.name,
        "case": json.loads(result.attrs["case"]),
        "seeds": [int(seed) for seed in result.attrs["seeds"]],
        "seconds": float(sum(result.attrs["seconds"])),
        "verdicts": [as_json(verdict) for verdict in verdicts],
        "numbers": str(path) if path else None,
        "figure": str(figures[0]) if figures else None,
        "figures": [str(figure) for figure in figures],
        "page": str(page) if page else None,
    }
