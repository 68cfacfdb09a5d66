"""SLURM arrays of the one body, without any scheduler of ours: the launcher hands a script over and returns."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from iclab.numerics import require
from iclab.sweeps.claims import Claims
from iclab.sweeps.engines.local import Job
from iclab.sweeps.grids.plan import SweepPlan

__all__ = ["Slurm", "cancel_jobs", "requeue", "slurm_of"]

MOST = 1000  # workers of an array; one for each cell would flood any scheduler
_NOTICE = 180  # seconds before its end at which a job is told, to flush
_JOBS = "jobs"  # file of job numbers among the claims of a plan


@dataclass(frozen=True)
class Slurm:
    """A job array whose tasks all work on one sweep, and ask for their own job again when its time is up."""

    array: int = 10
    """Number of workers."""
    at_once: int | None = None
    """The number of them that run at a time; all by default."""
    options: dict[str, str] = field(default_factory=dict)
    """Options of sbatch: time, mem, partition, account, …"""
    python: str = sys.executable
    processes: int = 0

    def check(self) -> None:
        """Raise ValueError where no job can be handed over from here."""
        require(
            shutil.which("sbatch") is not None,
            "sbatch must be found where a job array is begun; it is not on this machine. Begin the sweep on a login "
            "node, or print the script with --print-job-script.",
        )

    def compute(self, job: Job) -> str:
        """Hand the array over. Raises ValueError, in SLURM's own words, where it is refused."""
        if not job.state.left:
            return ""
        folder, plan = job.state.folder, job.state.plan
        (folder / "tmp").mkdir(exist_ok=True)  # of the output of its tasks
        script = self.job_script(folder, plan, job.timeout)
        done = subprocess.run(["sbatch", "--parsable"], input=script, capture_output=True, text=True, check=False)
        words = " ".join(done.stderr.split())
        require(done.returncode == 0, f"SLURM must accept the job; it says: {words}. Nothing is lost.")
        number = done.stdout.strip().partition(";")[0]
        jobs = Claims(folder, plan).home / _JOBS
        jobs.parent.mkdir(parents=True, exist_ok=True)
        with open(jobs, "a", encoding="utf-8") as file:
            file.write(f"{number}\n")
        return (
            f"job array {number} computes {job.state.left:,} cells; `iclab sweep status {folder}` shows them, "
            f"`iclab sweep cancel {folder}` stops them"
        )

    def job_script(self, folder: Path, plan: SweepPlan, timeout: float | None = None) -> str:
        """The script that is handed over. Its last line becomes the worker, so that it is told of the end itself."""
        home = folder.resolve()
        limit = "" if self.at_once is None else f"%{self.at_once}"
        asked = {"job-name": f"iclab-{plan.study.name}"[:60], **self.options}
        fixed = {
            "array": f"0-{self.array - 1}{limit}", "signal": f"B:TERM@{_NOTICE}", "open-mode": "append",
            "output": f"{home}/tmp/slurm-%A_%a.out",
        }  # fmt: skip
        worker = [
            self.python, "-m", "iclab", "sweep", "work", str(home), "--plan", plan.id, "--requeue",
            *([] if timeout is None else ["--cell-timeout", f"{timeout:g}"]),
        ]  # fmt: skip
        lines = ["#!/bin/bash", *(f"#SBATCH --{name}={value}" for name, value in {**asked, **fixed}.items())]
        lines += ["#SBATCH --requeue", *(f"export {name}=1" for name in _THREADS)]
        paths = os.environ.get("PYTHONPATH")
        lines += [f"export PYTHONPATH={shlex.quote(paths)}"] if paths else []
        return "\n".join([*lines, f'exec {shlex.join(worker)} --place "$SLURM_ARRAY_TASK_ID/{self.array}"', ""])


_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def slurm_of(text: str) -> Slurm:
    """The engine that `time=4:00:00,mem=2G,array=50` states. Raises ValueError for other words."""
    options: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, sign, value = part.partition("=")
        require(
            bool(sign and value and re.fullmatch(r"[a-z][a-z-]*", name)),
            f"--slurm must be options of sbatch as time=4:00:00,mem=2G,array=50; got {part!r}.",
        )
        options[name] = value
    fixed = sorted({"signal", "requeue", "open-mode", "output"} & options.keys())
    require(not fixed, f"--slurm must leave {', '.join(fixed)} to the sweep, which sets it itself.")
    count, _, at_once = options.pop("array", "10").partition("%")
    require(
        count.isdigit() and 1 <= int(count) <= MOST and (not at_once or at_once.isdigit()),
        f"array must be a number of workers, 1 to {MOST}, or as 50%10 for ten at a time; got {count}. Workers share "
        "the cells: there is not one for each.",
    )
    return Slurm(int(count), int(at_once) if at_once else None, options)


def requeue() -> str:
    """Ask SLURM to begin the job of this process again, unless it was cancelled; a sentence about what came of it."""
    job = os.environ.get("SLURM_ARRAY_JOB_ID")
    name = f"{job}_{os.environ.get('SLURM_ARRAY_TASK_ID')}" if job else os.environ.get("SLURM_JOB_ID", "")
    if not name:
        return "this process is no job of SLURM, and is not begun again"
    shown = subprocess.run(["scontrol", "show", "job", name], capture_output=True, text=True, check=False).stdout
    if "JobState=RUNNING" not in shown:
        return f"job {name} was cancelled, and is not begun again"
    done = subprocess.run(["scontrol", "requeue", name], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"job {name} is not begun again; SLURM says: {' '.join(done.stderr.split())}"
    return f"job {name} is begun again"


def cancel_jobs(claims: Claims) -> list[str]:
    """Cancel the job arrays of a sweep; the numbers of those that were there."""
    path = claims.home / _JOBS
    if not path.exists() or shutil.which("scancel") is None:
        return []
    numbers = path.read_text(encoding="utf-8").split()
    for number in numbers:
        subprocess.run(["scancel", number], capture_output=True, check=False)
    return numbers
