"""Runs the benchmarks, each in a fresh process held to one thread: `python benchmarks [name ...]`.

All of them together write docs/speed.md, and so do some with `--page`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import NOTES
from page import write

HERE = Path(__file__).parent
NAMES = (
    "descent",
    "abrupt_drop",
    "low_rank",
    "flow",
    "plateaus",
    "generalization",
    "pretraining",
    "softmax_window",
    "spectra",
    "networks",
    "start_up",
    "commands",
)
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")} | {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
}

if __name__ == "__main__":
    chosen = [word for word in sys.argv[1:] if word != "--page"] or NAMES
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    failed, load = False, os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.touch()
        for name in chosen:
            print(f"== {name}", flush=True)
            given = os.environ | ONE_THREAD | {NOTES: str(notes)}
            failed |= subprocess.run([sys.executable, HERE / f"{name}.py"], env=given).returncode != 0
        if not failed and (chosen is NAMES or "--page" in sys.argv):
            write(notes, load)
    sys.exit(failed)
