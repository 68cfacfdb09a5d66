"""Do the errors of trained attention peak where it can no longer fit its data, as theory says of a reduced model?

Networks pretrain on n = τD² sequences that are drawn once, and are tested on new tasks and on their own data: linear
attention with queries, keys, values and biases, and, in cases that ask for it, two pre-norm blocks of softmax
attention with MLPs. Published as figure 5 of arXiv 2405.11751, where both show a double descent in τ; its sizes are
those of `--published`. Theory is the reduced readout in the proportional limit, with D(D + 1) parameters and its peak
at τ = 1. It is exact for that readout alone: full attention has more parameters, biases, a row of values, the query's
own token, so that neither height nor place of its peak is claimed from theory. Findings of earlier runs:
docs/studies/transformer-double-descent.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from iclab import figures
from iclab.claims import PeaksWhereFitEnds, RisesAndFalls, WhereKnown
from iclab.numerics import Checked, Count, Fraction, Increasing, Kind, Nonnegative, Positive, require, whole_numbers
from iclab.outcomes import Labeled, labeled, parts
from iclab.problem import Ratios
from iclab.studies.pretraining.panels import SEQUENCES, error_axes
from iclab.studies.pretraining.runs import ERRORS, SIZES
from iclab.studies.pretraining.sizes import around, bounds
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

KINDS = {"linear": "linear attention", "softmax": "two softmax blocks"}
LINEAR_COST, SOFTMAX_COST = 5e-10, 1.2e-8  # seconds of a core for each token, D² and step, measured at D = 8 to 20
SIZE = (9.0, 3.8)  # inches of the figure, for each kind of network
_HILL = "Two softmax blocks err more on new tasks inside the range of τ than at either end."
_PEAK = "Linear attention errs most on new tasks where it can no longer fit its data."


@dataclass(frozen=True)
class Pretrained(Checked):
    """Networks of one kind, pretrained on sets of growing size."""

    dimension: tuple[int, ...]  # D, entries of an input; where it is empty there is no network of this kind
    tau: Increasing  # τ = n/D², pretraining sequences
    rate: Positive  # learning rate of Adam
    steps: Count  # steps of training

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.tau[0] > 0, f"tau must be positive; got {self.tau}.")
        none = isinstance(self.dimension, tuple | list) and len(self.dimension) == 0
        object.__setattr__(self, "tau", tuple(map(float, self.tau)))
        object.__setattr__(self, "dimension", () if none else whole_numbers("dimension", self.dimension))

    def sequences(self, dimension: int) -> list[int]:
        """n at every τ."""
        return [max(1, round(tau * dimension**2)) for tau in self.tau]


Networks = Annotated[Pretrained, Kind(Pretrained)]


@dataclass(frozen=True)
class Case(Checked):
    """Linear attention, and two blocks of softmax attention, on sets of sequences drawn once."""

    alpha: Positive = 1.0  # α = N/D, examples of a context; published
    noise: Nonnegative = 0.01  # ρ, variance of the label noise; published
    linear: Networks = Pretrained((8,), (0.3, 0.6, 0.9, 1.2, 1.6, 2.5, 5.0), 5e-3, 12_000)
    softmax: Networks = Pretrained((), (0.5, 1.0, 2.0, 4.0, 7.0, 12.0, 20.0, 40.0), 3e-3, 4000)
    share: Fraction = 1.0  # part of the sequences in the batch of a step
    tested: Count = 20_000  # contexts of new tasks

    def __post_init__(self) -> None:
        super().__post_init__()
        Ratios(self.alpha, np.inf, 1.0, self.noise)

    def examples(self, dimension: int) -> int:
        """N."""
        return max(1, round(self.alpha * dimension))


def theory(case: Case) -> dict[str, Labeled]:
    """Errors of the reduced readout in the proportional limit, without ridge, with a fresh task in every sequence."""
    from iclab.theory.generalization import errors

    tau = around(np.geomspace(0.2, 20.0, 121), [1.0])
    limit = errors(Ratios(case.alpha, np.inf, tau, case.noise))
    return {"bounds": bounds(case.noise), "readout": labeled({"tau": tau}, **parts(limit, *ERRORS))}


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Errors of the networks of each kind that the case holds."""
    from jax.random import fold_in

    from iclab.simulation.networks import Transformer
    from iclab.simulation.networks.linear import LinearAttention
    from iclab.simulation.networks.regression_runs import FirstSequences, set_errors
    from iclab.simulation.sequences import RegressionContexts

    def errors(kind: str, dimension: int, number: int) -> tuple[float, float]:
        setting: Pretrained = getattr(case, kind)
        sequences = setting.sequences(dimension)
        batch = max(1, round(case.share * sequences[number]))
        law = RegressionContexts(dimension, case.examples(dimension), case.noise, batch_size=batch, form="paper")
        network = LinearAttention(law.length, law.features, dimension)
        if kind == "softmax":
            network = Transformer(
                law.length, 1, features=law.features, layers=2, width=dimension, heads=1, mlp=4 * dimension,
                positions="none", gain=True, last_only=True,
            )  # fmt: skip
        data, own = FirstSequences(law, sequences[number], sequences[-1]), fold_in(fold_in(key, dimension), number)
        return set_errors(network, data, steps=setting.steps, rate=setting.rate, tested=case.tested, key=own)

    found = {}
    for kind in KINDS:
        axes = {"dimension": getattr(case, kind).dimension, "tau": getattr(case, kind).tau}
        if axes["dimension"]:
            runs = [[errors(kind, one, i) for i in range(len(axes["tau"]))] for one in axes["dimension"]]
            icl, train = np.moveaxis(np.array(runs), -1, 0)
            found[kind] = labeled(axes, icl=icl, train=train)
    return found


def seconds(case: Case) -> float:
    """Time to train one seed on one core, to a factor of two or so."""
    return sum(
        cost * setting.steps * case.share * n * (case.examples(one) + 1) * one**2
        for setting, cost in ((case.linear, LINEAR_COST), (case.softmax, SOFTMAX_COST))
        for one in setting.dimension
        for n in setting.sequences(one)
    )


def figure(view: View, figure: Figure) -> None:
    """Errors on new tasks and on the data against τ: each kind of network and the reduced readout."""
    exact, label = view.theory.readout, "reduced readout, D → ∞"
    shown = [kind for kind in KINDS if kind in view.simulation] or ["linear"]
    figure.set_size_inches(SIZE[0], SIZE[1] * len(shown))
    panels = figure.subplots(len(shown), 2, squeeze=False)
    for kind, (new, data) in zip(shown, panels, strict=True):
        figures.theory_line(new, exact.tau, exact.icl.clip(max=100), label=label)
        figures.theory_line(data, exact.tau, exact.train.where(exact.train > 0), label=label)
        drawn = getattr(view.case, kind).dimension if kind in view.simulation else ()
        for color, dimension in figures.colored(drawn):
            one = view.simulation[kind].sel(dimension=dimension)
            words = f"D = {dimension}, {figures.seeds(one)}, and their median"
            for axes, values in ((new, one.icl), (data, one.train.clip(min=1e-5))):
                figures.seed_dots(axes, one.tau, values.values, color=color)
                figures.dashed_line(axes, one.tau, values.median("seed"), color=color, label=words)
        error_axes(new, view, SEQUENCES, title=f"{KINDS[kind]}: on new tasks")
        error_axes(data, view, SEQUENCES, title=f"{KINDS[kind]}: on its data (lowest: ≤ 10⁻⁵)")
        data.set_ylim(1e-5, 3)
        new.legend(fontsize=7)


FULL = Case(linear=replace(Case().linear, dimension=(8, 10)), softmax=replace(Case().softmax, dimension=(8,)))
PUBLISHED = Case(
    linear=Pretrained((20, 40, 80), tuple(np.linspace(0.5, 5, 25).tolist()), 1e-4, 1_100_000),
    softmax=Pretrained((20, 40, 80), tuple(np.linspace(0.5, 15, 25).tolist()), 1e-4, 1_100_000),
    share=0.1,
)
STUDY = Study(
    name="transformer-double-descent", question=str(__doc__), version=1,
    presets={
        "quick": Preset(Case(), seeds=3, size=SIZE),
        "full": Preset(FULL, seeds=3, size=SIZE),
        "published": Preset(PUBLISHED, seeds=3, size=SIZE, seconds=seconds),
    },
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        WhereKnown(PeaksWhereFitEnds("linear", _PEAK, factor=1.4), "linear"),
        WhereKnown(RisesAndFalls("softmax", _HILL, 1.2), "softmax"),
    ),
    vocabulary=SIZES,
)  # fmt: skip
