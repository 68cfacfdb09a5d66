"""Which estimator does a transformer come to resemble while it learns to regress in context?

A causal transformer reads inputs and labels in turn and predicts the label of every input: the question of arXiv
2208.01066 and 2211.15661, whose networks are far larger; none of their figures is reproduced in size. Theory gives
the errors of estimators at finite D against the number of examples, docs/derivations/estimators. With linear
functions w ~ N(0, I) ridge at the noise level is the Bayes estimator, and the excess loss of a network its squared
distance from ridge. Simulation trains a small network and takes at several steps its squared distances from ridge,
least squares and gradient descent on the same contexts, inputs white, and from dMMSE where tasks come from a pool.
That it reaches the Bayes error is not claimed. Findings of earlier runs: docs/studies/regression-training.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Agrees, WhereKnown, above, below
from iclab.numerics import Checked, Count, Counts, OneOf, Positive, Whole, divides, increasing_grid, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

Array = np.ndarray
LONGEST = 128  # contexts whose errors are averaged in a minute
Functions = Annotated[str, OneOf(("linear", "sparse", "two-layer"))]
BASELINES = {  # names and colors
    "ridge": ("ridge", figures.INK),
    "least_squares": ("least squares", figures.COLORS[2]),
    "one_step": ("1 step of descent", figures.COLORS[1]),
    "descent": ("several steps of descent", figures.COLORS[4]),
}


@dataclass(frozen=True)
class Case(Checked):
    """A causal transformer on contexts of one class of functions."""

    functions: Functions = "linear"  # linear, of few entries (sparse), random ReLU networks (two-layer)
    nonzero: Count = 2  # entries of a sparse task that are not 0
    hidden: Count = 20  # neurons of a two-layer task
    tasks: int | None = None  # K, tasks of the pool; None: a fresh one for every context
    dimension: Count = 3  # D, entries of an input
    context_length: Count = 8  # N, labeled examples before the last query
    noise: Positive = 0.1  # ρ, variance of the label noise
    width: Count = 32  # of the residual stream
    heads: Count = 2  # of a layer
    layers: Count = 2  # blocks of softmax attention with an MLP
    batch: Count = 64  # contexts of a step
    rate: Positive = 0.005  # largest learning rate of Adam
    steps: Counts = (200, 400, 800, 1500, 2400)  # steps at which the network is tested
    descent: Count = 4  # steps of gradient descent in context
    tested: Annotated[int, Whole(least=100)] = 100_000  # contexts of the test, enough for a standard error

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.context_length <= LONGEST,
            f"context_length must be at most {LONGEST}, for exact errors are averages over contexts; got "
            f"{self.context_length}.",
        )
        divides("heads", self.heads, "width", self.width)
        fits = self.functions != "sparse" or self.nonzero <= self.dimension
        require(fits, f"nonzero must be at most the dimension, {self.dimension}; got {self.nonzero}.")
        if self.tasks is not None:
            require(self.functions != "two-layer", "tasks must be None for two-layer functions; dMMSE knows linear.")
            Whole()("tasks", self.tasks)
        increasing_grid("steps", np.array(self.steps))
        require(self.steps[-1] > 100, f"steps must outlast the 100 of the warming up; got {self.steps}.")

    @property
    def examples(self) -> Int[Array, "examples"]:
        """Numbers of labeled examples at which the network predicts."""
        return np.arange(self.context_length + 1)


def theory(case: Case) -> dict[str, Labeled]:
    """Exact errors of estimators against the number of examples; inf where a mean does not exist."""
    from iclab.theory.estimators import one_context

    def curve(error: Callable[[int, int, float], float]) -> list[float]:
        return [error(case.dimension, int(m), case.noise) for m in case.examples]

    axes = {"examples": case.examples}
    if case.functions == "two-layer":
        return {"ridge": labeled(axes, ridge=curve(one_context.two_layer_ridge_error))}
    least_squares, one_step = curve(one_context.least_squares_error), curve(one_context.one_step_error)
    return {
        "ridge": labeled(axes, ridge=curve(one_context.finite_ridge_error)),
        "linear": labeled(axes, least_squares=least_squares, one_step=one_step),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """The network at its steps, and the estimators on the contexts of its test."""
    from iclab.simulation.networks import Transformer
    from iclab.simulation.networks.regression_runs import predictions_in_training
    from iclab.simulation.pretraining import baselines
    from iclab.simulation.sequences import Linear, RegressionContexts, SparseLinear, TwoLayer

    classes = {"linear": Linear(), "sparse": SparseLinear(nonzero=case.nonzero), "two-layer": TwoLayer(case.hidden)}
    sizes = (case.dimension, case.context_length, case.noise, case.tasks, case.batch)
    law = RegressionContexts(*sizes, "interleaved", classes[case.functions])
    network = Transformer(
        law.length, 1, features=law.features, layers=case.layers, width=case.width, heads=case.heads,
        mlp=4 * case.width,
    )  # fmt: skip
    run = predictions_in_training(network, law, steps=case.steps, rate=case.rate, tested=case.tested, key=key)
    inputs, labels, predictions = run.predictions["new"]
    estimates, axes = estimated(case, inputs, labels), {"examples": case.examples, "step": case.steps}
    if case.tasks is not None:
        estimates["dmmse"] = baselines.dmmse(inputs, labels, tasks=run.pool, noise=case.noise)
    errors = {name: np.mean((values - labels) ** 2, axis=-2) for name, values in estimates.items()}
    far = {name: baselines.squared_distance(predictions, values)[:, -1] for name, values in estimates.items()}
    squares, loss = (estimates["ridge"] - labels) ** 2, np.mean((predictions - labels) ** 2, axis=-2)
    apart = abs(squares.mean(0) - theory(case)["ridge"].ridge) / _sampling_error(squares)
    distances = {name: ("step", far[name]) for name in BASELINES}
    found = {
        "baselines": labeled({"examples": case.examples}, **{name: errors[name] for name in BASELINES}),
        "network": labeled(axes, loss=(("step", "examples"), loss), **distances),
        "exact": labeled({}, score=apart.max()),
    }
    if case.tasks is not None:
        found["known"] = labeled(axes, error=("examples", errors["dmmse"]), distance=("step", far["dmmse"]))
    if case.functions == "linear":
        excess = (predictions - labels) ** 2 - squares
        found["bayes"] = labeled(
            {},
            score=(excess.mean(1) / _sampling_error(excess)).min(),
            ratio=loss[-1, -1] / errors["ridge"][-1],
            from_one_step=far["ridge"][-1] / far["one_step"][-1],
            from_least_squares=far["ridge"][-1] / far["least_squares"][-1],
        )
    return found


def estimated(case: Case, inputs: Array, labels: Array) -> dict[str, Array]:
    """Predictions of the estimators, gradient descent of several steps at a learning rate that converges."""
    from iclab.simulation.pretraining.baselines import best_rates, gradient_descent, least_squares, ridge

    best = best_rates(case.dimension, case.context_length, noise=case.noise)
    settled = case.dimension / (1 + np.sqrt(case.dimension / np.maximum(case.examples, 1))) ** 2
    return {
        "ridge": ridge(inputs, labels, noise=case.noise),
        "least_squares": least_squares(inputs, labels),
        "one_step": gradient_descent(inputs, labels, rate=best),
        "descent": gradient_descent(inputs, labels, rate=settled, steps=case.descent),
    }


def _sampling_error(values: Float[Array, "*times P examples"]) -> Float[Array, "*times examples"]:
    """Standard error of the mean over contexts."""
    return values.std(-2, ddof=1) / np.sqrt(values.shape[-2])


def figure(view: View, figure: Figure) -> None:
    """Loss against examples at several steps, with the estimators; distances from them during training."""
    curves, distances = figure.subplots(1, 2, width_ratios=[1.25, 1])
    exact, steps = view.theory.ridge, view.case.steps
    figures.theory_line(curves, exact.examples, exact.ridge, label="ridge")
    for name, error in view.theory.linear.items() if "linear" in view.theory else ():
        words, color = BASELINES[str(name)]
        figures.theory_line(curves, error.examples, error.where(np.isfinite(error)), color=color, label=words)
    if view.simulation:
        network, drawn = view.simulation.network, view.simulation.baselines
        several, own = f"{view.case.descent} steps of descent", BASELINES["descent"][1]
        for i, step in enumerate(steps):
            shade = 0.85 - 0.6 * i / max(1, len(steps) - 1)
            label = f"network, step {step}" if i in (0, len(steps) - 1) else None
            rows = network.loss.sel(step=step).values
            figures.seed_lines(curves, network.examples, rows, color=(shade, shade, 1.0), label=label)
        labels = {"ridge": f"ridge, {figures.seeds(network)}", "descent": several}
        for name, (words, color) in BASELINES.items():
            label = labels.get(name, words)
            figures.seed_lines(distances, network.step, network[name].values, color=color, label=label)
        figures.dashed_line(curves, drawn.examples, drawn.descent.mean("seed"), color=own, label=f"{several}, drawn")
        if "known" in view.simulation:
            known, gray = view.simulation.known, "#777777"
            figures.dashed_line(curves, known.examples, known.error.mean("seed"), color=gray, label="dMMSE, drawn")
            figures.seed_lines(distances, known.step, known.distance.values, color=gray, label="dMMSE")
        distances.legend(fontsize=7)
    curves.set(yscale="log", xlabel="labeled examples $m$", ylabel="mean squared error", title="on new tasks")
    curves.set_ylim(top=1.6 * float(exact.ridge.max()))
    curves.legend(fontsize=7)
    distances.set(xscale="log", yscale="log", xlabel="steps of training", ylabel="squared distance")
    distances.set_title("the network's last predictions from those of estimators")
    distances.set_xticks(steps, [f"{step}" for step in steps])
    distances.xaxis.minorticks_off()


ERRORS = {name: ("L", f"error of {words}", "label²") for name, (words, _) in BASELINES.items()}
FAR = "squared distance from {} at the last query"
DISTANCES = {f"network/{name}": ("Δ²", FAR.format(words), "label²") for name, (words, _) in BASELINES.items()}
WORDS = vocabulary(
    {
        "exact/score": ("z", "largest distance of drawn errors of ridge from exact ones, in standard errors"),
        "bayes/score": ("z", "least excess over ridge on the same contexts, in standard errors"),
    },
    examples=("m", "labeled examples before the query"),
    step=("s", "steps of training"),
    loss=("L", "mean squared error on new tasks", "label²"),
    error=("L", "error of dMMSE", "label²"),
    distance=("Δ²", FAR.format("dMMSE"), "label²"),
    ratio=("L/L_ridge", "final loss at the last query over that of ridge"),
    from_one_step=("Δ²/Δ²", "squared distance from ridge over that from one step"),
    from_least_squares=("Δ²/Δ²", "squared distance from ridge over that from least squares"),
)
BAYES = (  # claims about linear functions
    above("bayes/score", "On new linear tasks no network is below the Bayes error, at any step and length.", -4.0),
    below("bayes/ratio", "After training the last prediction loses less than twice what ridge does.", 2.0),
    below("bayes/from_one_step", "The trained network is nearer to ridge than to one step of descent.", 0.7),
    below("bayes/from_least_squares", "It is nearer to ridge than to least squares.", 0.9),
)
FULL = Case(width=64, layers=3, rate=0.002, steps=(200, 400, 800, 1500, 3000, 6000), tested=10_000)
STUDY = Study(
    name="regression-training", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=3, size=(10.0, 3.8)), "full": Preset(FULL, seeds=3, size=(10.0, 3.8))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("baselines/ridge", "On drawn contexts ridge has its exact error.", 0.05, theory="ridge/ridge"),
        WhereKnown(Agrees("baselines/one_step", "One step too.", 0.05, theory="linear/one_step"), "bayes"),
        *(WhereKnown(claim, "bayes") for claim in BAYES),
    ),
    unjudged={"theory/linear/least_squares": "its variance is infinite next to as many examples as dimensions"},
    vocabulary=vocabulary(ERRORS | DISTANCES) | WORDS,
)  # fmt: skip
