"""How wide a window does softmax attention open?

Softmax attention averages the labels of examples near the query. The window narrows for steeper functions and longer
contexts, and widens with noise. *The paper's*, of arXiv 2402.11639: attention adapts its window to slope and noise
(its summary; its bounds on the rate are not used). *Derived here*: the exact error at any context length, by one
integral, for affine functions and for any class without preferred directions; the best scale w of the key-query
matrix w·I; its laws in long contexts, whose exponent depends on how smooth the functions are; and linear attention on
the same class, which an offset defeats, and which without one can do better, docs/derivations/softmax_window.
*Simulated*: a full key-query matrix trained on drawn functions, against the exact best scale.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab import theory as theories
from iclab.claims import Bounded, Within
from iclab.numerics import increasing_grid, positive, require, whole_number
from iclab.problem import checked_lengths
from iclab.studies.related.windows import (
    ByLength,
    ByRatio,
    Curves,
    Kinked,
    Laws,
    Rivals,
    TrainedByLength,
    TrainedByRatio,
)
from iclab.study import Study

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import PRNGKeyArray
    from matplotlib.figure import Figure

Array = np.ndarray
BLOCKS = 120  # batches of the test of a trained matrix


@dataclass(frozen=True)
class Case:
    """Functions of unit slope at several noises and context lengths. Raises ValueError for impossible numbers."""

    dimension: int = 5  # d, of the inputs
    context_length: int = 50  # n, labelled examples before the query
    ratios: tuple[float, ...] = (1.0, 16.0)  # L²/ρ, slope variance over noise
    lengths_dimension: int = 3  # d of the runs at several lengths
    lengths: tuple[int, ...] = (50,)  # n of the runs at several lengths
    lengths_ratio: float = 10 / 3  # L²/ρ of the runs at several lengths
    kinked_ratio: float = 10.0  # L²/ρ of a run on functions with a kink
    initial: float = 4.0  # the start is this multiple of the identity
    rate: float = 0.2  # largest rate of Adam
    steps: int = 400  # steps of training
    batch: int = 512  # contexts of a step

    def __post_init__(self) -> None:
        for name in ("dimension", "lengths_dimension", "context_length"):
            whole_number(name, getattr(self, name), least=2)
        increasing_grid("ratios", np.array(self.ratios))
        object.__setattr__(self, "lengths", checked_lengths(self.lengths, "lengths"))
        require(min(self.lengths) > 1, f"lengths must be 2 or more; got {self.lengths}. One example has no window.")
        for name in ("lengths_ratio", "kinked_ratio", "initial", "rate"):
            positive(name, getattr(self, name))
        require(min(self.ratios) > 0, f"ratios must be positive; got {self.ratios}.")
        for name in ("steps", "batch"):
            whole_number(name, getattr(self, name))


def theory(case: Case) -> dict[str, ByRatio | ByLength | Curves | Laws | Rivals | Kinked]:
    """Exact best scales and errors; error against scale; laws in the length; linear attention on the same class."""
    window = theories.softmax
    noise, law = 1 / np.array(case.ratios), {"dimension": case.dimension, "context_length": case.context_length}
    best = np.array([window.best_scale(**law, slope_variance=1.0, noise=float(one)) for one in noise])
    small = {"dimension": case.lengths_dimension, "noise": 1 / case.lengths_ratio}
    lengths = np.array(case.lengths)
    narrow = np.array([window.best_scale(**small, context_length=int(n), slope_variance=1.0) for n in lengths])
    grid, offset = np.geomspace(0.5, 30, 60), np.linspace(0, 1, 41)
    errors = exact_error(case.dimension, case.context_length, grid, noise[:, None])
    middle = float(np.median(noise))
    rival = [
        window.linear_attention_loss(**law, slope_variance=1.0, offset_variance=float(b), noise=middle) - middle
        for b in offset
    ]
    least = exact_error(case.dimension, case.context_length, window.best_scale(
        **law, slope_variance=1.0, noise=middle), middle)  # fmt: skip
    return {
        "best": ByRatio(np.array(case.ratios), best, exact_error(case.dimension, case.context_length, best, noise)),
        "lengths": ByLength(
            lengths, narrow, exact_error(case.lengths_dimension, lengths, narrow, 1 / case.lengths_ratio)
        ),
        "kinked": Kinked(kinked_scale(case.dimension, case.context_length, 1 / case.kinked_ratio)),
        "curves": Curves(np.array(case.ratios), grid, errors),
        "laws": laws(case),
        "rivals": Rivals(offset, np.array(rival), np.full(len(offset), least)),
    }


def laws(case: Case) -> Laws:
    """Best scales at lengths from 10 to 3000."""
    window, noise = theories.softmax, 1 / case.lengths_ratio
    size, lengths = case.lengths_dimension, np.unique(np.geomspace(10, 3000, 12).astype(int))
    smooth = [
        window.best_scale(dimension=size, context_length=int(n), slope_variance=1.0, noise=noise) for n in lengths
    ]
    kinked = [kinked_scale(size, int(n), noise) for n in lengths]
    return Laws(lengths, np.array(smooth), np.array(kinked), np.asarray(window.scale_law(size, lengths, 1.0, noise)))


def exact_error(dimension: int, length: "int | Array", scale: "float | Array", noise: "float | Array") -> Array:
    """Exact loss of affine functions of unit slope, less the noise of the target."""
    affine_loss = theories.softmax.affine_loss
    loss = affine_loss(scale, dimension=dimension, context_length=length, slope_variance=1.0, noise=noise)
    return np.asarray(loss - noise)


def kinked_scale(dimension: int, length: int, noise: float) -> float:
    """Best scale for functions with a kink."""
    window = theories.softmax
    kernel = partial(window.kinked_kernel, dimension=dimension, slope_variance=1.0)
    return window.best_kernel_scale(kernel, dimension=dimension, context_length=length, noise=noise)


def simulation(case: Case, *, key: "PRNGKeyArray") -> dict[str, TrainedByRatio | TrainedByLength | Kinked]:
    """A full matrix trained on each setting, read as a scale and what is left, and tested on drawn functions."""
    import jax

    for_ratios, for_kinked, for_lengths = jax.random.split(key, 3)
    noise = 1 / np.array(case.ratios)
    found = read(case, "affine", case.dimension, case.context_length, noise, key=for_ratios)
    runs = [
        read(
            case, "affine", case.lengths_dimension, length, np.array([1 / case.lengths_ratio]),
            key=jax.random.fold_in(for_lengths, length),
        )
        for length in case.lengths
    ]  # fmt: skip
    kinked = read(
        case, "kinked", case.dimension, case.context_length, np.array([1 / case.kinked_ratio]), key=for_kinked
    )
    scale, drawn, anisotropy = (np.concatenate(parts) for parts in zip(*runs, strict=True))
    lengths = np.array(case.lengths)
    exact = exact_error(case.lengths_dimension, lengths, scale, 1 / case.lengths_ratio)
    at_ratios = exact_error(case.dimension, case.context_length, found[0], noise)
    return {
        "best": TrainedByRatio(np.array(case.ratios), found[0], at_ratios, *found[1:]),
        "lengths": TrainedByLength(lengths, scale, exact, drawn, anisotropy),
        "kinked": Kinked(float(kinked[0][0])),
    }


def read(
    case: Case, functions: str, dimension: int, length: int, noise: Float[Array, "noise"], *, key: "PRNGKeyArray"
) -> tuple[Array, Array, Array]:
    """Scale, error on drawn functions and anisotropy of matrices trained at several noises."""
    import jax

    from iclab.simulation.related.softmax_windows import WindowShape, WindowTraining, drawn_errors, trained

    shape = WindowShape(functions, dimension, length, case.batch)
    for_training, for_test = jax.random.split(key)
    matrices = trained(shape, WindowTraining(case.steps, case.initial, case.rate), noises=noise, key=for_training)
    scale = np.trace(matrices, axis1=1, axis2=2) / dimension
    rest = np.linalg.norm(matrices - scale[:, None, None] * np.eye(dimension), axis=(1, 2))
    drawn = drawn_errors(shape, matrices, noises=noise, blocks=BLOCKS, key=for_test)
    return scale, drawn, rest / np.linalg.norm(matrices, axis=(1, 2))


def figure(result: "xr.DataTree", figure: "Figure") -> None:
    """Error against scale with the trained windows; best scale against length; linear attention and offsets."""
    errors, scales, rivals = figure.subplots(1, 3)
    curves, laws = result["theory/curves"].to_dataset(), result["theory/laws"].to_dataset()
    for i, (color, ratio) in enumerate(figures.colored(curves.ratio.values)):
        label = f"$L^2/\\rho$ = {ratio:g}"
        figures.theory_line(errors, curves.scale, curves.error.isel(ratio=i), color=color, label=label)
        if "simulation" in result.children:
            run = result["simulation/best"].to_dataset().isel(ratio=i)
            errors.plot(run.scale.values, run.drawn.values, "o", ms=4, mfc="none", color=figures.INK, zorder=5)
    lines = (("smooth", "affine, exact", 0), ("kinked", "with a kink, exact", 1))
    for name, label, color in lines:
        figures.theory_line(scales, laws.context_length, laws[name], color=figures.COLORS[color], label=label)
    figures.dashed_line(scales, laws.context_length, laws.law, color=figures.COLORS[0], label="affine, long contexts")
    if "simulation" in result.children:
        run = result["simulation/lengths"].to_dataset()
        label = f"trained, {figures.seeds(run)}"
        figures.seed_dots(scales, run.context_length, run.scale.values, color=figures.INK, label=label)
    rival = result["theory/rivals"].to_dataset()
    figures.theory_line(rivals, rival.offset, rival.linear, color=figures.COLORS[1], label="linear attention")
    figures.theory_line(rivals, rival.offset, rival.softmax, color=figures.COLORS[0], label="softmax attention")
    errors.set(xscale="log", yscale="log", xlabel="scale $w$", ylabel="mean squared error $-\\ \\rho$")
    errors.set_title("error against scale (○ trained)")
    scales.set(
        xscale="log", yscale="log", xlabel="context length $n$", ylabel="best scale $w$", title="narrower with n"
    )
    rivals.set(xlabel="variance of the offset", ylabel="mean squared error $-\\ \\rho$", title="best of each")
    for axes in (errors, scales, rivals):
        axes.legend()


STUDY = Study(
    name="softmax-window",
    question=str(__doc__),
    version=1,
    quick=Case(),
    full=replace(Case(), ratios=(1.0, 4.0, 16.0, 64.0), lengths=(10, 50, 200)),
    theory=theory,
    simulation=simulation,
    figure=figure,
    claims=(
        *(
            Within(
                f"theory/{name}/scale",
                f"simulation/{name}/scale",
                f"The trained matrix has the exact best scale {words}.",
                most=0.03,
            )
            for name, words in (
                ("best", "at every ratio of slope and noise"),
                ("lengths", "at every length"),
                ("kinked", "for functions with a kink"),
            )
        ),
        *(
            Bounded(
                f"simulation/{name}/anisotropy",
                "The trained matrix is a multiple of the identity, nearly.",
                bound=0.05,
            )
            for name in ("best", "lengths")
        ),
        *(
            Within(
                f"theory/{name}/error",
                f"simulation/{name}/error",
                "At the trained scale the exact error is within a percent of the least one.",
                most=0.01,
            )
            for name in ("best", "lengths")
        ),
        Within(
            "theory/best/error",
            "simulation/best/drawn",
            "On drawn functions the trained matrix has the least error.",
            most=0.02,
        ),
    ),
    seeds=3,
    size=(11.0, 3.6),
)
