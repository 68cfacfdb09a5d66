"""Grids of drawn pretraining runs: their whole sizes, their errors in theory and in simulation."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

import numpy as np

from iclab.claims import LimitOfMeans
from iclab.numerics import Checked, Counts, Real, require, whole_number
from iclab.outcomes import Errors, FittedErrors, Labeled, labeled, vocabulary
from iclab.problem import Pretraining, Ratios
from iclab.study import View

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import PRNGKeyArray

    from iclab.problem import ContextLaw
    from iclab.simulation.pretraining import RidgeSolver

__all__ = ["ERRORS", "MEANS_TEND", "SIZES", "Draws", "Grid", "Ridge", "Run", "drawn_runs", "largest", "simulated"]

Ridge = Annotated[float, Real(at_least=0.0, infinite=True)]
ERRORS = ("icl", "idg", "train")
MEANS_TEND = LimitOfMeans(
    "theory/runs",
    "simulation/runs",
    "Means of drawn runs tend to the proportional limit, on new tasks and on tasks of the pool.",
)
SIZES = vocabulary(
    {"bounds/loss": ("e", "errors of predicting 0 and of knowing the task", "label²")},
    sequences=("n", "pretraining sequences"),
    tasks=("K", "tasks of the pool; 0: a fresh one for every sequence"),
)


@dataclass(frozen=True)
class Draws(Checked):
    """Number of drawn runs in each dimension. Raises ValueError for sizes below 1 and unless each has a number."""

    dimension: Counts  # D, entries of an input, smallest first
    each: tuple[int, ...]  # runs drawn for each seed, a number for each dimension
    route: str = "auto"  # solver of readouts; one for all runs of a dimension saves compilation

    def __post_init__(self) -> None:
        super().__post_init__()
        for count in self.each:
            whole_number("each", count)
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

    @classmethod
    def of(cls, ratios: Ratios, dimension: int, ridge: float = 0.0) -> "Run":
        """The run whose whole sizes are next to the ratios."""
        return cls(Pretraining.of(ratios, dimension), ridge)


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

    def sizes(self) -> Labeled:
        """Whole sizes of every run; theory is evaluated at their ratios."""
        names = ("context_length", "tasks", "sequences")
        values = {name: self._each(lambda run, name=name: getattr(run.size, name) or 0) for name in names}
        return labeled(self.axes, **values)

    def predicted(self, prediction: Callable[[Run], Errors]) -> Labeled:
        """Predicted errors of each run."""
        found = np.empty(self.runs.shape, dtype=object)
        for at in np.ndindex(found.shape):
            found[at] = prediction(self.runs.item(at))
        return self._errors(lambda name: _values(found, name))

    def limit(self) -> Labeled:
        """Errors of the proportional limit at the ratios of the whole sizes."""
        from iclab.theory.generalization import errors

        return self.predicted(lambda run: errors(run.size.ratios, ridge=run.ridge))

    def simulated(self, draws: Draws, *, beside: "tuple[Grid, ...]" = (), key: "PRNGKeyArray") -> Labeled:
        """Means over the draws of one seed.

        On an accelerator all runs of a dimension, with those of grids `beside` this one, share a compiled function.
        """
        import jax

        from iclab.simulation import pretraining

        found = np.empty(self.runs.shape, dtype=object)
        for i, (dimension, count) in enumerate(zip(draws.dimension, draws.each, strict=True)):
            own = jax.random.fold_in(key, dimension)
            most = largest([run.size for grid in (self, *beside) for run in np.ravel(grid.runs[i])])
            solver = pretraining.RidgeSolver(route=draws.route, pad_to=most)
            for number, at in enumerate(np.ndindex(self.runs.shape[1:])):
                keys = jax.random.split(jax.random.fold_in(own, number), count)
                run: Run = self.runs.item((i, *at))
                found[(i, *at)] = _mean_errors(run, solver, keys)
        return self._errors(lambda name: _values(found, name))

    def _each(self, value: Callable[[Run], float]) -> np.ndarray:
        return np.reshape([value(run) for run in self.runs.flat], self.runs.shape)

    def _errors(self, values: Callable[[str], np.ndarray]) -> Labeled:
        return labeled(self.axes, **{name: values(name) for name in ERRORS})


class DrawnCase(Protocol):
    """A case of drawn runs."""

    @property
    def draws(self) -> Draws: ...

    @property
    def drawn(self) -> Grid: ...


def simulated(case: DrawnCase, *, key: "PRNGKeyArray") -> dict[str, Labeled]:
    """Errors of the drawn runs of a case, exact for the readout of each: the simulation of several studies."""
    return {"runs": case.drawn.simulated(case.draws, key=key)}


def _mean_errors(run: Run, solver: "RidgeSolver", keys: "PRNGKeyArray") -> FittedErrors:
    from iclab.simulation import pretraining

    fits = pretraining.fit_each(
        run.size,
        ridge=run.ridge,
        input_eigenvalues=run.inputs,
        task_eigenvalues=run.tasks,
        solver=solver,
        keys=keys,
    )
    errors = [fit.errors(run.new) for fit in fits]
    return FittedErrors(*(float(np.mean([getattr(one, name) for one in errors])) for name in ERRORS))


def largest(sizes: list[Pretraining]) -> Pretraining:
    """A run with as many sequences and tasks as any of several."""
    pools = [size.tasks for size in sizes if size.tasks is not None]
    most = max(size.sequences for size in sizes)
    return replace(sizes[0], sequences=most, tasks=max(pools) if pools else None, balanced=False)


def _values(found: np.ndarray, name: str) -> np.ndarray:
    return np.reshape([float(getattr(errors, name)) for errors in found.flat], found.shape)


def drawn_runs(view: View, suffix: str = "") -> tuple["xr.Dataset", str]:
    """Errors of drawn runs in the highest dimension with the ratios of their whole sizes, and their label.

    Of groups `runs` and `sizes` with the suffix. The ratios are `whole_alpha`, `whole_kappa` and `whole_tau`.
    """
    runs, sizes = view.simulation[f"runs{suffix}"], view.theory[f"sizes{suffix}"]
    d = runs.dimension.values[-1]
    runs, sizes = runs.sel(dimension=d), sizes.sel(dimension=d)
    whole = {"alpha": sizes.context_length / d, "kappa": sizes.tasks / d, "tau": sizes.sequences / d**2}
    return runs.assign({f"whole_{name}": ratio for name, ratio in whole.items()}), f"drawn runs, D = {d}"
