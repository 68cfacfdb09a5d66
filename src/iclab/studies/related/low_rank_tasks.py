"""Does softmax attention project onto the directions in which tasks vary?

Where labels depend on few directions of the inputs, f(x) = aᵀBᵀx, a window across the others only loses examples.
*The paper's*, of arXiv 2402.11639: attention then projects onto the span of B (its summary). *Derived here*, for long
contexts of normal inputs: attention weights and loss of any key-query matrix, the best with no part outside the span,
docs/derivations/softmax_window. *Simulated*: full matrices trained with inputs on the sphere at finite length, which
has no closed form; ρ(M, B) = |B⊥ᵀMB⊥|/σ_min(BᵀMB), our reading of the measure of projection, must be small.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from iclab import figures
from iclab.claims import Tends, below
from iclab.numerics import Checked, Count, Distinct, Positive, Whole, Wholes, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Lengths
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

MATRIX, QUERY = 0.5 * np.eye(3), np.array([0.9, -0.6, 0.5])  # M and the query of drawn attention weights


@dataclass(frozen=True)
class Case(Checked):
    """Tasks of low rank on the sphere, and attention weights in long normal contexts."""

    dimension: Annotated[int, Whole(least=2)] = 6  # d, of the inputs
    context_length: Annotated[int, Whole(least=2)] = 50  # n, labeled examples before the query
    noise: Positive = 0.05  # ρ, variance of the label noise of the context
    seen: Annotated[tuple[int, ...], Wholes(), Distinct()] = (1, 2)  # k, directions that tasks depend on
    initial: Positive = 1.0  # the start is this multiple of the identity
    rate: Positive = 0.1  # largest learning rate of Adam
    steps: Count = 600  # steps of training
    batch: Count = 512  # contexts of a step
    share_lengths: Lengths = (100, 400, 1600)  # n of the contexts in which attention weights are drawn
    share_examples: Count = 8_000_000  # examples drawn at each length

    def __post_init__(self) -> None:
        super().__post_init__()
        require(max(self.seen) < self.dimension, f"seen must be below dimension = {self.dimension}; got {self.seen}.")


def theory(case: Case) -> dict[str, Labeled]:
    """The limit of squared attention weights, and the loss of long contexts by the parts of M."""
    from iclab.theory import softmax

    limit = np.full(len(case.share_lengths), float(softmax.gaussian_squared_weights(MATRIX, QUERY)))
    inside, outside, rank = np.array([0.3, 0.45, 0.6]), np.linspace(0, 0.6, 25), min(case.seen)
    held, span = np.arange(case.dimension) < rank, np.eye(case.dimension)[:, :rank]
    law = {"context_length": case.context_length, "slope_variance": 1.0, "noise": case.noise}
    matrices = [[np.diag(np.where(held, one, other)) for other in outside] for one in inside]
    losses = [[softmax.gaussian_loss(one, span, **law) for one in row] for row in matrices]
    return {
        "shares": labeled({"context_length": case.share_lengths}, share=limit),
        "long": labeled({"inside": inside, "outside": outside}, loss=losses),
    }


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """Matrices trained for each number of directions, split by the span of the tasks; attention weights."""
    from jax.random import fold_in

    from iclab.simulation.related.softmax_windows import WindowShape, WindowTraining, drawn_concentration, trained

    run, noises = WindowTraining(case.steps, case.initial, case.rate), np.array([case.noise])
    sizes = ("projected", case.dimension, case.context_length, case.batch)
    found = {k: trained(WindowShape(*sizes, k), run, noises=noises, key=fold_in(key, k))[0] for k in case.seen}
    inside = np.array([np.linalg.svd(one[:k, :k], compute_uv=False)[-1] for k, one in found.items()])
    outside = np.array([np.linalg.norm(one[k:, k:], 2) for k, one in found.items()])
    lengths, draws = case.share_lengths, {"examples": case.share_examples, "key": fold_in(key, 0)}
    return {
        "trained": labeled(
            {"seen": case.seen, "row": None, "column": None}, inside=("seen", inside), outside=("seen", outside),
            projection=("seen", outside / inside), matrix=np.stack([*found.values()]),
        ),
        "shares": labeled({"context_length": lengths}, share=drawn_concentration(MATRIX, QUERY, lengths, **draws)),
    }  # fmt: skip


def figure(view: View, figure: Figure) -> None:
    """Entries of trained matrices; the loss of long contexts against the part outside the span; the share."""
    drawn = view.case.seen if view.simulation else ()
    *matrices, losses, shares = figure.subplots(1, len(drawn) + 2, squeeze=False)[0]
    for axes, rank in zip(matrices, drawn, strict=True):
        entries = view.simulation.trained.matrix.sel(seen=rank).isel(seed=0).values
        size = np.abs(entries).max()
        image = axes.imshow(entries, cmap="RdBu_r", vmin=-size, vmax=size)
        figure.colorbar(image, ax=axes, shrink=0.6)
        axes.set(title=f"trained $M$, $k$ = {rank}, seed 0", xticks=[], yticks=[])
    long, limit = view.theory.long, view.theory.shares
    for color, i in figures.colored(range(long.sizes["inside"])):
        label, loss = f"inside {float(long.inside[i]):g}", long.loss.isel(inside=i)
        figures.theory_line(losses, long.outside, loss.where(np.isfinite), color=color, label=label)
    figures.theory_line(shares, limit.context_length, limit.share, label="limit $\\exp|Mx_q|^2$")
    if view.simulation:
        found = view.simulation.shares
        figures.seed_dots(shares, found.context_length, found.share.values, color=figures.COLORS[0], label="drawn")
    losses.set(title="long normal contexts", xlabel="part of $M$ outside the span", ylabel="mean squared error")
    shares.set(xscale="log", title="examples averaged over", xlabel="context length $n$", ylabel="$n$ E Σ a²")
    losses.legend()
    shares.legend()


FULL = Case(seen=(1, 2, 3), steps=800, share_examples=32_000_000)
STUDY = Study(
    name="low-rank-tasks", question=str(__doc__), version=1,
    presets={"quick": Preset(Case(), seeds=3, size=(12.0, 3.2)), "full": Preset(FULL, seeds=3, size=(12.0, 3.2))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        below("trained/projection", "Trained matrices have little outside the span of the tasks.", bound=0.06),
        Tends("shares/share", "In long normal contexts n Σ a² tends to exp |M x_q|².", 0.005, "context_length"),
    ),
    unjudged={"theory/long/loss": "of long normal contexts; matrices are trained on the sphere, at finite length"},
    vocabulary=vocabulary(
        {"long/inside": ("m", "part of M in the span"), "long/outside": ("m⊥", "part of M outside the span")},
        context_length=("n", "labeled examples before the query"),
        seen=("k", "directions that tasks depend on"),
        inside=("σ_min(BᵀMB)", "least singular value in the span"),
        outside=("|B⊥ᵀMB⊥|", "largest singular value outside the span"),
        projection=("ρ(M, B)", "ratio of outside and inside"),
        matrix=("M", "key-query matrix"),
        share=("n E Σ a²", "sum of squared attention weights, times n"),
    ),
)  # fmt: skip
