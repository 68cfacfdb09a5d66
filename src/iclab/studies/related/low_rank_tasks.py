"""Does softmax attention project onto the directions in which tasks vary?

Where labels depend on few directions of the inputs, f(x) = aᵀBᵀx, a window across the others would only lose
examples. *The paper's*, of arXiv 2402.11639: attention then projects onto the span of B (its summary). *Derived
here*, for long contexts of normal inputs: the share of examples and the loss of any key-query matrix, whose best has
no part outside the span, docs/derivations/softmax_window. *Simulated*: full matrices trained on inputs on the sphere
at a finite context length, for which there is no closed form; ρ(M, B) = |B⊥ᵀMB⊥|/σ_min(BᵀMB), our reading of the
measure of projection, must be small.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from iclab import figures
from iclab import theory as theories
from iclab.claims import Bounded, Limit
from iclab.numerics import positive, require, whole_number, whole_numbers
from iclab.outcomes import quantity
from iclab.problem import checked_lengths
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import PRNGKeyArray
    from matplotlib.figure import Figure

Array = np.ndarray
WEIGHT, DIRECTION = 0.5, np.array([0.9, -0.6, 0.5])  # M = WEIGHT·I and the query at which shares are drawn


@dataclass(frozen=True)
class Case:
    """Tasks of low rank on the sphere, and shares in long normal contexts. Raises ValueError for bad numbers."""

    dimension: int = 6  # d, of the inputs
    context_length: int = 50  # n, labelled examples before the query
    noise: float = 0.05  # ρ, variance of the label noise of the context
    seen: tuple[int, ...] = (1, 2)  # k, directions that tasks depend on
    initial: float = 1.0  # the start is this multiple of the identity
    rate: float = 0.1  # largest rate of Adam
    steps: int = 600  # steps of training
    batch: int = 512  # contexts of a step
    share_lengths: tuple[int, ...] = (100, 400, 1600)  # n of the contexts in which shares are drawn
    share_examples: int = 8_000_000  # examples drawn at each length

    def __post_init__(self) -> None:
        whole_number("dimension", self.dimension, least=2)
        whole_number("context_length", self.context_length, least=2)
        positive("noise", self.noise)
        seen = whole_numbers("seen", self.seen)
        require(max(seen) < self.dimension, f"seen must be below dimension = {self.dimension}; got {seen}.")
        require(len(set(seen)) == len(seen), f"seen must differ; got {seen}.")
        object.__setattr__(self, "seen", seen)
        object.__setattr__(self, "share_lengths", checked_lengths(self.share_lengths, "share_lengths"))
        for name in ("initial", "rate"):
            positive(name, getattr(self, name))
        for name in ("steps", "batch", "share_examples"):
            whole_number(name, getattr(self, name))


@dataclass(frozen=True)
class Projections:
    """Trained matrices: their part in the span of tasks, the largest outside, and the ratio of projection."""

    seen: Int[Array, "seen"] = quantity("k", "seen", words="directions that tasks depend on")
    inside: Float[Array, "seen"] = quantity("σ_min(BᵀMB)", "seen", words="least singular value in the span")
    outside: Float[Array, "seen"] = quantity("|B⊥ᵀMB⊥|", "seen", words="largest singular value outside the span")
    projection: Float[Array, "seen"] = quantity("ρ(M, B)", "seen", words="ratio of outside and inside")
    matrix: Float[Array, "seen row column"] = quantity("M", "seen", "row", "column", words="key-query matrix")


@dataclass(frozen=True)
class Shares:
    """n E Σ a² against the context length."""

    context_length: Int[Array, "context_length"] = quantity("n", "context_length", words="labelled examples")
    share: Float[Array, "context_length"] = quantity("n E Σ a²", "context_length", words="inverse effective share")


@dataclass(frozen=True)
class LongContexts:
    """Loss in long normal contexts against the part of M outside the span, for several parts inside."""

    inside: Float[Array, "inside"] = quantity("m", "inside", words="part of M in the span")
    outside: Float[Array, "outside"] = quantity("m⊥", "outside", words="part of M outside the span")
    loss: Float[Array, "inside outside"] = quantity(
        "L", "inside", "outside", unit="label²", words="mean squared error"
    )


def theory(case: Case) -> dict[str, Shares | LongContexts]:
    """The limit of the share, and the loss of long contexts around its projection."""
    window, lengths = theories.softmax, np.array(case.share_lengths)
    limit = float(window.gaussian_share(WEIGHT * np.eye(3), DIRECTION))
    inside, outside, rank = np.array([0.3, 0.45, 0.6]), np.linspace(0, 0.6, 25), min(case.seen)
    held = np.arange(case.dimension) < rank
    losses = [
        [
            window.gaussian_loss(
                np.diag(np.where(held, one, other)),
                np.eye(case.dimension)[:, :rank],
                context_length=case.context_length,
                slope_variance=1.0,
                noise=case.noise,
            )
            for other in outside
        ]
        for one in inside
    ]
    return {
        "shares": Shares(lengths, np.full(len(lengths), limit)),
        "long": LongContexts(inside, outside, np.array(losses)),
    }


def simulation(case: Case, *, key: "PRNGKeyArray") -> dict[str, Projections | Shares]:
    """Matrices trained for each number of directions, split by the span of the tasks; shares in long contexts."""
    import jax

    from iclab.simulation.related.softmax_windows import WindowShape, WindowTraining, drawn_concentration, trained

    runs, noises = WindowTraining(case.steps, case.initial, case.rate), np.array([case.noise])
    found = []
    for rank in case.seen:
        shape = WindowShape("projected", case.dimension, case.context_length, case.batch, rank)
        found.append(trained(shape, runs, noises=noises, key=jax.random.fold_in(key, rank))[0])
    shares = drawn_concentration(
        WEIGHT * np.eye(3),
        DIRECTION,
        case.share_lengths,
        examples=case.share_examples,
        key=jax.random.fold_in(key, 0),
    )
    inside = np.array([least(one[:rank, :rank]) for one, rank in zip(found, case.seen, strict=True)])
    outside = np.array([np.linalg.norm(one[rank:, rank:], 2) for one, rank in zip(found, case.seen, strict=True)])
    return {
        "trained": Projections(np.array(case.seen), inside, outside, outside / inside, np.stack(found)),
        "shares": Shares(np.array(case.share_lengths), shares),
    }


def least(block: Float[Array, "k k"]) -> float:
    """Least singular value."""
    return float(np.linalg.svd(block, compute_uv=False)[-1])


def figure(result: "xr.DataTree", figure: "Figure") -> None:
    """Entries of trained matrices; the loss of long contexts against the part outside the span; the share."""
    simulated = "simulation" in result.children
    trained = result["simulation/trained"].to_dataset() if simulated else None
    count = trained.sizes["seen"] if trained is not None else 0
    *matrices, losses, shares = figure.subplots(1, count + 2, squeeze=False)[0]
    if trained is not None:
        for axes, rank in zip(matrices, trained.seen.values, strict=True):
            entries = trained.matrix.sel(seen=rank).isel(seed=0).values
            size = np.abs(entries).max()
            image = axes.imshow(entries, cmap="RdBu_r", vmin=-size, vmax=size)
            figure.colorbar(image, ax=axes, shrink=0.6)
            axes.set(title=f"trained $M$, $k$ = {rank}, seed 0", xticks=[], yticks=[])
    long, limit = result["theory/long"].to_dataset(), result["theory/shares"].to_dataset()
    for color, i in figures.colored(range(long.sizes["inside"])):
        finite = long.loss.isel(inside=i).where(np.isfinite)
        label = f"inside {float(long.inside[i]):g}"
        figures.theory_line(losses, long.outside, finite, color=color, label=label)
    figures.theory_line(shares, limit.context_length, limit.share, label="limit $\\exp|Mx_q|^2$")
    if simulated:
        drawn = result["simulation/shares"].to_dataset()
        figures.seed_dots(shares, drawn.context_length, drawn.share.values, color=figures.COLORS[0], label="drawn")
    losses.set(title="long normal contexts", xlabel="part of $M$ outside the span", ylabel="mean squared error")
    shares.set(xscale="log", title="examples averaged over", xlabel="context length $n$", ylabel="$n$ E Σ a²")
    losses.legend()
    shares.legend()


STUDY = Study(
    name="low-rank-tasks",
    question=str(__doc__),
    version=1,
    quick=Case(),
    full=replace(Case(), seen=(1, 2, 3), steps=800, share_examples=32_000_000),
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        Bounded(
            "simulation/trained/projection",
            "Trained matrices have next to nothing outside the span of the tasks.",
            bound=0.06,
        ),
        Limit(
            "theory/shares/share",
            "simulation/shares/share",
            "In long contexts of normal inputs the share of examples is exp |M x_q|²/n.",
            along="context_length",
            order=1.0,
        ),
    ),
    seeds=3,
    size=(12.0, 3.2),
)
