"""Do the layers of a stack first agree, then differ?

From a small start all layers grow alike: the loss rests at the level of the best equal layers. There any difference
grows at one rate, and the loss falls to the level of the best layers. Theory is the flow of scalar layers on the
spectrum of the drawn sample, its two levels, and the time half-way between them. Simulation is gradient descent of
whole matrices from small random starts. Its sample holds every context with its mirror images, under which only
multiples of 1 are invariant; its loss is averaged exactly over tasks. Derived in docs/derivations/depth.
"""

from dataclasses import dataclass

import numpy as np

from iclab import figures
from iclab.claims import Agrees, Tends
from iclab.numerics import Checked, Count, Increasing, Positive, require
from iclab.outcomes import Labeled, labeled
from iclab.problem import Lengths
from iclab.studies.depth.samples import WORDS, Sample, curve_reading, drawn_sample, law_of, white_problem
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

FINER = (1, 2, 4)  # divisors of the learning rate


@dataclass(frozen=True)
class Case(Checked):
    """White contexts and stacks of whole matrices from a small start."""

    dimension: Count = 4  # D, entries of an input; a power of two
    context_length: Count = 8  # N, labeled examples before the query
    contexts: Count = 12  # drawn contexts, each with D² mirror images
    depths: Lengths = (2, 3)  # L, layers of the stacks
    initial: Positive = 1e-6  # standard deviation of every entry at the start
    rate: Positive = 0.15  # η, learning rate in units of 1/λ²
    durations: Increasing = (80.0, 240.0)  # training time for each depth, in units of 1/λ²

    def __post_init__(self) -> None:
        super().__post_init__()
        require(min(self.depths) >= 2, f"depths must be 2 or more; got {self.depths}. One layer has no other.")
        require(len(set(self.depths)) == len(self.depths), f"depths must differ; got {self.depths}.")
        several = f"durations must be one for each depth, {len(self.depths)}; got {len(self.durations)}."
        require(len(self.durations) == len(self.depths), several)
        power = self.dimension & (self.dimension - 1) == 0
        require(power, f"dimension must be a power of two, for mirror images; got {self.dimension}.")


def start(case: Case, seed: int) -> Sample:
    """Covariances of the contexts, and random layers for each depth."""
    rng = np.random.default_rng(seed)
    covariances, size = drawn_sample(case, rng), case.dimension
    return Sample(
        covariances, tuple(case.initial * rng.standard_normal((count, size, size)) for count in case.depths)
    )


def theory(case: Case, start: Sample) -> dict[str, Labeled]:
    """Levels and half-way times of the scalar flow on this sample, and its curves."""
    from iclab.theory import depth

    law, found = law_of(start.covariances, case.context_length), {}
    half = [depth.half_way_time(law, _traces(one)) for one in start.gammas]
    for count, gammas, last in zip(case.depths, start.gammas, case.durations, strict=True):
        curve = depth.flow(law, _traces(gammas), np.linspace(0, last, 400))
        found[f"flow_{count}"] = labeled(
            {"step": None, "layer": None}, time=("step", curve.time), excess=("step", curve.excess), gain=curve.layers
        )
    levels = {
        "tied": [depth.tied_excess(law, count) for count in case.depths],
        "untied": [depth.best_excess(law, count) for count in case.depths],
    }
    return {
        "levels": labeled({"depth": case.depths}, **levels),
        "ends": labeled({"depth": case.depths}, half_way=half),
        **found,
    }


def simulation(case: Case, start: Sample, *, key: Key) -> dict[str, Labeled]:
    """Descent of whole matrices at three learning rates: rests, ends and half-way times."""
    from iclab.simulation.linear import depth

    problem, covariances = white_problem(case.dimension, case.context_length), depth.orbits(start.covariances)
    rests, ends, times, curves = [], [], [], {}
    for count, gammas, last in zip(case.depths, start.gammas, case.durations, strict=True):
        runs = [
            depth.descend(
                problem, (gammas[None],), covariances=covariances, rate=case.rate * case.dimension / finer,
                steps=np.unique(np.linspace(0, last * finer / case.rate, 401).astype(int)),
            )
            for finer in FINER
        ]  # fmt: skip
        read = [curve_reading(run.time / case.dimension, run.loss[0]) for run in runs]
        rests.append(read[-1][0])
        ends.append(runs[-1].loss[0, -1])
        times.append([middle for _, middle in read])
        curves[f"run_{count}"] = labeled(
            {"step": None, "layer": None},
            time=("step", runs[-1].time / case.dimension),
            excess=("step", runs[-1].loss[0]),
            gain=np.trace(runs[-1].gammas[0], axis1=-2, axis2=-1) / case.dimension,
        )
    return {
        "levels": labeled({"depth": case.depths}, tied=rests, untied=ends),
        "ends": labeled({"depth": case.depths, "divisor": FINER}, half_way=times),
        **curves,
    }


def _traces(gammas: np.ndarray) -> np.ndarray:
    """The scalar part of every layer."""
    return np.trace(gammas, axis1=1, axis2=2) / gammas.shape[-1]


def figure(view: View, figure: Figure) -> None:
    """Loss and layers against time for each depth, with both levels."""
    axes = np.atleast_2d(figure.subplots(2, len(view.case.depths), sharex="col"))
    for column, count in enumerate(view.case.depths):
        loss, layers = axes[:, column]
        flow = view.theory[f"flow_{count}"].isel(seed=0)
        levels = view.theory.levels.isel(seed=0, depth=column)
        figures.level_lines(loss, [float(levels.tied), float(levels.untied)], label="tied and best")
        figures.theory_line(loss, flow.time, flow.excess, label="flow of scalars")
        for color, layer in figures.colored(range(count)):
            figures.theory_line(layers, flow.time, flow.gain.isel(layer=layer), color=color)
        if view.simulation:
            run = view.simulation[f"run_{count}"].isel(seed=0)
            figures.dashed_line(loss, run.time, run.excess, color=figures.COLORS[1], label="matrices, seed 0")
            for color, layer in figures.colored(range(count)):
                figures.dashed_line(layers, run.time, run.gain.isel(layer=layer), color=color)
        loss.set(title=f"L = {count}", ylabel="excess", ylim=(0, 1.05))
        layers.set(xlabel="training time $t$  (units of $1/λ^2$)", ylabel="layers")
        loss.legend()


STUDY = Study(
    name="depth-plateau", question=str(__doc__), version=1,
    presets={
        "quick": Preset(Case(), seeds=3, size=(8.0, 5.0)),
        "full": Preset(Case(contexts=60, rate=0.05), seeds=6, size=(8.0, 5.0)),
    },
    start=start, theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("levels/tied", "The loss rests at the level of the best equal layers.", 1e-4),
        Agrees("levels/untied", "The loss ends at the level of the best layers.", 1e-4),
        Tends(
            "ends/half_way", "At a small learning rate the loss is half-way when the scalar flow is.", 0.01,
            along="divisor",
        ),
    ),
    unjudged={
        f"theory/flow_{count}/{name}": "a curve of the flow, whose levels and half-way time are judged"
        for count in (2, 3) for name in ("time", "excess", "gain")
    },
    vocabulary=WORDS,
)  # fmt: skip
