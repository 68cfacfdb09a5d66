"""Which way does a mode move in the plane of its two weights, and where does it stop?

The value weight p and the key-query weight q of one mode follow a flow whose p² − q² is conserved, so that they slide
along hyperbolae: away from the saddle at zero, where nothing is learned, to the curve p q = a∞, where all is. Starts
with p = −q, the separatrix, end at the saddle; the noise of batches throws them off it. For several modes this law
is of *leading order in 1/N*; for a single mode, as here, it is *exact at any N*. Simulation is one-pass stochastic
gradient descent of the linear transformer on drawn tokens, which becomes the flow as 1/√B when its batches grow.
Of arXiv 2504.12916; any start in docs/derivations/modes.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab.claims import Limit
from iclab.numerics import positive, require, whole_number, whole_numbers
from iclab.outcomes import quantity
from iclab.problem import Regression
from iclab.study import Figure, Key, Preset, Study, View

Array = np.ndarray
RECORDS = 24  # of a run
FAN = np.array([[0.1, 0.05], [0.9, 0.1], [0.1, 0.9], [1.3, -0.6], [-0.6, 1.3], [1.4, 1.2], [-0.9, -0.1], [0.6, -1.3]])
BACK = np.array([[0.9, -0.9], [-0.9, 0.9]])  # on the separatrix


@dataclass(frozen=True)
class Case:
    """One mode from a fan of starts. Raises ValueError for impossible numbers."""

    eigenvalue: float = 1.0  # s, of the input covariance
    context_length: int = 8  # N, labelled examples before the query
    scale: float = 1.0  # by which the fan of starts is multiplied
    rate: float = 0.005  # η, step of gradient descent on half the mean squared error
    batches: tuple[int, ...] = (4, 16, 64)  # B, contexts of a step
    steps: int = 960  # steps of gradient descent

    def __post_init__(self) -> None:
        for name in ("eigenvalue", "scale", "rate"):
            positive(name, getattr(self, name))
        object.__setattr__(self, "batches", whole_numbers("batches", self.batches))
        whole_number("steps", self.steps, least=RECORDS)
        require(self.steps % RECORDS == 0, f"steps must be a multiple of {RECORDS}, the records; got {self.steps}.")

    @property
    def limit(self) -> float:
        """a∞, the strength of a learned mode."""
        from iclab.theory import modes

        return float(modes.limits(modes.DiagonalTasks([self.eigenvalue], self.context_length))[0])


@dataclass(frozen=True)
class Paths:
    """Weights of one mode along training, from several starts."""

    time: Float[Array, "time"] = quantity("t", "time", unit="τ", words="training time")
    value: Float[Array, "start time"] = quantity("p", "start", "time", words="value weight")
    key_query: Float[Array, "start time"] = quantity("q", "start", "time", words="key-query weight")
    balance: Float[Array, "start time"] = quantity("p²−q²", "start", "time", words="balance of the two weights")


@dataclass(frozen=True)
class PathsByBatch:
    """Weights of one mode along training on batches of several sizes."""

    batch: Int[Array, "batch"] = quantity("B", "batch", words="contexts of a step")
    time: Float[Array, "time"] = quantity("t", "time", unit="τ", words="training time")
    value: Float[Array, "batch start time"] = quantity("p", "batch", "start", "time", words="value weight")
    key_query: Float[Array, "batch start time"] = quantity("q", "batch", "start", "time", words="key-query weight")


@dataclass(frozen=True)
class Portrait:
    """What the plane holds: the strength at rest and the two rates of departure from the saddle."""

    limit: float = quantity("a∞", words="strength of a learned mode")
    saddle: Float[Array, "direction"] = quantity(
        "±1/τ", "direction", unit="1/τ", words="growth of small departures from the saddle"
    )


def theory(case: Case) -> dict[str, Paths | Portrait]:
    """Closed paths from the fan and from the separatrix at the records, along a fine line, and the saddle."""
    from iclab.theory import modes

    time = case.rate * (case.steps // RECORDS) * np.arange(RECORDS + 1)
    line = np.linspace(0, 2 * time[-1], 200)
    tau = modes.time_constants(np.array([case.eigenvalue]))[0]
    return {
        "fan": closed_paths(case, FAN, time),
        "lines": closed_paths(case, FAN, line),
        "separatrix": closed_paths(case, BACK, line),
        "portrait": Portrait(case.limit, modes.growth_rates((0.0, 0.0), case.limit, tau)),
    }


def closed_paths(case: Case, starts: Float[Array, "start 2"], time: Float[Array, "time"]) -> Paths:
    """The paths of the scalar law."""
    from iclab.theory import modes

    tau = modes.time_constants(np.array([case.eigenvalue]))[0]
    p, q = modes.mode_law(tuple(case.scale * starts.T[..., None]), case.limit, tau, time)
    return Paths(time, p, q, p**2 - q**2)


def simulation(case: Case, *, key: Key) -> dict[str, Paths | PathsByBatch]:
    """The transformer trained on batches of several sizes; from fan and separatrix on the largest."""
    import jax

    starts = np.concatenate([FAN, BACK])
    runs = [trained_paths(case, starts, batch, key=jax.random.fold_in(key, batch)) for batch in case.batches]
    value, key_query = (np.stack([getattr(run, name)[: len(FAN)] for run in runs]) for name in ("value", "key_query"))
    last, fan, back = runs[-1], slice(len(FAN)), slice(len(FAN), None)
    return {
        "batches": PathsByBatch(np.array(case.batches), last.time, value, key_query),
        "fan": Paths(last.time, last.value[fan], last.key_query[fan], last.balance[fan]),
        "separatrix": Paths(last.time, last.value[back], last.key_query[back], last.balance[back]),
    }


def trained_paths(case: Case, starts: Float[Array, "start 2"], batch: int, *, key: Key) -> Paths:
    """One-pass SGD on tokens, one run from each start."""
    import jax

    from iclab.simulation.linear.transformer_sgd import transformer_sgd

    curves = transformer_sgd(
        Regression((case.eigenvalue,), case.context_length),
        start=tuple(case.scale * starts.T[..., None, None]),
        rate=case.rate,
        batch=batch,
        steps=case.steps,
        every=case.steps // RECORDS,
        key=jax.random.split(key, len(starts)),
    )
    return Paths(curves.time, curves.value[..., 0, 0], curves.key_query[..., 0, 0], curves.balance)


def figure(view: View, figure: Figure) -> None:
    """The plane of the weights: paths along hyperbolae, the rest, the saddle, the separatrix; and the balance."""
    plane, balance = figure.subplots(1, 2, width_ratios=[1.2, 1])
    lines, back = (view.theory[name] for name in ("lines", "separatrix"))
    for i, (path, color) in enumerate([(lines, figures.INK), (back, figures.COLORS[1])]):
        for j in range(path.sizes["start"]):
            label = (("flow", "separatrix")[i]) if j == 0 else None
            figures.theory_line(plane, path.value[j], path.key_query[j], color=color, label=label)
    grid = np.linspace(-1.8, 1.8, 121)
    plane.contour(grid, grid, grid**2 - grid[:, None] ** 2, 14, colors="#cccccc", linewidths=0.5, linestyles="-")
    limit = float(view.theory.portrait.limit)
    branch = np.geomspace(limit / 2, 2, 100)
    for sign, label in ((1, "at rest: $p\\,q = a_\\infty$"), (-1, None)):
        plane.plot(sign * branch, sign * limit / branch, color=figures.COLORS[2], lw=3, alpha=0.5, label=label)
    plane.plot(0, 0, "X", color=figures.COLORS[3], ms=8, label="saddle", zorder=6)
    if view.simulation:
        for name in ("fan", "separatrix"):
            drawn = view.simulation[name]
            for j in range(drawn.sizes["start"]):
                label = f"one-pass SGD, {figures.seeds(drawn)}" if j == 0 and name == "fan" else None
                for seed in range(drawn.sizes["seed"]):
                    one = drawn.isel(start=j, seed=seed, time=slice(None, None, 3))
                    once = None if seed else label
                    figures.seed_dots(plane, one.value, [one.key_query], color=figures.COLORS[0], label=once)
        fan = view.simulation.fan
        for j in range(fan.sizes["start"]):
            label = f"one-pass SGD, {figures.seeds(fan)}" if j == 0 else None
            figures.seed_lines(balance, fan.time, fan.balance.isel(start=j).values, label=label)
    exact = view.theory.fan
    for j, row in enumerate(exact.balance.values):
        figures.theory_line(balance, exact.time, row, label=None if j else "flow, a line for each start")
    balance.legend(loc="center right", bbox_to_anchor=(1.0, 0.38))
    plane.set(
        xlabel="value weight $p$", ylabel="key-query weight $q$", xlim=(-1.7, 1.7), ylim=(-1.7, 1.7), aspect="equal"
    )
    plane.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    balance.set(
        title="conserved by the flow", ylabel="balance $p^2 - q^2$", xlabel="training time $t$  (units of $\\tau$)"
    )


STUDY = Study(
    name="phase-portrait",
    question=str(__doc__),
    version=1,
    presets={
        "quick": Preset(Case(), size=(10.0, 4.2)),
        "full": Preset(replace(Case(), batches=(16, 64, 256), rate=0.0025, steps=1920), size=(10.0, 4.2)),
    },
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=tuple(
        Limit(
            f"theory/fan/{name}",
            f"simulation/batches/{name}",
            f"On large batches {words} of a single mode follows the closed law.",
            along="batch",
            order=0.5,
        )
        for name, words in (("value", "the value weight"), ("key_query", "the key-query weight"))
    ),
)
