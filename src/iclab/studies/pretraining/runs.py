"""Grids of drawn pretraining runs: their whole sizes, their errors in theory and in simulation."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from iclab.numerics import Checked, Count, Counts, Real, require
from iclab.outcomes import Errors, FittedErrors, Labeled, labeled, vocabulary
from iclab.problem import Pretraining, Ratios

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

    from iclab.problem import ContextLaw, Pool
    from iclab.simulation.pretraining import Fit, RidgeSolver

__all__ = [
    "ERRORS", "SIZES", "Draws", "Grid", "Ridge", "Run", "largest", "mean",
]  # fmt: skip

Ridge = Annotated[float, Real(at_least=0.0, infinite=True)]
ERRORS = ("icl", "idg", "train")
SIZES = vocabulary(
    {"bounds/loss": ("e", "errors of predicting 0 and of knowing the task", "label²")},
    sequences=("n", "pretraining sequences"),
    tasks=("K", "tasks of the pool; 0: a fresh one for every sequence"),
)


@dataclass(frozen=True)
class Draws(Checked):
    """Number of drawn runs in each dimension. Raises ValueError for sizes below 1 and unless each has a number."""

    dimension: Counts  # D, entries of an input, smallest first
    each: Counts  # runs drawn for each seed, a number for each dimension
    route: str = "auto"  # solver of readouts; one for all runs of a dimension saves compilation
    below: Count = 1  # times as many runs below interpolation, τ < 1: they are cheap, and scatter more

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            len(self.each) == len(self.dimension),
            f"each must hold a number for each dimension; got {len(self.each)} for {len(self.dimension)}.",
        )


class Run(NamedTuple):
    """One run: its whole sizes, its ridge, and the law of new tasks where it is not that of pretraining."""

    size: Pretraining
    ridge: float
    inputs: tuple[float, ...] | None = None  # relative eigenvalues
    tasks: tuple[float, ...] | None = None
    new: "ContextLaw | None" = None
    pool: "Pool | None" = None  # a given one, in place of drawn ones

    def fits(self, solver: "RidgeSolver", keys: "PRNGKeyArray") -> "list[Fit]":
        """Draws of the run, one for each key."""
        from iclab.simulation.pretraining import fit_each

        spectra = {"input_eigenvalues": self.inputs, "task_eigenvalues": self.tasks}
        return fit_each(self.size, ridge=self.ridge, **spectra, pool=self.pool, solver=solver, keys=keys)

    def mean_errors(self, solver: "RidgeSolver", keys: "PRNGKeyArray") -> FittedErrors:
        """Means of the errors of its readout over draws, one for each key."""
        return mean([fit.errors(self.new) for fit in self.fits(solver, keys)])


@dataclass(frozen=True, eq=False)
class Grid:
    """Runs over named axes, the dimension first."""

    axes: Mapping[str, np.ndarray]
    runs: np.ndarray  # of Run

    @classmethod
    def of(cls, run: Callable[..., Run], *, dimension: Iterable[int], **axes: Iterable[float]) -> "Grid":
        """run(D, point of each axis) for all points."""
        points = {name: np.array(tuple(values)) for name, values in {"dimension": dimension, **axes}.items()}
        runs = np.empty([len(values) for values in points.values()], dtype=object)
        for at in np.ndindex(runs.shape):
            runs[at] = run(*(values[i].item() for values, i in zip(points.values(), at, strict=True)))
        return cls(points, runs)

    @classmethod
    def over(cls, dimension: Iterable[int], *, ridge: Any = 0.0, balanced: bool = True, **ratios: Any) -> "Grid":
        """Runs whose whole sizes are next to alpha, kappa, tau and noise; any of these, or the ridge, may be an axis.

        The axes are those that hold several points, the ridge first and then in the order given.
        """
        given = {"ridge": ridge, **ratios}
        axes = {name: points for name, points in given.items() if np.ndim(points)}

        def run(dimension: int, *point: float) -> Run:
            one = {**given, **dict(zip(axes, point, strict=True))}
            own = one.pop("ridge")
            return Run(Pretraining.of(Ratios(**one), dimension, balanced=balanced), own)

        return cls.of(run, dimension=dimension, **axes)

    def sizes(self) -> Labeled:
        """Whole sizes of every run; theory is evaluated at their ratios."""
        names = ("context_length", "tasks", "sequences")
        return self._labeled({name: [getattr(run.size, name) or 0 for run in self.runs.flat] for name in names})

    def predicted(self, prediction: Callable[[Run], Errors | FittedErrors]) -> Labeled:
        """Predicted errors of each run."""
        return self._errors([prediction(run) for run in self.runs.flat])

    def limit(self) -> Labeled:
        """Errors of the proportional limit at the ratios of the whole sizes."""
        from iclab.theory.generalization import errors

        return self.predicted(lambda run: errors(run.size.ratios, ridge=run.ridge))

    def simulated(self, draws: Draws, *, beside: "tuple[Grid, ...]" = (), key: "PRNGKeyArray") -> Labeled:
        """Means over the draws of one seed.

        On an accelerator all runs of a dimension, with those of grids `beside` this one, share a compiled function.
        """
        import jax

        from iclab.simulation.pretraining import RidgeSolver

        found = []
        for i, (dimension, count) in enumerate(zip(draws.dimension, draws.each, strict=True)):
            own = jax.random.fold_in(key, dimension)
            most = largest([run.size for grid in (self, *beside) for run in grid.runs[i].flat])
            solver = RidgeSolver(route=draws.route, pad_to=most)
            for number, run in enumerate(self.runs[i].flat):
                several = count * draws.below if run.size.sequences < dimension**2 else count
                found.append(run.mean_errors(solver, jax.random.split(jax.random.fold_in(own, number), several)))
        return self._errors(found)

    def _errors(self, found: Sequence[Errors | FittedErrors]) -> Labeled:
        return self._labeled({name: [float(getattr(errors, name)) for errors in found] for name in ERRORS})

    def _labeled(self, columns: Mapping[str, Sequence[float]]) -> Labeled:
        return labeled(self.axes, **{name: np.reshape(each, self.runs.shape) for name, each in columns.items()})


def mean(errors: Sequence[Errors | FittedErrors]) -> FittedErrors:
    """Means of each error of several predictions or fits."""
    return FittedErrors(*(float(np.mean([getattr(one, name) for one in errors])) for name in ERRORS))


def largest(sizes: list[Pretraining]) -> Pretraining:
    """A run with as many sequences and tasks as any of several."""
    pools = [size.tasks for size in sizes if size.tasks is not None]
    most = max(size.sequences for size in sizes)
    return replace(sizes[0], sequences=most, tasks=max(pools) if pools else None, balanced=False)
