"""Do separate weights wake the layers of a stack one after another?

When every layer is a product of weights, its growth is as explosive as its size is small: from unequal starts the
loss falls from the best level of k layers to that of k + 1, a staircase in depth. From nearly equal starts it rests
at the level of equal layers instead. Theory is the flow of products of scalars, in the limit for a deep stack and on
the drawn sample for the trained one. Simulation is gradient descent of values, keys and queries (or values and
key-query matrices) from balanced starts with random parts, on a sample that holds every context with its mirror
images. The staircase of modes is that of arXiv 2501.16265; the one in depth is derived in docs/derivations/depth.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees, ExactInRate
from iclab.numerics import Checked, Count, Nonnegative, Positive, Real, Whole, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.studies.depth.samples import WORDS, Sample, drawn_sample, law_of, white_problem
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

ALPHA, DEEP, SMALL = 2.0, 4, 1e-4  # of the deep stack in the limit: α, layers, the first layer at the start
TIMES = np.concatenate([[0.0], np.geomspace(1, 6e3, 2400)])
RECORDS = 400
FINER = (1, 2, 4)  # divisors of the learning rate

Array = np.ndarray


@dataclass(frozen=True)
class Case(Checked):
    """White contexts and a stack whose layers are products of separate weights."""

    dimension: Count = 4  # D, entries of an input; a power of two
    context_length: Count = 8  # N, labeled examples before the query
    contexts: Count = 12  # drawn contexts, each with D² mirror images
    depth: Annotated[int, Whole(least=2)] = 2  # L, layers of the stack
    factors: Annotated[int, Whole(least=2)] = 2  # m, weights of a layer: 2 value and key-query, 3 value, key, query
    initial: Positive = 1e-3  # largest layer at the start, in units of 1/λ
    spread: Annotated[float, Real(above=0.0)] = 6.0  # logarithm of the ratio of two layers at the start
    scatter: Nonnegative = 0.1  # random part of every matrix at the start, relative
    rate: Positive = 0.02  # η, learning rate in units of 1/λ²
    duration: Positive = 40.0  # time of training, in units of 1/λ²

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.factors <= 3, f"factors must be 2 or 3; got {self.factors}. Theory alone has more: depth.flow.")
        power = self.dimension & (self.dimension - 1) == 0
        require(power, f"dimension must be a power of two, for mirror images; got {self.dimension}.")


def start(case: Case, seed: int) -> Sample:
    """Covariances of the contexts; values and matrices of every layer, balanced but for their random parts."""
    rng, size = np.random.default_rng(seed), case.dimension
    covariances = drawn_sample(case, rng)
    inner = (first_layers(case) / np.sqrt(size)) ** (1 / case.factors)
    shape = (case.depth, size, size)
    matrices = [
        inner[:, None, None] * (np.eye(size) + case.scatter * rng.standard_normal(shape))
        for _ in range(case.factors - 1)
    ]
    return Sample(covariances, (np.sqrt(size) * inner, *matrices))


def first_layers(case: Case) -> Float[Array, "layer"]:
    """Scalar layers at the start, largest first."""
    return case.initial * np.exp(-case.spread * np.arange(case.depth))


def theory(case: Case, start: Sample) -> dict[str, Labeled]:
    """The deep staircase in the limit, from split and from nearly equal starts; levels and flow of this sample."""
    from iclab.theory import depth

    white, law = depth.white_limit(ALPHA), law_of(start.covariances, case.context_length)
    split = depth.flow(white, SMALL * np.exp(-np.arange(DEEP)), TIMES, factors=3)
    together = depth.flow(white, SMALL * np.exp(-1e-3 * np.arange(DEEP)), TIMES, factors=3)
    deep = depth.levels(white, DEEP)
    clock = depth.flow_clock(white_problem(case.dimension, case.context_length), factors=case.factors)
    time = np.linspace(0, case.duration, RECORDS + 1)
    flow = depth.flow(law, first_layers(case), time * clock * case.dimension, factors=case.factors)
    return {
        "deep": labeled(
            {"time": TIMES, "layer": None}, split=("time", split.excess), together=("time", together.excess),
            gain=split.layers,
        ),
        "deep_rests": labeled({"plateau": None}, excess=rests(TIMES, split.excess, deep)),
        "deep_levels": labeled({"plateau": None}, excess=deep[1:]),
        "deep_tied": labeled({}, excess=depth.tied_excess(white, DEEP)),
        "levels": labeled({"plateau": None}, excess=depth.levels(law, case.depth)[1:]),
        "flow": labeled({"time": time, "layer": None}, excess=("time", flow.excess), gain=flow.layers),
    }  # fmt: skip


def rests(time: Float[Array, "time"], excess: Float[Array, "time"], levels: Float[Array, "plateau"]) -> Array:
    """The excess where it changes least with log t, near each level but the first."""
    late = time > 0
    slope = abs(np.gradient(excess[late], np.log(time[late])))
    edges = np.sqrt(levels[1:] * levels[:-1])
    found = []
    for upper, lower in zip(edges, [*edges[1:], 0.0], strict=True):
        near = (excess[late] < upper) & (excess[late] > lower)
        found.append(excess[late][near][np.argmin(slope[near])] if near.any() else np.nan)
    return np.array(found)


def simulation(case: Case, start: Sample, *, key: Key) -> dict[str, Labeled]:
    """Descent of separate weights at three learning rates; where its loss rests."""
    from iclab.simulation.linear import depth

    problem, covariances = white_problem(case.dimension, case.context_length), depth.orbits(start.covariances)
    weights = tuple(part[None] for part in start.gammas)
    stride = max(1, round(case.duration / case.rate / RECORDS))
    rate = case.duration / (RECORDS * stride)
    runs = [
        depth.descend(
            problem, weights, covariances=covariances, rate=rate * case.dimension / finer,
            steps=finer * stride * np.arange(RECORDS + 1),
        )
        for finer in FINER
    ]  # fmt: skip
    losses, last = np.array([run.loss[0] for run in runs]), runs[-1]
    time = np.linspace(0, case.duration, RECORDS + 1)
    return {
        "rates": labeled({"rate": rate / np.array(FINER), "time": time}, excess=losses),
        "levels": labeled({"plateau": None}, excess=plateaus_of(time, losses[-1], case.depth)),
        "run": labeled(
            {"time": time, "layer": None},
            gain=np.trace(last.gammas[0], axis1=-2, axis2=-1) / case.dimension,
        ),
    }


def plateaus_of(time: Float[Array, "time"], loss: Float[Array, "time"], count: int) -> Float[Array, "plateau"]:
    """The losses at the deepest minima of |dL/d log t|, one fewer than layers, and the last one."""
    late = time > 0
    slope = abs(np.gradient(loss[late], np.log(time[late]))) / loss[late]
    inside = np.arange(1, len(slope) - 1)
    dips = inside[(slope[1:-1] < slope[:-2]) & (slope[1:-1] <= slope[2:]) & (loss[late][1:-1] < 0.9 * loss[0])]
    dips = dips[loss[late][dips] > 1.05 * loss[-1]]
    best = np.sort(dips[np.argsort(slope[dips])[: count - 1]])
    found = np.full(count, np.nan)
    found[: len(best)] = loss[late][best]
    found[-1] = loss[-1]
    return found


def figure(view: View, figure: Figure) -> None:
    """The deep staircase with its layers; the trained stack with its layers."""
    (deep, run), (gains, layers) = figure.subplots(2, 2, sharex="col")
    limit, levels = view.theory.deep.isel(seed=0), view.theory.deep_levels.isel(seed=0)
    figures.level_lines(deep, levels.excess.values, label="best of 1 … 4 layers")
    figures.theory_line(deep, limit.time, limit.split, label="split start")
    figures.dashed_line(deep, limit.time, limit.together, color=figures.COLORS[1], label="nearly equal start")
    figures.level_lines(run, view.theory.levels.isel(seed=0).excess.values, label="best of 1 … L layers")
    flow = view.theory.flow.isel(seed=0)
    figures.theory_line(run, flow.time, flow.excess, label="flow of scalars")
    for color, layer in figures.colored(range(limit.sizes["layer"])):
        figures.theory_line(gains, limit.time, limit.gain.isel(layer=layer), color=color)
    for color, layer in figures.colored(range(flow.sizes["layer"])):
        figures.theory_line(layers, flow.time, flow.gain.isel(layer=layer), color=color)
    if view.simulation:
        found = view.simulation.rates.isel(seed=0, rate=-1)
        figures.dashed_line(run, found.time, found.excess, color=figures.COLORS[1], label="matrices, seed 0")
        for color, layer in figures.colored(range(flow.sizes["layer"])):
            figures.dashed_line(
                layers, flow.time, view.simulation.run.isel(seed=0).gain.isel(layer=layer), color=color
            )
    deep.set(xscale="log", yscale="log", title=f"L = {DEEP}, α = {ALPHA:g}, value × key × query", ylabel="excess")
    run.set(yscale="log", title=f"L = {view.case.depth}, D = {view.case.dimension}, N = {view.case.context_length}")
    gains.set(xscale="log", xlim=(5, TIMES[-1]), ylabel="layers", xlabel="time of the flow")
    layers.set(xlabel="training time  (units of $1/λ^2$)")
    for axes in (deep, run):
        axes.legend()


FULL = Case(depth=4, factors=3, initial=1e-4, spread=1.0, rate=0.01, duration=500.0)

STUDY = Study(
    name="depth-staircase", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=4, size=(9.0, 5.0)), "full": Preset(FULL, seeds=3, size=(9.0, 5.0))},
    start=start, theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees(
            "theory/deep_rests/excess", "Four layers from split starts rest at the levels of 1 to 4 layers.", 0.005,
            theory="deep_levels/excess",
        ),
        Agrees("levels/excess", "The trained stack rests at the best levels of its sample, layer by layer.", 0.01),
        ExactInRate(
            "flow/excess", "rates/excess", 0.02,
            meaning="Descent of separate weights becomes the flow of products of scalars.",
        ),
    ),
    unjudged={
        "theory/deep/split": "its rests are judged",
        "theory/deep/together": "the formula of theory/deep/split, from another start",
        "theory/deep/gain": "the flow whose loss is judged at its rests",
        "theory/flow/gain": "the flow whose loss is judged",
    },
    vocabulary=WORDS | vocabulary(
        plateau=("k", "layers that are awake"),
        split=("F", "excess from layers in ratios of e", "label²"),
        together=("F", "excess from nearly equal layers", "label²"),
    ),
)  # fmt: skip
