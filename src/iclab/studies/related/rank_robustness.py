"""Are larger models more easily misled by label noise?

Linear attention of rank r, pretrained to its best, holds the r directions of its inputs that lower the loss most.
Noisier labels in test contexts add to the error by each direction, so that the best rank falls step by step. *The
paper's*, of arXiv 2405.19592: smaller models keep the important features, larger ones are more easily misled (its
abstract). *Derived here*: the exact test loss of every rank, its critical noises and the staircase of the best rank,
docs/derivations/rank_limited; longer contexts move the steps up. *Simulated*: training of the two factors by gradient
descent on the population moments and by one-pass SGD, and tests on drawn contexts.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees, Share
from iclab.numerics import Checked, Count, Counts, Increasing, Positive, Whole, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Regression
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]


@dataclass(frozen=True)
class Case(Checked):
    """Layers of every rank, pretrained without label noise and tested with it."""

    problem: Regression = Regression(eigenvalues=(2.0, 1.2, 0.8, 0.5, 0.3, 0.2, 0.1, 0.05), context_length=20)
    test_length: Count = 20  # M, labeled examples of a test context
    noises: Increasing = (0.0, 3.0, 10.4, 18.5, 38.0)  # ρ, variances of the label noise in tests
    relevant: Count = 2  # leading directions that the target uses; the others are irrelevant features of its context
    initial: Positive = 0.05  # standard deviation of every entry of the two factors at the start
    rate: Positive = 0.1  # η, learning rate on half the mean squared error
    steps: Count = 40_000  # steps of gradient descent on the population moments
    one_pass_ranks: Counts = (1, 2, 4)  # r of the layers trained by one-pass SGD
    one_pass_steps: Count = 3000  # steps of one-pass SGD
    batch: Count = 128  # contexts of a step
    contexts: Annotated[int, Whole(least=4000)] = 200_000  # drawn contexts of each test

    def __post_init__(self) -> None:
        super().__post_init__()
        size, ranks = self.problem.dimension, self.one_pass_ranks
        require(max(ranks) <= size, f"one_pass_ranks must be at most D = {size}; got {ranks}.")
        alone = len(self.problem.context_lengths) == 1 and self.problem.noise == 0
        require(alone, "problem must have one context length and no noise here. Noise comes with the tests.")
        require(self.relevant <= size, f"relevant must be at most D = {size}; got {self.relevant}.")

    @property
    def tasks(self) -> tuple[Float[np.ndarray, "D"], Float[np.ndarray, "D"]]:
        """The task that labels a misleading context, and the one that labels its query."""
        size = self.problem.dimension
        return np.ones(size), (np.arange(size) < self.relevant).astype(float)


def theory(case: Case) -> dict[str, Labeled]:
    """Losses of pretraining and of tests for all ranks, at the noises of the case and along a line of them."""
    from iclab.theory import population
    from iclab.theory.related import rank_limited as limited

    pretrained, ranks = population.moments(case.problem), range(1, case.problem.dimension + 1)
    inputs, (labels, target) = np.diag(case.problem.eigenvalues), case.tasks
    tested = limited.contexts(inputs, case.test_length, task_covariance=np.diag(case.problem.task_spectrum))
    misled = limited.relabeled_contexts(inputs, case.test_length, context_task=labels, target_task=target)

    def along(noise: Float[np.ndarray, "noise"]) -> Labeled:
        losses = [limited.test_loss(pretrained, tested, rank=rank, noise=noise) for rank in ranks]
        best = limited.best_rank(pretrained, tested, noise)
        return labeled({"rank": ranks, "noise": noise}, loss=losses, best_rank=("noise", best))

    critical = limited.critical_noise(pretrained, tested)
    misled_losses = [limited.test_loss(pretrained, misled, rank=rank, noise=0.0) for rank in ranks]
    return {
        "trained": labeled({"rank": ranks}, loss=[population.best_loss(pretrained, rank=rank) for rank in ranks]),
        "tests": along(np.array(case.noises)),
        "lines": along(np.union1d(case.noises, np.linspace(0, 1.1 * max(*case.noises, *critical), 331))),
        "misled": labeled({"rank": ranks}, loss=misled_losses),
        "crossings": labeled({"rank": ranks[:-1]}, critical_noise=critical[1:]),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Factors of every rank descend on the moments and are tested; a few are trained on fresh contexts."""
    import jax

    from iclab.simulation.linear.statistics import Statistics
    from iclab.simulation.related import low_rank
    from iclab.theory import population

    moments, ranks = population.moments(case.problem), tuple(range(1, case.problem.dimension + 1))
    for_start, for_passes, for_tests, for_misled = jax.random.split(key, 4)
    few, noises, count = np.array(case.one_pass_ranks), np.array(case.noises), case.contexts
    left, right = start = low_rank.factors(case.problem.dimension, ranks, scale=case.initial, key=for_start)
    gamma = low_rank.descend(Statistics.of_moments(moments), start, rate=case.rate, steps=case.steps)
    some, settings = (left[few - 1], right[few - 1]), {"steps": case.one_pass_steps, "batch": case.batch}
    passed = low_rank.one_pass(case.problem, some, rate=case.rate, key=for_passes, **settings)
    test = replace(case.problem, context_length=case.test_length)
    tests = low_rank.frozen_losses(gamma, test, noises=noises, contexts=count, key=for_tests)
    misled = low_rank.frozen_losses(gamma, test, noises=np.zeros(1), contexts=count, tasks=case.tasks, key=for_misled)
    slope, first = np.polyfit(noises, np.diff(tests, axis=0).T, 1)  # lines through differences of neighboring ranks
    return {
        "trained": labeled({"rank": ranks}, loss=population.loss(moments, gamma)),
        "one_pass": labeled({"rank": few}, loss=population.loss(moments, passed)),
        "tests": labeled({"rank": ranks, "noise": noises}, loss=tests, best_rank=("noise", 1 + np.argmin(tests, 0))),
        "crossings": labeled({"rank": ranks[:-1]}, critical_noise=-first / slope),
        "misled": labeled({"rank": ranks}, loss=misled[:, 0]),
    }


def figure(view: View, figure: Figure) -> None:
    """Losses of training by rank; test error against noise for each rank; the staircase of the best rank."""
    training, tests, stairs = figure.subplots(1, 3, width_ratios=[1, 1.3, 1])
    lines, simulated = view.theory.lines, view.simulation
    words = {"trained": "pretraining", "misled": "irrelevant features in the context"}
    for color, (name, label) in figures.colored(words.items()):
        exact = view.theory[name]
        figures.theory_line(training, exact["rank"], exact.loss, color=color, label=label)
        if simulated:
            figures.seed_dots(training, exact["rank"], simulated[name].loss.values, color=color)
    for row in simulated.one_pass.loss.values if simulated else ():
        training.plot(simulated.one_pass["rank"], row, "x", ms=5, color=figures.INK, zorder=6)
    for i, (color, rank) in enumerate(figures.colored(lines["rank"].values)):
        error = lines.loss.isel(rank=i) - lines.noise
        figures.theory_line(tests, lines.noise, error, color=color, label=f"r = {rank}")
        if simulated:
            drawn = simulated.tests.isel(rank=i)
            figures.seed_dots(tests, drawn.noise, (drawn.loss - drawn.noise).values, color=color)
    figures.theory_line(stairs, lines.noise, lines.best_rank)
    if simulated:
        drawn, label = simulated.tests, f"drawn contexts, {figures.seeds(simulated.tests)}"
        figures.seed_dots(stairs, drawn.noise, drawn.best_rank.values, color=figures.COLORS[0], label=label)
        stairs.legend()
    training.set(title="losses (× one-pass SGD)", xlabel="rank $r$", ylabel="mean squared error")
    training.legend()
    tests.set(title="test error by rank", xlabel="label noise $\\rho$", ylabel="mean squared error $-\\ \\rho$")
    tests.legend(ncols=2)
    stairs.set(title="best rank", xlabel="label noise $\\rho$", ylabel="rank of least test loss")


FULL = Case(one_pass_steps=6000, batch=256, contexts=1_000_000)
STUDY = Study(
    name="rank-robustness", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=3, size=(11.0, 3.8)), "full": Preset(FULL, seeds=3, size=(11.0, 3.8))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("trained/loss", "Descent on the population moments ends at the least loss of each rank.", 1e-3),
        Agrees("one_pass/loss", "So do factors trained on fresh contexts.", 0.01, theory="trained/loss"),
        Agrees("tests/loss", "Layers of every rank have the predicted losses in noisy contexts.", 0.01),
        Agrees("crossings/critical_noise", "Losses of neighboring ranks cross at the critical noises.", 0.02),
        Share("tests/best_rank", "The best rank falls with noise as predicted."),
        Agrees("misled/loss", "Irrelevant features of contexts mislead trained layers as predicted.", 0.01),
        Agrees("theory/lines/loss", "The drawn lines pass through the judged points.", 1e-9, theory="tests/loss"),
    ),
    unjudged={"theory/lines/best_rank": "the formula of tests/best_rank, at other noises"},
    vocabulary=vocabulary(
        rank=("r", "rank of Γ"),
        best_rank=("r*", "rank of least loss"),
        critical_noise=("ρ_c", "critical label noise of a rank and the next", "label²"),
    ),
)  # fmt: skip
