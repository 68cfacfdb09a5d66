"""Which balance of the weights does training keep, and what breaks it?

*Exact at any N*: gradient flow keeps u² − |U|² of one head, on the population and on any sample, and Σ (p² − q²) of
a transformer of two factors. At *leading order in 1/N* p² − q² of every single mode is kept too; at finite N the
exact flow moves it from mode to mode. Gradient descent breaks the laws by an amount of order its rate; the noise of
batches by one of order rate/B, which the *small-noise expansion*, of first order in rate/B, predicts. Simulation is
gradient descent on drawn sequences, and one-pass stochastic gradient descent on drawn tokens. Of arXiv 2504.12916;
derived in docs/derivations/modes and docs/derivations/sgd.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.attention import MergedAttention
from iclab.claims import Limit, WithinErrors
from iclab.numerics import positive, require, whole_number, whole_numbers
from iclab.outcomes import quantity
from iclab.problem import Regression
from iclab.study import Figure, Key, Preset, Study, View

Array = np.ndarray
RECORDS = 15  # of a run
FINER = np.array([1, 3, 10])  # by which the rate of descent is divided


@dataclass(frozen=True)
class Case:
    """Balances along flow, descent and SGD. Raises ValueError for impossible numbers."""

    problem: Regression = Regression(eigenvalues=(1.5, 0.6), context_length=5, noise=0.2)
    value: float = 0.5  # u of the head at the start
    key_query: float = 0.3  # diagonal of U at the start
    rate: float = 0.01  # η, of the head's SGD, and the largest of descent
    batch: int = 32  # B, contexts of a step of the head's SGD
    steps: int = 150  # steps of the head's SGD
    runs: int = 50  # runs of the head's SGD, of a seed
    sequences: int = 1000  # P, on which descent runs
    eigenvalues: tuple[float, ...] = (2.0, 1.0, 0.5)  # s, of the transformer's inputs
    context_length: int = 8  # N of the transformer
    initial: float = 0.3  # value and key-query weight of every mode at the start
    transformer_rate: float = 0.02  # η of the transformer's SGD
    transformer_batches: tuple[int, ...] = (16, 64, 256)  # B of the transformer's SGD
    transformer_steps: int = 600  # steps of the transformer's SGD

    def __post_init__(self) -> None:
        for name in ("rate", "transformer_rate", "initial"):
            positive(name, getattr(self, name))
        for name in ("batch", "sequences"):
            whole_number(name, getattr(self, name))
        batches = whole_numbers("transformer_batches", self.transformer_batches)
        object.__setattr__(self, "transformer_batches", batches)
        whole_number("runs", self.runs, least=2)
        for name in ("steps", "transformer_steps"):
            whole_number(name, getattr(self, name), least=RECORDS)
            require(getattr(self, name) % RECORDS == 0, f"{name} must be a multiple of {RECORDS}, the records.")


@dataclass(frozen=True)
class Balance:
    """Balance of one head along training."""

    time: Float[Array, "time"] = quantity("t", "time", unit="τ", words="training time")
    balance: Float[Array, "time"] = quantity("u²−|U|²", "time", words="balance of value and key-query")


@dataclass(frozen=True)
class BalanceByRate:
    """Balance of one head along descent at several rates, by the number of steps to the same time."""

    steps: Int[Array, "steps"] = quantity("n", "steps", words="steps to the end")
    time: Float[Array, "time"] = quantity("t", "time", unit="τ", words="training time")
    balance: Float[Array, "steps time"] = quantity("u²−|U|²", "steps", "time", words="balance of value and key-query")


@dataclass(frozen=True)
class ModeBalances:
    """Balances of the modes of a transformer, and of all of its weights."""

    time: Float[Array, "time"] = quantity("t", "time", unit="τ", words="training time")
    balance: Float[Array, "time mode"] = quantity("p²−q²", "time", "mode", words="balance of a mode")
    total: Float[Array, "time"] = quantity("Σ p²−q²", "time", words="balance of all weights")


@dataclass(frozen=True)
class ModeBalancesByBatch:
    """Balances of the modes of a transformer trained on batches of several sizes."""

    batch: Int[Array, "batch"] = quantity("B", "batch", words="contexts of a step")
    time: Float[Array, "time"] = quantity("t", "time", unit="τ", words="training time")
    balance: Float[Array, "batch time mode"] = quantity("p²−q²", "batch", "time", "mode", words="balance of a mode")


def theory(case: Case) -> dict[str, Balance | ModeBalances]:
    """The conserved balance, that of SGD to first order in rate/B, and those of the modes at finite N."""
    from iclab.theory import modes, sgd

    start = (case.value, case.key_query)
    settings = {"rate": case.rate, "steps": case.steps, "start": start}
    noisy = sgd.small_noise_loss(case.problem, batch=case.batch, **settings)
    every = case.steps // RECORDS
    time = noisy.time[::every]
    clean = Regression(case.problem.eigenvalues, case.problem.context_lengths[0])  # no noise changes the balance
    head = modes.single_head_flow(clean, start=start, time=time)
    flow = modes.exact_flow(
        modes.DiagonalTasks(case.eigenvalues, case.context_length),
        start=(case.initial, case.initial),
        time=case.transformer_rate * (case.transformer_steps // RECORDS) * np.arange(RECORDS + 1),
    )
    balances = flow.value**2 - flow.key_query**2
    return {
        "flow": Balance(time, head.value**2 - np.sum(head.key_query**2, axis=-1)),
        "noisy": Balance(time, noisy.balance[::every]),
        "modes": ModeBalances(flow.time, balances, balances.sum(axis=-1)),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Any]:
    """Descent on drawn sequences at three rates; SGD of the head, mean over runs; SGD of the transformer."""
    import jax

    for_sequences, for_head, for_transformer = jax.random.split(key, 3)
    return {
        "descent": descents(case, key=for_sequences),
        "noisy": mean_balance(case, key=for_head),
        **transformers(case, key=for_transformer),
    }


def mean_balance(case: Case, *, key: Key) -> Balance:
    """SGD of the head: balance, averaged over runs."""
    import jax

    from iclab.simulation.linear.scalar_sgd import head_sgd

    runs = head_sgd(
        case.problem,
        rate=case.rate,
        batch=case.batch,
        steps=case.steps,
        every=case.steps // RECORDS,
        start=(case.value, case.key_query),
        key=jax.random.split(key, case.runs),
    )
    balance = runs.value**2 - np.sum(runs.key_query**2, axis=(-2, -1))
    return Balance(runs.time, np.mean(balance, axis=0))


def transformers(case: Case, *, key: Key) -> dict[str, ModeBalances | ModeBalancesByBatch]:
    """SGD of the transformer on batches of several sizes; the largest with the balance of all weights."""
    import jax

    from iclab.simulation.linear.transformer_sgd import transformer_sgd

    runs = [
        transformer_sgd(
            Regression(case.eigenvalues, case.context_length),
            start=(case.initial, case.initial),
            rate=case.transformer_rate,
            batch=batch,
            steps=case.transformer_steps,
            every=case.transformer_steps // RECORDS,
            key=jax.random.fold_in(key, batch),
        )
        for batch in case.transformer_batches
    ]
    balances, time = np.stack([mode_balances(run.value, run.key_query) for run in runs]), runs[-1].time
    return {
        "batches": ModeBalancesByBatch(np.array(case.transformer_batches), time, balances),
        "modes": ModeBalances(time, balances[-1], runs[-1].balance),
    }


def mode_balances(value: Float[Array, "time D D"], key_query: Float[Array, "time D D"]) -> Float[Array, "time D"]:
    """p² − q² of the diagonals."""
    p, q = (np.einsum("taa->ta", matrix) for matrix in (value, key_query))
    return p**2 - q**2


def descents(case: Case, *, key: Key) -> BalanceByRate:
    """Full-batch gradient descent of one head on drawn sequences, at ten times the rate and at finer ones."""
    from iclab.simulation.linear import contexts, descent
    from iclab.simulation.linear.statistics import statistics
    from iclab.theory import dynamics

    start = MergedAttention(np.array([case.value]), case.key_query * np.eye(case.problem.dimension)[None])
    data = statistics(contexts.draw(case.problem, case.sequences, key=key), start)
    records = case.steps // RECORDS * np.arange(RECORDS + 1)
    runs = [descent.on_statistics(data, start, rate=case.rate / finer, steps=finer * records) for finer in FINER]
    balance = [dynamics.conserved(run.weights)[..., 0] for run in runs]
    return BalanceByRate(case.steps * FINER, runs[0].time, np.stack(balance))


def figure(view: View, figure: Figure) -> None:
    """Drift of one head's balance: flow, descent, SGD; balances of the transformer's modes, and their sum."""
    head, rates, modes = figure.subplots(1, 3)
    flow, noisy = (view.theory[name] for name in ("flow", "noisy"))
    exact, spectrum = view.theory.modes, view.case.eigenvalues
    simulated = view.simulation
    start = float(flow.balance[0])
    figures.theory_line(head, flow.time, flow.balance - start, label="flow")
    figures.theory_line(
        head, noisy.time, noisy.balance - start, color=figures.COLORS[1], label="SGD, first order in rate/B"
    )
    if simulated:
        drawn = view.simulation.noisy
        label = "SGD, mean over all runs ± 2 errors"
        figures.mean_points(head, drawn.time, drawn.balance - start, color=figures.COLORS[1], label=label)
        descent = view.simulation.descent
        figures.dashed_line(
            head,
            descent.time,
            descent.balance.isel(steps=0, seed=0) - start,
            color=figures.COLORS[0],
            label="descent on drawn sequences",
        )
        drift = abs(descent.balance.isel(time=-1) - start)
        per_step = float(flow.time[-1]) / descent.steps
        figures.seed_dots(rates, per_step, drift.values, color=figures.COLORS[0], label="descent, every seed")
        line = drift.median("seed").isel(steps=-1).values * per_step / per_step[-1]
        figures.theory_line(rates, per_step, line, label="first order in the rate")
        trained = view.simulation.modes
        label = f"one-pass SGD, B = {int(view.simulation.batches.batch[-1])}, {figures.seeds(trained)}"
        for color, mode in figures.colored(range(exact.sizes["mode"])):
            rows = trained.balance.isel(mode=mode).values
            figures.seed_lines(modes, trained.time, rows, color=figures.pale(color), label=None if mode else label)
        figures.seed_lines(
            modes, trained.time, trained.total.values, color="#999999", label="their sum under one-pass SGD"
        )
        rates.legend()
    for color, mode in figures.colored(range(exact.sizes["mode"])):
        figures.theory_line(
            modes, exact.time, exact.balance.isel(mode=mode), color=color, label=f"exact flow, s = {spectrum[mode]:g}"
        )
    label = "their sum; each at leading order"
    figures.theory_line(modes, exact.time, exact.total, label=label)
    head.set(title="one head", xlabel="training time $t$  (units of $\\tau$)", ylabel="drift of $u^2 - |U|^2$")
    rates.set(title="descent at the end", xlabel="rate $\\eta$", ylabel="|drift|", xscale="log", yscale="log")
    modes.set(title="modes at finite N", xlabel="training time $t$  (units of $\\tau$)", ylabel="balance $p^2 - q^2$")
    head.legend()
    modes.legend()


STUDY = Study(
    name="conservation",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), seeds=6, size=(11.0, 3.9)),
        "full": Preset(
            replace(
                Case(),
                rate=0.005,
                steps=600,
                runs=400,
                transformer_rate=0.01,
                transformer_batches=(32, 128, 512),
                transformer_steps=1200,
            ),
            seeds=6,
            size=(11.0, 3.9),
        ),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Limit(
            "theory/flow/balance",
            "simulation/descent/balance",
            "Descent on drawn sequences keeps the balance of one head as its rate vanishes: the flow conserves it.",
            along="steps",
            order=1.0,
        ),
        WithinErrors(
            "theory/noisy/balance",
            "simulation/noisy/balance",
            "The small-noise expansion predicts the drift of the balance under SGD, averaged over runs.",
            claim="first order in rate/B, within sampling error",
        ),
        Limit(
            "theory/modes/balance",
            "simulation/batches/balance",
            "On large batches the modes of a transformer exchange balance as the exact flow says.",
            along="batch",
            order=0.5,
        ),
    ),
)
