"""What does it take to learn in context when inputs and labels are separate tokens?

A first layer must bring each label to its input before a second one can use the pair. *The paper's*, of arXiv
2402.00743: one layer stays at an error of order one; two layers with a mask improve with the context; positions that
tell pairs help much; and without a mask a layer trained on all answers copies the label that stands next to its
input. *Derived here*: the exact loss of the two-layer mechanism for any mixing of tokens, with its consequences at
finite length, docs/derivations/token_mixing: without mask and positions (d + 1)/(d + 2) at any length, with a mask
gains that are logarithmic, with positions the value of matched tokens. *Simulated*: networks trained by Adam; a
trained first layer also preconditions, so that a network can go below the value of matched tokens. One
start in ten or so still rests on a plateau at the end: of two layers the better of two starts is shown.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab import theory as theories
from iclab.claims import Bounded
from iclab.numerics import positive, require, whole_number, whole_numbers
from iclab.outcomes import quantity
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import PRNGKeyArray
    from matplotlib.figure import Figure

    from iclab.simulation.related.token_networks import TokenLosses

Array = np.ndarray
ROWS = ("one layer", "two layers", "two, mask", "two, mask, positions")
NETWORKS = ((1, True, False, "all"), (2, False, False, "query"), (2, True, False, "all"), (2, True, True, "all"))
LEAK = (2, False, True, "labeled")
GAINS = (3.0, 10.0)  # exp(score) of the own pair, along the curves of theory


@dataclass(frozen=True)
class Case:
    """Four networks, and a fifth that can copy labels. Raises ValueError for impossible numbers."""

    dimension: int = 3  # d, of the inputs
    pairs: int = 10  # D, labelled examples before the query
    width: int = 24  # p, of the network
    batch: int = 128  # contexts of a step
    steps: tuple[int, ...] = (484, 800, 800, 1100)  # steps of each of the four networks
    leak_steps: int = 600  # steps of the network that can copy labels
    rate: float = 0.005  # largest rate of Adam
    unmasked_rate: float = 0.01  # the same for two layers without mask, which rest longer on plateaus
    starts: int = 2  # of each network of two layers; the one that trains better is kept
    tested: int = 200  # batches of the test

    def __post_init__(self) -> None:
        steps = whole_numbers("steps", self.steps)
        require(len(steps) == len(ROWS), f"steps must be {len(ROWS)}, one for each network; got {steps}.")
        require(min(*steps, self.leak_steps) > 100, f"steps must outlast the 100 of the warming up; got {steps}.")
        object.__setattr__(self, "steps", steps)
        for name in ("rate", "unmasked_rate"):
            positive(name, getattr(self, name))
        for name in ("dimension", "pairs", "width", "batch", "leak_steps", "starts", "tested"):
            whole_number(name, getattr(self, name))


@dataclass(frozen=True)
class Levels:
    """Loss of the mechanism that each network has at its disposal."""

    loss: Float[Array, "network"] = quantity("L", "network", unit="label²", words="mean squared error")
    construction: float = quantity("L", unit="label²", words="loss of the published construction, best readout")


@dataclass(frozen=True)
class Curves:
    """Exact losses of mixing mechanisms against the number of pairs."""

    pairs: Int[Array, "pairs"] = quantity("D", "pairs", words="labelled examples before the query")
    unmasked: Float[Array, "pairs"] = quantity("L", "pairs", unit="label²", words="loss without mask and positions")
    masked: Float[Array, "pairs"] = quantity("L", "pairs", unit="label²", words="loss with a mask")
    gained: Float[Array, "gain pairs"] = quantity("L", "gain", "pairs", unit="label²", words="loss with positions")
    matched: Float[Array, "pairs"] = quantity("L", "pairs", unit="label²", words="loss of matched tokens")


@dataclass(frozen=True)
class Trained:
    """Losses of the trained networks, and what they are compared by."""

    loss: Float[Array, "network"] = quantity("L", "network", unit="label²", words="mean squared error on queries")
    gap: Float[Array, "step"] = quantity("ΔL", "step", unit="label²", words="gain over the network before")
    from_matched: float = quantity("L/L_m", words="loss of the last network over that of matched tokens")
    from_unmasked: float = quantity("L₂/L_u", words="loss of the network without mask over that of its mechanism")
    first: float = quantity("L₁", unit="label²", words="loss of one layer")


@dataclass(frozen=True)
class Leak:
    """The network that can copy labels: its loss in training, and on queries whose labels are not there."""

    training: float = quantity("L", unit="label²", words="loss in training")
    query: float = quantity("L_q", unit="label²", words="loss on queries")


def theory(case: Case) -> dict[str, Levels | Curves]:
    """Losses of the mechanism behind each network, and of mixing mechanisms against the number of pairs."""
    mixing, size = theories.tokens.mixing, case.dimension

    def mixed(pairs: int, *, masked: bool, gain: float = 1.0) -> float:
        return mixing.best_loss(*mixing.attention_mixing(pairs, masked=masked, gain=gain), dimension=size)

    x_value, y_value = mixing.best_value_scales(case.pairs, dimension=size, masked=True)
    best = mixing.attention_mixing(case.pairs, masked=True, x_value=x_value, y_value=y_value)
    matched = mixing.matched_loss(case.pairs, dimension=size)
    pairs = np.unique(np.geomspace(1, 100, 25).astype(int))
    unmasked = mixed(case.pairs, masked=False)
    return {
        "levels": Levels(
            np.array([1.0, unmasked, mixing.best_loss(*best, dimension=size), matched]),
            mixed(case.pairs, masked=True),
        ),
        "curves": Curves(
            pairs,
            np.array([mixed(int(count), masked=False) for count in pairs]),
            np.array([mixed(int(count), masked=True) for count in pairs]),
            np.array([[mixed(int(count), masked=True, gain=gain) for count in pairs] for gain in GAINS]),
            np.array([mixing.matched_loss(int(count), dimension=size) for count in pairs]),
        ),
    }


def simulation(case: Case, *, key: "PRNGKeyArray") -> dict[str, Trained | Leak]:
    """The four networks, and the one that can copy labels."""
    import jax

    from iclab.simulation.related.token_networks import TokenNetwork, TokenSizes, trained_losses

    sizes = TokenSizes(case.dimension, case.pairs, case.width, case.batch)

    def run(network: tuple[int, bool, bool, str], steps: int, number: int, starts: int = 1) -> "TokenLosses":
        _, masked, positions, _ = network
        rate = case.rate if masked or positions else case.unmasked_rate
        tries = [
            trained_losses(
                TokenNetwork(*network),
                sizes,
                steps=steps,
                rate=rate,
                tested=case.tested,
                key=jax.random.fold_in(jax.random.fold_in(key, number), start),
            )
            for start in range(starts)
        ]
        return min(tries, key=lambda losses: losses.training)

    starts = [1 if network[0] == 1 else case.starts for network in NETWORKS]
    found = [
        run(network, steps, i, starts[i]) for i, (network, steps) in enumerate(zip(NETWORKS, case.steps, strict=True))
    ]
    loss = np.array([losses.query for losses in found])
    leak = run(LEAK, case.leak_steps, len(NETWORKS))
    mixing, size = theories.tokens.mixing, case.dimension
    unmasked = mixing.best_loss(*mixing.attention_mixing(case.pairs, masked=False), dimension=size)
    matched = mixing.matched_loss(case.pairs, dimension=size)
    return {
        "trained": Trained(loss, -np.diff(loss), float(loss[3] / matched), float(loss[1] / unmasked), float(loss[0])),
        "leak": Leak(leak.training, leak.query),
    }


def figure(result: "xr.DataTree", figure: "Figure") -> None:
    """Losses of the networks beside their mechanisms; losses of mechanisms against the number of pairs; the leak."""
    rows, curves, leaks = figure.subplots(1, 3, width_ratios=[1.3, 1.2, 0.7])
    levels, exact = result["theory/levels"].to_dataset(), result["theory/curves"].to_dataset()
    place = np.arange(len(ROWS))
    rows.plot(place, levels.loss.values, "_", ms=26, mew=1.6, color=figures.INK, label="mechanism, exact")
    rows.plot(2, float(levels.construction), "_", ms=26, mew=1.6, color=figures.COLORS[3], label="construction")
    for name, label, color in (("unmasked", "no mask", 1), ("masked", "mask", 3), ("matched", "matched tokens", 0)):
        figures.theory_line(curves, exact.pairs, exact[name], color=figures.COLORS[color], label=label)
    for i, gain in enumerate(GAINS):
        curve = exact.gained.isel(gain=i)
        figures.dashed_line(curves, exact.pairs, curve, color=figures.COLORS[2 + 2 * i], label=f"gain {gain:g}")
    if "simulation" in result.children:
        trained, leak = (result[f"simulation/{name}"].to_dataset() for name in ("trained", "leak"))
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


STUDY = Study(
    name="separate-tokens",
    question=str(__doc__),
    version=2,
    quick=Case(),
    full=replace(Case(), pairs=16, width=32, steps=(600, 1500, 2000, 4000), leak_steps=1000),
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Bounded("simulation/trained/first", "One layer learns nothing in context.", bound=0.93, at_most=False),
        Bounded(
            "simulation/trained/gap",
            "A second layer, a mask and positions each lower the loss by a tenth or more.",
            bound=0.1,
            at_most=False,
        ),
        Bounded(
            "simulation/trained/from_unmasked",
            "Without mask and positions the loss stays above (d + 1)/(d + 2), the least of its mechanism.",
            bound=1.0,
            at_most=False,
        ),
        Bounded(
            "simulation/trained/from_matched",
            "With mask and positions the loss comes down to that of matched tokens, or below.",
            bound=1.15,
        ),
        Bounded("simulation/leak/training", "Without a mask labels are copied: training succeeds.", bound=0.05),
        Bounded("simulation/leak/query", "What copies labels answers no query.", bound=0.93, at_most=False),
    ),
    seeds=1,
    full_seeds=3,
    size=(11.0, 3.8),
)
