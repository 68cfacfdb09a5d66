"""Are the fixed points of separate attention exactly the sets of modes it can hold?

The gradient of separate key-query attention is predicted to vanish at 2^D losses, one for each set of modes, and
nowhere else. Theory is these losses. Simulation searches: from random weights far from any plateau it solves for a
vanishing gradient, which leads to saddles as readily as to minima. On the population loss, which theory shares, the
searches must land on the predicted losses and find them all; on drawn sequences they find as many points, whose
losses approach the predicted ones with many sequences. Published as equations 18 and 19 of arXiv 2501.16265.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.attention import SeparateAttention
from iclab.claims import Agrees
from iclab.numerics import Checked, Count, Counts, Positive
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Regression
from iclab.studies.dynamics import training
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

VANISHES = 1e-9  # length of a gradient below which a search has found a fixed point; found ones lie at 1e-14
SAME = 1e-6  # by which losses of one fixed point may differ; those of two differ by 1e-3


@dataclass(frozen=True)
class Case(Checked):
    """Searches for the fixed points of separate key-query attention with heads of rank one."""

    problem: Regression = Regression(eigenvalues=(0.6, 0.28, 0.12), context_length=31)
    heads: Count = 4  # H, heads
    spread: Positive = 2.0  # standard deviation of every entry where a search begins
    searches: Count = 300  # searches for each loss
    iterations: Count = 70  # iterations of a search
    sequences: Counts = (1000, 10000, 100000)  # P, sizes of the training sets


def start(case: Case, seed: int) -> SeparateAttention:
    """Independent normal entries for each search, searches along the leading axis."""
    rng, shape = np.random.default_rng(seed), (case.searches, case.heads, 1, case.problem.dimension)
    value, key, query = (case.spread * rng.standard_normal(size) for size in (shape[:2], shape, shape))
    return SeparateAttention(value, key, query)


def theory(case: Case, start: SeparateAttention) -> dict[str, Labeled]:
    """The loss of every set of modes that the heads can hold, least first."""
    from iclab.theory import dynamics, population

    moments = population.moments(case.problem)
    sets = dynamics.reachable(moments, case.heads)
    losses = np.array([population.loss(moments, dynamics.fixed_point(moments, learned)) for learned in sets])
    return {"points": labeled({"point": None}, loss=np.sort(losses))}


def simulation(case: Case, start: SeparateAttention, *, key: Key) -> dict[str, Labeled]:
    """Ends of the searches on the population loss, and the different losses found there and on drawn sequences."""
    from iclab.simulation.linear import stationary
    from iclab.simulation.linear.statistics import statistics

    ends = stationary.search(training.population_statistics(case.problem), start, iterations=case.iterations)
    one = {"count": len(theory(case, start)["points"].loss), "vanishing": VANISHES, "same": SAME}
    samples = (statistics(drawn, start) for drawn in training.drawn_contexts(case.problem, case.sequences, key=key))
    found = [stationary.search(sample, start, iterations=case.iterations) for sample in samples]
    return {
        "ends": labeled({"search": None}, loss=ends.loss, slope=ends.gradient_norm),
        "points": labeled({"point": None}, loss=ends.losses(**one)),
        "drawn": labeled({"sequences": case.sequences, "point": None}, loss=[every.losses(**one) for every in found]),
    }


def figure(view: View, figure: Figure) -> None:
    """Ends of all searches beside the predicted losses; distance of those found on drawn sequences."""
    ends, gaps = figure.subplots(1, 2, width_ratios=[1.4, 1])
    points = training.first_seed(view.theory.points.loss)
    figures.level_lines(ends, points, label="predicted")
    if view.simulation:
        run, drawn = view.simulation.ends.isel(seed=0), view.simulation.drawn
        landed = np.flatnonzero(run.slope.values < VANISHES)
        label = f"{len(landed)} searches that end at a fixed point"
        ends.plot(landed, run.loss.values[landed], ".", ms=4, color=figures.COLORS[0], label=label)
        distance = abs(drawn.loss - points).mean("point")
        figures.seed_lines(gaps, drawn.sequences, distance.values, color=figures.COLORS[1], label="each seed")
        line = float(distance.mean()) * np.sqrt(np.median(drawn.sequences) / drawn.sequences)
        figures.dashed_line(gaps, drawn.sequences, line, color=figures.INK, label="$P^{-1/2}$")
        gaps.legend()
    ends.set(xlabel="search", ylabel="mean squared error", title="population loss, seed 0")
    ends.set_ylim(0, 1.25 * float(points.max()))
    ends.legend(loc="upper right", ncols=2)
    gaps.set(xscale="log", yscale="log", title="fixed points on drawn sequences")
    gaps.set(xlabel="training sequences $P$", ylabel="mean |loss − predicted|")


FULL = Case(
    problem=Regression(eigenvalues=(0.4, 0.3, 0.2, 0.1), context_length=31), searches=2000, iterations=300,
    sequences=(5000, 50000, 500000),
)  # fmt: skip

STUDY = Study(
    name="fixed-points", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=3, size=(9.0, 3.6)), "full": Preset(FULL, seeds=3, size=(9.0, 3.6))},
    start=start, theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("points/loss", "Searches on the population loss find every predicted loss, and no other.", 1e-8),
        training.tends(
            "drawn/loss", "On many drawn sequences the fixed points have the predicted losses.", theory="points/loss",
        ),
    ),
    vocabulary=vocabulary(
        {"ends/loss": ("L", "loss at the end of a search", "label²")},
        slope=("|∇L|/2", "length of the gradient at the end of a search"),
    ),
)  # fmt: skip
