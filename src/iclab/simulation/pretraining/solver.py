"""Settings of the ridge fit: route, stopping rule, precision and budgets, checked before anything is drawn."""

from dataclasses import dataclass

import numpy as np

from iclab.numerics import checked_number, checks_its_fields, instance, one_of, positive, require, whole_number
from iclab.problem import Pretraining
from iclab.simulation.memory import machine_memory
from iclab.simulation.pretraining.costs import AUTO, ROUTES
from iclab.simulation.pretraining.sequences import PRECISIONS

__all__ = ["LOOSEST", "REACH", "RidgeSolver"]

REACH = 50  # units of rounding below which no residual falls reliably
LOOSEST = 0.01  # residual above which a readout is no solution


@checks_its_fields
@dataclass(frozen=True)
class RidgeSolver:
    """Settings of the ridge fit, the same for every draw.

    `pad_to` is for devices other than a CPU, which compile for each number of sequences: runs of one dimension share
    a compiled function if all are padded, with rows of zeros, to the largest of them.

    Raises ValueError for an unknown route or precision, a tolerance that the precision cannot reach, a memory that is
    not positive, fewer than one iteration, and where `pad_to` is no Pretraining.
    """

    route: str = AUTO  # auto, direct, kernel, plain, preconditioned or dual; auto: the quickest that fits into memory
    tolerance: float = 1e-8  # gradient, relative to that at zero weights, at which conjugate gradients stop
    memory: float | None = None  # budget in bytes; None: all memory of the device
    precision: str = "float64"  # of the sequences: float64 or float32
    pad_to: Pretraining | None = None  # the largest run that compiled functions are shared with
    iterations: int = 20_000  # of conjugate gradients, at most

    def __post_init__(self) -> None:
        one_of("route", self.route, (AUTO, *ROUTES))
        least = REACH * float(np.finfo(one_of("precision", self.precision, PRECISIONS)).eps)
        within = positive("tolerance", self.tolerance)
        require(within <= LOOSEST, f"tolerance must be at most {LOOSEST:g}; got {self.tolerance!r}. Lower it.")
        require(
            within >= least,
            f"tolerance must be at least {least:.1e}, which {self.precision} can reach; got {self.tolerance!r}. "
            "Raise it" + (", or use precision float64." if self.precision == "float32" else "."),
        )
        object.__setattr__(self, "tolerance", within)
        if self.memory is not None:
            object.__setattr__(self, "memory", checked_number("memory", self.memory, above=0.0, infinite=True))
        if self.pad_to is not None:
            instance("pad_to", self.pad_to, Pretraining)
        object.__setattr__(self, "iterations", whole_number("iterations", self.iterations))

    @property
    def budget(self) -> float:
        """Bytes that a fit may use."""
        return machine_memory() if self.memory is None else self.memory

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return np.dtype(self.precision).itemsize

    def rows(self, pretraining: Pretraining) -> int:
        """Sequences of a run after padding.

        Raises ValueError where `pad_to` does not hold its sequences and tasks.
        """
        most = pretraining if self.pad_to is None else self.pad_to
        require(
            most.dimension == pretraining.dimension
            and most.sequences >= pretraining.sequences
            and (most.tasks or 0) >= (pretraining.tasks or 0)
            and (most.tasks is None) == (pretraining.tasks is None),
            "pad_to must hold the sequences and tasks of a run of its dimension and kind of tasks; "
            f"got {self.pad_to!r}.",
        )
        return most.sequences
