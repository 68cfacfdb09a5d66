"""How wide a window does softmax attention open?

Softmax attention averages the labels of examples near the query. The window narrows for steeper functions and longer
contexts, and widens with noise. *The paper's*, of arXiv 2402.11639: attention adapts its window to slope and noise
(its summary; its bounds on the rate are not used). *Derived here*, docs/derivations/softmax_window: the exact error
at any context length, by one integral, for affine functions and any class without preferred directions; the best
scale w of the key-query matrix w·I; its laws in long contexts, by how smooth the functions are; and linear attention,
which an offset defeats, and which without one can do better. *Simulated*: a full key-query matrix trained on drawn
functions, against the exact best scale.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
from jaxtyping import Float

from iclab import figures
from iclab.claims import Agrees, below
from iclab.numerics import Checked, Count, Increasing, Positive, Values, Whole, require
from iclab.outcomes import Labeled, labeled, vocabulary
from iclab.problem import Lengths
from iclab.study import Figure, Key, Preset, Study, View

__all__ = ["STUDY", "Case", "figure", "simulation", "theory"]

Each = Float[np.ndarray, "noise"]  # a number for each noise
LONGEST = 3000  # examples of a context of the laws
FAR = {"context_length": LONGEST}
BLOCKS = 480  # batches of the test of a trained matrix


@dataclass(frozen=True)
class Case(Checked):
    """Functions of unit slope at several noises and context lengths."""

    dimension: Annotated[int, Whole(least=2)] = 5  # d, of the inputs
    context_length: Annotated[int, Whole(least=2)] = 50  # n, labeled examples before the query
    ratios: Increasing = (1.0, 16.0)  # L²/ρ, slope variance over noise
    lengths_dimension: Annotated[int, Whole(least=2)] = 3  # d of the runs at several lengths
    lengths: Lengths = (50,)  # n of the runs at several lengths
    lengths_ratio: Positive = 10 / 3  # L²/ρ of the runs at several lengths
    kinked_ratio: Positive = 10.0  # L²/ρ of a run on functions with a kink
    initial: Positive = 4.0  # the start is this multiple of the identity
    rate: Positive = 0.2  # largest learning rate of Adam
    steps: Count = 400  # steps of training
    batch: Count = 512  # contexts of a step

    def __post_init__(self) -> None:
        super().__post_init__()
        require(min(self.lengths) > 1, f"lengths must be 2 or more; got {self.lengths}. One example has no window.")
        require(min(self.ratios) > 0, f"ratios must be positive; got {self.ratios}.")


def theory(case: Case) -> dict[str, Labeled]:
    """Exact best scales and errors; error against scale; laws in the length; linear attention on the same class."""
    from iclab.theory import softmax

    size, length, noise = case.dimension, case.context_length, 1 / np.array(case.ratios)
    small, lengths, small_noise = case.lengths_dimension, np.array(case.lengths), 1 / case.lengths_ratio
    scale, narrow = best_scale(size, length, noise), best_scale(small, lengths, small_noise)
    grid, offset, middle = np.geomspace(0.5, 30, 60), np.linspace(0, 1, 41), float(np.median(noise))
    along = np.unique(np.geomspace(10, LONGEST, 12).astype(int))
    law = {"dimension": size, "context_length": length, "slope_variance": 1.0, "noise": middle}
    linear = [softmax.linear_attention_loss(**law, offset_variance=float(b)) - middle for b in offset]
    least = exact_error(size, length, best_scale(size, length, middle), middle)
    narrow_error = exact_error(small, lengths, narrow, small_noise)
    curves = exact_error(size, length, grid, noise[:, None])
    return {
        "best": labeled({"ratio": case.ratios}, scale=scale, error=exact_error(size, length, scale, noise)),
        "lengths": labeled({"context_length": lengths}, scale=narrow, error=narrow_error),
        "kinked": labeled({}, scale=best_scale(size, length, 1 / case.kinked_ratio, kinked=True)),
        "curves": labeled({"ratio": case.ratios, "scale": grid}, error=curves),
        "laws": labeled(
            {"context_length": along},
            smooth=best_scale(small, along, small_noise),
            kinked=best_scale(small, along, small_noise, kinked=True),
            law=softmax.scale_law(small, along, 1.0, small_noise),
        ),
        "rivals": labeled({"offset": offset}, linear=linear, softmax=np.full(len(offset), least)),
    }


def exact_error(dimension: int, length: Values, scale: Values, noise: Values) -> np.ndarray:
    """Exact loss of affine functions of unit slope, less the noise of the target."""
    from iclab.theory import softmax

    law = {"dimension": dimension, "context_length": length, "slope_variance": 1.0, "noise": noise}
    return np.asarray(softmax.affine_loss(scale, **law) - noise)


def best_scale(dimension: int, length: Values, noise: Values, *, kinked: bool = False) -> np.ndarray:
    """Best scale for functions of unit slope, affine or with a kink."""
    from iclab.theory import softmax

    law = {"dimension": dimension, "slope_variance": 1.0}
    best = partial(softmax.best_scale, **law)
    if kinked:
        best = partial(softmax.best_kernel_scale, partial(softmax.kinked_kernel, **law), dimension=dimension)
    return np.vectorize(best, otypes=[float])(context_length=length, noise=noise)


def simulation(case: Case, *, key: Key) -> dict[str, Labeled]:
    """A full matrix trained on each setting, measured as a scale and what is left, and tested on drawn functions."""
    from jax.random import fold_in, split

    from iclab.simulation.related.softmax_windows import WindowShape, WindowTraining, windows

    def measured(functions: str, size: int, length: int, noise: Each, key: Key) -> dict[str, Each]:
        shape, training = WindowShape(functions, size, length, case.batch), (case.steps, case.initial, case.rate)
        return windows(shape, WindowTraining(*training), noises=noise, blocks=BLOCKS, key=key)

    for_ratios, for_kinked, for_lengths = split(key, 3)
    size, length, noise = case.dimension, case.context_length, 1 / np.array(case.ratios)
    small, lengths, small_noise = case.lengths_dimension, np.array(case.lengths), np.array([1 / case.lengths_ratio])
    best = measured("affine", size, length, noise, for_ratios)
    kinked = measured("kinked", size, length, np.array([1 / case.kinked_ratio]), for_kinked)
    runs = [measured("affine", small, n, small_noise, fold_in(for_lengths, n)) for n in case.lengths]
    narrow = {name: np.concatenate([run[name] for run in runs]) for name in best}
    narrow_error = exact_error(small, lengths, narrow["scale"], small_noise)
    return {
        "best": labeled({"ratio": case.ratios}, error=exact_error(size, length, best["scale"], noise), **best),
        "lengths": labeled({"context_length": lengths}, error=narrow_error, **narrow),
        "kinked": labeled({}, scale=kinked["scale"][0]),
    }


def figure(view: View, figure: Figure) -> None:
    """Error against scale with the trained windows; best scale against length; linear attention and offsets."""
    errors, scales, rivals = figure.subplots(1, 3)
    curves, laws, rival = (view.theory[name] for name in ("curves", "laws", "rivals"))
    loss = "mean squared error $-\\ \\rho$"
    for i, (color, ratio) in enumerate(figures.colored(curves.ratio.values)):
        label = f"$L^2/\\rho$ = {ratio:g}"
        figures.theory_line(errors, curves.scale, curves.error.isel(ratio=i), color=color, label=label)
        if view.simulation:
            run = view.simulation.best.isel(ratio=i)
            errors.plot(run.scale.values, run.drawn.values, "o", ms=4, mfc="none", color=figures.INK, zorder=5)
    for color, (name, label) in figures.colored({"smooth": "affine, exact", "kinked": "with a kink, exact"}.items()):
        figures.theory_line(scales, laws.context_length, laws[name], color=color, label=label)
    figures.dashed_line(scales, laws.context_length, laws.law, color=figures.COLORS[0], label="affine, long contexts")
    if view.simulation:
        run, label = view.simulation.lengths, f"trained, {figures.seeds(view.simulation.lengths)}"
        figures.seed_dots(scales, run.context_length, run.scale.values, color=figures.INK, label=label)
    for name, color in (("linear", figures.COLORS[1]), ("softmax", figures.COLORS[0])):
        figures.theory_line(rivals, rival.offset, rival[name], color=color, label=f"{name} attention")
    errors.set(xscale="log", yscale="log", xlabel="scale $w$", ylabel=loss, title="error against scale (○ trained)")
    scales.set(xscale="log", yscale="log", xlabel="context length $n$", ylabel="best scale $w$")
    scales.set_title("narrower with n")
    rivals.set(xlabel="variance of the offset", ylabel=loss, title="best of each")
    for axes in (errors, scales, rivals):
        axes.legend()


FULL = Case(ratios=(1.0, 4.0, 16.0, 64.0), lengths=(10, 50, 200))
STUDY = Study(
    name="softmax-window", question=str(__doc__), version=2,
    presets={"quick": Preset(Case(), seeds=3, size=(11.0, 3.6)), "full": Preset(FULL, seeds=3, size=(11.0, 3.6))},
    theory=theory, simulation=simulation, figure=figure,
    claims=(
        Agrees("best/scale", "The trained matrix has the exact best scale at every ratio L²/ρ.", 0.02),
        Agrees("lengths/scale", "The trained matrix has the exact best scale at every length.", 0.02),
        Agrees("kinked/scale", "The trained matrix has the exact best scale for functions with a kink.", 0.03),
        Agrees(
            "theory/laws/smooth", "In the longest contexts the best scale follows its law.", 1e-3, "laws/law", at=FAR
        ),
        below("best/anisotropy", "The trained matrix is nearly a multiple of the identity.", bound=0.05),
        below("lengths/anisotropy", "At every length it is nearly such a multiple.", bound=0.05),
        Agrees("best/error", "At the trained scale the exact error is the least one.", 1e-3),
        Agrees("lengths/error", "At every length the error there is the least one.", 1e-3),
        Agrees("best/drawn", "The trained matrix has the least error on drawn functions.", 0.01, theory="best/error"),
    ),
    unjudged={
        "theory/curves/error": "the formula of best/error, at other scales",
        "theory/laws/kinked": "the formula of kinked/scale, at other lengths",
        "theory/rivals/linear": "no linear attention is trained here",
        "theory/rivals/softmax": "the formula of best/error, at another noise",
    },
    vocabulary=vocabulary(
        dict.fromkeys(("error", "linear", "softmax"), ("L−ρ", "mean squared error against clean targets", "label²")),
        context_length=("n", "labeled examples before the query"),
        ratio=("L²/ρ", "slope variance over noise"),
        scale=("w", "scale of the key-query matrix"),
        drawn=("⟨L⟩−ρ", "error on drawn functions", "label²"),
        anisotropy=("|M−wI|/|M|", "share of the matrix that is no multiple of the identity"),
        smooth=("w*", "best scale, affine functions"),
        kinked=("w*", "best scale, functions with a kink"),
        law=("w*", "law of long contexts"),
        offset=("b²", "variance of the offset", "label²"),
    ),
)  # fmt: skip
