"""How much loss does it save to know the pool of tasks?

Two strategies predict the next symbol of a context: memory is Bayes with the K tasks of the pool as its prior,
inference is Bayes with the law that tasks are drawn from. On contexts of the pool inference loses more, by the gap Δ
in nats of a context: the divergence of both mixtures of contexts. *Known*: its mean over pools is one-shot soft
covering of a channel by K inputs, between I − ln K and ln(1 + χ²/K). *Derived here*: exact sums for urns and Markov
chains, and the limit χ²/2K, docs/derivations/strategies. *Simulated*: both strategies predict drawn contexts, token
by token. Which of the two a trained network follows is another question.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees, above, below
from iclab.numerics import Checked, Count, Counts, Positive, Whole, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "start", "theory"]

_FAR = 8  # χ² that a pool must have for its limit

Pools = dict[str, list[list[Float[np.ndarray, "K *n"]]]]


@dataclass(frozen=True)
class Case(Checked):
    """Urns and Markov chains, each at several sizes of the pool."""

    tasks: Counts = (2, 4, 16, 64, 256)  # K, urns of a pool
    symbols: Annotated[int, Whole(least=2)] = 4  # S, of an urn
    length: Count = 16  # T, draws of a context
    chain_tasks: Counts = (4, 64)  # K, Markov chains of a pool
    states: Annotated[int, Whole(least=2)] = 2  # S, of a chain
    chain_length: Count = 32  # T, transitions of a context
    concentration: Positive = 1.0  # α of the Dirichlet law of urns, and of rows of chains
    pools: Count = 4  # pools of each size
    wide_pools: Count = 100  # pools of each size from 8 χ² on, for the limit
    sequences: Count = 1000  # contexts that are drawn from each pool

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("tasks", "chain_tasks"):
            sizes = list(getattr(self, name))
            require(sizes == sorted(set(sizes)), f"{name} must increase; got {tuple(sizes)}.")
        require(self.tasks[0] > 1, f"tasks must be 2 or more; got {self.tasks}. The mean gap of one task is I.")


def start(case: Case, seed: int) -> Pools:
    """Pools of each size, drawn from the prior: urns, more of them from 8 χ² on, and Markov chains."""
    stream, one = np.random.default_rng(seed), case.concentration
    urn, row, pools = np.full(case.symbols, one), np.full(case.states, one), range(case.pools)
    return {
        "urns": [[stream.dirichlet(urn, k) for _ in pools] for k in case.tasks],
        "chains": [[stream.dirichlet(row, (k, case.states)) for _ in pools] for k in case.chain_tasks],
        "wide": [[stream.dirichlet(urn, k) for _ in range(case.wide_pools)] for k in wide_sizes(case)],
    }


def wide_sizes(case: Case) -> list[int]:
    """The sizes of pools at which the gap is near its limit."""
    from iclab.theory.sequences import urn_chi_square

    least = _FAR * urn_chi_square(case.symbols, case.length, case.concentration)
    return [k for k in case.tasks if k >= least]


def theory(case: Case, start: Pools) -> dict[str, Labeled]:
    """Exact gaps of the pools, as divergences and as sums over predictions; bounds and limit of their mean."""
    from iclab.theory import estimators, sequences

    law, tasks = {"length": case.length, "concentration": case.concentration}, np.array(case.tasks)
    given = case.symbols, case.length, case.concentration
    information, chi_square = sequences.urn_information(*given), sequences.urn_chi_square(*given)
    gap, wide = (
        np.array([np.mean([sequences.urn_gap(pool, **law) for pool in pools]) for pools in start[name]])
        for name in ("urns", "wide")
    )
    losses = [[sequences.urn_losses(pool, **law) for pool in pools] for pools in start["urns"]]
    summed = [np.mean([np.sum(one.generalizing.idg - one.memorizing.idg) for one in row]) for row in losses]
    least, most = estimators.gap_bounds(information, chi_square, tasks)
    sizes = wide_sizes(case)
    chain_law = {"length": case.chain_length, "concentration": case.concentration}
    chains = [np.mean([sequences.markov_gap(pool, **chain_law) for pool in pools]) for pools in start["chains"]]
    return {
        "gap": labeled({"tasks": tasks}, exact=gap, summed=summed),
        "bounds": labeled(
            {"tasks": tasks}, least=least, most=most, above_least=gap - least, of_most=gap / np.asarray(most)
        ),
        "wide": labeled({"wide_tasks": sizes}, gap=wide, limit=chi_square / (2 * np.array(sizes))),
        "scale": labeled({}, information=information, chi_square=chi_square),
        "chains": labeled({"chain_tasks": case.chain_tasks}, exact=chains),
    }


def simulation(case: Case, start: Pools, *, key: Key) -> dict[str, Labeled]:
    """Divergences of both predictions, summed over drawn contexts of the same pools."""
    from jax.random import fold_in

    from iclab.simulation.sequences.pools import drawn_gaps

    def drawn(pools: list, length: int, key: Key) -> float:
        law = {"length": length, "concentration": case.concentration, "sequences": case.sequences}
        return float(np.mean([drawn_gaps(pool, **law, key=fold_in(key, i)).sum() for i, pool in enumerate(pools)]))

    sizes = {"urns": case.length, "chains": case.chain_length}
    found = {
        name: [drawn(pools, length, fold_in(fold_in(key, number), len(pools[0]))) for pools in start[name]]
        for number, (name, length) in enumerate(sizes.items())
    }
    return {
        "gap": labeled({"tasks": case.tasks}, sampled=found["urns"]),
        "chains": labeled({"chain_tasks": case.chain_tasks}, sampled=found["chains"]),
    }


def figure(view: View, figure: Figure) -> None:
    """The gap against the size of the pool, with both bounds, the limit, e^I and 1 + χ²."""
    from iclab.theory.estimators import gap_bounds, gap_limit

    axes = figure.subplots()
    information, chi_square = (
        float(view.theory.scale[name].values.flat[0]) for name in ("information", "chi_square")
    )
    last = 3 * max(float(view.theory.gap.tasks.max()), chi_square)
    tasks = np.geomspace(1, last, 300)
    least, most = (np.asarray(end) for end in gap_bounds(information, chi_square, tasks))
    limit = np.asarray(gap_limit(chi_square, tasks))
    figures.theory_line(axes, tasks, most, label="mean over pools at most")
    figures.theory_line(axes, tasks, np.where(least > 0, least, np.nan), color=figures.COLORS[1], label="at least")
    label = "$\\chi^2/2K$"
    figures.dashed_line(axes, tasks, np.where(limit < most, limit, np.nan), color=figures.COLORS[0], label=label)
    if view.simulation:
        found = view.simulation.gap
        label = f"drawn contexts, {figures.seeds(found)}"
        figures.seed_dots(axes, found.tasks, found.sampled.values, color=figures.COLORS[0], label=label)
    for place, name in ((np.exp(information), "$e^I$"), (1 + chi_square, "$1 + \\chi^2$")):
        axes.axvline(place, color=figures.INK, lw=0.8, ls=":")
        axes.annotate(name, (place, axes.get_ylim()[1]), xytext=(2, -10), textcoords="offset points", fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="tasks of the pool $K$", ylabel="gap of a context, nats")
    axes.set_title(f"urns, $S$ = {view.case.symbols}, $T$ = {view.case.length}")
    axes.legend()


def answer(view: View) -> str:
    """Both ends of the scale of pool sizes, and the gap at the first and the last."""
    scale, exact = view.theory.scale, view.theory.gap.exact.mean("seed")
    information, chi_square = (float(scale[name].values.flat[0]) for name in ("information", "chi_square"))
    (few, many), length = exact.tasks.values[[0, -1]], view.case.length
    return (
        f"Memory of the pool pays up to K = e^I = {np.exp(information):.3g} and fades from 1 + χ² = "
        f"{1 + chi_square:.3g} on: it saves {float(exact[0]) / length:.3g} nats each prediction with {few} tasks, "
        f"{float(exact[-1]) / length:.3g} with {many}."
    )


FULL = Case(tasks=(2, 4, 16, 64, 256, 1024), chain_tasks=(4, 16, 64, 256), pools=8, sequences=4000)
STUDY = Study(
    name="strategy-gap", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=8, size=(6.0, 4.0)), "full": Preset(FULL, seeds=8, size=(6.0, 4.0))},
    start=start, theory=theory, simulation=simulation, figure=figure, answer=answer,
    claims=(
        Agrees(
            "theory/gap/summed", "Gaps of all predictions add up to the divergence.", 1e-12, theory="gap/exact",
            unit="one", numerical=0.0,
        ),
        Agrees("gap/sampled", "On drawn contexts of urns strategies differ by the exact gap.", 0.02, "gap/exact"),
        Agrees("chains/sampled", "On drawn contexts of Markov chains too.", 0.03, "chains/exact"),
        below("theory/bounds/of_most", "The mean gap is at most ln(1 + χ²/K).", bound=1.0),
        above("theory/bounds/above_least", "It is at least I − ln K.", bound=0.0),
        Agrees("theory/wide/gap", "From K = 8 χ² on it is χ²/2K.", 0.1, "wide/limit"),
    ),
    unjudged={
        "theory/bounds/least": "bounds/above_least compares it",
        "theory/bounds/most": "bounds/of_most compares it",
        "theory/scale/information": "the scale of the bounds",
        "theory/scale/chi_square": "the scale of the bounds",
    },
    vocabulary=vocabulary(
        {"wide/gap": ("Δ", "gap of a context at K ≥ 8 χ²", "nat"), "wide/limit": ("χ²/2K", "its limit", "nat")},
        tasks=("K", "urns of the pool"),
        wide_tasks=("K", "urns of a pool, from 8 χ² on"),
        chain_tasks=("K", "Markov chains of the pool"),
        exact=("Δ", "gap of a context, exact", "nat"),
        summed=("Σ", "sum of the gaps of all predictions", "nat"),
        sampled=("Δ", "gap of a context on drawn contexts", "nat"),
        least=("I − ln K", "lower bound of the mean gap", "nat"),
        most=("ln(1 + χ²/K)", "upper bound of the mean gap", "nat"),
        above_least=("Δ − (I − ln K)", "gap above its lower bound", "nat"),
        of_most=("Δ/ln(1 + χ²/K)", "gap over its upper bound"),
        information=("I", "information of a context about its task", "nat"),
        chi_square=("χ²", "mean of P(x)/q(x), less one"),
    ),
)  # fmt: skip
