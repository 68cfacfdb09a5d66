"""What does the noise of fresh batches add to the loss, and at which rate does it break training?

*Exact*: the expected loss of one-pass stochastic gradient descent on Γ, averaged over all draws, at any rate and
batch size, and the critical rate at and above which that average grows without bound. Nothing is of leading order
here; descent on the population, dotted, leaves the noise out. Beyond the critical rate rare runs carry the average,
so that the median over runs looks healthy while the expectation explodes. Simulation draws a batch of contexts for
every step of every run. Derived in docs/derivations/sgd.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Misses, WithinErrors
from iclab.numerics import positive, require, whole_number, whole_numbers
from iclab.outcomes import quantity
from iclab.problem import Regression
from iclab.study import Preset, Study

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray
    from matplotlib.figure import Figure

    from iclab.figures.view import View

Array = np.ndarray
RECORDS = 10  # of a run


@dataclass(frozen=True)
class Case:
    """Runs of one-pass SGD below and beyond the critical rate. Raises ValueError for impossible numbers."""

    problem: Regression = Regression(eigenvalues=(1.5, 0.6), context_length=5, noise=0.2)
    rates: tuple[float, ...] = (0.01, 0.02)  # η, below the critical rate
    batches: tuple[int, ...] = (8, 16)  # B, contexts of a step, one number for each rate
    beyond: float = 0.05  # η of the runs beyond the critical rate
    beyond_batch: int = 3  # B of the runs beyond the critical rate
    steps: int = 120  # steps of every run
    runs: int = 100  # runs of a seed

    def __post_init__(self) -> None:
        object.__setattr__(self, "batches", whole_numbers("batches", self.batches))
        require(
            len(self.rates) == len(self.batches),
            f"rates must be as many as batches, {len(self.batches)}; got {self.rates}.",
        )
        for rate in self.rates:
            positive("rates", rate)
        positive("beyond", self.beyond)
        whole_number("beyond_batch", self.beyond_batch)
        whole_number("runs", self.runs, least=2)
        whole_number("steps", self.steps, least=RECORDS)
        require(self.steps % RECORDS == 0, f"steps must be a multiple of {RECORDS}, the records; got {self.steps}.")

    @property
    def every(self) -> int:
        """Steps from one record to the next."""
        return self.steps // RECORDS


@dataclass(frozen=True)
class ExpectedLosses:
    """Expected loss and that of descent on the population, for settings of rate and batch."""

    step: Int[Array, "step"] = quantity("n", "step", words="step")
    rate: Float[Array, "setting"] = quantity("η", "setting", words="step of gradient descent")
    batch: Int[Array, "setting"] = quantity("B", "setting", words="contexts of a step")
    loss: Float[Array, "setting step"] = quantity(
        "E L", "setting", "step", unit="label²", words="expected mean squared error"
    )
    deterministic: Float[Array, "setting step"] = quantity(
        "L̄", "setting", "step", unit="label²", words="mean squared error of descent on the population"
    )


@dataclass(frozen=True)
class SampledLosses:
    """Losses over runs: of the weights on all contexts, mean and median, and on the batch of the step, mean."""

    step: Int[Array, "step"] = quantity("n", "step", words="step")
    loss: Float[Array, "setting step"] = quantity(
        "⟨L⟩", "setting", "step", unit="label²", words="mean squared error, mean over runs"
    )
    median: Float[Array, "setting step"] = quantity(
        "med L", "setting", "step", unit="label²", words="mean squared error, median over runs"
    )
    batch_loss: Float[Array, "setting step"] = quantity(
        "⟨L_B⟩", "setting", "step", unit="label²", words="mean squared error on a fresh batch, mean over runs"
    )


@dataclass(frozen=True)
class StabilityEdge:
    """Critical rates by batch size, and that of descent on the population."""

    batch: Int[Array, "batch"] = quantity("B", "batch", words="contexts of a step")
    critical: Float[Array, "batch"] = quantity("η_c", "batch", words="critical rate")
    mean_only: float = quantity("η_∞", words="critical rate of descent on the population")


def theory(case: Case) -> dict[str, ExpectedLosses | StabilityEdge]:
    """Expected losses below and beyond the critical rate, and that rate."""
    from iclab.theory import sgd

    critical = sgd.critical_rate
    batch = np.unique(np.round(np.geomspace(1, 300, 25)).astype(int))
    rates = np.array([critical(case.problem, batch=int(size)) for size in batch])
    return {
        "expected": expected(case, case.rates, case.batches),
        "beyond": expected(case, (case.beyond,), (case.beyond_batch,)),
        "edge": StabilityEdge(batch, rates, critical(case.problem, batch=np.inf)),
    }


def expected(case: Case, rates: tuple[float, ...], batches: tuple[int, ...]) -> ExpectedLosses:
    """Exact expected losses at the records."""
    from iclab.theory import sgd

    curves = [
        sgd.expected_loss(case.problem, rate=rate, batch=batch, steps=case.steps)
        for rate, batch in zip(rates, batches, strict=True)
    ]
    losses, deterministic = (
        np.stack([getattr(curve, name)[:: case.every] for curve in curves]) for name in ("loss", "deterministic")
    )
    step = case.every * np.arange(RECORDS + 1)
    return ExpectedLosses(step, np.array(rates), np.array(batches), losses, deterministic)


def simulation(case: Case, *, key: "PRNGKeyArray") -> dict[str, SampledLosses]:
    """Runs from Γ = 0 in each setting."""
    return {
        "runs": sampled(case, case.rates, case.batches, key=key),
        "beyond": sampled(case, (case.beyond,), (case.beyond_batch,), key=key),
    }


def sampled(case: Case, rates: tuple[float, ...], batches: tuple[int, ...], *, key: "PRNGKeyArray") -> SampledLosses:
    """Losses over runs at the records, a key for each setting and run."""
    import jax

    from iclab.simulation.linear.scalar_sgd import gamma_sgd
    from iclab.theory import population

    law, rows = population.moments(case.problem), []
    for rate, batch in zip(rates, batches, strict=True):
        keys = jax.random.split(jax.random.fold_in(key, batch), case.runs)
        runs = gamma_sgd(case.problem, rate=rate, batch=batch, steps=case.steps, every=case.every, key=keys)
        losses = population.loss(law, runs.gamma)
        rows.append([losses.mean(axis=0), np.median(losses, axis=0), runs.batch_loss.mean(axis=0)])
    return SampledLosses(case.every * np.arange(RECORDS + 1), *np.moveaxis(np.array(rows), 1, 0))


def figure(view: "View", figure: "Figure") -> None:
    """Losses below the critical rate and beyond it, and the critical rate against the batch size."""
    below, beyond, edges = figure.subplots(1, 3)
    simulated = view.simulation
    for axes, theory, simulation in ((below, "expected", "runs"), (beyond, "beyond", "beyond")):
        exact = view.theory[theory]
        for color, i in figures.colored(range(exact.sizes["setting"])):
            one = exact.isel(setting=i)
            label = f"expected, η = {float(one.rate):g}, B = {int(one.batch)}"
            figures.theory_line(axes, one.step, one.loss, color=color, label=label)
            words = (
                ("descent on the population", "mean over all runs", "median run") if i == 0 else (None, None, None)
            )
            axes.plot(one.step, one.deterministic, color=color, lw=1.0, ls=":", label=words[0])
            if simulated:
                drawn = view.simulation[simulation].isel(setting=i)
                figures.seed_dots(
                    axes, drawn.step, [drawn.loss.mean("seed")], color=color, label="mean over all runs"
                )
                median = drawn["median"].median("seed")
                figures.dashed_line(axes, drawn.step, median, color=color, label=words[2])
        axes.set(xlabel="step", ylabel="mean squared error")
        axes.legend()
    below.set(title="below the critical rate")
    beyond.set(title="beyond it, rare runs carry the mean", yscale="log")
    edge = view.theory.edge
    figures.theory_line(edges, edge.batch, edge.critical, label="critical rate")
    figures.level_lines(edges, [float(edge.mean_only)], label="without noise")
    for name, mark, label in (("expected", "o", "runs on the left"), ("beyond", "s", "runs in the middle")):
        setting = view.theory[name]
        edges.plot(setting.batch, setting.rate, mark, ms=5, color=figures.COLORS[1], label=label)
    edges.set(title="stability edge", xlabel="batch size $B$", ylabel="rate $\\eta$", xscale="log", yscale="log")
    edges.legend(loc="lower right")


STUDY = Study(
    name="sgd-noise",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=12, size=(11.0, 3.4)),
        "full": Preset(replace(Case(), batches=(8, 32), runs=1250), seeds=12, size=(11.0, 3.4)),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        WithinErrors(
            "theory/expected/loss",
            "simulation/runs/loss",
            "The expected loss is the mean over runs of the loss of their weights, at every record.",
        ),
        WithinErrors(
            "theory/expected/loss",
            "simulation/runs/batch_loss",
            "The expected loss is the mean over runs of the error on drawn batches, at every record.",
        ),
        Misses(
            "theory/beyond/loss",
            "simulation/beyond/median",
            "Beyond the critical rate the expected loss is a hundred times that of the median run.",
            factor=100.0,
        ),
    ),
)
