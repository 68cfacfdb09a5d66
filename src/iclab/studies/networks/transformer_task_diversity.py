"""Does a transformer move from the Bayes estimator of its tasks to ridge as it trains on more of them?

Small softmax transformers train on contexts that are fresh in every step and whose tasks come from a pool of K. Each
is tested on new tasks and on tasks of its pool, and so are two estimators on the same contexts: dMMSE, the posterior
mean that knows the pool, and ridge, which knows none. Published as figure 6 of arXiv 2405.11751, where the gap
between both errors closes as the pool grows, for transformers as for linear attention. A set of sequences that is
drawn once is not simulated here. Theory gives the errors of both estimators, those of dMMSE in the mean over pools.
No place of a transition in K/D is claimed. Findings of earlier runs: docs/studies/transformer-task-diversity.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from iclab import figures
from iclab.claims import CrossesBetween, above
from iclab.numerics import Checked, Count, Counts, Positive, Whole, divides, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import ContextLaw, Pool
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

_STREAM = 20251130  # of the pools that theory averages over
_CROSSING = "Networks are nearer to dMMSE with 4 tasks, to ridge with 16."


@dataclass(frozen=True)
class Case(Checked):
    """Transformers that train on pools of growing size."""

    tasks: Counts = (4, 16)  # K, tasks of the pool
    dimension: Count = 4  # D, entries of an input
    context_length: Count = 8  # N, labeled examples before the query
    noise: Positive = 0.025  # ρ, variance of the label noise
    width: Count = 64  # of the residual stream
    heads: Count = 4  # of a layer
    layers: Count = 2  # blocks of softmax attention with an MLP
    batch: Count = 128  # contexts of a step
    rate: Positive = 0.002  # largest learning rate of Adam
    steps: Annotated[int, Whole(least=101)] = 1500  # steps of training
    tested: Count = 4000  # contexts of a test
    pools: Annotated[int, Whole(least=2)] = 20  # pools that theory averages over
    contexts: Count = 100  # contexts of its quadrature, for each pool

    def __post_init__(self) -> None:
        super().__post_init__()
        rising = len(self.tasks) > 1 and list(self.tasks) == sorted(set(self.tasks))
        require(rising, f"tasks must increase and be of two pools or more; got {self.tasks}.")
        divides("heads", self.heads, "width", self.width)


def theory(case: Case) -> dict[str, Labeled]:
    """Exact errors of both estimators; those of dMMSE are means over pools w ~ N(0, I)."""
    from iclab.theory.estimators import one_context, pool_dmmse_errors

    stream = np.random.default_rng(_STREAM)

    def dmmse(tasks: int) -> list[float]:
        pools = (Pool(stream.standard_normal((tasks, case.dimension))) for _ in range(case.pools))
        laws = (ContextLaw(pool, case.context_length, case.noise) for pool in pools)
        errors = [pool_dmmse_errors(law, contexts=case.contexts) for law in laws]
        return [float(np.mean([float(getattr(one, name)) for one in errors])) for name in ("icl", "idg")]

    icl, idg = np.array([dmmse(tasks) for tasks in case.tasks]).T
    ridge = float(one_context.finite_ridge_error(case.dimension, case.context_length, case.noise))
    return {"bayes": labeled({"tasks": case.tasks}, icl=icl, idg=idg, gap=icl - idg, ridge=ridge)}


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """A network for each pool, and the two estimators on the contexts of its tests."""
    axes, found = {"tasks": case.tasks}, [tested(case, tasks, key=key) for tasks in case.tasks]
    outcomes = {}
    for name in ("network", "dmmse", "ridge"):
        icl, idg = np.array([one[name] for one in found]).T
        outcomes[name] = labeled(axes, icl=icl, idg=idg, gap=icl - idg)
    (dmmse, ridge), gap = np.array([one["distance"] for one in found]).T, outcomes["network"].gap
    return {**outcomes, "distances": labeled(axes, dmmse=dmmse, ridge=ridge, gap_closed=float(gap[0] - gap[-1]))}


def tested(case: Case, tasks: int, *, key: Key) -> dict[str, list[float]]:
    """A trained network and both estimators: errors on new tasks and on the pool's, distances on new tasks."""
    import jax

    from iclab.simulation.networks import Transformer
    from iclab.simulation.networks.regression_runs import predictions_in_training
    from iclab.simulation.pretraining import baselines
    from iclab.simulation.sequences import RegressionContexts

    kinds, last = ("new", "known"), (case.context_length,)
    law = RegressionContexts(case.dimension, case.context_length, case.noise, tasks, case.batch)
    network = Transformer(
        law.length, 1, features=law.features, layers=case.layers, width=case.width, heads=case.heads,
        mlp=4 * case.width, causal=False, positions="none", last_only=True,
    )  # fmt: skip
    settings = {"steps": (case.steps,), "rate": case.rate, "tested": case.tested, "kinds": kinds}
    run = predictions_in_training(network, law, **settings, key=jax.random.fold_in(key, tasks))
    found: dict[str, list[float]] = {"network": [], "dmmse": [], "ridge": [], "distance": []}
    for kind in kinds:
        inputs, labels, (predictions,) = run.predictions[kind]
        estimates = {
            "dmmse": baselines.dmmse(inputs, labels, tasks=run.pool, noise=case.noise, examples_before=last),
            "ridge": baselines.ridge(inputs, labels, noise=case.noise, examples_before=last),
        }
        for name, values in {"network": predictions, **estimates}.items():
            found[name].append(float(np.mean((values[:, 0] - labels[:, -1]) ** 2)))
        if kind == "new":
            far = (baselines.squared_distance(predictions, values) for values in estimates.values())
            found["distance"] = [float(one[0]) for one in far]
    return found


def figure(view: View, figure: Figure) -> None:
    """Distances from both estimators; errors on new tasks and the pool's; their gap and that of dMMSE."""
    distances, errors, gaps = figure.subplots(1, 3)
    exact = view.theory.bayes
    figures.theory_line(errors, exact.tasks, exact.icl, color=figures.COLORS[1], label="dMMSE, new tasks")
    figures.theory_line(errors, exact.tasks, exact.idg, color=figures.COLORS[2], label="dMMSE, the pool's")
    figures.level_lines(errors, [float(exact.ridge)], label="ridge")
    figures.theory_line(gaps, exact.tasks, exact.gap, label="dMMSE, mean over pools")
    if view.simulation:
        far, network, dmmse = (view.simulation[name] for name in ("distances", "network", "dmmse"))
        seeds = figures.seeds(far)
        for color, (name, words) in figures.colored((("ridge", "ridge"), ("dmmse", "dMMSE"))):
            figures.seed_dots(distances, far.tasks, far[name].values, color=color, label=f"from {words}, {seeds}")
            figures.dashed_line(distances, far.tasks, far[name].median("seed"), color=color)
        for color, (name, words) in figures.colored((("icl", "new tasks"), ("idg", "the pool's")), first=1):
            figures.seed_dots(errors, network.tasks, network[name].values, color=color, label=f"network, {words}")
        figures.seed_dots(gaps, network.tasks, network.gap.values, color=figures.COLORS[0], label=f"network, {seeds}")
        for i, gap in enumerate(dmmse.gap.values):
            label = "dMMSE, same pools" if i == 0 else None
            gaps.plot(dmmse.tasks, gap, "x", ms=5, color=figures.INK, label=label)
        distances.legend()
    for axes, words in ((distances, "squared distance"), (errors, "mean squared error"), (gaps, "$g_{task}$")):
        axes.set(xscale="log", xlabel="tasks of the pool $K$", ylabel=words)
        axes.set_xticks(exact.tasks.values, [f"{tasks}" for tasks in exact.tasks.values], minor=False)
        axes.minorticks_off()
    distances.set(yscale="log", title="network from estimators")
    errors.set(yscale="log", title="errors")
    gaps.set(title="new tasks above the pool's")
    errors.legend(fontsize=7)
    gaps.legend(fontsize=7)


WORDS = vocabulary(
    {
        "bayes/icl": ("e_ICL", "error of dMMSE on new tasks", "label²"),
        "bayes/idg": ("e_IDG", "error of dMMSE on tasks of the pool", "label²"),
        "bayes/gap": ("g_task", "gap of dMMSE between new tasks and the pool's", "label²"),
        "bayes/ridge": ("e", "error of ridge on every task", "label²"),
    },
    tasks=("K", "tasks of the pool"),
    gap=("g_task", "gap between new tasks and the pool's", "label²"),
    dmmse=("Δ²", "squared distance from dMMSE on new tasks", "label²"),
    ridge=("Δ²", "squared distance from ridge on new tasks", "label²"),
    gap_closed=("Δg", "fall of the gap from the smallest pool to the largest", "label²"),
)

FULL = Case(tasks=(4, 16, 64, 256, 1024), steps=3000, pools=40, contexts=200)
STUDY = Study(
    name="transformer-task-diversity", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=3, size=(11.0, 3.6)), "full": Preset(FULL, seeds=3, size=(11.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        CrossesBetween("distances/ridge", "distances/dmmse", _CROSSING, along="tasks", lower=4, upper=16),
        above("distances/gap_closed", "From the smallest pool to the largest the gap falls by half or more.", 0.5),
    ),
    unjudged=dict.fromkeys((f"theory/bayes/{name}" for name in ("icl", "idg", "gap", "ridge")), "for comparison"),
    vocabulary=WORDS,
)  # fmt: skip
