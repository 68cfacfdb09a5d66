"""The command `iclab run`: the question of one study, with a case of one's own."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from iclab.claims import Verdict
from iclab.commands.forms import as_stated, stated, stating_constraints
from iclab.commands.inputs import bands, measured, print_bands, theory_alone
from iclab.commands.studies import named
from iclab.commands.terminal import note, parsed, print_verdicts, progress, writable
from iclab.commands.verdicts import SCHEMA, as_json, exit_code
from iclab.files import written_whole
from iclab.numerics import whole_number
from iclab.store import Store
from iclab.study import Preset, Study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Run", "run"]


@dataclass(frozen=True)
class Run:
    """Put the question of one study: theory, simulation, verdict and figure. See `iclab run NAME --help`.

    Learning rate and steps of some studies follow from the problem where no flag states them; their help says so.
    Data of your own go in the place of a spectrum: --inputs X.npy (or .csv, .parquet, .safetensors:NAME) with an
    example in each row, --uncentered to keep their mean, --shrinkage none|linear; or --covariance C.npy.
    """

    name: tyro.conf.Positional[str]  # name of a study; `iclab studies` lists them


@dataclass(frozen=True)
class Options:
    """Folder of the answer, and the number of seeds that it rests on."""

    seeds: int | None = None  # K, seeds 0..K-1; 0 asks theory alone; default: as the study suggests
    full: bool = False  # start from the full case instead of the quick one; other flags still apply
    published: bool = False  # start from the published case where the full one is smaller; its time is estimated
    out: Path = Path("results")  # folder for results and figures
    processes: int = 1  # how many seeds run in parallel, on a core each
    json: bool = False  # print the verdicts as JSON instead of a table
    strict: bool = False  # exit 1 where a claim does not hold, 3 where one is open
    debug: bool = False  # show the traceback of an error


def run(words: Sequence[str]) -> int:
    """Put one question: compute what is missing, draw the figure, print the verdicts. Returns the exit code."""
    if words[:1] in (["-h"], ["--help"]):
        parsed(Run, words, prog="iclab run", description=Run.__doc__ or "")
    words, sample = measured(words)
    if sample is not None and (code := theory_alone(words, sample)) is not None:
        return code
    study, flags = named(words[0] if words else ""), words[1:]
    preset = _preset(study, flags)
    case, options = _asked(study, preset.case, flags)
    processes = whole_number("processes", options.processes)
    seeds = preset.seeds if options.seeds is None else options.seeds
    store, written = _opened(options.out, study, case, seeds)
    if options.published and (missing := store.missing(study, case, seeds)):
        note(_time_needed(study, preset, case, len(missing)))
    with progress() as bar:
        if processes > 1:
            from iclab.commands.workers import fill

            fill(store, {study.name: (case, store.missing(study, case, seeds))}, processes=processes, bars=bar)
        result = store.fetch(study, case, seeds, track=lambda missing: bar.track(missing, description=study.name))
    whole = store.path(study, case)  # every seed; the figure shows those asked for, and is named for them
    figure = whole.with_name(f"{whole.stem}-seeds-{len(study.asked(seeds))}.pdf") if written else None
    if figure is not None:
        _draw(study, case, result, figure)
    numbers = whole if study.asked(seeds) or study.simulation is None else None
    verdicts = study.verdicts(result)
    code = exit_code(verdicts, strict=options.strict)
    if options.json:
        inputs = {} if sample is None else {"inputs": bands(study, case, sample).plain()}
        print(json.dumps(_summary(study, result, verdicts, numbers, figure) | inputs, allow_nan=False))
        return code
    print_verdicts(study.name, verdicts)
    if sample is not None:
        print_bands(bands(study, case, sample))
    print(f"numbers: {numbers}" if numbers else "theory alone: no seeds were asked for, and nothing is kept")
    if figure is not None:
        print(f"figure:  {figure}")
    return code


def _preset(study: Study, flags: Sequence[str]) -> Preset:
    """The preset that the other flags change: the first stage of parsing."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for size in ("full", "published"):
        early.add_argument(f"--{size}", action="store_true")
    asked, _ = early.parse_known_args(flags)
    if not asked.published:
        return study.presets["full" if asked.full else "quick"]
    if "published" not in study.presets:
        raise ValueError(
            f"published cases are those of studies whose full case is smaller; {study.name!r} has none. Use --full."
        )
    return study.presets["published"]


def _asked(study: Study, default: Any, flags: Sequence[str]) -> tuple[Any, Options]:
    """The case and the options that the flags state: the second stage of parsing."""
    shown = stating_constraints(default)
    form = make_dataclass(
        "Case",
        [
            ("case", Annotated[type(shown), tyro.conf.arg(name="")], field(default=shown)),
            ("options", Annotated[Options, tyro.conf.arg(name="")], field(default=Options())),
        ],
    )
    # A paragraph on one line: tyro takes a line that begins with a number or a star for an item of a list.
    about = "\n\n".join(" ".join(part.split()) for part in study.question.split("\n\n"))
    if study.settle is not None:
        about += "\n\n" + " ".join((study.settle.__doc__ or "").split())
    chosen = parsed(form, flags, prog=f"iclab run {study.name}", description=about)
    case = as_stated(chosen.case)
    settled = study.settled(case, stated(flags), like=default)
    follows = [f"{name} {value}" for name, value in vars(settled).items() if value != getattr(case, name)]
    if follows:
        note(f"{study.name}: {', '.join(follows)} follow from the problem")
    return settled, chosen.options


def _time_needed(study: Study, preset: Preset, case: Any, seeds: int) -> str:
    if preset.seconds is None:
        return f"{study.name}: how long the published case takes is not known"
    hours = preset.seconds(case) * seeds / 3600
    return f"{study.name}: about {hours:,.1f} hours on one core; Ctrl-C stops, and keeps finished seeds"


def _opened(folder: Path, study: Study, case: Any, seeds: int) -> tuple[Store, bool]:
    """The store of a folder, and True where it can be written; one that cannot still shows what is stored.

    Raises ValueError for a folder that cannot be written and does not hold all that is asked for.
    """
    try:
        return Store(writable(folder)), True
    except ValueError:
        store = Store(folder)
        if not study.asked(seeds) or store.missing(study, case, seeds):
            raise
        note(f"{folder} cannot be written: what is stored there is shown, and no figure is drawn")
        return store, False


def _draw(study: Study, case: Any, result: "xr.DataTree", path: Path) -> None:
    from iclab import figures

    with written_whole(path) as file:
        file.write_bytes(figures.as_bytes(figures.drawn(study, case, result), "pdf", name=study.name))


def _summary(
    study: Study, result: "xr.DataTree", verdicts: Sequence[Verdict], path: Path | None, figure: Path | None
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "study": study.name,
        "case": json.loads(result.attrs["case"]),
        "seeds": [int(seed) for seed in result.attrs["seeds"]],
        "seconds": float(sum(result.attrs["seconds"])),
        "verdicts": [as_json(verdict) for verdict in verdicts],
        "numbers": str(path) if path else None,
        "figure": str(figure) if figure else None,
    }
