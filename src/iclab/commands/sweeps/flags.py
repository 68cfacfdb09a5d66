"""Flags of `iclab sweep`, of its `work`, `status` and `cancel`, and of `iclab collect`."""

from dataclasses import dataclass
from pathlib import Path

import tyro

__all__ = ["Cancel", "Collect", "Options", "Status", "Sweep", "SweepReport", "Work"]


@dataclass(frozen=True)
class Sweep:
    """Compute a study over a grid of cases, seed by seed, into a folder that survives anything.

    See `iclab sweep NAME --help`. `iclab sweep work DIR` joins in from any machine that has the folder,
    `iclab sweep status DIR` says what is done, what failed and why, and when it ends; `iclab sweep cancel DIR` stops
    all who work. `iclab collect DIR -o FILE` makes one dataset of it, `iclab report DIR` a page. `iclab sweep
    --around plan QUESTION ...` draws runs around an answer of `iclab plan`.
    """

    name: tyro.conf.Positional[str]  # name of a study, or work, status, cancel


@dataclass(frozen=True)
class Options:
    """The grid, and who computes it."""

    grid: tuple[str, ...] = ()  # axes: tau=.2:5:25log (from:to:count, equal ratios), dimension=16,32
    grid_file: Path | None = None  # study, seeds, base and axes in TOML
    seeds: int | None = None  # K, seeds 0..K-1 of every case; 0 asks theory alone; default: as the study suggests
    full: bool = False  # start from the full case instead of the quick one; other flags still apply
    out: Path = Path("results")  # folder of the sweep
    workers: int = 1  # processes on this machine; more than one need Dask, `iclab sweep work` needs nothing
    scheduler: str = ""  # address of a Dask scheduler that computes instead
    slurm: str = ""  # a job array of SLURM computes instead: time=4:00:00,mem=2G,array=50,partition=...
    jobqueue: str = ""  # jobs of pbs, lsf, sge or slurm under Dask compute instead: pbs,walltime=4:00:00,jobs=20
    print_job_script: bool = False  # print the job script of --slurm or --jobqueue, and do nothing
    dry_run: bool = False  # say cells, hours, memory and disk, and compute a few cells at most
    retry_failed: bool = False  # compute cells that failed once more
    cell_timeout: float | None = None  # seconds after which a cell counts as failed
    json: bool = False  # print progress, or the forecast of a dry run, as JSON
    cache: bool = True  # keep compiled programs in your folder of caches; --no-cache compiles all anew
    verbose: bool = False  # say why compiled programs are not kept, where they cannot be
    debug: bool = False  # show the traceback of an error


@dataclass(frozen=True)
class Work:
    """Compute missing cells of a sweep, beside others on any machine that has its folder."""

    folder: tyro.conf.Positional[Path]  # folder of the sweep
    plan: str | None = None  # its plan; default: the newest one
    place: str = "0/1"  # number of this worker among all: where it starts
    cell_timeout: float | None = None  # seconds after which a cell counts as failed
    requeue: bool = False  # ask SLURM to begin this job again where it is told to end
    cache: bool = True  # keep compiled programs in your folder of caches; --no-cache compiles all anew
    verbose: bool = False  # say why compiled programs are not kept, where they cannot be
    debug: bool = False  # show the traceback of an error


@dataclass(frozen=True)
class Status:
    """Progress of a sweep: what is done, what failed and why, who works on it, and when it ends."""

    folder: tyro.conf.Positional[Path]  # folder of the sweep
    plan: str | None = None  # its plan; default: the newest one
    json: bool = False  # print it as JSON
    debug: bool = False  # show the traceback of an error


@dataclass(frozen=True)
class Cancel:
    """Stop all who work on a sweep after the cell under way; what is finished is kept."""

    folder: tyro.conf.Positional[Path]  # folder of the sweep
    plan: str | None = None  # its plan; default: the newest one
    debug: bool = False  # show the traceback of an error


@dataclass(frozen=True)
class Collect:
    """Make one labeled dataset of a sweep: axes of its grid, seeds, and what each cell answered."""

    folder: tyro.conf.Positional[Path]  # folder of the sweep
    output: Path | None = None  # file, -o for short: .nc, .zarr, .parquet or .csv
    plan: str | None = None  # one plan alone; default: the newest one, with those that differ from it in values alone
    compact: bool = False  # unite its parts into few as well
    debug: bool = False  # show the traceback of an error


@dataclass(frozen=True)
class SweepReport:
    """Draw a sweep on one page: curves and maps over its grid, with verdicts."""

    folder: tyro.conf.Positional[Path]  # folder of the sweep
    plan: str | None = None  # one plan alone; default: the newest one, with those that differ from it in values alone
    out: Path | None = None  # folder of index.html; default: that of the sweep
    strict: bool = False  # exit 1 where a claim does not hold at a point, 3 where one is open
    debug: bool = False  # show the traceback of an error
