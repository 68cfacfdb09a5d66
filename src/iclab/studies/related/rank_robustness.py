"""Are larger models more easily misled by label noise?

Linear attention of rank r, pretrained to its best, holds the r most worthy directions of its inputs. In test contexts
with noisier labels each direction adds to the error, so that the best rank falls with the noise, step by step, and
the crossing of two ranks moves up when contexts are longer. *The paper's*, of arXiv 2405.19592: smaller models keep
the important features, larger ones are more easily misled (its abstract). *Derived here*: the exact test loss of
every rank, its critical noises and the staircase of the best rank, docs/derivations/rank_limited; the losses of
pretraining are the plateaus of separate key and query. *Simulated*: training of the two factors by gradient descent
on the population moments and by one-pass stochastic gradient descent, and tests on drawn contexts.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Share, Within
from iclab.numerics import increasing_grid, positive, require, whole_number, whole_numbers
from iclab.outcomes import quantity
from iclab.problem import Regression
from iclab.study import Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    from iclab.theory.related.rank_limited import TestContexts

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """Layers of every rank, pretrained without label noise and tested with it. Raises ValueError for bad numbers."""

    problem: Regression = Regression(eigenvalues=(2.0, 1.2, 0.8, 0.5, 0.3, 0.2, 0.1, 0.05), context_length=20)
    test_length: int = 20  # M, labelled examples of a test context
    noises: tuple[float, ...] = (0.0, 3.0, 10.4, 18.5, 38.0)  # ρ, variances of the label noise in tests
    relevant: int = 2  # leading directions that the target uses; the others are irrelevant features of its context
    initial: float = 0.05  # standard deviation of every entry of the two factors at the start
    rate: float = 0.1  # η, step of gradient descent on half the mean squared error
    steps: int = 40_000  # steps of gradient descent on the population moments
    one_pass_ranks: tuple[int, ...] = (1, 2, 4)  # r of the layers trained by one-pass SGD
    one_pass_steps: int = 3000  # steps of one-pass SGD
    batch: int = 128  # contexts of a step
    contexts: int = 200_000  # drawn contexts of each test

    def __post_init__(self) -> None:
        increasing_grid("noises", np.array(self.noises))
        ranks = whole_numbers("one_pass_ranks", self.one_pass_ranks)
        object.__setattr__(self, "one_pass_ranks", ranks)
        size = self.problem.dimension
        require(max(ranks) <= size, f"one_pass_ranks must be at most D = {size}; got {ranks}.")
        require(
            len(self.problem.context_lengths) == 1 and self.problem.noise == 0,
            "problem must have one context length and no noise here. Noise comes with the tests.",
        )
        require(
            whole_number("relevant", self.relevant) <= size,
            f"relevant must be at most D = {size}; got {self.relevant}.",
        )
        positive("initial", self.initial)
        positive("rate", self.rate)
        for name in ("test_length", "steps", "one_pass_steps", "batch"):
            whole_number(name, getattr(self, name))
        whole_number("contexts", self.contexts, least=4000)

    @property
    def test(self) -> Regression:
        """The law of test contexts before their labels get noise."""
        return replace(self.problem, context_length=self.test_length)

    @property
    def tasks(self) -> tuple[Float[Array, "D"], Float[Array, "D"]]:
        """The task that labels a misleading context, and the one that is asked for."""
        size = self.problem.dimension
        return np.ones(size), (np.arange(size) < self.relevant).astype(float)


@dataclass(frozen=True)
class RankLosses:
    """A loss for each rank."""

    rank: Int[Array, "rank"] = quantity("r", "rank", words="rank of Γ")
    loss: Float[Array, "rank"] = quantity("L", "rank", unit="label²", words="mean squared error")


@dataclass(frozen=True)
class NoisyTests:
    """Loss of each rank at each level of label noise, and the rank of least loss."""

    rank: Int[Array, "rank"] = quantity("r", "rank", words="rank of Γ")
    noise: Float[Array, "noise"] = quantity("ρ", "noise", unit="label²", words="variance of the label noise")
    loss: Float[Array, "rank noise"] = quantity("L", "rank", "noise", unit="label²", words="mean squared error")
    best_rank: Int[Array, "noise"] = quantity("r*", "noise", words="rank of least loss")


@dataclass(frozen=True)
class Critical:
    """Label noise up to which each direction lowers the test loss."""

    critical_noise: Float[Array, "mode"] = quantity("ρ_c", "mode", unit="label²", words="critical label noise")


def theory(case: Case) -> dict[str, RankLosses | NoisyTests | Critical]:
    """Losses of pretraining and of tests for all ranks, at the noises of the case and along a line of them."""
    from iclab.theory import population, related

    limited, population = related.rank_limited, population
    pretrained, ranks = population.moments(case.problem), np.arange(1, case.problem.dimension + 1)
    inputs = np.diag(case.problem.eigenvalues)
    tested = limited.contexts(inputs, case.test_length, task_covariance=np.diag(case.problem.task_spectrum))
    told, asked = case.tasks
    misled = limited.relabeled_contexts(inputs, case.test_length, context_task=told, target_task=asked)

    def along(noise: Float[Array, "noise"], law: "TestContexts") -> NoisyTests:
        losses = np.stack([limited.test_loss(pretrained, law, rank=int(rank), noise=noise) for rank in ranks])
        return NoisyTests(ranks, noise, losses, limited.best_rank(pretrained, law, noise))

    critical = limited.critical_noise(pretrained, tested)
    return {
        "trained": RankLosses(ranks, np.array([population.best_loss(pretrained, rank=int(r)) for r in ranks])),
        "tests": along(np.array(case.noises), tested),
        "lines": along(np.linspace(0, 1.1 * max(*case.noises, *critical), 331), tested),
        "misled": RankLosses(ranks, along(np.zeros(1), misled).loss[:, 0]),
        "critical": Critical(critical),
    }


def simulation(case: Case, *, key: Key) -> dict[str, RankLosses | NoisyTests]:
    """Factors of every rank descend on the moments and are tested; a few are trained on fresh contexts."""
    import jax

    from iclab.simulation.linear.statistics import Statistics
    from iclab.simulation.related import low_rank
    from iclab.theory import population

    moments, size = population.moments(case.problem), case.problem.dimension
    for_start, for_passes, for_tests, for_misled = jax.random.split(key, 4)
    ranks = tuple(range(1, size + 1))
    start = low_rank.factors(size, ranks, scale=case.initial, key=for_start)
    law = Statistics(moments.cross, moments.second, moments.input_covariance, np.asarray(moments.null_loss))
    gamma = low_rank.descend(law, start, rate=case.rate, steps=case.steps)
    few = np.array(case.one_pass_ranks)
    passed = low_rank.one_pass(
        case.problem,
        (start[0][few - 1], start[1][few - 1]),
        rate=case.rate,
        steps=case.one_pass_steps,
        batch=case.batch,
        key=for_passes,
    )
    noises = np.array(case.noises)
    tests = low_rank.frozen_losses(gamma, case.test, noises=noises, contexts=case.contexts, key=for_tests)
    misled = low_rank.frozen_losses(
        gamma, case.test, noises=np.zeros(1), contexts=case.contexts, tasks=case.tasks, key=for_misled
    )
    loss = population.loss
    return {
        "trained": RankLosses(np.array(ranks), np.asarray(loss(moments, gamma))),
        "one_pass": RankLosses(few, np.asarray(loss(moments, passed))),
        "tests": NoisyTests(np.array(ranks), noises, tests, 1 + np.argmin(tests, axis=0)),
        "misled": RankLosses(np.array(ranks), misled[:, 0]),
    }


def figure(view: View, figure: Figure) -> None:
    """Losses of training by rank; test error against noise for each rank; the staircase of the best rank."""
    training, tests, stairs = figure.subplots(1, 3, width_ratios=[1, 1.3, 1])
    lines = view.theory.lines
    simulated = view.simulation
    for name, color, label in (("trained", 0, "pretraining"), ("misled", 1, "irrelevant features in the context")):
        exact = view.theory[name]
        figures.theory_line(training, exact["rank"], exact.loss, color=figures.COLORS[color], label=label)
        if simulated:
            rows = view.simulation[name].loss.values
            figures.seed_dots(training, exact["rank"], rows, color=figures.COLORS[color])
    if simulated:
        passed = view.simulation.one_pass
        for row in passed.loss.values:
            training.plot(passed["rank"], row, "x", ms=5, color=figures.INK, zorder=6)
    for i, (color, rank) in enumerate(figures.colored(lines["rank"].values)):
        error = lines.loss.isel(rank=i) - lines.noise
        figures.theory_line(tests, lines.noise, error, color=color, label=f"r = {rank}")
        if simulated:
            drawn = view.simulation.tests.isel(rank=i)
            figures.seed_dots(tests, drawn.noise, (drawn.loss - drawn.noise).values, color=color)
    figures.theory_line(stairs, lines.noise, lines.best_rank)
    if simulated:
        drawn = view.simulation.tests
        label = f"drawn contexts, {figures.seeds(drawn)}"
        figures.seed_dots(stairs, drawn.noise, drawn.best_rank.values, color=figures.COLORS[0], label=label)
        stairs.legend()
    training.set(title="losses (× one-pass SGD)", xlabel="rank $r$", ylabel="mean squared error")
    training.legend()
    tests.set(title="test error by rank", xlabel="label noise $\\rho$", ylabel="mean squared error $-\\ \\rho$")
    tests.legend(ncols=2)
    stairs.set(title="best rank", xlabel="label noise $\\rho$", ylabel="rank of least test loss")


STUDY = Study(
    name="rank-robustness",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=3, size=(11.0, 3.8)),
        "full": Preset(
            replace(Case(), one_pass_steps=6000, batch=256, contexts=1_000_000), seeds=3, size=(11.0, 3.8)
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Within(
            "theory/trained/loss",
            "simulation/trained/loss",
            "Factors of every rank that descend on the population moments end at the least loss of their rank.",
            most=1e-4,
        ),
        Within(
            "theory/trained/loss",
            "simulation/one_pass/loss",
            "Factors trained on fresh contexts end within half a percent of it.",
            most=0.005,
        ),
        Within(
            "theory/tests/loss",
            "simulation/tests/loss",
            "Trained layers of every rank have the predicted losses in noisy contexts.",
            most=0.015,
        ),
        Share(
            "theory/tests/best_rank",
            "simulation/tests/best_rank",
            "The best of the trained ranks falls with the noise along the predicted staircase.",
        ),
        Within(
            "theory/misled/loss",
            "simulation/misled/loss",
            "Contexts with irrelevant features mislead trained layers as predicted.",
            most=0.015,
        ),
    ),
)
