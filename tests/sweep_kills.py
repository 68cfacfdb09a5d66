"""Workers of a sweep that are killed while they compute. Each check raises where a cell is lost, doubled or wrong.

    python -m tests.sweep_kills FOLDER points=5     # a kill before, in and after every 5th call to the system
    python -m tests.sweep_kills FOLDER writers=200  # so many kills at random times, of eight workers on 500 cells

This process forks those it kills, and so starts no threads and loads no JAX.
"""

import itertools
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from iclab.store.parts import Parts
from iclab.sweeps.body import Worker
from iclab.sweeps.engines.local import InProcess
from iclab.sweeps.grids.axes import axes_of
from iclab.sweeps.grids.plan import SweepPlan
from iclab.sweeps.joining.joined import joined
from iclab.sweeps.state import State
from iclab.sweeps.sweeping import planned, written
from tests import kills
from tests.sweep_studies import STUDY, value

CALLS = ("open", "write", "pwrite", "fsync", "link", "unlink", "rename", "replace", "mkdir", "close")


def plan_in(folder: Path, grid: dict, seeds: int, **base: object) -> SweepPlan:
    """The plan of a grid, written to the folder, in blocks of at most 20 cells."""
    plan = planned(STUDY, axes_of(grid), seeds, base=base)
    written(plan, folder, InProcess())
    return plan


def work(folder: Path, plan: SweepPlan, place: tuple[int, int] = (0, 1)) -> None:
    Worker(State(folder, of(folder, plan)), place).work()


def of(folder: Path, plan: SweepPlan) -> SweepPlan:
    from iclab.sweeps.grids.plan import read_plan

    return read_plan(folder, plan.id, study=STUDY)


def require_right(folder: Path, plan: SweepPlan) -> int:
    """How often a cell stands in two parts. Raises unless each cell is there, once in the dataset, and right."""
    warnings.simplefilter("error")  # of cells that differ, of broken parts
    state = State(folder, of(folder, plan))
    assert not state.left, f"{state.left} cells are lost"
    assert not state.failed.any(), "a cell failed"
    tree = joined(folder, [state.plan])
    loss = tree["simulation/curve"].to_dataset().loss.values
    for point in range(plan.points):
        case = plan.case(point)
        for place, seed in enumerate(plan.seeds):
            right = value(case, seed)
            at = (*np.unravel_index(point, plan.shape), place)
            assert np.array_equal(loss[at][: len(right)], right), "a cell is wrong"
    assert not [*folder.rglob("*.broken*")], "a file was broken"
    held = Parts(folder, STUDY).index(lambda _, rows: len(rows), {})
    return sum(held.values()) - plan.cells


def points(folder: Path, every: int) -> None:
    """Kills at each call to the system while a sweep of fifteen cells is computed, each time finished by another."""
    kills.CALLS = CALLS
    doubled = 0
    for place in itertools.count(0, every):
        here = folder / str(place)
        plan = plan_in(here, {"height": [1.0, 2.0, 3.0]}, 5)

        def begun(here: Path = here, plan: SweepPlan = plan, place: int = place) -> None:
            kills.kill_at(place)
            work(here, plan)

        _, status = os.waitpid(kills.forked(begun), 0)
        work(here, plan)
        doubled += require_right(here, plan)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, "the work failed"
            print(f"{place // every} kills, {doubled} cells stand in two parts")
            return


def writers(folder: Path, count: int) -> None:
    """Kills at random times of eight workers, each begun again at once, on sweeps of 500 cells."""
    draw, killed, doubled, rounds = random.Random(0), 0, 0, 0
    while killed < count:
        here = folder / str(rounds)
        rounds += 1
        plan = plan_in(here, {"height": [1.0 + i for i in range(25)], "size": [3, 4]}, 10, route="sleep:0.002")
        for number in killing(here, plan, draw):
            killed += number
        doubled += require_right(here, plan)
    print(f"{killed} kills, {rounds} rounds, {rounds * 500} cells, {doubled} of them stand in two parts")


def killing(here: Path, plan: SweepPlan, draw: random.Random) -> Iterator[int]:
    """1 for each kill, until eight workers that are begun again and again have finished."""
    alive = {kills.forked(lambda place=place: work(here, plan, (place, 8))): place for place in range(8)}
    while alive:
        time.sleep(draw.uniform(0.0, 0.12))
        for number in list(alive):
            done, status = os.waitpid(number, os.WNOHANG)
            if done:
                assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, "a worker failed"  # noqa: PT018
                del alive[number]
        if alive:
            number = draw.choice(list(alive))
            os.kill(number, signal.SIGKILL)
            _, status = os.waitpid(number, 0)
            place = alive.pop(number)
            if os.WIFSIGNALED(status):
                alive[kills.forked(lambda place=place: work(here, plan, (place, 8)))] = place
                yield 1


if __name__ == "__main__":
    for asked in sys.argv[2:]:
        name, _, number = asked.partition("=")
        {"points": points, "writers": writers}[name](Path(sys.argv[1]) / name, int(number))
