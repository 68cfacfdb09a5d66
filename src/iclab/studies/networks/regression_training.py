"""Which estimator does a transformer come to resemble while it learns to regress in context?

A causal transformer reads inputs and labels in turn and predicts the label of every input. The question is that of
arXiv 2208.01066 and 2211.15661, whose networks and training are far larger; none of their figures is reproduced in
size. Inputs are white, so that a preconditioner of gradient descent would be a learning rate.

Theory gives the errors of estimators at finite D against the number of examples, docs/derivations/estimators. With
linear functions w ~ N(0, I) ridge at the noise level is the Bayes estimator: no network is below it on new tasks,
and what a network loses more is its squared distance from ridge. Simulation trains a small network, tests it at
several steps of training, and takes its squared distance from ridge, least squares and gradient descent of one and
several steps on the same contexts, and from dMMSE where tasks come from a pool.

The claims ask that drawn contexts give ridge its exact error and, for linear functions, that no network is below the
Bayes error, that the trained one comes near to it, and that it is nearer to ridge than to one step of gradient
descent or to least squares. That it reaches the Bayes error is not claimed. Findings of earlier runs:
docs/studies/regression-training.
"""

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Bounded, WhereKnown
from iclab.numerics import divides, increasing_grid, one_of, positive, require, whole_number, whole_numbers
from iclab.studies.networks.regression import Bayes, Drawn, Exact, Known, Linear, Network, Ridge
from iclab.study import Figure, Key, Preset, Study, View

if TYPE_CHECKING:
    import xarray as xr

    from iclab.simulation import sequences

Array = np.ndarray
FUNCTIONS = ("linear", "sparse", "two-layer")
LONGEST = 128  # contexts whose errors are averaged in a minute
BASELINES = ("ridge", "least_squares", "one_step", "descent")


@dataclass(frozen=True)
class Case:
    """A causal transformer on contexts of one class of functions. Raises ValueError for impossible numbers."""

    functions: str = "linear"  # linear; sparse: linear of few entries; or two-layer: random ReLU networks
    nonzero: int = 2  # entries of a sparse task that are not 0
    hidden: int = 20  # neurons of a two-layer task
    tasks: int | None = None  # K, tasks of the pool; None: a fresh one for every context
    dimension: int = 3  # D, entries of an input
    context_length: int = 8  # N, labelled examples before the last query
    noise: float = 0.1  # ρ, variance of the label noise
    width: int = 32  # of the residual stream
    heads: int = 2  # of a layer
    layers: int = 2  # blocks of softmax attention with an MLP
    batch: int = 64  # contexts of a step
    rate: float = 0.005  # largest rate of Adam
    steps: tuple[int, ...] = (200, 400, 800, 1500, 2400)  # steps at which the network is tested
    descent: int = 4  # steps of gradient descent in context
    tested: int = 4000  # contexts of the test

    def __post_init__(self) -> None:
        one_of("functions", self.functions, FUNCTIONS)
        for name in ("nonzero", "hidden", "dimension", "context_length", "width", "heads", "layers", "batch"):
            whole_number(name, getattr(self, name))
        whole_number("descent", self.descent)
        whole_number("tested", self.tested, least=100)  # of fewer a standard error says too little
        require(
            self.context_length <= LONGEST,
            f"context_length must be at most {LONGEST}, for exact errors are averages over contexts; got "
            f"{self.context_length}.",
        )
        divides("heads", self.heads, "width", self.width)
        require(
            self.functions != "sparse" or self.nonzero <= self.dimension,
            f"nonzero must be at most the dimension, {self.dimension}; got {self.nonzero}.",
        )
        if self.tasks is not None:
            require(self.functions != "two-layer", "tasks must be None for two-layer functions; dMMSE knows linear.")
            whole_number("tasks", self.tasks)
        positive("noise", self.noise)
        positive("rate", self.rate)
        steps = whole_numbers("steps", self.steps)
        increasing_grid("steps", np.array(steps))
        require(steps[-1] > 100, f"steps must outlast the 100 of the warming up; got {steps}.")
        object.__setattr__(self, "steps", steps)

    @property
    def examples(self) -> Int[Array, "examples"]:
        """Numbers of labelled examples at which the network answers."""
        return np.arange(self.context_length + 1)


def theory(case: Case) -> dict[str, Ridge | Linear]:
    """Exact errors of estimators against the number of examples."""
    from iclab.theory import estimators

    exact, size = estimators.one_context, (case.dimension, case.noise)

    def curve(error: Any) -> Float[Array, "examples"]:
        return np.array([error(size[0], int(m), size[1]) for m in case.examples])

    if case.functions == "two-layer":
        return {"ridge": Ridge(case.examples, curve(exact.two_layer_ridge_error))}
    return {
        "ridge": Ridge(case.examples, curve(exact.finite_ridge_error)),
        "linear": Linear(case.examples, curve(exact.least_squares_error), curve(exact.one_step_error)),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Drawn | Network | Exact | Known | Bayes]:
    """The network at its steps, and the estimators on the contexts of its test."""
    from iclab.simulation.networks import Transformer
    from iclab.simulation.networks.regression_runs import predictions_in_training
    from iclab.simulation.pretraining import baselines
    from iclab.simulation.sequences import RegressionContexts

    law = RegressionContexts(
        case.dimension, case.context_length, case.noise, case.tasks, case.batch, "interleaved", functions(case)
    )
    network = Transformer(
        law.length, 1, features=law.features, layers=case.layers, width=case.width, heads=case.heads,
        mlp=4 * case.width,
    )  # fmt: skip
    run = predictions_in_training(network, law, steps=case.steps, rate=case.rate, tested=case.tested, key=key)
    inputs, labels, answers = run.predictions["new"]
    best = baselines.best_rates(case.dimension, case.context_length, noise=case.noise)
    settled = case.dimension / (1 + np.sqrt(case.dimension / np.maximum(case.examples, 1))) ** 2
    estimates = {
        "ridge": baselines.ridge(inputs, labels, noise=case.noise),
        "least_squares": baselines.least_squares(inputs, labels),
        "one_step": baselines.gradient_descent(inputs, labels, rate=best),
        "descent": baselines.gradient_descent(inputs, labels, rate=settled, steps=case.descent),
    }

    def error(values: Array) -> Array:
        return np.mean((values - labels) ** 2, axis=-2)

    def distance(values: Array) -> Array:
        return baselines.squared_distance(answers, values)[:, -1]

    far = {name: distance(values) for name, values in estimates.items()}
    loss, steps = error(answers), np.array(case.steps)
    squares, exact = (estimates["ridge"] - labels) ** 2, theory(case)["ridge"]
    assert isinstance(exact, Ridge)
    apart = abs(squares.mean(0) - exact.ridge) / _sampling_error(squares)
    found: dict[str, Drawn | Network | Exact | Known | Bayes] = {
        "baselines": Drawn(case.examples, *(error(estimates[name]) for name in BASELINES)),
        "network": Network(steps, case.examples, loss, *(far[name] for name in BASELINES)),
        "exact": Exact(float(apart.max())),
    }
    if case.tasks is not None:
        dmmse = baselines.dmmse(inputs, labels, tasks=run.pool, noise=case.noise)
        found["known"] = Known(case.examples, steps, error(dmmse), distance(dmmse))
    if case.functions == "linear":
        excess = (answers - labels) ** 2 - squares
        score = excess.mean(1) / _sampling_error(excess)
        end = {name: float(values[-1]) for name, values in far.items()}
        found["bayes"] = Bayes(
            float(score.min()),
            float(loss[-1, -1] / error(estimates["ridge"])[-1]),
            end["ridge"] / end["one_step"],
            end["ridge"] / end["least_squares"],
        )
    return found


def _sampling_error(values: Float[Array, "*times P examples"]) -> Float[Array, "*times examples"]:
    """Standard error of the mean over contexts."""
    return values.std(-2, ddof=1) / np.sqrt(values.shape[-2])


def functions(case: Case) -> "sequences.Linear | sequences.SparseLinear | sequences.TwoLayer":
    """The class of functions that contexts follow."""
    from iclab.simulation import sequences

    classes = {
        "linear": sequences.Linear(),
        "sparse": sequences.SparseLinear(nonzero=case.nonzero),
        "two-layer": sequences.TwoLayer(hidden=case.hidden),
    }
    return classes[case.functions]


def figure(view: View, figure: Figure) -> None:
    """Loss against examples at several steps, beside the estimators; distances from them during training."""
    curves, distances = figure.subplots(1, 2, width_ratios=[1.25, 1])
    exact = view.theory.ridge
    figures.theory_line(curves, exact.examples, exact.ridge, label="ridge")
    top = 1.6 * float(exact.ridge.max())
    if "linear" in view.theory:
        others = view.theory.linear
        for name, words, color in (("least_squares", "least squares", 2), ("one_step", "1 step of descent", 1)):
            shown = others[name].where(np.isfinite(others[name]))
            figures.theory_line(curves, others.examples, shown, color=figures.COLORS[color], label=words)
    case = json.loads(view.attrs["case"])
    several = f"{case['descent']} steps of descent"
    if view.simulation:
        _draw_network(curves, distances, view.simulation.network, several=several)
        drawn = view.simulation.baselines
        figures.dashed_line(
            curves, drawn.examples, drawn.descent.mean("seed"), color=figures.COLORS[4], label=f"{several}, drawn"
        )
        if "known" in view.simulation:
            known = view.simulation.known
            figures.dashed_line(
                curves, known.examples, known.error.mean("seed"), color="#777777", label="dMMSE, drawn"
            )
            figures.seed_lines(distances, known.step, known.distance.values, color="#777777", label="dMMSE")
        distances.legend(fontsize=7)
    curves.set(yscale="log", xlabel="labelled examples $m$", ylabel="mean squared error", title="on new tasks")
    curves.set_ylim(top=top)
    curves.legend(fontsize=7)
    distances.set(xscale="log", yscale="log", xlabel="steps of training", ylabel="squared distance")
    distances.set_title("the network's last answers from those of estimators")
    distances.set_xticks(case["steps"], [f"{step}" for step in case["steps"]])
    distances.xaxis.minorticks_off()


def _draw_network(curves: Any, distances: Any, network: "xr.Dataset", *, several: str) -> None:
    steps = network.step.values
    for i, step in enumerate(steps):
        shade = 0.85 - 0.6 * i / max(1, len(steps) - 1)
        label = f"network, step {step}" if i in (0, len(steps) - 1) else None
        rows = network.loss.sel(step=step).values
        figures.seed_lines(curves, network.examples, rows, color=(shade, shade, 1.0), label=label)
    words = {"ridge": "ridge", "least_squares": "least squares", "one_step": "1 step of descent", "descent": several}
    for name, color in (("ridge", figures.INK), ("least_squares", 2), ("one_step", 1), ("descent", 4)):
        drawn = color if isinstance(color, str) else figures.COLORS[color]
        label = f"{words[name]}, {figures.seeds(network)}" if name == "ridge" else words[name]
        figures.seed_lines(distances, network.step, network[name].values, color=drawn, label=label)


def _bayes(variable: str, meaning: str, bound: float, *, at_most: bool = True) -> WhereKnown:
    return WhereKnown(Bounded(f"simulation/bayes/{variable}", meaning, bound, at_most), "simulation/bayes", meaning)


STUDY = Study(
    name="regression-training",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=3, size=(10.0, 3.8)),
        "full": Preset(
            replace(Case(), width=64, layers=3, rate=0.002, steps=(200, 400, 800, 1500, 3000, 6000), tested=10_000),
            seeds=3,
            size=(10.0, 3.8),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Bounded("simulation/exact/score", "On the drawn contexts ridge has its exact error at every length.", 4.0),
        _bayes(
            "score",
            "On new linear tasks no network is below the Bayes error, at any step and length.",
            -4.0,
            at_most=False,
        ),
        _bayes("ratio", "After training the last prediction loses less than twice what ridge does.", 2.0),
        _bayes("from_one_step", "The trained network is nearer to ridge than to one step of gradient descent.", 0.7),
        _bayes("from_least_squares", "It is nearer to ridge than to least squares.", 0.9),
    ),
)
