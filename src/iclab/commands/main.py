"""The command line: `iclab run`, `iclab report`, `iclab studies`, `iclab plan`, `iclab inspect`."""

import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

import tyro

from iclab import __version__
from iclab.commands.plan import Plan, plan
from iclab.commands.terminal import fail, note, parsed, print_table, print_verdicts, progress, writable
from iclab.files import written_whole
from iclab.inspection.flags import Inspect
from iclab.numerics import whole_number
from iclab.store import Store
from iclab.studies import STUDIES
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr

# One thread for each process: seeds run side by side, and small matrices gain nothing from more.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True)
class RunOptions:
    """Where the answer goes and how many seeds it rests on."""

    seeds: int | None = None  # K, seeds 0..K-1; 0 asks theory alone; default: as the study suggests
    full: bool = False  # start from the full case instead of the quick one; other flags still apply
    published: bool = False  # start from the published case where it is larger than the full one; its time is said
    out: Path = Path("results")  # folder for results and figures
    processes: int = 1  # how many seeds run side by side, on a core each
    json: bool = False  # print the verdicts as JSON instead of a table
    debug: bool = False  # show the traceback of an error


@dataclass(frozen=True)
class Report:
    """Run studies and write one self-contained page with figures, verdicts and downloads."""

    all: bool = False  # every study, not the headline ones alone
    full: bool = False  # the full case of each study instead of the quick one
    only: tuple[str, ...] = ()  # names of the studies to show
    out: Path = Path("report")  # folder of index.html and of the results behind it
    processes: int = 2  # how many seeds run side by side, on a core each
    debug: bool = False  # show the traceback of an error


@dataclass(frozen=True)
class Studies:
    """List the studies and the questions they put."""

    json: bool = False  # print names and questions as JSON
    debug: bool = False  # show the traceback of an error


@dataclass(frozen=True)
class Run:
    """Put the question of one study: theory, simulation, verdict and figure. See `iclab run NAME --help`."""

    name: tyro.conf.Positional[str]  # name of a study; `iclab studies` lists them


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it succeeds, 2 for input that cannot be used, 130 when interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for name, value in _ONE_THREAD.items():
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of arithmetic; what matters is raised
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: note(message)
        try:
            return _command(words)
        except KeyboardInterrupt:
            return fail("interrupted; finished seeds are kept, nothing half-written stays", 130)
        except BrokenPipeError:  # whoever read the output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (ValueError, ArithmeticError, MemoryError, OSError, ImportError) as error:
            if "--debug" in words:
                raise
            return fail(str(error) or type(error).__name__)


def _command(words: list[str]) -> int:
    command, rest = (words[0], words[1:]) if words else ("--help", [])
    if command == "run" and rest[:1] not in (["-h"], ["--help"]):
        return _run(rest[0] if rest else "", rest[1:])
    if command == "plan":
        return plan(rest)
    if command in _COMMANDS:
        form, act = _COMMANDS[command]
        return act(parsed(form, rest, prog=f"iclab {command}", description=form.__doc__ or ""))
    if command not in ("-h", "--help"):
        raise ValueError(f"command must be one of {', '.join(_COMMANDS)}; got {command!r}. See `iclab --help`.")
    every = Union[tuple(Annotated[form, tyro.conf.subcommand(name)] for name, (form, _) in _COMMANDS.items())]  # noqa: UP007
    parsed(every, ["--help"], prog="iclab", description=_ABOUT)
    return 0


def _run(name: str, words: list[str]) -> int:
    study = _study(name)
    default = _starting_case(study, words)
    form = make_dataclass(
        "Case",
        [
            ("case", Annotated[type(default), tyro.conf.arg(name="")], field(default=default)),
            ("options", Annotated[RunOptions, tyro.conf.arg(name="")], field(default=RunOptions())),
        ],
    )
    # A paragraph on one line: tyro takes a line that begins with a number or a star for an item of a list.
    about = "\n\n".join(" ".join(part.split()) for part in study.question.split("\n\n"))
    chosen = parsed(form, words, prog=f"iclab run {name}", description=about)
    case, options = chosen.case, chosen.options
    processes = whole_number("processes", options.processes)
    store = Store(writable(options.out))
    seeds = study.usual_seeds(case) if options.seeds is None else options.seeds
    if options.published and (missing := store.missing(study, case, seeds)):
        note(_time_needed(study, case, len(missing)))
    with progress() as bar:
        if processes > 1:
            from iclab.commands.workers import fill

            fill(store, {name: (case, store.missing(study, case, seeds))}, processes=processes, bars=bar)
        result = store.fetch(study, case, seeds, track=lambda missing: bar.track(missing, description=name))
    from iclab import figures

    whole = store.path(study, case)  # every seed; the figure shows those asked for, and is named for them
    figure = whole.with_name(f"{whole.stem}-seeds-{len(study.asked(seeds))}.pdf")
    with written_whole(figure) as file:
        file.write_bytes(figures.as_bytes(figures.drawn(study, result), "pdf", name=name))
    numbers = whole if study.asked(seeds) or study.simulation is None else None
    if options.json:
        print(json.dumps(_summary(study, result, numbers, figure), allow_nan=False))
        return 0
    print_verdicts(study.name, study.verdicts(result))
    print(f"numbers: {numbers}" if numbers else "theory alone: no seeds were asked for, and nothing is kept")
    print(f"figure:  {figure}")
    return 0


def _starting_case(study: Study, words: list[str]) -> Any:
    """The case that other flags change."""
    if "--published" not in words:
        return study.full if "--full" in words else study.quick
    if study.published is None:
        raise ValueError(
            f"published cases are those of studies whose full case is smaller; {study.name!r} has none. Use --full."
        )
    return study.published


def _time_needed(study: Study, case: Any, seeds: int) -> str:
    if study.estimate is None:
        return f"{study.name}: how long the published case takes is not known"
    hours = study.estimate(case) * seeds / 3600
    return f"{study.name}: about {hours:,.1f} hours on one core; Ctrl-C stops, and keeps finished seeds"


def _report(options: Report) -> int:
    from iclab import report
    from iclab.commands.workers import fill

    studies = [_study(name) for name in options.only or STUDIES]
    if not (options.all or options.only):
        studies = [study for study in studies if study.headline]
    processes = whole_number("processes", options.processes)
    folder = writable(options.out)
    store = Store(writable(folder / "results"))
    cases = {study.name: study.full if options.full else study.quick for study in studies}
    missing = {
        study.name: (case, store.missing(study, case, study.usual_seeds(case)))
        for study in studies
        for case in (cases[study.name],)
    }
    with progress() as bars:
        fill(store, missing, processes=processes, bars=bars)
    results = [
        (study, store.fetch(study, cases[study.name], study.usual_seeds(cases[study.name]))) for study in studies
    ]
    size = "full" if options.full else "quick"
    entries = [_entry(study, result, store.path(study, cases[study.name]), size) for study, result in results]
    page = report.page(entries, date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), version=__version__)
    with written_whole(folder / "index.html") as file:
        file.write_text(page, encoding="utf-8")
    for study, result in results:
        print_verdicts(study.name, study.verdicts(result))
    print(f"page: {folder / 'index.html'}")
    return 0


def _entry(study: Study, result: "xr.DataTree", path: Path, size: str) -> Any:
    from iclab import figures, report

    figure = figures.drawn(study, result)
    images = {form: figures.as_bytes(figure, form, name=study.name) for form in ("svg", "pdf")}
    return report.Entry(
        name=study.name,
        question=study.question,
        size=size,
        case=result.attrs["case"],
        verdicts=study.verdicts(result),
        figure=figures.inline(images["svg"], name=study.name),
        downloads=report.files_of(path, result, images, name=study.name),
        seconds=float(sum(result.attrs["seconds"])),
        seeds=[int(seed) for seed in result.attrs["seeds"]],
        origin={key: str(result.attrs[key]) for key in ("versions", "device", "precision", "iclab", "commit")},
    )


def _studies(options: Studies) -> int:
    listed = [(study.name, study.title) for study in (STUDIES[name] for name in STUDIES)]
    if options.json:
        print(json.dumps([{"name": name, "question": question} for name, question in listed]))
        return 0
    print_table(("study", "question"), listed)
    return 0


def _study(name: str) -> Study:
    if not name:
        raise ValueError(
            f"a study must be named; choose from {', '.join(STUDIES)}. `iclab studies` says what they ask."
        )
    if name not in set(STUDIES):
        raise ValueError(
            f"study must be one of {', '.join(STUDIES)}; got {name!r}. `iclab studies` says what they ask."
        )
    return STUDIES[name]


def _summary(study: Study, result: "xr.DataTree", path: Path | None, figure: Path) -> dict[str, Any]:
    verdicts = [
        {
            "claim": verdict.claim,
            "meaning": verdict.meaning,
            "measure": verdict.measure,
            "value": _number(verdict.value),
            "error": _number(verdict.error),
            "yardstick": verdict.bound,
            "verdict": verdict.word,
            "evidence": dict(verdict.evidence),
        }
        for verdict in study.verdicts(result)
    ]
    return {
        "study": study.name,
        "case": json.loads(result.attrs["case"]),
        "seeds": [int(seed) for seed in result.attrs["seeds"]],
        "seconds": float(sum(result.attrs["seconds"])),
        "verdicts": verdicts,
        "numbers": str(path) if path else None,
        "figure": str(figure),
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _inspect(asked: Inspect) -> int:
    from iclab.commands.inspect import inspect

    return inspect(asked)


_ABOUT = """In-context learning in linear attention: exact theory, simulation that confirms it, verdicts in numbers.

Start with `iclab studies`, then `iclab run abrupt-drop`, then `iclab report`. Before a run is made, ask
`iclab plan`; after one is trained, `iclab inspect`."""

_COMMANDS: dict[str, tuple[Any, Callable[[Any], int]]] = {
    "run": (Run, lambda chosen: _run(chosen.name, [])),
    "report": (Report, _report),
    "studies": (Studies, _studies),
    "plan": (Plan, lambda chosen: plan([chosen.question])),
    "inspect": (Inspect, _inspect),
}
