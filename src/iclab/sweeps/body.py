"""The one body under every engine: compute the missing cells of a block, and write them as immutable parts."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from iclab.store import fresh
from iclab.store.buffer import Buffer
from iclab.store.parts import Parts
from iclab.study import case_json
from iclab.sweeps.claims import Claim, Claims, Heartbeat
from iclab.sweeps.failures import Failure, Failures, failure_of
from iclab.sweeps.grids.plan import case_number
from iclab.sweeps.limits import Stop, Stopped, within
from iclab.sweeps.state import State

__all__ = ["Foreign", "Tally", "Worker"]

_DEATHS = 3  # processes that a cell may end before it counts as failed
_WAIT = 0.5  # seconds between two looks at blocks that others hold


class Foreign(ValueError):
    """A plan of another iclab, whose cases are other ones."""


@dataclass
class Tally:
    """The cells of one life of a worker."""

    done: int = 0
    failed: int = 0


@dataclass
class Worker:
    """A process that computes missing cells of a plan. Any number of them may work on one folder at once."""

    state: State
    """The sweep and its folder."""
    place: tuple[int, int] = (0, 1)
    """Number of this worker, and of all: where it starts on its way around the blocks."""
    timeout: float | None = None
    """Seconds that a cell may take."""
    lease: float = 120.0
    give_up: Callable[[], None] | None = None
    """Ends this process, or begins it anew, where a call that cannot be interrupted outlasts the timeout."""
    stop: Stop = field(default_factory=Stop)
    watch: Callable[[State, Tally], None] = lambda state, tally: None
    """Called after each cell."""
    tally: Tally = field(default_factory=Tally)
    _known: tuple[int, object] = (-1, None)
    """The last point, and its case."""

    def __post_init__(self) -> None:
        self.folder, self.plan = self.state.folder, self.state.plan
        self.claims = Claims(self.folder, self.plan, self.lease)

    def work(self) -> Tally:
        """Compute until nothing is missing, or until it is asked to stop. Raises OSError where it cannot write."""
        count = len(self.plan.blocks)
        first = self.place[0] * count // self.place[1]
        ahead = [*range(first, count), *range(first)]
        with Heartbeat(self.claims) as heart:
            while ahead and not self._stopped(heart):
                before = len(ahead)
                ahead = [block for block in ahead if not self._stopped(heart) and not self.finish(block, heart)]
                if len(ahead) == before and not self._stopped(heart):
                    time.sleep(_WAIT)
        return self.tally

    def finish(self, block: int, heart: Heartbeat) -> bool:
        """True once no cell of a block is missing; it is computed unless another holds it."""
        if not self.state.missing(block):
            return True
        claim = self.claims.take(block)
        self.state.refresh()
        if claim is None:
            return not self.state.missing(block)
        heart.claim = claim
        try:
            self._compute(self.state.missing(block), claim, heart)
        finally:
            heart.claim = None
            claim.drop()
        self.state.refresh()
        return not self.state.missing(block)

    def _compute(self, cells: list[int], claim: Claim, heart: Heartbeat) -> None:
        failed: list[Failure] = []
        try:
            with Buffer(Parts(self.folder, self.plan.study)) as buffer:
                for cell in cells:
                    if self._stopped(heart):
                        break
                    claim.under_way(cell)
                    if claim.deaths.get(cell, 0) >= _DEATHS:
                        failed.append(self._killer(cell))
                    else:
                        self._one(cell, buffer, failed, claim)
                    if claim.attempt > 1:
                        buffer.flush()
                    self.watch(self.state, self.tally)
        finally:
            Failures(self.folder, self.plan.study).record(failed)

    def _one(self, cell: int, buffer: Buffer, failed: list[Failure], claim: Claim) -> None:
        """Compute a cell, or note why it failed."""
        point, seed = self.plan.cell(cell)

        def beyond(error: TimeoutError) -> None:
            failed.append(failure_of(error, int(self.state.numbers[cell]), self.plan.values(point), seed))
            buffer.flush()
            Failures(self.folder, self.plan.study).record(failed)
            claim.drop()
            assert self.give_up is not None
            self.give_up()

        try:
            with self.stop.interruptible(), within(self.timeout, beyond if self.give_up else None):
                made = fresh(self.plan.study, self._case(point), seed)
        except Stopped:
            return
        except (Foreign, ImportError):  # of this machine, and of no cell
            raise
        except Exception as error:
            failed.append(failure_of(error, int(self.state.numbers[cell]), self.plan.values(point), seed))
            self.tally.failed += 1
            return
        buffer.keep([made])
        self.tally.done += 1

    def _case(self, point: int) -> object:
        if self._known[0] != point:
            case = self.plan.case(point)
            if case_number(case_json(case)) != int(self.state.points[point]):
                raise Foreign(
                    f"the case at {self.plan.values(point)} must be that of the plan; this iclab makes another of "
                    "the same values. Begin the sweep again with `iclab sweep`."
                )
            self._known = (point, case)
        return self._known[1]

    def _killer(self, cell: int) -> Failure:
        point, seed = self.plan.cell(cell)
        error = MemoryError(f"process killed {_DEATHS} times (memory?)")
        self.tally.failed += 1
        return failure_of(error, int(self.state.numbers[cell]), self.plan.values(point), seed)

    def _stopped(self, heart: Heartbeat) -> bool:
        return bool(self.stop) or heart.cancelled
