"""Links from drawn runs to the proportional limit: predictions at finite dimension, claims, drawn contexts.

Drawn runs are judged against the leverage prediction of their own sizes; the pool prediction, in dimensions far
beyond those of drawn runs, against the limit, without seeds.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from iclab.claims import Agrees, Claim, Tends
from iclab.outcomes import FittedErrors, Labeled, labeled, vocabulary
from iclab.problem import ContextLaw, Pool, SphereTasks, Tasks
from iclab.studies.pretraining.runs import ERRORS, SIZES, Draws, Grid, Run, mean
from iclab.studies.pretraining.sizes import STREAM

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

__all__ = [
    "BOUNDS", "FAR", "POOLS", "SCORED", "VOCABULARY", "WORDS", "far_runs", "judged_errors", "leverage_mean", "linked",
    "on_contexts", "pool_mean", "simulated", "tending_errors",
]  # fmt: skip

FAR = (60, 120, 240)  # dimensions from which the pool prediction is extrapolated
POOLS = 128  # averaged over for runs; in dimension D errors differ between pools by some .7/D
_FAR_POOLS = 2**16  # the same times D²: as accurate in every dimension
_CORRECTED = 2  # pools whose correction for leverage is taken: it differs by .3 % between pools
WORDS = {"icl": "on new tasks", "idg": "on tasks of the pool", "train": "on the pretraining data"}
VOCABULARY = SIZES | vocabulary(
    drawn_icl=("ê_ICL", "error on drawn contexts of new tasks", "label²"),
    drawn_idg=("ê_IDG", "error on drawn contexts of tasks of the pool", "label²"),
)


def _laws(run: Run, count: int) -> list[ContextLaw]:
    """Laws of contexts with so many pools, each always the same; one law of fresh tasks or a given pool."""
    size = run.size
    sphere = SphereTasks(size.dimension, None if run.tasks is None else np.diag(run.tasks))
    inputs = None if run.inputs is None else np.diag(run.inputs)
    streams = [np.random.default_rng((STREAM, number)) for number in range(count)]
    if run.pool is not None:
        pools: list[Tasks] = [run.pool]
    else:
        pools = [sphere] if size.tasks is None else [Pool(sphere.draw(size.tasks, stream)) for stream in streams]
    return [ContextLaw(pool, size.context_length, size.noise, inputs) for pool in pools]


def pool_mean(run: Run, pools: int | None = None, *, more: int = 1) -> FittedErrors:
    """The pool prediction of a run averaged over pools: a given number, or as many as its dimension calls for."""
    from iclab.theory.finite_size import pool_errors

    laws = _laws(run, pools or max(1, round(more * _FAR_POOLS / run.size.dimension**2)))
    return mean([pool_errors(law, run.size.sequences, ridge=run.ridge, new=run.new) for law in laws])


def leverage_mean(run: Run, pools: int = POOLS, *, corrected: int = _CORRECTED) -> FittedErrors:
    """The leverage prediction of a run averaged over pools: its excess over the pool prediction over few of them."""
    from iclab.theory.finite_size import leverage_errors

    given = {"ridge": run.ridge, "new": run.new}
    few = mean([leverage_errors(law, run.size.sequences, **given) for law in _laws(run, min(pools, corrected))])
    whole, own = pool_mean(run, pools), pool_mean(run, min(pools, corrected))
    return FittedErrors(*(getattr(few, name) + getattr(whole, name) - getattr(own, name) for name in ERRORS))


def far_runs(dimension: Iterable[int] = FAR, **sizes: Any) -> Grid:
    """Runs far beyond drawn ones, at ratios as near to the given ones as whole sizes are."""
    return Grid.over(dimension, balanced=False, **sizes)


def judged_errors(
    tolerance: float, names: Iterable[str], *, runs: str = "runs", theory: str = "leverage", panel: str = ""
) -> tuple[Agrees, ...]:
    """Claims that means of drawn runs are those of the leverage prediction; training errors may be zero."""
    return tuple(
        Agrees(f"{runs}/{name}", f"Means of drawn runs are as predicted for their sizes, {WORDS[name]}{panel}.",
               tolerance, f"{theory}/{name}", unit="range" if name == "train" else "theory")
        for name in names
    )  # fmt: skip


def tending_errors(
    names: Iterable[str] = ERRORS, *, far: str = "far", limit: str = "curves", panel: str = "", **more: Any
) -> tuple[Tends, ...]:
    """Claims that the pool prediction tends to the limit, to the curves that are drawn."""
    return tuple(
        Tends(f"theory/{far}/{name}", f"The pool prediction tends to the limit, {WORDS[name]}{panel}.", 0.019,
              along="dimension", theory=f"{limit}/{name}", **more)
        for name in names
    )  # fmt: skip


def linked(tolerance: float = 0.045, **limit: Any) -> tuple[Claim, ...]:
    """Both links: from drawn runs to the prediction for their sizes, and from predictions to the limit."""
    return (*judged_errors(tolerance, ERRORS), *tending_errors(**limit))


BOUNDS = {"theory/bounds/loss": "of knowing nothing and of knowing the task, for comparison"}
SCORED = tuple(
    Agrees(f"contexts/drawn_{name}", f"Exact errors of a readout are those on drawn contexts, {WORDS[name]}.", 0.045,
           f"simulation/contexts/{name}")
    for name in ("icl", "idg")
)  # fmt: skip
"""Claims that the errors of readouts are those on drawn contexts."""


class DrawnCase(Protocol):
    """A case of drawn runs."""

    @property
    def draws(self) -> Draws: ...

    @property
    def drawn(self) -> Grid: ...


def simulated(case: DrawnCase, *, key: "PRNGKeyArray") -> dict[str, Labeled]:
    """Errors of the drawn runs of a case, exact for the readout of each: the simulation of several studies."""
    return {
        "runs": case.drawn.simulated(case.draws, key=key),
        "contexts": on_contexts(case.drawn, case.draws, key=key),
    }


def on_contexts(grid: Grid, draws: Draws, *, key: "PRNGKeyArray") -> Labeled:
    """Errors of one readout, of short contexts and low dimension: exact, and on contexts drawn token by token."""
    import jax

    from iclab.simulation.keys import generators_of
    from iclab.simulation.pretraining import RidgeSolver
    from iclab.simulation.pretraining.scoring import scored

    run, keys = min(grid.runs[0].flat[::-1], key=lambda run: run.size.context_length), jax.random.split(key)
    (fit,), (stream,) = run.fits(RidgeSolver(route=draws.route), keys[:1]), generators_of(keys[1:])
    exact, new = fit.errors(run.new), fit.new if run.new is None else run.new
    drawn = {"drawn_icl": scored(fit.readout, new, stream), "drawn_idg": scored(fit.readout, fit.law, stream)}
    return labeled({}, icl=exact.icl, idg=exact.idg, **drawn)
