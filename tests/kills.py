"""Processes that are killed while they store results. Each check raises where something is lost, doubled or wrong.

    python -m tests.kills FOLDER part         # a kill before, in and after every system call of one part's write
    python -m tests.kills FOLDER view         # the same while two seeds are stored and the view is remade
    python -m tests.kills FOLDER together     # no kill: four processes fetch at once
    python -m tests.kills FOLDER writers=200  # so many kills at random times, of two writers on one folder

This process forks those it kills, and so starts no threads and loads no JAX.
"""

import itertools
import os
import random
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from iclab.outcomes import LossCurve
from iclab.store import Store, buffer, read
from iclab.store.part import unpacked
from iclab.study import Study
from tests.test_study import TIME, Case, study

CALLS = ("open", "write", "fsync", "link", "unlink", "replace", "mkdir")


class Plain(Study):
    """A study whose simulation draws nothing."""

    def _simulated(self, simulation: Callable[..., Any], case: Any, seed: int) -> Any:
        return simulation(case, key=seed)


def simulation(case: Case, *, key: int) -> dict[str, LossCurve]:
    return {"curve": LossCurve(TIME, right(key))}


def right(seed: int | None) -> np.ndarray:
    assert seed is not None
    return seed + np.exp(-TIME)


STUDY = Plain(**{**vars(study()), "simulation": simulation})


def forked(work: Callable[[], None]) -> int:
    """A new process that does this; its number."""
    number = os.fork()
    if number == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return number


def kill_at(place: int) -> None:
    """From here on calls to the system are counted: before each, after each and in the middle of a write."""
    count = itertools.count()

    def reach() -> bool:
        return next(count) == place

    def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any, **named: Any) -> Any:
            if reach():
                os.kill(os.getpid(), signal.SIGKILL)
            if name == "write" and reach():
                call(given[0], given[1][: len(given[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            done = call(*given, **named)
            if reach():
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return counting

    for name in CALLS:
        setattr(os, name, watched(name, getattr(os, name)))


def fetch(folder: Path, seeds: int | range) -> None:
    """Fetch seeds, each stored as a part of its own, and note those that are stored."""
    buffer.FLUSH = 0.0

    def noted(missing: list[int]) -> Iterator[int]:
        for seed in missing:
            yield seed
            with open(folder / "log", "a") as log:
                log.write(f"{seed}\n")

    Store(folder).fetch(STUDY, Case(), seeds, track=noted)


def store_one(folder: Path, seed: int) -> None:
    """Store one seed as a part, and leave the view as it is."""
    with Store(folder).buffer(STUDY) as kept:
        kept.add(STUDY.run(Case(), (seed,)))


def require_right(folder: Path) -> int:
    """The number of cells. Raises unless all that was noted as stored is there, and all that is there is right."""
    log = folder / "log"
    noted = {int(line) for line in log.read_text().split()} if log.exists() else set()
    cells = [cell for path in folder.rglob("*.npz") for cell in unpacked(path.read_bytes())]
    assert noted <= {cell.seed for cell in cells}, "a stored seed was lost"
    for cell in cells:
        assert any(np.array_equal(array, right(cell.seed)) for array in cell.own), "a seed is wrong"
    assert not [*folder.rglob("*.broken*")], "a file was broken"
    return len(cells)


def require_whole(folder: Path, seeds: int, *, double: bool = False) -> None:
    """Raise unless every seed can be had after all, the view shows each once, and nothing unfinished stays."""
    store = Store(folder)
    result = store.fetch(STUDY, Case(), seeds)
    view = read(store.path(STUDY, Case()))
    for shown in (result, view):
        loss = shown["simulation/curve"].to_dataset().loss.values
        assert shown.attrs["seeds"].tolist()[:seeds] == list(range(seeds)), "a seed is missing or double"
        assert np.array_equal(loss, [right(seed) for seed in shown.attrs["seeds"]]), "a seed is wrong"
    count = require_right(folder)
    assert double or count == len(view.attrs["seeds"]), "a seed stands twice"
    store.add(STUDY, Case(), STUDY.run(Case(), (seeds + 10**6,)))  # whoever writes next removes what is left
    left = [*(folder / "tmp").iterdir(), *folder.rglob(".unfinished*")]
    assert not left, f"unfinished files stay: {left}"


def killed(folder: Path, prepare: Callable[[Path], None], work: Callable[[Path], None]) -> Iterator[Path]:
    """Folders in which one process worked and was killed, at a later call in each; the last one was not."""
    for place in itertools.count():
        here = folder / str(place)
        here.mkdir(parents=True)
        prepare(here)

        def begun(here: Path = here, place: int = place) -> None:
            kill_at(place)
            work(here)

        _, status = os.waitpid(forked(begun), 0)
        yield here
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, "the work failed"
            print(f"{place} kills")
            return


def part(folder: Path) -> None:
    """Kills at each call of one part's write, beside another part."""
    here = folder
    for here in killed(folder, lambda here: store_one(here, 0), lambda here: store_one(here, 1)):
        assert require_right(here) >= 1, "a stored seed was lost"
        store_one(here, 1)
        assert require_right(here) == 2, "a seed stands twice or not at all"
        assert not [*(here / "tmp").iterdir()], "unfinished files stay"
    require_whole(here, 3)


def view(folder: Path) -> None:
    """Kills at each call while two seeds are stored and the view is remade."""
    for here in killed(folder, lambda here: fetch(here, 2), lambda here: fetch(here, 4)):
        require_right(here)
        require_whole(here, 5)


def together(folder: Path) -> None:
    """Four processes that fetch five seeds each at once, some of them the same."""
    folder.mkdir(parents=True)
    alive = [forked(lambda first=first: fetch(folder, range(first, first + 5))) for first in (0, 3, 6, 9)]
    assert all(os.waitpid(number, 0)[1] == 0 for number in alive), "a process failed"
    view = read(Store(folder).path(STUDY, Case()))
    assert view.attrs["seeds"].tolist() == list(range(14)), "the view lacks a seed"
    require_whole(folder, 14, double=True)


def writers(folder: Path, kills: int) -> None:
    """Kills at random times of two writers on one folder, each begun again at once."""
    draw = random.Random(0)
    folder.mkdir(parents=True)

    def work() -> None:
        for seeds in itertools.count(4, 4):
            fetch(folder, seeds)

    alive = [forked(work), forked(work)]
    for _ in range(kills):
        time.sleep(draw.uniform(0.0, 0.3))
        which = draw.randrange(2)
        os.kill(alive[which], signal.SIGKILL)
        _, status = os.waitpid(alive[which], 0)
        assert os.WIFSIGNALED(status), "a writer ended by itself"
        alive[which] = forked(work)
    for number in alive:
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)
    count = require_right(folder)
    require_whole(folder, 12, double=True)
    print(f"{kills} kills, {count} cells stored meanwhile")


if __name__ == "__main__":
    warnings.simplefilter("error")
    for asked in sys.argv[2:]:
        name, _, number = asked.partition("=")
        where = Path(sys.argv[1]) / name
        writers(where, int(number)) if number else {"part": part, "view": view, "together": together}[name](where)
