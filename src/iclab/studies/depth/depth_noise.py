"""How much label noise makes the layers of a stack equal?

Without noise the best layers differ. Two layers become equal in a pitchfork at a critical noise, below the variance
of the signal; three jump, with hysteresis: between the noise at which equal layers become a minimum and the one at
which the split stack ends, a stack keeps what it started from. Theory, on the spectrum of the drawn sample: the best
two layers and their critical noise in closed form, and the minima that a search finds for three. Simulation trains
whole matrices on a sample that holds every context with its mirror images, from small and from split starts. Derived
in docs/derivations/depth; the jump is numerical.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees
from iclab.numerics import Checked, Count, Increasing, Positive, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.studies.depth.samples import WORDS, Sample, drawn_sample, law_of, white_problem
from iclab.study import Axes, Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case"]

NOISES = np.linspace(0.02, 1.0, 50)  # ρ/T of the curves
TIMES = np.concatenate([[0.0], np.geomspace(1, 600, 400)])  # of the flows without noise
SMALL = 1e-3 * np.array([1.0, 0.9, 0.8])
SPLIT = np.array([0.25, 0.62, 0.62])  # start of three layers in units of 1/λ

Array = np.ndarray


@dataclass(frozen=True)
class Case(Checked):
    """White contexts with label noise, and stacks of two and of three whole matrices."""

    dimension: Count = 4  # D, entries of an input; a power of two
    context_length: Count = 8  # N, labeled examples before the query
    contexts: Count = 10  # drawn contexts, each with D² mirror images
    shares: Increasing = (0.6, 0.75, 0.9)  # noises of two layers, as shares of their critical noise
    beyond: Positive = 1.05  # noise of three layers, over that at which equal layers become a minimum
    rate: Positive = 0.2  # η, learning rate in units of 1/λ²
    steps: Count = 3000  # steps of gradient descent

    def __post_init__(self) -> None:
        super().__post_init__()
        below = min(self.shares) > 0 and max(self.shares) < 1 and len(self.shares) >= 3
        require(below, f"shares must be three or more between 0 and 1; got {self.shares}.")
        power = self.dimension & (self.dimension - 1) == 0
        require(power, f"dimension must be a power of two, for mirror images; got {self.dimension}.")


class Start(NamedTuple):
    """The sample, and the noises that its spectrum suggests."""

    sample: Sample
    two: Float[Array, "share"]  # noises of two layers
    three: float  # noise of three


def start(case: Case, seed: int) -> Start:
    """Covariances, random parts of the starts, and noises below and above the transitions of this sample."""
    from iclab.theory import depth

    rng, size = np.random.default_rng(seed), case.dimension
    law = law_of(drawn := drawn_sample(case, rng), case.context_length)
    noises = np.array(case.shares) * depth.critical_noise_ratio(law)
    random = tuple(1e-4 * rng.standard_normal((count, size, size)) for count in (2, 3))
    return Start(Sample(drawn, random), noises, case.beyond * depth.spinodal_noise_ratio(law, 3))


def theory(case: Case, start: Start) -> dict[str, Labeled]:
    """Best layers of this sample at its noises, its critical noise; minima of three layers; the mean spectrum."""
    from iclab.theory import depth

    law = law_of(start.sample.covariances, case.context_length)
    two = np.array([depth.best_layers(law, 2, noise_ratio=one) for one in start.two])
    minima = depth.noise_minima(law, 3, noise_ratio=start.three)
    equal = depth.tied_layer(law, 3, noise_ratio=start.three)
    split = minima.layers[int(np.argmax(np.ptp(minima.layers, axis=1) > 1e-3))]
    ends = np.array([np.full(3, equal), split])
    excess = [float(depth.excess(law, one, noise_ratio=start.three)) for one in ends]
    return {
        "two": labeled({"share": case.shares, "layer": None}, gain=two, noise_ratio=("share", start.two)),
        "critical": labeled({}, noise_ratio=depth.critical_noise_ratio(law)),
        "spinodal": labeled({}, noise_ratio=depth.spinodal_noise_ratio(law, 2)),
        "three": labeled({"origin": None, "layer": None}, gain=ends, excess=("origin", excess)),
        "noises": labeled({}, three=start.three),
        **_mean_spectrum(case.dimension, case.context_length),
    }


@lru_cache(maxsize=4)
def _mean_spectrum(dimension: int, context_length: int) -> dict[str, Labeled]:
    """Best layers against noise, and flows from tied and split starts, at the mean spectrum of this size."""
    from iclab.theory import depth
    from iclab.theory.depth.searches import minima_of

    law = depth.wishart(dimension, context_length)
    two = [depth.best_layers(law, 2, noise_ratio=float(one)) for one in NOISES]
    phases = depth.noise_phases(law, 3)
    split, layers = [], depth.best_layers(law, 3)[None]
    for one in NOISES:
        found = minima_of(law.rule(3), layers, noise=law.felt_noise(float(one)))
        layers = found.layers[:1]
        split.append(layers[0])
    equal = [depth.tied_layer(law, 3, noise_ratio=float(one)) for one in NOISES]
    curves = [depth.flow(law, one, TIMES) for one in (np.full(3, SMALL[0]), SMALL)]
    return {
        "mean_two": labeled({"noise_ratio": NOISES, "layer": None}, gain=two),
        "mean_three": labeled({"noise_ratio": NOISES, "layer": None}, gain=split, equal=("noise_ratio", equal)),
        "mean_critical": labeled({}, noise_ratio=depth.critical_noise_ratio(law)),
        "phases": labeled({"phase": None}, noise_ratio=list(phases)),
        "mean_flow": labeled(
            {"time": TIMES, "origin": None, "layer": None},
            excess=(("time", "origin"), np.stack([one.excess for one in curves], axis=1)),
            gain=np.stack([one.layers for one in curves], axis=1),
        ),
        "mean_levels": labeled({"plateau": None}, excess=depth.levels(law, 3)[1:]),
    }


def simulation(case: Case, start: Start, *, key: Key) -> dict[str, Labeled]:
    """Ends of training: two layers at several noises, three from a small and from a split start."""
    from iclab.simulation.linear import depth

    problem, covariances = white_problem(case.dimension, case.context_length), depth.orbits(start.sample.covariances)
    one = np.eye(case.dimension)
    apart = np.array([0.3, 0.8])[:, None, None] * one + start.sample.gammas[0]
    given = {"covariances": covariances, "rate": case.rate * case.dimension, "steps": [case.steps]}
    run = depth.descend(problem, (np.stack([apart] * len(start.two)),), noise=start.two, **given)
    two = np.sort(_scalars(run.gammas[:, -1]), axis=1)
    begins = np.stack([start.sample.gammas[1], SPLIT[:, None, None] * one + start.sample.gammas[1]])
    kept = depth.descend(problem, (begins,), noise=[start.three] * 2, **given)
    splits = np.ptp(two, axis=1)
    bend = np.polynomial.Polynomial.fit(splits**2, start.two, 2)
    return {
        "two": labeled({"share": case.shares, "layer": None}, gain=two, noise_ratio=("share", start.two)),
        "critical": labeled({}, noise_ratio=float(bend(0.0))),
        "three": labeled(
            {"origin": None, "layer": None},
            gain=np.sort(_scalars(kept.gammas[:, -1]), axis=1), excess=("origin", kept.loss[:, -1] - start.three),
        ),
    }  # fmt: skip


def _scalars(gammas: Float[Array, "run layer D D"]) -> Float[Array, "run layer"]:
    return np.trace(gammas, axis1=-2, axis2=-1) / gammas.shape[-1]


def figure(view: View, figure: Figure) -> None:
    """Loss and layers from tied and split starts; best layers against noise, and trained ones."""
    grid = figure.add_gridspec(2, 3)
    loss, layers = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    two, three = figure.add_subplot(grid[:, 1]), figure.add_subplot(grid[:, 2])
    size, length, flow = view.case.dimension, view.case.context_length, view.theory.mean_flow.isel(seed=0)
    figures.level_lines(loss, view.theory.mean_levels.isel(seed=0).excess.values, label="best of 1, 2, 3 layers")
    for color, (place, label) in figures.colored(enumerate(("equal start", "split start"))):
        figures.theory_line(loss, flow.time, flow.excess.isel(origin=place), color=color, label=label)
        for layer in range(flow.sizes["layer"]):
            figures.theory_line(layers, flow.time, flow.gain.isel(origin=place, layer=layer), color=color)
    known, found, phases = (view.theory[name].isel(seed=0) for name in ("mean_two", "mean_three", "phases"))
    for layer, label in enumerate(("best layers, mean spectrum", None)):
        figures.theory_line(two, known.noise_ratio, known.gain.isel(layer=layer), label=label)
    for layer in range(3):
        figures.theory_line(three, found.noise_ratio, found.gain.isel(layer=layer))
    figures.dashed_line(three, found.noise_ratio, found.equal, color=figures.COLORS[1], label="equal layers")
    for color, (place, name) in figures.colored(enumerate(("largest merge", "equal: minimum", "equal: best", "end"))):
        three.axvline(float(phases.noise_ratio[place]), color=color, lw=0.8, ls=":", label=name)
    if view.simulation:
        _dots(view, two, three)
    loss.set(xscale="log", yscale="log", ylabel="excess", title=f"L = 3, D = {size}, N = {length}, no noise")
    layers.set(xscale="log", xlabel="time of the flow", ylabel="layers")
    two.set(xlabel="noise over signal $ρ/T$", ylabel="best layers  (units of $1/λ$)", title="L = 2: a pitchfork")
    three.set(xlabel="noise over signal $ρ/T$", title="L = 3: a jump with hysteresis")
    for axes in (loss, two, three):
        axes.legend()


def _dots(view: View, two: Axes, three: Axes) -> None:
    """Trained layers at their noise, in units of the transition of their sample, moved to that of the mean."""
    mean, sample = view.theory.phases.isel(seed=0), view.theory.critical
    run, critical = view.simulation.two, view.theory.mean_critical.isel(seed=0).noise_ratio
    place = run.noise_ratio / sample.noise_ratio * float(critical)
    for seed in range(run.sizes["seed"]):
        for layer in range(2):
            row = run.gain.isel(seed=seed, layer=layer)
            figures.seed_dots(two, place.isel(seed=seed), [row], label="matrices" if seed == layer == 0 else None)
    kept = view.simulation.three
    noise = view.case.beyond * float(mean.noise_ratio[1])
    for color, origin in figures.colored(range(2)):
        rows = kept.gain.isel(origin=origin)
        for layer in range(3):
            figures.seed_dots(three, [noise], [[float(one)] for one in rows.isel(layer=layer)], color=color)


FULL = Case(contexts=60, shares=(0.5, 0.6, 0.7, 0.8, 0.9), steps=6000)
MEAN = "the formulas that are judged on samples, at the mean spectrum"

STUDY = Study(
    name="depth-noise", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=3, size=(11.0, 4.6)), "full": Preset(FULL, seeds=4, size=(11.0, 4.6))},
    start=start, theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("two/gain", "Two trained layers are the best ones at every noise.", 0.01),
        Agrees("critical/noise_ratio", "Their split vanishes at the critical noise.", 0.01),
        Agrees(
            "theory/critical/noise_ratio", "The critical noise is where equal layers stop being a saddle.", 1e-9,
            theory="spinodal/noise_ratio",
        ),
        Agrees("three/gain", "Three layers stay equal from a small start, split from a split one: hysteresis.", 0.01),
        Agrees("three/excess", "Both end in the minima that the search finds.", 1e-4),
    ),
    unjudged={
        "theory/mean_two/gain": MEAN, "theory/mean_three/gain": MEAN, "theory/mean_three/equal": MEAN,
        "theory/mean_flow/excess": "the flow whose levels depth-plateau judges",
        "theory/mean_flow/gain": "the flow whose levels depth-plateau judges",
        "theory/mean_levels/excess": "judged in depth-landscape", "theory/phases/noise_ratio": "found by search",
        "theory/mean_critical/noise_ratio": MEAN,
    },
    vocabulary=WORDS | vocabulary(
        share=("ρ/ρ_c", "share of the critical noise"),
        origin=("i", "start: equal or split"),
        equal=("g", "best equal layer in units of 1/λ"),
        phase=("i", "transition: largest layers merge, equal ones a minimum, the best one, end of the split stack"),
        plateau=("k", "layers that are awake"),
        three=("ρ", "label noise of three layers", "label²"),
    ),
)  # fmt: skip
