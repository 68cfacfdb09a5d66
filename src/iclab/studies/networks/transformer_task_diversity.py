"""Does a transformer move from the Bayes estimator of its tasks to ridge as it trains on more of them?

Small softmax transformers train on contexts that are fresh in every step and whose tasks come from a pool of K. Each
is tested on new tasks and on tasks of its pool, and so are two estimators on the same contexts: dMMSE, the posterior
mean that knows the pool, and ridge, which knows none. Published as figure 6 of arXiv 2405.11751, where the gap
between errors on new tasks and on tasks of the pool closes as the pool grows, for transformers as for linear
attention. Training on a set of sequences that is drawn once is not simulated here.

Theory gives the errors of both estimators, those of dMMSE in the mean over pools. The claims ask that in every seed
the network is nearer to dMMSE with a small pool and nearer to ridge with a larger one, on new tasks, and that its
gap falls from the smallest pool to the largest. No place of a transition in K/D is claimed. Findings of earlier
runs: docs/studies/transformer-task-diversity.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Bounded, CrossesBetween
from iclab.numerics import divides, positive, require, whole_number, whole_numbers
from iclab.outcomes import quantity
from iclab.problem import ContextLaw, Pool
from iclab.study import Figure, Key, Preset, Study, View

Array = np.ndarray
_STREAM = 20251130  # of the pools that theory averages over


@dataclass(frozen=True)
class Case:
    """Transformers that train on pools of growing size. Raises ValueError for impossible numbers."""

    tasks: tuple[int, ...] = (4, 16)  # K, tasks of the pool
    dimension: int = 4  # D, entries of an input
    context_length: int = 8  # N, labelled examples before the query
    noise: float = 0.025  # ρ, variance of the label noise
    width: int = 64  # of the residual stream
    heads: int = 4  # of a layer
    layers: int = 2  # blocks of softmax attention with an MLP
    batch: int = 128  # contexts of a step
    rate: float = 0.002  # largest rate of Adam
    steps: int = 1500  # steps of training
    tested: int = 4000  # contexts of a test
    pools: int = 20  # pools that theory averages over
    contexts: int = 100  # contexts of its quadrature, for each pool

    def __post_init__(self) -> None:
        tasks = whole_numbers("tasks", self.tasks)
        require(
            len(tasks) > 1 and list(tasks) == sorted(set(tasks)),
            f"tasks must increase and be of two pools or more; got {tasks}.",
        )
        object.__setattr__(self, "tasks", tasks)
        for name in ("dimension", "context_length", "width", "heads", "layers", "batch", "tested", "contexts"):
            whole_number(name, getattr(self, name))
        divides("heads", self.heads, "width", self.width)
        whole_number("pools", self.pools, least=2)
        whole_number("steps", self.steps, least=101)
        positive("noise", self.noise)
        positive("rate", self.rate)


def _tasks() -> Any:
    return quantity("K", "tasks", words="tasks of the pool")


def _square(words: str, symbol: str = "e") -> Any:
    return quantity(symbol, "tasks", unit="label²", words=words)


@dataclass(frozen=True)
class Bayes:
    """Errors of the two estimators: dMMSE in the mean over pools w ~ N(0, I), and ridge."""

    tasks: Int[Array, "tasks"] = _tasks()
    icl: Float[Array, "tasks"] = _square("error of dMMSE on new tasks", "e_ICL")
    idg: Float[Array, "tasks"] = _square("error of dMMSE on tasks of the pool", "e_IDG")
    gap: Float[Array, "tasks"] = _square("gap of dMMSE between new tasks and the pool's", "g_task")
    ridge: float = quantity("e", unit="label²", words="error of ridge on every task")


@dataclass(frozen=True)
class Errors:
    """Errors on drawn contexts of new tasks and of the pool's."""

    tasks: Int[Array, "tasks"] = _tasks()
    icl: Float[Array, "tasks"] = _square("error on new tasks", "e_ICL")
    idg: Float[Array, "tasks"] = _square("error on tasks of the pool", "e_IDG")
    gap: Float[Array, "tasks"] = _square("gap between new tasks and the pool's", "g_task")


@dataclass(frozen=True)
class Distances:
    """Mean squared distance of the network's answers on new tasks from those of estimators."""

    tasks: Int[Array, "tasks"] = _tasks()
    dmmse: Float[Array, "tasks"] = _square("squared distance from dMMSE on new tasks", "Δ²")
    ridge: Float[Array, "tasks"] = _square("squared distance from ridge on new tasks", "Δ²")
    gap_closed: float = quantity("Δg", unit="label²", words="fall of the gap from the smallest pool to the largest")


def theory(case: Case) -> dict[str, Bayes]:
    """Exact errors of both estimators, in the mean over pools."""
    from iclab.theory import estimators

    stream = np.random.default_rng(_STREAM)

    def dmmse(tasks: int) -> tuple[float, float]:
        drawn = [
            estimators.pool_dmmse_errors(
                ContextLaw(Pool(stream.standard_normal((tasks, case.dimension))), case.context_length, case.noise),
                contexts=case.contexts,
            )
            for _ in range(case.pools)
        ]
        return float(np.mean([one.icl for one in drawn])), float(np.mean([one.idg for one in drawn]))

    icl, idg = np.array([dmmse(tasks) for tasks in case.tasks]).T
    ridge = estimators.one_context.finite_ridge_error(case.dimension, case.context_length, case.noise)
    return {"bayes": Bayes(np.array(case.tasks), icl, idg, icl - idg, float(ridge))}


def simulation(case: Case, *, key: Key) -> dict[str, Errors | Distances]:
    """A network for each pool, and the two estimators on the contexts of its tests."""
    import jax

    from iclab.simulation.networks import Transformer
    from iclab.simulation.networks.regression_runs import predictions_in_training
    from iclab.simulation.pretraining import baselines
    from iclab.simulation.sequences import RegressionContexts

    kinds, last = ("new", "known"), (case.context_length,)

    def errors_of(tasks: int) -> dict[str, list[float]]:
        law = RegressionContexts(case.dimension, case.context_length, case.noise, tasks, case.batch)
        network = Transformer(
            law.length, 1, features=law.features, layers=case.layers, width=case.width, heads=case.heads,
            mlp=4 * case.width, causal=False, positions="none", last_only=True,
        )  # fmt: skip
        run = predictions_in_training(
            network, law, steps=(case.steps,), rate=case.rate, tested=case.tested, kinds=kinds,
            key=jax.random.fold_in(key, tasks),
        )  # fmt: skip
        found: dict[str, list[float]] = {"network": [], "dmmse": [], "ridge": [], "distance": []}
        for kind in kinds:
            inputs, labels, (answers,) = run.predictions[kind]
            answered = {
                "network": answers,
                "dmmse": baselines.dmmse(inputs, labels, tasks=run.pool, noise=case.noise, examples_before=last),
                "ridge": baselines.ridge(inputs, labels, noise=case.noise, examples_before=last),
            }
            for name, values in answered.items():
                found[name].append(float(np.mean((values[:, 0] - labels[:, -1]) ** 2)))
            if kind == "new":
                found["distance"] = [
                    float(baselines.squared_distance(answers, answered[name])[0]) for name in ("dmmse", "ridge")
                ]
        return found

    found = [errors_of(tasks) for tasks in case.tasks]
    size = np.array(case.tasks)

    def errors(name: str) -> Errors:
        icl, idg = np.array([one[name] for one in found]).T
        return Errors(size, icl, idg, icl - idg)

    dmmse, ridge = np.array([one["distance"] for one in found]).T
    network = errors("network")
    return {
        "network": network,
        "dmmse": errors("dmmse"),
        "ridge": errors("ridge"),
        "distances": Distances(size, dmmse, ridge, float(network.gap[0] - network.gap[-1])),
    }


def figure(view: View, figure: Figure) -> None:
    """Distances from both estimators; errors on new tasks and the pool's; the gap beside that of dMMSE."""
    distances, errors, gaps = figure.subplots(1, 3)
    exact = view.theory.bayes
    figures.theory_line(errors, exact.tasks, exact.icl, color=figures.COLORS[1], label="dMMSE, new tasks")
    figures.theory_line(errors, exact.tasks, exact.idg, color=figures.COLORS[2], label="dMMSE, the pool's")
    figures.level_lines(errors, [float(exact.ridge)], label="ridge")
    figures.theory_line(gaps, exact.tasks, exact.gap, label="dMMSE, mean over pools")
    if view.simulation:
        _draw_runs(distances, errors, gaps, view)
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


def _draw_runs(distances: Any, errors: Any, gaps: Any, view: View) -> None:
    far, network, dmmse = (view.simulation[name] for name in ("distances", "network", "dmmse"))
    seeds = figures.seeds(far)
    for i, name in enumerate(("ridge", "dmmse")):
        label = f"from {'ridge' if name == 'ridge' else 'dMMSE'}, {seeds}"
        figures.seed_dots(distances, far.tasks, far[name].values, color=figures.COLORS[i], label=label)
        figures.dashed_line(distances, far.tasks, far[name].median("seed"), color=figures.COLORS[i])
    for name, words, color in (("icl", "new tasks", 1), ("idg", "the pool's", 2)):
        label = f"network, {words}"
        figures.seed_dots(errors, network.tasks, network[name].values, color=figures.COLORS[color], label=label)
    figures.seed_dots(gaps, network.tasks, network.gap.values, color=figures.COLORS[0], label=f"network, {seeds}")
    gaps.plot(
        dmmse.tasks,
        dmmse.gap.values.T,
        "x",
        ms=5,
        color=figures.INK,
        label=["dMMSE, same pools"] + ["_"] * (dmmse.sizes["seed"] - 1),
    )


STUDY = Study(
    name="transformer-task-diversity",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=1, size=(11.0, 3.6)),
        "full": Preset(
            replace(Case(), tasks=(4, 16, 64, 256, 1024), steps=3000, pools=40, contexts=200),
            seeds=3,
            size=(11.0, 3.6),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        CrossesBetween(
            "simulation/distances/ridge",
            "simulation/distances/dmmse",
            "On new tasks the network is nearer to dMMSE with 4 tasks, nearer to ridge with 16.",
            along="tasks",
            lower=4,
            upper=16,
        ),
        Bounded(
            "simulation/distances/gap_closed",
            "From the smallest pool to the largest the gap to new tasks closes by half a squared label or more.",
            bound=0.5,
            at_most=False,
        ),
    ),
)
