"""Seconds of the whole process, what is promised of them, and the limits of the machine that they are measured on."""

import json
import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

NOTES = "ICLAB_BENCHMARK_NOTES"  # names the file in which measured promises are noted, a line of JSON each


class Spent(NamedTuple):
    wall: float
    cpu: float


def seconds(run: Callable[[], object]) -> Spent:
    """Wall and CPU seconds of one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)


def least_seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The least CPU seconds of several runs after a first one that compiles."""
    run()
    return min(seconds(run).cpu for _ in range(repeats))


def promised(what: str, value: float, limit: float, unit: str = "s", *, least: bool = False, share: str = "") -> None:
    """Say a measured value beside what is promised of it, and note it for docs/speed.md.

    With `least` the value must be the limit or more. `share` says how much of the machine's limit is used.
    """
    kept = value >= limit if least else value <= limit
    print(f"{what}: {value:.3g} {unit}, promised {'≥' if least else '≤'} {limit:g} {unit}{'' if kept else ': MISSED'}"
          f"{f' ({share})' if share else ''}", flush=True)  # fmt: skip
    if path := os.environ.get(NOTES):
        row = {"what": what, "value": value, "limit": limit, "unit": unit, "least": least, "share": share}
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def product_rate(size: int = 768) -> float:
    """Floating-point operations a second of this machine's product of two square matrices in float64."""
    left = np.random.default_rng(0).standard_normal((size, size))
    return 2 * size**3 / least_seconds(lambda: left @ left)


def copy_rate(numbers: int = 2**24) -> float:
    """Bytes a second, read and written, of a copy that no cache holds."""
    source = np.ones(numbers)
    target = np.empty_like(source)
    return 2 * source.nbytes / least_seconds(lambda: np.copyto(target, source))
