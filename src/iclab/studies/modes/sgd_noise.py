"""What does the noise of fresh batches add to the loss, and at which rate does it break training?

*Exact*: the expected loss of one-pass SGD on Γ, averaged over all draws, at any rate and batch size, and the critical
rate at and above which that average grows without bound; nothing is of leading order. Descent on the population
leaves the noise out. Beyond the critical rate rare runs carry the average, so that the median run looks healthy while
the expectation explodes. Simulation draws a batch for every step of every run, and follows the mean square of Γ with
moments of drawn contexts. Derived in docs/derivations/sgd.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Agrees, Misses
from iclab.numerics import Checked, Count, Counts, Multiple, Positive, Positives, Whole, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Regression
from iclab.study import Axes, Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    from iclab.simulation.linear.scalar_sgd import DrawnSquares

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

RECORDS = 10  # of a run
Steps = Float[np.ndarray, "step"]


@dataclass(frozen=True)
class Case(Checked):
    """Runs of one-pass SGD below and beyond the critical learning rate."""

    problem: Regression = Regression(eigenvalues=(1.5, 0.6), context_length=10, noise=0.2)
    rates: Positives = (0.01, 0.02)  # η, learning rates below the critical one
    batches: Counts = (8, 16)  # B, contexts of a step, one number for each rate
    beyond: Positive = 0.08  # η of the runs beyond the critical rate
    beyond_batch: Count = 3  # B of the runs beyond the critical rate
    steps: Annotated[int, Multiple(RECORDS, "the records")] = 120  # steps of every run
    runs: Annotated[int, Whole(least=2)] = 60  # runs of a seed
    contexts: Count = 100_000  # drawn, from whose moments the mean square of Γ is followed

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(self.batches)
        require(len(self.rates) == count, f"rates must be as many as batches, {count}; got {self.rates}.")

    @property
    def records(self) -> Int[np.ndarray, "step"]:
        """Steps at which runs are recorded."""
        return np.arange(0, self.steps + 1, self.steps // RECORDS)

    @property
    def settings(self) -> dict[str, list[tuple[float, int]]]:
        """Rates and batches below the critical rate, and beyond it."""
        below = list(zip(self.rates, self.batches, strict=True))
        return {"expected": below, "beyond": [(self.beyond, self.beyond_batch)]}


def theory(case: Case) -> dict[str, Labeled]:
    """Expected losses below and beyond the critical rate, and that rate by batch size."""
    from iclab.theory.sgd import critical_rate, expected_loss

    def losses(rate: float, batch: int) -> tuple[Steps, Steps]:
        curve = expected_loss(case.problem, rate=rate, batch=batch, steps=case.steps)
        return curve.loss[case.records], curve.deterministic[case.records]

    batch = np.union1d(np.round(np.geomspace(1, 300, 25)), [*case.batches, case.beyond_batch]).astype(int)
    critical = np.array([critical_rate(case.problem, batch=int(size)) for size in batch])
    return {
        **expected(case, losses),
        "edge": labeled({"batch": batch}, critical=critical, mean_only=critical_rate(case.problem, batch=np.inf)),
    }


def expected(case: Case, losses: Callable[[float, int], tuple[Steps, Steps]]) -> dict[str, Labeled]:
    """Losses at the records in each setting, those of descent on the population, and what noise adds to them.

    `losses(rate, batch)` gives the two. Beyond the critical rate also the growth per step at the end.
    """
    groups = {}
    for name, settings in case.settings.items():
        loss, deterministic = np.moveaxis(np.array([losses(*one) for one in settings]), 1, 0)
        with np.errstate(invalid="ignore"):  # two infinities
            growth = (loss[:, -1] / loss[:, -2]) ** (RECORDS / case.steps)
        groups[name] = labeled(
            {"setting": None, "step": case.records}, loss=loss, deterministic=deterministic,
            excess=loss - deterministic, growth=("setting", growth), noise=case.problem.noise,
        )  # fmt: skip
    return groups


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Runs from Γ = 0 in each setting, and expected losses and critical rates on the moments of drawn contexts."""
    import jax

    from iclab.simulation.linear.scalar_sgd import drawn_squares

    drawn = drawn_squares(case.problem, case.contexts, key=jax.random.fold_in(key, 0))  # 0 is no batch size
    batch = np.unique([1, *case.batches, case.beyond_batch])

    def losses(rate: float, size: int) -> tuple[Steps, Steps]:
        noisy, clean = (drawn.followed(case.steps, rate=rate, batch=one)[case.records] for one in (size, np.inf))
        return noisy, clean

    critical = [drawn.critical(batch=int(size)) for size in batch]
    return {
        **{f"{name}_runs": sampled(case, settings, drawn, key=key) for name, settings in case.settings.items()},
        **expected(case, losses),
        "edge": labeled({"batch": batch}, critical=critical, mean_only=drawn.critical(batch=np.inf)),
    }


def sampled(case: Case, settings: list[tuple[float, int]], drawn: "DrawnSquares", *, key: Key) -> Labeled:
    """Losses of runs on drawn contexts at the records, a key for each setting and run."""
    import jax

    from iclab.simulation.linear.scalar_sgd import gamma_sgd

    every, rows = case.steps // RECORDS, []
    for rate, batch in settings:
        keys = jax.random.split(jax.random.fold_in(key, batch), case.runs)
        gamma = gamma_sgd(case.problem, rate=rate, batch=batch, steps=case.steps, every=every, key=keys).gamma
        losses = drawn.losses_of(gamma)
        rows.append([np.mean(losses, axis=0), np.median(losses, axis=0)])
    loss, median = np.moveaxis(np.array(rows), 1, 0)
    return labeled({"setting": None, "step": case.records}, loss=loss, median=median)


def figure(view: View, figure: Figure) -> None:
    """Losses below the critical rate and beyond it, and the critical rate against the batch size."""
    below, beyond, edges = figure.subplots(1, 3)
    _losses(below, view, "expected", title="below the critical rate", scale="linear")
    _losses(beyond, view, "beyond", title="beyond it, rare runs carry the mean", scale="log")
    edge = view.theory.edge
    figures.theory_line(edges, edge.batch, edge.critical, label="critical rate")
    figures.level_lines(edges, [float(edge.mean_only)], label="without noise")
    if view.simulation:
        drawn = view.simulation.edge
        figures.mean_points(edges, drawn.batch, drawn.critical, label="on moments of drawn contexts")
    for name, mark, label in (("expected", "o", "runs on the left"), ("beyond", "s", "runs in the middle")):
        rates, batches = zip(*view.case.settings[name], strict=True)
        edges.plot(batches, rates, mark, ms=5, color=figures.COLORS[1], label=label)
    edges.set(title="stability edge", xlabel="batch size $B$", ylabel="learning rate $\\eta$")
    edges.set(xscale="log", yscale="log")
    edges.legend(loc="lower right")


def _losses(axes: Axes, view: View, name: str, *, title: str, scale: str) -> None:
    """Loss against steps in each setting: its expectation, descent on the population, mean and median of runs."""
    exact = view.theory[name]
    for color, i in figures.colored(range(exact.sizes["setting"])):
        (rate, batch), one = view.case.settings[name][i], exact.isel(setting=i)
        words = (None, None) if i else ("descent on the population", "median run")
        label = f"expected, η = {rate:g}, B = {batch}"
        figures.theory_line(axes, one.step, one.loss, color=color, label=label)
        axes.plot(one.step, one.deterministic, color=color, lw=1.0, ls=":", label=words[0])
        if view.simulation:
            runs = view.simulation[f"{name}_runs"].isel(setting=i)
            figures.seed_dots(axes, runs.step, [runs.loss.mean("seed")], color=color, label="mean over all runs")
            figures.dashed_line(axes, runs.step, runs["median"].median("seed"), color=color, label=words[1])
    axes.set(title=title, xlabel="step", ylabel="mean squared error", yscale=scale)
    axes.legend()


FULL = Case(batches=(8, 32), runs=1250, contexts=500_000)

STUDY = Study(
    name="sgd-noise", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=12, size=(11.0, 3.4)), "full": Preset(FULL, seeds=12, size=(11.0, 3.4))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("expected_runs/loss", "The expected loss is the mean over runs, on drawn contexts, at every record.",
               0.045, "expected/loss", floor="expected/noise"),
        Agrees("expected/excess", "Noise adds to the loss what it adds on the moments of drawn contexts.", 0.03),
        Agrees("expected/deterministic",
               "Without noise the loss is that of descent on the moments of drawn contexts.", 0.005,
               floor="expected/noise"),
        Agrees("edge/critical", "On these moments the mean square grows beyond the critical rate.", 0.01),
        Agrees("edge/mean_only", "On these moments descent diverges beyond its critical rate.", 0.01),
        Agrees("beyond/growth", "Beyond the critical rate the expected loss grows by this factor per step.", 0.01),
        Agrees("beyond/deterministic", "Descent on the moments of drawn contexts still learns there.", 0.02,
               floor="beyond/noise"),
        Misses("beyond_runs/median", "There the expected loss is a hundred times that of the median run.",
               factor=100.0, theory="beyond/loss"),
    ),
    vocabulary=vocabulary(
        batch=("B", "contexts of a step"), critical=("η_c", "critical learning rate"),
        excess=("⟨L⟩ − L̄", "mean squared error that noise adds", "label²"),
        growth=("⟨L⟩′/⟨L⟩", "growth of the expected loss per step, at the end"),
        loss=("⟨L⟩", "mean squared error, expected or mean over runs", "label²"),
        median=("med L", "mean squared error, median over runs", "label²"),
        mean_only=("η_∞", "critical learning rate of descent on the population"),
    ),
    unjudged={"theory/beyond/loss": "rare runs carry it, which no sample contains; its growth per step is judged"},
)  # fmt: skip
