"""What does it take to learn in context when inputs and labels are separate tokens?

A first layer must bring each label to its input before a second can use the pair. *The paper's*, of arXiv 2402.00743:
one layer stays at an error of order one; two with a mask improve with the context; positions that tell pairs help
much; without a mask training on all predictions copies the label next to its input. *Derived here*: the exact loss of
the two-layer mechanism for any mixing of tokens, docs/derivations/token_mixing: (d + 1)/(d + 2) at any length without
mask and positions, logarithmic gains with a mask, the value of matched tokens with positions. *Simulated*: networks
trained by Adam; a first layer that also preconditions can go below matched tokens. Of several starts of two layers,
of which some rest on a plateau, the best is kept. Findings of earlier runs: docs/studies/separate-tokens.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from iclab import figures
from iclab.claims import above, below
from iclab.numerics import Checked, Count, Counts, Positive, require
from iclab.outcomes import Labeled, labeled, parts, vocabulary
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

ROWS = ("one layer", "two layers", "two, mask", "two, mask, positions")
NETWORKS = ((1, True, False, "all"), (2, False, False, "query"), (2, True, False, "all"), (2, True, True, "all"))
LEAK = (2, False, True, "labeled")  # as above: layers, mask, positions, tokens that are predicted in training
GAINS = (3.0, 10.0)  # exp(score) of the own pair, along the curves of theory

MECHANISMS = ("unmasked", "masked", "gained", "matched")


@dataclass(frozen=True)
class Case(Checked):
    """Four networks, and a fifth that can copy labels."""

    dimension: Count = 3  # d, of the inputs
    pairs: Count = 10  # D, labeled examples before the query
    width: Count = 24  # p, of the network
    batch: Count = 128  # contexts of a step
    steps: Counts = (484, 800, 800, 1100)  # steps of each of the four networks
    leak_steps: Count = 600  # steps of the network that can copy labels
    rate: Positive = 0.005  # largest learning rate of Adam
    unmasked_rate: Positive = 0.01  # the same for two layers without mask, which rest longer on plateaus
    starts: Count = 2  # of each network of two layers; the one that trains better is kept
    tested: Count = 200  # batches of the test

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = self.steps
        require(len(steps) == len(ROWS), f"steps must be {len(ROWS)}, one for each network; got {steps}.")
        require(min(*steps, self.leak_steps) > 100, f"steps must outlast the 100 of the warming up; got {steps}.")


def theory(case: Case) -> dict[str, Labeled]:
    """Losses of the mechanism behind each network, and of mixing mechanisms against the number of pairs."""
    from iclab.theory.tokens import mixing

    size, pairs = case.dimension, np.unique(np.geomspace(1, 100, 25).astype(int)).tolist()
    mixed = partial(mixing.attention_loss, dimension=size)
    x_value, y_value = mixing.best_value_scales(case.pairs, dimension=size, masked=True)
    masked = mixed(case.pairs, masked=True, x_value=x_value, y_value=y_value)
    matched = mixing.matched_loss(case.pairs, dimension=size)
    levels = [1.0, mixed(case.pairs, masked=False), masked, matched]
    return {
        "levels": labeled({"network": None}, loss=levels, construction=mixed(case.pairs, masked=True)),
        "curves": labeled(
            {"gain": None, "pairs": pairs},
            unmasked=("pairs", [mixed(count, masked=False) for count in pairs]),
            masked=("pairs", [mixed(count, masked=True) for count in pairs]),
            gained=[[mixed(count, masked=True, gain=gain) for count in pairs] for gain in GAINS],
            matched=("pairs", [mixing.matched_loss(count, dimension=size) for count in pairs]),
        ),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """The four networks, and the one that can copy labels; of several starts the one that trains best is kept."""
    from jax.random import fold_in

    from iclab.simulation.related.token_networks import TokenNetwork, TokenSizes, trained_losses
    from iclab.theory.tokens import mixing

    sizes, found = TokenSizes(case.dimension, case.pairs, case.width, case.batch), []
    starts = [case.starts if layers > 1 else 1 for layers, *_ in NETWORKS]
    runs = [*zip(NETWORKS, case.steps, starts, strict=True), (LEAK, case.leak_steps, 1)]
    for i, (network, steps, count) in enumerate(runs):
        own, keys = TokenNetwork(*network), [fold_in(fold_in(key, i), start) for start in range(count)]
        rate = case.rate if own.masked or own.positions else case.unmasked_rate
        tries = [trained_losses(own, sizes, steps=steps, rate=rate, tested=case.tested, key=one) for one in keys]
        found.append(min(tries, key=lambda losses: losses.training))
    *four, leak = found
    loss = np.array([one.query for one in four])
    return {
        "trained": labeled(
            {"network": None, "step": None},
            loss=("network", loss),
            gap=("step", -np.diff(loss)),
            from_matched=loss[3] / mixing.matched_loss(case.pairs, dimension=case.dimension),
            from_unmasked=loss[1] / mixing.attention_loss(case.pairs, dimension=case.dimension, masked=False),
            first=loss[0],
        ),
        "leak": labeled({}, **parts(leak, "training", "query")),
    }


def figure(view: View, figure: Figure) -> None:
    """Losses of the networks beside their mechanisms; losses of mechanisms against the number of pairs; the leak."""
    rows, curves, leaks = figure.subplots(1, 3, width_ratios=[1.3, 1.2, 0.7])
    levels, exact = view.theory.levels, view.theory.curves
    place = np.arange(len(ROWS))
    rows.plot(place, levels.loss.values, "_", ms=26, mew=1.6, color=figures.INK, label="mechanism, exact")
    rows.plot(2, float(levels.construction), "_", ms=26, mew=1.6, color=figures.COLORS[3], label="construction")
    for name, label, color in (("unmasked", "no mask", 1), ("masked", "mask", 3), ("matched", "matched tokens", 0)):
        figures.theory_line(curves, exact.pairs, exact[name], color=figures.COLORS[color], label=label)
    for i, gain in enumerate(GAINS):
        curve = exact.gained.isel(gain=i)
        figures.dashed_line(curves, exact.pairs, curve, color=figures.COLORS[2 + 2 * i], label=f"gain {gain:g}")
    if view.simulation:
        trained, leak = (view.simulation[name] for name in ("trained", "leak"))
        figures.seed_dots(rows, place, trained.loss.values, color=figures.COLORS[0], label="trained network")
        for i, name in enumerate(("training", "query")):
            figures.seed_dots(leaks, [i], leak[name].values[:, None], color=figures.COLORS[1])
    rows.set(title="query loss", ylabel="mean squared error", ylim=(0, 1.15))
    rows.set_xticks(place, [name.replace(", ", "\n") for name in ROWS])
    leaks.set(title="no mask, positions", xlim=(-0.6, 1.6), ylabel="mean squared error")
    leaks.set_xticks([0, 1], ["training", "query"])
    curves.set(xscale="log", yscale="log", xlabel="pairs $D$", ylabel="mean squared error", title="mechanisms, exact")
    rows.legend(handlelength=3.5)  # as long as the marks of the mechanisms
    curves.legend()


FULL = Case(pairs=16, width=32, steps=(600, 1500, 2000, 4000), leak_steps=1000)
STUDY = Study(
    name="separate-tokens", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=5, size=(11.0, 3.8)), "full": Preset(FULL, seeds=3, size=(11.0, 3.8))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        above("trained/first", "One layer learns nothing in context.", bound=0.93),
        above("trained/gap", "Two layers, a mask and positions each lower the loss by a tenth.", 0.1, share=1 / 3),
        above("trained/from_unmasked", "Without mask and positions the loss stays above (d + 1)/(d + 2).", 1.0,
              share=1 / 3),
        below("trained/from_matched", "With both it comes down to that of matched tokens, or below.", bound=1.15),
        below("leak/training", "Without a mask labels are copied: training succeeds.", bound=0.05),
        above("leak/query", "What copies labels predicts no query.", 0.93, share=1 / 3),
    ),
    unjudged={
        f"theory/{name}": "exact loss of a mechanism, for comparison"
        for name in ("levels/loss", "levels/construction", *(f"curves/{one}" for one in MECHANISMS))
    },
    vocabulary=vocabulary(
        {"trained/loss": ("L", "mean squared error on queries", "label²")},
        construction=("L", "loss of the published construction, best readout", "label²"),
        pairs=("D", "labeled examples before the query"),
        unmasked=("L", "loss without mask and positions", "label²"),
        masked=("L", "loss with a mask", "label²"),
        gained=("L", "loss with positions", "label²"),
        matched=("L", "loss of matched tokens", "label²"),
        gap=("ΔL", "gain over the network before", "label²"),
        from_matched=("L/L_m", "loss of the last network over that of matched tokens"),
        from_unmasked=("L₂/L_u", "loss of the network without mask over that of its mechanism"),
        first=("L₁", "loss of one layer", "label²"),
        training=("L", "loss in training", "label²"),
        query=("L_q", "loss on queries", "label²"),
    ),
)  # fmt: skip
