"""Seconds of the whole process."""

import time
from collections.abc import Callable
from typing import NamedTuple


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
