"""Which way does a mode move in the plane of its two weights, and where does it stop?

The value weight p and the key-query weight q of one mode follow a flow that conserves p² − q² and slide along
hyperbolae: away from the saddle at zero, where nothing is learned, to the curve p q = a∞, where all is. Starts on the
separatrix, p = −q, end at the saddle; batch noise throws them off it. For several modes this law is of *leading order
in 1/N*; for one, as here, it is *exact at any N*. Simulation is one-pass SGD of the linear transformer on drawn
tokens, which becomes the flow as 1/√B when batches grow. Of arXiv 2504.12916; any start in docs/derivations/modes.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.numerics import Checked, Count, Counts, Multiple, Positive
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Regression
from iclab.studies.modes.training import TIME, WORDS, Schedule, in_batches, trained_on_batches
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

RECORDS = 24  # of a run
FAN = np.array([[0.1, 0.05], [0.9, 0.1], [0.1, 0.9], [1.3, -0.6], [-0.6, 1.3], [1.4, 1.2], [-0.9, -0.1], [0.6, -1.3]])
BACK = np.array([[0.9, -0.9], [-0.9, 0.9]])  # on the separatrix


@dataclass(frozen=True)
class Case(Checked):
    """One mode from a fan of starts."""

    eigenvalue: Positive = 1.0  # s, of the input covariance
    context_length: Count = 8  # N, labeled examples before the query
    scale: Positive = 1.0  # by which the fan of starts is multiplied
    rate: Positive = 0.005  # η, learning rate on half the mean squared error
    batches: Counts = (4, 16, 64)  # B, contexts of a step
    steps: Annotated[int, Multiple(RECORDS, "the records")] = 960  # steps of gradient descent

    @property
    def schedule(self) -> Schedule:
        """Steps and records of training."""
        return Schedule(self.rate, self.steps, RECORDS)

    @property
    def limit(self) -> float:
        """a∞, the strength of a learned mode."""
        from iclab.theory import modes

        return float(modes.limits(modes.DiagonalTasks([self.eigenvalue], self.context_length))[0])


def theory(case: Case) -> dict[str, Labeled]:
    """Closed paths from the fan and from the separatrix at the records, along a fine line, and the saddle."""
    from iclab.theory import modes

    time, line = case.schedule.time, np.linspace(0, 2 * case.schedule.time[-1], 200)
    tau = modes.time_constants(np.array([case.eigenvalue]))[0]
    saddle = modes.growth_rates((0.0, 0.0), case.limit, tau)
    return {
        "fan": closed_paths(case, FAN, time),
        "lines": closed_paths(case, FAN, line),
        "separatrix": closed_paths(case, BACK, line),
        "portrait": labeled({"direction": None}, limit=case.limit, saddle=saddle),
    }


def closed_paths(case: Case, starts: Float[np.ndarray, "start 2"], time: Float[np.ndarray, "time"]) -> Labeled:
    """The paths of the scalar law."""
    from iclab.theory import modes

    tau = modes.time_constants(np.array([case.eigenvalue]))[0]
    p, q = modes.mode_law(tuple(case.scale * starts.T[..., None]), case.limit, tau, time)
    return labeled({"start": None, "time": time}, value=p, key_query=q, balance=p**2 - q**2)


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """The transformer trained on batches of several sizes; from fan and separatrix on the largest."""
    starts, fan = np.concatenate([FAN, BACK]), len(FAN)
    problem = Regression((case.eigenvalue,), case.context_length)
    start = tuple(case.scale * starts.T[..., None, None])
    runs = trained_on_batches(problem, case.batches, case.schedule, start=start, runs=len(starts), key=key)
    p, q = (np.stack([getattr(run, name)[..., 0, 0] for run in runs]) for name in ("value", "key_query"))
    axes, balance = {"start": None, "time": runs[-1].time}, runs[-1].balance
    return {
        "batches": labeled({"batch": case.batches, **axes}, value=p[:, :fan], key_query=q[:, :fan]),
        "fan": labeled(axes, value=p[-1, :fan], key_query=q[-1, :fan], balance=balance[:fan]),
        "separatrix": labeled(axes, value=p[-1, fan:], key_query=q[-1, fan:], balance=balance[fan:]),
    }


def figure(view: View, figure: Figure) -> None:
    """The plane of the weights: paths along hyperbolae, the rest, the saddle, the separatrix; and the balance."""
    axes, balance = figure.subplots(1, 2, width_ratios=[1.2, 1])
    for name, words, color in (("lines", "flow", figures.INK), ("separatrix", "separatrix", figures.COLORS[1])):
        path = view.theory[name]
        for j, (p, q) in enumerate(zip(path.value, path.key_query, strict=True)):
            figures.theory_line(axes, p, q, color=color, label=None if j else words)
    grid = np.linspace(-1.8, 1.8, 121)
    axes.contour(grid, grid, grid**2 - grid[:, None] ** 2, 14, colors="#cccccc", linewidths=0.5, linestyles="-")
    limit = float(view.theory.portrait.limit)
    branch = np.geomspace(limit / 2, 2, 100)
    for sign, label in ((1, "at rest: $p\\,q = a_\\infty$"), (-1, None)):
        axes.plot(sign * branch, sign * limit / branch, color=figures.COLORS[2], lw=3, alpha=0.5, label=label)
    axes.plot(0, 0, "X", color=figures.COLORS[3], ms=8, label="saddle", zorder=6)
    for name in ("fan", "separatrix") if view.simulation else ():
        drawn = view.simulation[name].isel(time=slice(None, None, 3))
        label = f"one-pass SGD, {figures.seeds(drawn)}" if name == "fan" else None
        for start, seed in np.ndindex(drawn.sizes["start"], drawn.sizes["seed"]):
            one, once = drawn.isel(start=start, seed=seed), None if start or seed else label
            figures.seed_dots(axes, one.value, [one.key_query], color=figures.COLORS[0], label=once)
    axes.set(xlabel="value weight $p$", ylabel="key-query weight $q$", xlim=(-1.7, 1.7), ylim=(-1.7, 1.7))
    axes.set_aspect("equal")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    exact, fan = view.theory.fan, view.simulation.fan if view.simulation else None
    for j, row in enumerate(exact.balance.values):
        if fan is not None:
            label = None if j else f"one-pass SGD, {figures.seeds(fan)}"
            figures.seed_lines(balance, fan.time, fan.balance.isel(start=j).values, label=label)
        figures.theory_line(balance, exact.time, row, label=None if j else "flow, a line for each start")
    balance.legend(loc="center right", bbox_to_anchor=(1.0, 0.38))
    balance.set(title="conserved by the flow", ylabel="balance $p^2 - q^2$", xlabel=TIME)


FULL = Case(batches=(16, 64, 256), rate=0.0025, steps=1920)

STUDY = Study(
    name="phase-portrait", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), size=(10.0, 4.2)), "full": Preset(FULL, size=(10.0, 4.2))},
    theory=theory, simulation=simulation, figure=figure,
    claims=tuple(
        in_batches(f"batches/{name}", f"On large batches {words} follows its law.", theory=f"fan/{name}")
        for name, words in (("value", "the value weight"), ("key_query", "the key-query weight"))
    ),
    vocabulary=WORDS | vocabulary(
        balance=("p²−q²", "balance of the two weights"), limit=("a∞", "strength of a learned mode"),
        saddle=("±1/τ", "growth of small departures from the saddle", "1/τ"),
    ),
)  # fmt: skip
