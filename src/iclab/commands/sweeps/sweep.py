"""The command `iclab sweep`: a study over a grid, and `work`, `status`, `cancel` for whoever has its folder."""

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from iclab.commands.flags.parsing import parsed
from iclab.commands.studies import named
from iclab.commands.sweeps.collect import written_view
from iclab.commands.sweeps.display import displayed
from iclab.commands.sweeps.flags import Cancel, Options, Status, Sweep, Work
from iclab.commands.terminal import note, writable
from iclab.commands.verdicts import INTERRUPTED, LEFT
from iclab.numerics import require
from iclab.study import Study
from iclab.sweeps.claims import Claims
from iclab.sweeps.engines.local import Engine, InProcess, Job
from iclab.sweeps.grids.axes import Axis, GridFile, axes_of, axis_of_text, read_grid
from iclab.sweeps.grids.fields import found, value_at
from iclab.sweeps.grids.plan import SweepPlan
from iclab.sweeps.grids.sources import source
from iclab.sweeps.limits import Stop
from iclab.sweeps.progress import progress_of, span
from iclab.sweeps.state import State
from iclab.sweeps.sweeping import Forecast, begun, forecast, opened, planned

__all__ = ["FAILED_CELLS", "sweep"]

FAILED_CELLS = 3  # exit code: nothing is missing, and some cells failed


def sweep(words: Sequence[str]) -> int:
    """Begin a sweep, or work on one, show or cancel it. Returns the exit code."""
    if not words or words[0] in ("-h", "--help"):
        parsed(Sweep, list(words) or ["--help"], prog="iclab sweep", description=Sweep.__doc__ or "")
    own: dict[str, Callable[[Sequence[str]], int]] = {"work": _work, "status": _status, "cancel": _cancel}
    if words[0] in own:
        return own[words[0]](words[1:])
    if words[0] == "--around":
        from iclab.commands.sweeps.around import sweep_around

        return sweep_around(words[1:])
    return _begin(words)


def _begin(words: Sequence[str]) -> int:
    asked, flags = ("", words) if words[0].startswith("-") else (words[0], words[1:])
    file = _grid_file(flags)
    study = _study(asked or (file.study if file else "") or "")
    preset = "full" if "--full" in flags else "quick"
    base, options = _asked(study, preset, flags)
    plan = _planned(study, preset, base, options, file)
    engine = _engine(options)
    if options.print_job_script:
        print(engine.job_script(options.out, plan, options.cell_timeout), end="")  # type: ignore[attr-defined]
        return 0
    folder = writable(options.out)
    if options.dry_run:
        return _foreseen(plan, forecast(plan, folder), folder, options.json)
    stop = Stop()
    with stop.handling(), displayed(study.name, plan.cells) as watch:
        made = begun(
            plan, folder, engine, cell_timeout=options.cell_timeout, retry_failed=options.retry_failed, stop=stop,
            watch=watch, give_up=_anew(words),
        )  # fmt: skip
    if made.said:
        print(made.said)
    return _ended(State(folder, made.plan), stop, as_json=options.json, handed_over=bool(made.said))


def _work(words: Sequence[str]) -> int:
    options = parsed(Work, words, prog="iclab sweep work", description=Work.__doc__ or "")
    held = opened(options.folder, options.plan)
    stop = Stop()
    with stop.handling():
        state = State(held.folder, held.plan)
        before = int(state.done.sum())
        with displayed(held.plan.study.name, held.plan.cells) as watch:
            InProcess(_place(options.place)).compute(
                Job(state, options.cell_timeout, _anew(["work", *words]), stop, watch)
            )
    state.refresh()
    added = int(state.done.sum()) > before
    if options.requeue and stop and state.left and added and not Claims(state.folder, state.plan).cancelled:
        from iclab.sweeps.engines.slurm import requeue

        note(requeue())
    return _ended(state, stop, as_json=False)


def _status(words: Sequence[str]) -> int:
    options = parsed(Status, words, prog="iclab sweep status", description=Status.__doc__ or "")
    held = opened(options.folder, options.plan)
    now = held.progress()
    if options.json:
        print(json.dumps(now.as_json(), allow_nan=False))
    else:
        print(now)
        if older := held.older():
            print(older)
    return LEFT if now.missing else FAILED_CELLS if now.failed else 0


def _cancel(words: Sequence[str]) -> int:
    options = parsed(Cancel, words, prog="iclab sweep cancel", description=Cancel.__doc__ or "")
    held = opened(options.folder, options.plan)
    print(held.cancel())
    return 0


def _ended(state: State, stop: Stop, *, as_json: bool, handed_over: bool = False) -> int:
    """Say how it ended, and write the view of a sweep of which nothing is missing. Returns the exit code."""
    now = progress_of(state)
    if as_json:
        print(json.dumps(now.as_json(), allow_nan=False))
    else:
        print(now)
    if stop.asked == signal.SIGINT:
        return INTERRUPTED
    if now.missing:
        return 0 if handed_over else LEFT
    if now.done and (view := written_view(state.folder, state.plan)) and not as_json:
        print(f"numbers: {view}")
    return FAILED_CELLS if now.failed else 0


def _study(name: str) -> Study:
    return source(name) if ":" in name else named(name)


def _grid_file(flags: Sequence[str]) -> GridFile | None:
    """The grid file that the flags name: the first stage of parsing."""
    for place, word in enumerate(flags):
        if word.startswith("--grid-file="):
            return read_grid(Path(word.partition("=")[2]))
        if word == "--grid-file" and place + 1 < len(flags):
            return read_grid(Path(flags[place + 1]))
    return None


def _asked(study: Study, preset: str, flags: Sequence[str]) -> tuple[dict[str, Any], Options]:
    """Fields of the case that the flags state, and the options: the second stage of parsing."""
    like = study.preset(preset).case
    form = make_dataclass(
        "Case",
        [
            ("case", Annotated[type(like), tyro.conf.arg(name="")], field(default=like)),
            ("options", Annotated[Options, tyro.conf.arg(name="")], field(default=Options())),
        ],
    )
    about = f"{study.title}\n\nEvery field of the case is a flag, or an axis of --grid."
    chosen = parsed(form, flags, prog=f"iclab sweep {study.name}", description=about)
    base = {}
    for word in flags:
        if word.startswith("--"):
            name = word[2:].partition("=")[0].removeprefix("no-").replace("-", "_")
            if name in vars(chosen.options):
                continue
            whole = found(like, name)
            base[whole] = value_at(chosen.case, whole)
    return base, chosen.options


def _planned(study: Study, preset: str, base: dict[str, Any], options: Options, file: GridFile | None) -> SweepPlan:
    axes: list[Axis] = [*(file.axes if file else ()), *map(axis_of_text, options.grid)]
    require(
        bool(axes),
        "a sweep must have an axis; got none. Add --grid NAME=VALUES, as ratios.tau=.2:5:25log, or --grid-file.",
    )
    seeds = options.seeds if options.seeds is not None else (file.seeds if file else None)
    return planned(study, axes_of(axes), seeds, preset=preset, base={**(file.base if file else {}), **base})


def _engine(options: Options) -> Engine:
    stated = [name for name in ("scheduler", "slurm", "jobqueue") if getattr(options, name)]
    stated += ["workers"] if options.workers != 1 else []
    require(len(stated) < 2, f"one engine must compute; got --{' and --'.join(stated)}. Leave one of them out.")
    require(options.workers >= 1, f"workers must be a whole number >= 1; got {options.workers}.")
    require(
        not options.print_job_script or stated in (["slurm"], ["jobqueue"]),
        "a job script must be of --slurm or --jobqueue; got neither. Add one of them.",
    )
    if options.slurm:
        from iclab.sweeps.engines.slurm import slurm_of

        return slurm_of(options.slurm)
    if options.jobqueue:
        from iclab.sweeps.engines.cluster import jobqueue_of

        return jobqueue_of(options.jobqueue)
    if options.scheduler or options.workers > 1:
        from iclab.sweeps.engines.cluster import Dask

        return Dask(workers=options.workers, scheduler=options.scheduler)
    return InProcess()


def _anew(words: Sequence[str]) -> Callable[[], None] | None:
    """A function that begins this very command anew in place of its process; None where it is not the process."""
    if Path(sys.argv[0]).stem not in ("iclab", "__main__"):
        return None
    again = [word for word in words if word != "--retry-failed"]
    return lambda: os.execv(sys.executable, [sys.executable, "-m", "iclab", "sweep", *again])


def _place(text: str) -> tuple[int, int]:
    try:
        first, last = (int(part) for part in text.split("/"))
        require(0 <= first < last, "")
    except ValueError:
        raise ValueError(f"--place must be NUMBER/ALL, as 0/4 for the first of four; got {text!r}.") from None
    return first, last


def _foreseen(plan: SweepPlan, told: Forecast, folder: Path, as_json: bool) -> int:
    if as_json:
        print(json.dumps(told.as_json(), allow_nan=False))
        return 0
    print(f"{plan.study.name}: {told.cells:,} cells, {told.done:,} present, {told.failed:,} failed, "
          f"{told.missing:,} missing, in {told.blocks:,} blocks")  # fmt: skip
    if told.impossible:
        print(f"{told.impossible:,} cells are outside the domain of the case, and will be recorded as failed")
    low, high = (span(3600 * hours) for hours in told.hours)
    print(f"time: {low} to {high} on one core, by {told.source}")
    if told.memory[0] == told.memory[0]:
        print(f"memory: {told.memory[0] / 1e9:.2g} to {told.memory[1] / 1e9:.2g} GB for each process")
    if told.disk == told.disk:
        print(f"disk: about {told.disk / 1e6:.2g} MB in {folder}")
    return 0
