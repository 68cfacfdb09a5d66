"""Runs the benchmarks, each in a fresh process held to one thread: `python benchmarks [name ...]`."""

import os
import subprocess
import sys
from pathlib import Path

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
)
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")} | {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
}

if __name__ == "__main__":
    chosen = sys.argv[1:] or NAMES
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    failed = False
    for name in chosen:
        print(f"== {name}", flush=True)
        failed |= subprocess.run([sys.executable, HERE / f"{name}.py"], env=os.environ | ONE_THREAD).returncode != 0
    sys.exit(failed)
