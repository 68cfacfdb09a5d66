"""Which balance of the weights does training keep, and what breaks it?

*Exact at any N*: gradient flow keeps u² − |U|² of one head, on the population and on any sample, and Σ (p² − q²) of a
two-factor transformer. At *leading order in 1/N* p² − q² of every mode is kept too; at finite N the exact flow moves
it from mode to mode. Gradient descent breaks these laws by an amount of order its rate; the noise of batches by one
that the *small-noise expansion* predicts to first order in rate/B. Simulation is gradient descent on drawn sequences,
gradient flow from drawn contexts, and one-pass SGD on drawn tokens. Of arXiv 2504.12916; derived in
docs/derivations/modes and docs/derivations/sgd.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.attention import MergedAttention
from iclab.claims import Agrees, Tends
from iclab.numerics import Checked, Count, Counts, Finite, Multiple, Nonnegatives, Positive, Whole
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Regression
from iclab.studies.modes.training import WORDS, Schedule, drawn_flow, trained_on_batches
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

Matrices = Float[np.ndarray, "*run D D"]
RECORDS = 15  # of a run
FINER = np.array([1, 3, 10])  # by which the learning rate of descent is divided


@dataclass(frozen=True)
class Case(Checked):
    """Balances along flow, descent and SGD."""

    problem: Regression = Regression(eigenvalues=(1.5, 0.6), context_length=10, noise=0.2)
    value: Finite = 0.5  # u of the head at the start
    key_query: Finite = 0.3  # diagonal of U at the start
    rate: Positive = 0.01  # η, learning rate of the head's SGD, and the largest of descent
    batch: Count = 32  # B, contexts of a step of the head's SGD
    steps: Annotated[int, Multiple(RECORDS, "the records")] = 75  # steps of the head's SGD
    runs: Annotated[int, Whole(least=2)] = 200  # runs of the head's SGD, of a seed
    sequences: Count = 1000  # P, on which descent runs
    eigenvalues: Nonnegatives = (2.0, 1.0, 0.5)  # s, of the transformer's inputs
    context_length: Count = 8  # N of the transformer
    initial: Positive = 0.3  # value and key-query weight of every mode at the start
    transformer_rate: Positive = 0.02  # η of the transformer's SGD
    transformer_batches: Counts = (64, 256, 512)  # B of the transformer's SGD
    transformer_steps: Annotated[int, Multiple(RECORDS, "the records")] = 480  # steps of the transformer's SGD
    examples: Count = 400_000  # in the contexts that the transformer's flow is drawn from

    @property
    def transformer(self) -> Schedule:
        """Steps and records of the transformer's SGD."""
        return Schedule(self.transformer_rate, self.transformer_steps, RECORDS)


def theory(case: Case) -> dict[str, Labeled]:
    """The conserved balance, that of SGD to first order in rate/B, and those of the modes at finite N."""
    from iclab.theory import modes, sgd

    start, every = (case.value, case.key_query), case.steps // RECORDS
    noisy = sgd.small_noise_loss(case.problem, batch=case.batch, rate=case.rate, steps=case.steps, start=start)
    time = noisy.time[::every]
    clean = Regression(case.problem.eigenvalues, case.problem.context_lengths[0])  # no noise changes the balance
    head = modes.single_head_flow(clean, start=start, time=time)
    tasks = modes.DiagonalTasks(case.eigenvalues, case.context_length)
    flow = modes.exact_flow(tasks, start=(case.initial, case.initial), time=case.transformer.time)
    balance = flow.value**2 - flow.key_query**2
    return {
        "flow": labeled({"time": time}, balance=head.value**2 - np.sum(head.key_query**2, axis=-1)),
        "noisy": labeled({"time": time}, balance=noisy.balance[::every]),
        "modes": labeled({"time": flow.time, "mode": None}, balance=balance, total=("time", balance.sum(axis=-1))),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Descent on drawn sequences at three rates; SGD of the head, mean over runs; SGD of the transformer."""
    import jax

    from iclab.simulation.linear.scalar_sgd import head_sgd

    for_sequences, for_head, for_transformer = jax.random.split(key, 3)
    settings = {"rate": case.rate, "batch": case.batch, "steps": case.steps, "every": case.steps // RECORDS}
    keys = jax.random.split(for_head, case.runs)
    runs = head_sgd(case.problem, start=(case.value, case.key_query), key=keys, **settings)
    balance = runs.value**2 - np.sum(runs.key_query**2, axis=(-2, -1))
    return {
        "descent": descents(case, key=for_sequences),
        "noisy": labeled({"time": runs.time}, balance=np.mean(balance, axis=0)),
        **transformers(case, key=for_transformer),
    }


def transformers(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Balances of the transformer: its flow from drawn contexts, and its SGD on batches of several sizes."""
    import jax

    problem, start = Regression(case.eigenvalues, case.context_length), (case.initial, case.initial)
    time, for_flow = case.transformer.time, jax.random.fold_in(key, 0)  # no batch size
    runs = trained_on_batches(problem, case.transformer_batches, case.transformer, start=start, key=key)
    trained = (np.stack([getattr(run, name) for run in runs]) for name in ("value", "key_query"))
    drawn = drawn_flow(problem, case.examples, start=start, time=time, key=for_flow)
    return {
        "batches": balances({"batch": case.transformer_batches, "time": time}, *trained),
        "modes": balances({"time": time}, *drawn),
    }


def balances(axes: dict[str, Any], value: Matrices, key_query: Matrices) -> Labeled:
    """Balance of every mode, and of all weights, over axes in front of those of the matrices."""
    total = np.sum(value**2 - key_query**2, axis=(-2, -1))
    return labeled({**axes, "mode": None}, balance=mode_balances(value, key_query), total=(tuple(axes), total))


def mode_balances(value: Matrices, key_query: Matrices) -> Float[np.ndarray, "*run D"]:
    """p² − q² of the diagonals."""
    p, q = (np.einsum("...aa->...a", matrix) for matrix in (value, key_query))
    return p**2 - q**2


def descents(case: Case, *, key: Key) -> Labeled:
    """Full-batch gradient descent of one head on drawn sequences, at the learning rate and at finer ones."""
    from iclab.simulation.linear import contexts, descent
    from iclab.simulation.linear.statistics import statistics
    from iclab.theory import dynamics

    start = MergedAttention(np.array([case.value]), case.key_query * np.eye(case.problem.dimension)[None])
    data = statistics(contexts.draw(case.problem, case.sequences, key=key), start)
    records = case.steps // RECORDS * np.arange(RECORDS + 1)
    runs = [descent.on_statistics(data, start, rate=case.rate / finer, steps=finer * records) for finer in FINER]
    balance = [dynamics.conserved(run.weights)[..., 0] for run in runs]
    return labeled({"steps": case.steps * FINER, "time": runs[0].time}, balance=balance)


def figure(view: View, figure: Figure) -> None:
    """Drift of one head's balance: flow, descent, SGD; balances of the transformer's modes, and their sum."""
    head, rates, modes = figure.subplots(1, 3)
    flow, noisy, start = view.theory.flow, view.theory.noisy, float(view.theory.flow.balance[0])
    exact, blue, orange = view.theory.modes, *figures.COLORS[:2]
    figures.theory_line(head, flow.time, flow.balance - start, label="flow")
    figures.theory_line(head, noisy.time, noisy.balance - start, color=orange, label="SGD, first order in rate/B")
    if view.simulation:
        drawn, descent, trained, flows = (view.simulation[name] for name in ("noisy", "descent", "batches", "modes"))
        label = "SGD, mean over all runs ± 2 errors"
        figures.mean_points(head, drawn.time, drawn.balance - start, color=orange, label=label)
        drift, label = descent.balance - start, "descent on drawn sequences"
        figures.dashed_line(head, descent.time, drift.isel(steps=0, seed=0), color=blue, label=label)
        ends, per_step = abs(drift.isel(time=-1)), float(flow.time[-1]) / descent.steps
        figures.seed_dots(rates, per_step, ends.values, color=blue, label="descent, every seed")
        line = ends.median("seed").isel(steps=-1).values * per_step / per_step[-1]
        figures.theory_line(rates, per_step, line, label="first order in the rate")
        rates.legend()
        trained = trained.isel(batch=-1)
        label = f"one-pass SGD, B = {int(trained.batch)}, {figures.seeds(trained)}"
        for color, mode in figures.colored(range(exact.sizes["mode"])):
            one, dots = trained.balance.isel(mode=mode), None if mode else "flow from drawn contexts"
            figures.seed_lines(
                modes, trained.time, one.values, color=figures.pale(color), label=None if mode else label
            )
            figures.mean_points(modes, flows.time, flows.balance.isel(mode=mode), color=color, label=dots)
        label = "their sum under one-pass SGD"
        figures.seed_lines(modes, trained.time, trained.total.values, color="#999999", label=label)
    for color, mode in figures.colored(range(exact.sizes["mode"])):
        law, label = exact.balance.isel(mode=mode), None if mode else "exact flow"
        figures.theory_line(modes, exact.time, law, color=color, label=label)
        figures.end_label(modes, f"s = {view.case.eigenvalues[mode]:g}", float(law[-1]), color=color)
    figures.theory_line(modes, exact.time, exact.total, label="their sum; each at leading order")
    head.set(title="one head", xlabel=figures.TIME, ylabel="drift of $u^2 - |U|^2$")
    rates.set(title="descent at the end", xlabel="rate $\\eta$", ylabel="|drift|", xscale="log", yscale="log")
    modes.set(title="modes at finite N", xlabel=figures.TIME, ylabel="balance $p^2 - q^2$")
    for axes in (head, modes):
        axes.legend()


FULL = Case(
    rate=0.005, steps=150, runs=800, examples=2_000_000, transformer_rate=0.01, transformer_batches=(128, 256, 512),
    transformer_steps=1200,
)  # fmt: skip

STUDY = Study(
    name="conservation", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=6, size=(11.0, 3.9)), "full": Preset(FULL, seeds=6, size=(11.0, 3.9))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Tends("descent/balance",
              "Descent on drawn sequences keeps the balance of one head as its rate vanishes: the flow conserves it.",
              1e-4, "steps", theory="flow/balance", unit="one"),
        Agrees("noisy/balance",
               "The small-noise expansion predicts the drift of the balance under SGD, mean over runs.",
               0.045, floor="flow/balance", unit="range"),
        Agrees("modes/balance", "The modes of a transformer exchange balance as the exact flow says.", 0.03,
               unit="mode"),
        Agrees("modes/total", "The flow from drawn contexts keeps the sum of these balances.", 1e-5, unit="one"),
        Tends("batches/total", "On large batches SGD keeps the sum of these balances.",
              0.1, "batch", theory="modes/total", unit="one"),
    ),
    vocabulary=WORDS | vocabulary(
        {f"{group}/balance": ("p²−q²", "balance of a mode") for group in ("modes", "batches")},
        balance=("u²−|U|²", "balance of value and key-query"), total=("Σ p²−q²", "balance of all weights"),
        steps=("n", "steps to the end"),
    ),
)  # fmt: skip
