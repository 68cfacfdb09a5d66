"""Which way does a mode move in the plane of its two weights, and where does it stop?

The value weight p and the key-query weight q of one mode follow a flow that conserves p² − q² and slide along
hyperbolae: away from the saddle at zero, where nothing is learned, to the curve p q = a∞, where all is. Starts on the
separatrix, p = −q, end at the saddle; batch noise throws them off it. For several modes this law is of *leading order
in 1/N*; for one, as here, it is *exact at any N*. Simulation is the gradient flow from drawn contexts, and one-pass
SGD of the linear transformer on drawn tokens, off that flow by order 1/B in the mean. Of arXiv 2504.12916; any start
in docs/derivations/modes.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees, Tends
from iclab.numerics import Checked, Count, Counts, Multiple, Positive
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Regression
from iclab.studies.modes.training import FORMULAS, WORDS, Schedule, trained_on_batches
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
    batches: Counts = (16, 32, 64)  # B, contexts of a step
    steps: Annotated[int, Multiple(RECORDS, "the records")] = 960  # steps of gradient descent
    examples: Count = 400_000  # in the contexts that the flow is drawn from

    @property
    def schedule(self) -> Schedule:
        """Steps and records of training."""
        return Schedule(self.rate, self.steps, RECORDS)

    @property
    def twice(self) -> Float[np.ndarray, "time"]:
        """Times of the records, and as many beyond: those of the flow."""
        time = self.schedule.time
        return np.concatenate([time, time[-1] + time[1:]])

    @property
    def limit(self) -> float:
        """a∞, the strength of a learned mode."""
        from iclab.theory import modes

        return float(modes.limits(modes.DiagonalTasks([self.eigenvalue], self.context_length))[0])


def theory(case: Case) -> dict[str, Labeled]:
    """Closed paths from the fan and from the separatrix, and the saddle."""
    from iclab.theory import modes

    line = np.union1d(case.twice, np.linspace(0, case.twice[-1], 150))
    tau = modes.time_constants(np.array([case.eigenvalue]))[0]
    saddle = modes.growth_rates((0.0, 0.0), case.limit, tau)
    return {
        "fan": closed_paths(case, FAN, line),
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
    """The flow from drawn contexts, with its rest and its saddle, and SGD on batches of several sizes."""
    starts, fan = np.concatenate([FAN, BACK]), len(FAN)
    problem = Regression((case.eigenvalue,), case.context_length)
    start = tuple(case.scale * starts.T[..., None, None])
    runs = trained_on_batches(problem, case.batches, case.schedule, start=start, runs=len(starts), key=key)
    p, q = (np.stack([getattr(run, name)[..., 0, 0] for run in runs]) for name in ("value", "key_query"))
    axes, balance = {"start": None, "time": runs[-1].time}, runs[-1].balance
    return {
        **flows(case, problem, start, key=key),
        "batches": labeled({"batch": case.batches, **axes}, value=p[:, :fan], key_query=q[:, :fan]),
        "fan": labeled(axes, value=p[-1, :fan], key_query=q[-1, :fan], balance=balance[:fan]),
        "separatrix": labeled(axes, value=p[-1, fan:], key_query=q[-1, fan:], balance=balance[fan:]),
    }


def flows(case: Case, problem: Regression, start: tuple[Any, Any], *, key: Key) -> dict[str, Labeled]:
    """Paths of the flow from drawn contexts, the strength of its minimum, and its growth next to the saddle."""
    import jax

    from iclab.simulation.linear import two_factor

    contexts = max(1, case.examples // case.context_length)
    drawn = two_factor.combined(problem, (contexts,), key=jax.random.fold_in(key, 0)).at(0)  # 0 is no batch size
    p, q = (part[..., 0, 0] for part in two_factor.flow(drawn, start=start, time=case.twice))
    small = 1e-6 * np.array([[1.0, -1.0], [1.0, 1.0]]).T[..., None, None]  # along the separatrix, and across
    growth = (two_factor.descent_direction(drawn, *small)[0] / small[0]).ravel()
    axes, fan = {"start": None, "time": case.twice}, len(FAN)
    return {
        "flow": labeled(axes, value=p[:fan], key_query=q[:fan], balance=(p**2 - q**2)[:fan]),
        "back": labeled(axes, value=p[fan:], key_query=q[fan:]),
        "portrait": labeled({"direction": None}, limit=np.prod(two_factor.least_weights(drawn)), saddle=growth),
    }


def figure(view: View, figure: Figure) -> None:
    """The plane of the weights: paths along hyperbolae, the rest, the saddle, the separatrix; and the balance."""
    (axes, balance), end = figure.subplots(1, 2, width_ratios=[1.2, 1]), view.case.schedule.time[-1]
    for name, words, color in (("fan", "flow", figures.INK), ("separatrix", "separatrix", figures.COLORS[1])):
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
    exact, fan = view.theory.fan.sel(time=slice(0, end)), view.simulation.fan if view.simulation else None
    for j, row in enumerate(exact.balance.values):
        if fan is not None:
            label = None if j else f"one-pass SGD, {figures.seeds(fan)}"
            figures.seed_lines(balance, fan.time, fan.balance.isel(start=j).values, label=label)
        figures.theory_line(balance, exact.time, row, label=None if j else "flow, a line for each start")
    balance.legend(loc="center right", bbox_to_anchor=(1.0, 0.38))
    balance.set(title="conserved by the flow", ylabel="balance $p^2 - q^2$", xlabel=figures.TIME)


FULL = Case(batches=(16, 64, 256), rate=0.0025, steps=1920, examples=2_000_000)
WEIGHTS = {"value": "value weight", "key_query": "key-query weight"}

STUDY = Study(
    name="phase-portrait", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), size=(10.0, 4.2)), "full": Preset(FULL, size=(10.0, 4.2))},
    theory=theory, simulation=simulation, figure=figure, formulas=FORMULAS[:1],
    units=lambda case: {"steps": case.rate},
    claims=(
        *(Agrees(f"{drawn}/{name}", f"From {starts} the {words} moves as its law says.", 0.005, f"{exact}/{name}",
                 unit="range")
          for drawn, exact, starts in (("flow", "fan", "the fan"), ("back", "separatrix", "the separatrix"))
          for name, words in WEIGHTS.items()),
        Agrees("flow/balance", "The flow conserves this balance.", 1e-5, theory="fan/balance", unit="one"),
        Agrees("portrait/limit", "Where all is learned, the strength is that of the law.", 0.02),
        Agrees("portrait/saddle", "Next to the saddle weights grow and shrink as the law says.", 0.02),
        *(Tends(f"batches/{name}", f"On large batches of SGD the {words} follows its law.", 0.08, along="batch",
                theory=f"fan/{name}", unit="range")
          for name, words in WEIGHTS.items()),
    ),
    vocabulary=WORDS | vocabulary(
        balance=("p²−q²", "balance of the two weights"), limit=("a∞", "strength of a learned mode"),
        saddle=("±1/τ", "growth of small departures from the saddle", "1/τ"),
    ),
)  # fmt: skip
