"""What does the noise of fresh batches add to the loss, and at which rate does it break training?

*Exact*: the expected loss of one-pass SGD on Γ, averaged over all draws, at any rate and batch size, and the critical
rate at and above which that average grows without bound; nothing is of leading order. Descent on the population
leaves the noise out. Beyond the critical rate rare runs carry the average, so that the median run looks healthy while
the expectation explodes. Simulation draws a batch for every step of every run. Derived in docs/derivations/sgd.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Int

from iclab import figures
from iclab.claims import Misses, WithinErrors
from iclab.numerics import Checked, Count, Counts, Multiple, Positive, Positives, Whole, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Regression
from iclab.study import Axes, Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

RECORDS = 10  # of a run


@dataclass(frozen=True)
class Case(Checked):
    """Runs of one-pass SGD below and beyond the critical learning rate."""

    problem: Regression = Regression(eigenvalues=(1.5, 0.6), context_length=5, noise=0.2)
    rates: Positives = (0.01, 0.02)  # η, learning rates below the critical one
    batches: Counts = (8, 16)  # B, contexts of a step, one number for each rate
    beyond: Positive = 0.05  # η of the runs beyond the critical rate
    beyond_batch: Count = 3  # B of the runs beyond the critical rate
    steps: Annotated[int, Multiple(RECORDS, "the records")] = 120  # steps of every run
    runs: Annotated[int, Whole(least=2)] = 100  # runs of a seed

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(self.batches)
        require(len(self.rates) == count, f"rates must be as many as batches, {count}; got {self.rates}.")

    @property
    def records(self) -> Int[np.ndarray, "step"]:
        """Steps at which runs are recorded."""
        return np.arange(0, self.steps + 1, self.steps // RECORDS)


def theory(case: Case) -> dict[str, Labeled]:
    """Expected losses below and beyond the critical rate, and that rate by batch size."""
    from iclab.theory.sgd import critical_rate

    batch = np.unique(np.round(np.geomspace(1, 300, 25)).astype(int))
    critical = np.array([critical_rate(case.problem, batch=int(size)) for size in batch])
    return {
        "expected": expected(case, case.rates, case.batches),
        "beyond": expected(case, (case.beyond,), (case.beyond_batch,)),
        "edge": labeled({"batch": batch}, critical=critical, mean_only=critical_rate(case.problem, batch=np.inf)),
    }


def expected(case: Case, rates: tuple[float, ...], batches: tuple[int, ...]) -> Labeled:
    """Exact expected losses at the records, for settings of rate and batch."""
    from iclab.theory.sgd import expected_loss

    settings, names = zip(rates, batches, strict=True), ("loss", "deterministic")
    curves = [expected_loss(case.problem, rate=rate, batch=batch, steps=case.steps) for rate, batch in settings]
    losses = {name: np.stack([getattr(one, name)[case.records] for one in curves]) for name in names}
    axes = {"setting": None, "step": case.records}
    return labeled(axes, rate=("setting", np.array(rates)), batch=("setting", np.array(batches)), **losses)


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Runs from Γ = 0 in each setting."""
    return {
        "runs": sampled(case, case.rates, case.batches, key=key),
        "beyond": sampled(case, (case.beyond,), (case.beyond_batch,), key=key),
    }


def sampled(case: Case, rates: tuple[float, ...], batches: tuple[int, ...], *, key: Key) -> Labeled:
    """Losses over runs at the records, a key for each setting and run."""
    import jax

    from iclab.simulation.linear.scalar_sgd import gamma_sgd
    from iclab.theory import population

    law, every, rows = population.moments(case.problem), case.steps // RECORDS, []
    for rate, batch in zip(rates, batches, strict=True):
        keys = jax.random.split(jax.random.fold_in(key, batch), case.runs)
        runs = gamma_sgd(case.problem, rate=rate, batch=batch, steps=case.steps, every=every, key=keys)
        losses = np.asarray(population.loss(law, runs.gamma))
        rows.append([losses.mean(axis=0), np.median(losses, axis=0), runs.batch_loss.mean(axis=0)])
    loss, median, batch_loss = np.moveaxis(np.array(rows), 1, 0)
    return labeled({"setting": None, "step": case.records}, loss=loss, median=median, batch_loss=batch_loss)


def figure(view: View, figure: Figure) -> None:
    """Losses below the critical rate and beyond it, and the critical rate against the batch size."""
    below, beyond, edges = figure.subplots(1, 3)
    _losses(below, view, "expected", "runs", title="below the critical rate", scale="linear")
    _losses(beyond, view, "beyond", "beyond", title="beyond it, rare runs carry the mean", scale="log")
    edge = view.theory.edge
    figures.theory_line(edges, edge.batch, edge.critical, label="critical rate")
    figures.level_lines(edges, [float(edge.mean_only)], label="without noise")
    for name, mark, label in (("expected", "o", "runs on the left"), ("beyond", "s", "runs in the middle")):
        setting = view.theory[name]
        edges.plot(setting.batch, setting.rate, mark, ms=5, color=figures.COLORS[1], label=label)
    edges.set(title="stability edge", xlabel="batch size $B$", ylabel="learning rate $\\eta$")
    edges.set(xscale="log", yscale="log")
    edges.legend(loc="lower right")


def _losses(axes: Axes, view: View, expected: str, drawn: str, *, title: str, scale: str) -> None:
    """Loss against steps in each setting: its expectation, descent on the population, mean and median of runs."""
    exact = view.theory[expected]
    for color, i in figures.colored(range(exact.sizes["setting"])):
        one, words = exact.isel(setting=i), (None, None) if i else ("descent on the population", "median run")
        label = f"expected, η = {float(one.rate):g}, B = {int(one.batch)}"
        figures.theory_line(axes, one.step, one.loss, color=color, label=label)
        axes.plot(one.step, one.deterministic, color=color, lw=1.0, ls=":", label=words[0])
        if view.simulation:
            runs = view.simulation[drawn].isel(setting=i)
            figures.seed_dots(axes, runs.step, [runs.loss.mean("seed")], color=color, label="mean over all runs")
            figures.dashed_line(axes, runs.step, runs["median"].median("seed"), color=color, label=words[1])
    axes.set(title=title, xlabel="step", ylabel="mean squared error", yscale=scale)
    axes.legend()


FULL = Case(batches=(8, 32), runs=1250)

STUDY = Study(
    name="sgd-noise", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=12, size=(11.0, 3.4)), "full": Preset(FULL, seeds=12, size=(11.0, 3.4))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        WithinErrors(
            "runs/loss", "The expected loss is the mean over runs of the loss of their weights, at every record.",
            theory="expected/loss",
        ),
        WithinErrors(
            "runs/batch_loss",
            "The expected loss is the mean over runs of the error on drawn batches, at every record.",
            theory="expected/loss",
        ),
        Misses(
            "beyond/median", "Beyond the critical rate the expected loss is a hundred times that of the median run.",
            factor=100.0, theory="beyond/loss",
        ),
    ),
    vocabulary=vocabulary(
        batch=("B", "contexts of a step"), critical=("η_c", "critical learning rate"),
        deterministic=("L̄", "mean squared error of descent on the population", "label²"),
        loss=("⟨L⟩", "mean squared error, expected or mean over runs", "label²"),
        median=("med L", "mean squared error, median over runs", "label²"),
        batch_loss=("⟨L_B⟩", "mean squared error on a fresh batch, mean over runs", "label²"),
        mean_only=("η_∞", "critical learning rate of descent on the population"),
    ),
)  # fmt: skip
