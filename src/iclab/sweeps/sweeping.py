"""A sweep from beginning to end: planned, predicted, computed by an engine, seen by anybody, joined."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.numerics import require
from iclab.store.part import Row
from iclab.store.parts import Parts
from iclab.study import Study, seed_numbers
from iclab.sweeps.body import Tally
from iclab.sweeps.claims import Claims
from iclab.sweeps.costs import Cost, blocks_of, free_memory, predicted, require_memory
from iclab.sweeps.engines.local import Engine, InProcess, Job
from iclab.sweeps.engines.slurm import cancel_jobs
from iclab.sweeps.failures import Failure, Failures
from iclab.sweeps.grids.axes import Axis, axes_of
from iclab.sweeps.grids.plan import SweepPlan, plan_of, plans_in, read_plan
from iclab.sweeps.grids.sources import reference, source
from iclab.sweeps.limits import Stop
from iclab.sweeps.progress import Progress, progress_of
from iclab.sweeps.state import State

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Forecast", "Sweep", "begun", "forecast", "opened", "planned", "sweep"]

Watch = Callable[[State, Tally], None]


@dataclass(frozen=True)
class Forecast:
    """A sweep before it starts: its cells, and ranges of hours, memory and disk."""

    cells: int
    done: int
    failed: int
    impossible: int
    """Cells whose values are outside the domain of the case."""
    blocks: int
    hours: tuple[float, float]
    """On one core, for the missing cells."""
    memory: tuple[float, float]
    """Bytes of one process at most."""
    disk: float
    """Bytes of all parts; nan where no cell tells."""
    source: str

    @property
    def missing(self) -> int:
        """Number of cells that are neither done nor failed."""
        return self.cells - self.done - self.failed

    def as_json(self) -> dict[str, Any]:
        """The same as plain values; null where a number is not known."""
        plain = {**asdict(self), "missing": self.missing}
        return json.loads(json.dumps(plain), parse_constant=lambda _: None)


@dataclass(frozen=True)
class Sweep:
    """A sweep in a folder: the handle that a notebook holds. Nothing of it lives in this process."""

    folder: Path
    plan: SweepPlan
    said: str = ""
    """A sentence about the work that its engine handed over; empty where it computed here."""

    def progress(self) -> Progress:
        """Cells done and failed, who works on the others, and when it ends; read from the folder now."""
        return progress_of(State(self.folder, self.plan))

    def failures(self) -> list[Failure]:
        """The records of the cells that failed."""
        return State(self.folder, self.plan).reasons()

    def cancel(self) -> str:
        """Ask all who work on it to stop after the cell under way; `sweep` with the same grid goes on.

        A job array of SLURM is cancelled too. Returns a sentence about what was done.
        """
        claims = Claims(self.folder, self.plan)
        claims.cancel()
        jobs = cancel_jobs(claims)
        told = f"; job {', '.join(jobs)} is ended" if jobs else ""
        return f"cancelled: all who work on it stop after the cell under way{told}; what is finished is kept"

    def older(self) -> str:
        """A sentence about cells that other versions of the study computed; empty where there are none."""
        study = self.plan.study
        counts = {
            version: sum(Parts(self.folder, replace(study, version=version)).index(_count, {}).values())
            for version in range(1, study.version)
        }
        said = [f"{count:,} cells of version {version}" for version, count in counts.items() if count]
        return f"older: {', '.join(said)} are kept, and not used" if said else ""

    def collect(self) -> "xr.DataTree":
        """One labeled dataset of all cells: axes of the grid, then seeds, then the axes of each outcome."""
        from iclab.sweeps.joining.joined import joined

        return joined(self.folder, [self.plan])

    def __str__(self) -> str:
        return str(self.progress())

    def _repr_html_(self) -> str:
        return self.progress()._repr_html_()


def sweep(
    study: Any,
    grid: Mapping[Any, Any] | Iterable[str | Axis],
    seeds: int | Iterable[int] | None = None,
    *,
    out: str | Path = "results",
    engine: Engine | None = None,
    preset: str = "quick",
    base: Mapping[str, Any] | None = None,
    version: int | None = None,
    case: Any = None,
    cell_timeout: float | None = None,
    retry_failed: bool = False,
) -> Sweep:
    """Compute a study, or a named function of a case, over a grid, seed by seed, into a folder.

    `grid` maps fields of the case to values, or lists texts `NAME=VALUES`; `base` gives other fields one value.
    `seeds` are as of `Study.run`: a count or the seeds, none for theory alone. What stands in the folder is not
    computed again, whoever made it. The engine is this process, by default, or one of `iclab.sweeps`: Dask,
    Jobqueue, Slurm. A function needs a `version`, and a `case` where its first argument has no class of its own.

    Raises ValueError, in one sentence, for a grid that cannot be, ImportError where an engine is not installed, and
    OSError where the folder cannot be written; what was finished is kept. Cells that fail are recorded, and do not
    raise.

    >>> iclab.sweep("forecast", {"tau": [0.5, 1.5], "dimension": [16, 32]}, seeds=4).progress()
    """
    plan = planned(source(study, version=version, case=case), axes_of(grid), seeds, preset=preset, base=base)
    return begun(plan, Path(out), engine or InProcess(), cell_timeout=cell_timeout, retry_failed=retry_failed)


def planned(
    study: Study, axes: Iterable[Axis], seeds: int | Iterable[int] | None, *, preset: str = "quick",
    base: Mapping[str, Any] | None = None,
) -> SweepPlan:  # fmt: skip
    """The plan of a grid, with the seeds of the preset by default, not yet cut into blocks."""
    numbers = study.asked(seed_numbers(study.preset(preset).seeds if seeds is None else seeds))
    return plan_of(study, tuple(axes), numbers, preset=preset, base=base)


def forecast(plan: SweepPlan, folder: Path) -> Forecast:
    """The sweep before it starts. A pilot of a few cells is computed, and kept, where nothing else tells its cost."""
    keys, cost = plan.keys(), predicted(folder, plan)
    whole = _blocked(plan, folder, cost)
    state = State(folder, whole, keys)
    missing = np.flatnonzero(~(state.done | state.failed)).tolist()
    return Forecast(
        plan.cells, int(state.done.sum()), int(state.failed.sum()),
        int(state.impossible.sum()) * len(plan.numbers), len(whole.blocks), cost.hours(missing, len(plan.numbers)),
        cost.memory, state.bytes_of_cell * plan.cells, cost.source,
    )  # fmt: skip


def begun(
    plan: SweepPlan, folder: Path, engine: Engine, *, cell_timeout: float | None = None, retry_failed: bool = False,
    stop: Stop | None = None, watch: Watch = lambda state, tally: None, give_up: Callable[[], None] | None = None,
) -> Sweep:  # fmt: skip
    """Write the plan, unless it stands, and have the engine compute what is missing."""
    require(cell_timeout is None or cell_timeout > 0, f"cell_timeout must be > 0 seconds; got {cell_timeout}.")
    engine.check()
    require(
        isinstance(engine, InProcess) or reference(plan.study) != "",
        f"the study {plan.study.name!r} must be found by other processes; it stands in a script or notebook. Put it "
        "into a module, or compute in this process.",
    )
    written(plan, folder, engine, cell_timeout)
    plan = read_plan(folder, plan.id, study=plan.study)  # another may have cut it into blocks first
    plan.renew(folder)
    Claims(folder, plan).allow()
    if retry_failed:
        Failures(folder, plan.study).retry()
    job = Job(State(folder, plan), cell_timeout, give_up, Stop() if stop is None else stop, watch)
    return Sweep(folder, plan, engine.compute(job))


def written(plan: SweepPlan, folder: Path, engine: Engine, timeout: float | None = None) -> None:
    """Write a plan cut into blocks, unless it stands. Raises ValueError where its memory cannot suffice."""
    if plan.id in plans_in(folder):
        return
    keys, cost = plan.keys(), predicted(folder, plan, timeout=timeout)
    if engine.processes:
        require_memory(cost, processes=engine.processes, available=free_memory())
    _blocked(plan, folder, cost).write(folder, keys)


def opened(folder: str | Path, plan: str | None = None) -> Sweep:
    """The sweep in a folder; the newest of several, unless a plan is named."""
    return Sweep(Path(folder), read_plan(Path(folder), plan))


def _count(_: object, rows: list[Row]) -> int:
    return len(rows)


def _blocked(plan: SweepPlan, folder: Path, cost: Cost) -> SweepPlan:
    """The plan with its blocks: as it stands in the folder, else cut by its predicted cost."""
    if plan.id in plans_in(folder):
        return read_plan(folder, plan.id, study=plan.study)
    return replace(plan, blocks=blocks_of(plan, cost.seconds))
