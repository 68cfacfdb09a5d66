"""Curves under a run: the theory of its population, and drawn training sets that went the same way."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from iclab.attention import Layer, MergedAttention, SeparateAttention
from iclab.numerics import require
from iclab.overlay.conventions import NORMALIZATIONS, Conventions
from iclab.problem import Regression
from iclab.theory.population import Moments, moments_from

if TYPE_CHECKING:
    from iclab.simulation.linear.statistics import Statistics

__all__ = ["DrawnSets", "drawing_seconds", "moments_of", "restricted", "strays", "theory_loss", "whole"]

DRAWS = 24  # training sets that calibrate
BUDGET = 1e9  # bytes that their statistics may take
FEWEST = 8
WHOLE = 6  # dimensions up to which all entries flow: their moments are D⁶ numbers
SECONDS = 1e-7  # of drawing one number, on one core
FLOW_BYTES = 4e9  # that the records of a flow may take

Array = np.ndarray
Curve = Float[Array, "record"]


def moments_of(problem: Regression, conventions: Conventions) -> Moments:
    """Moments of the summary as the code divides it."""
    return moments_from(
        np.diag(problem.eigenvalues), problem.context_lengths, task_covariance=np.diag(problem.task_spectrum),
        noise=problem.noise, normalization=NORMALIZATIONS[conventions.normalization],
    )  # fmt: skip


def restricted(layer: Layer) -> Layer:
    """The entries of a layer that act on labels in values and on inputs in keys."""
    if layer.restricted:
        return layer
    d = layer.dimension
    if isinstance(layer, MergedAttention):
        return MergedAttention(layer.value[:, -1], layer.key_query[:, :d])
    return SeparateAttention(layer.value[:, -1], layer.key[..., :d], layer.query)


def strays(layer: Layer) -> bool:
    """True for a layer with entries beyond the restricted ones: values of inputs, or keys of labels."""
    parts, held = vars(layer), vars(restricted(layer).unrestricted())
    return not layer.restricted and any(not np.array_equal(parts[name], held[name]) for name in parts)


def whole(problem: Regression, layer: Layer) -> bool:
    """True where theory follows all entries of a layer: merged attention, few dimensions, contexts of one length."""
    few = problem.dimension <= WHOLE and len(problem.context_lengths) == 1
    return few and isinstance(layer, MergedAttention)


def theory_loss(problem: Regression, conventions: Conventions, start: Layer, clock: Curve) -> Curve:
    """Mean squared error of gradient flow on the population, at the clock of the run.

    Entries beyond the restricted ones flow too where `whole` says so; else they are left out.

    Raises ValueError and ArithmeticError as the flows do, and ValueError for weights whose flow would not fit.
    """
    from iclab.theory import dynamics
    from iclab.theory.tokens import mixture

    if strays(start) and whole(problem, start):
        factor, ours = _in_our_units(problem, conventions, start)
        time = conventions.rate * factor**2 * clock
        assert isinstance(ours, MergedAttention)
        return mixture.flow(mixture.in_context_test(problem), ours, time, tolerance=1e-7).loss
    moments, layer, time = moments_of(problem, conventions), restricted(start), conventions.rate * clock
    need = 8.0 * sum(np.size(part) for part in vars(layer).values()) * (len(clock) + 40)
    require(
        need <= FLOW_BYTES,
        f"the flow of the start must fit {FLOW_BYTES / 1e9:g} GB at {len(clock)} records; got {need / 1e9:.2g} GB. "
        "Compare the levels alone, without a start.",
    )
    if isinstance(layer, MergedAttention):
        return dynamics.merged_flow(moments, layer, time, tolerance=1e-7).loss
    return dynamics.separate_flow(moments, layer, time, tolerance=1e-7).loss


def drawing_seconds(problem: Regression, conventions: Conventions) -> float:
    """Time on one core that the drawing of training sets takes, roughly."""
    tokens = (conventions.sequences or 0) * (max(problem.context_lengths) + 1)
    return SECONDS * DRAWS * tokens * (problem.dimension + 1)


class DrawnSets:
    """Training sets as large as that of the run, drawn once and descended on in any convention.

    The scatter of their curves is the sampling error of the run. With a `batch` every step has fresh contexts.

    Raises ImportError where JAX is not installed.
    """

    def __init__(self, problem: Regression, conventions: Conventions, start: Layer) -> None:
        from iclab.provenance import simulating

        with simulating("compare by eye"):
            from iclab.simulation.keys import key_of
        import jax

        self._problem, self._start, self._sequences = problem, start, conventions.sequences
        self._keys = jax.random.split(key_of(0), _affordable(start, conventions))
        self._known: dict[str, Statistics] = {}

    def losses(self, conventions: Conventions, steps: Array) -> Float[Array, "draw record"]:
        """Mean squared errors of every set at these steps.

        Raises ArithmeticError where descent diverges in one of them.
        """
        from iclab.simulation.linear import descent

        steps = steps.astype(int)
        if self._sequences is not None:
            data = self._statistics(conventions)
            return descent.on_statistics(data, self._start, rate=conventions.rate, steps=steps).loss
        factor, start = _in_our_units(self._problem, conventions, self._start)
        rate, batch = conventions.rate * factor**2, conventions.batch
        assert batch is not None
        return descent.one_pass(self._problem, start, rate=rate, batch=batch, steps=steps, key=self._keys).loss

    def _statistics(self, conventions: Conventions) -> "Statistics":
        """Statistics of the sets, divided as the code divides; those of one length differ by a factor."""
        several = len(self._problem.context_lengths) > 1
        divided = conventions.normalization if several else "1/N"
        if divided not in self._known:
            self._known[divided] = self._drawn(divided)
        data, ratio = self._known[divided], 1.0 if several else _ratio(self._problem, conventions)
        return replace(data, cross=ratio * data.cross, left=ratio**2 * data.left)

    def _drawn(self, normalization: str) -> "Statistics":
        from iclab.simulation.linear import contexts, statistics

        assert self._sequences is not None
        found = []
        for i, key in enumerate(self._keys):
            drawn = contexts.draw(_resampled(self._problem, i), self._sequences, key=key)
            divisor = {"1/N": drawn.divisor, "none": np.ones_like(drawn.divisor), "1/(N+1)": drawn.divisor + 1}
            found.append(statistics.statistics(replace(drawn, divisor=divisor[normalization]), self._start))
        return statistics.stack(found)


def _resampled(problem: Regression, draw: int) -> Regression:
    """The problem with a spectrum as likely as its own, where that was measured on rows of data."""
    if problem.sampling is None or problem.sampling.spectra is None:
        return problem
    spectra = problem.sampling.spectra
    return replace(problem, eigenvalues=tuple(map(float, spectra[draw % len(spectra)])))


def _ratio(problem: Regression, conventions: Conventions) -> float:
    """N over the divisor of the code."""
    length = float(max(problem.context_lengths))
    return {"1/N": 1.0, "none": length, "1/(N+1)": length / (length + 1)}[conventions.normalization]


def _in_our_units(problem: Regression, conventions: Conventions, start: Layer) -> tuple[float, Layer]:
    """Our weights over those of the code, and the start in ours: the factors of a head share what is not divided."""
    parts = vars(start)
    factor = _ratio(problem, conventions) ** (1 / len(parts))
    return factor, type(start)(*(factor * np.asarray(part) for part in parts.values()))


def _affordable(start: Layer, conventions: Conventions) -> int:
    """Number of sets whose statistics fit the budget. Raises MemoryError where not even a few do."""
    from iclab.simulation.linear.statistics import features_read_by

    if conventions.sequences is None:
        return DRAWS
    each = 8.0 * features_read_by(start) ** 2
    if each * FEWEST > BUDGET:
        raise MemoryError(
            f"statistics of {FEWEST} drawn training sets must fit {BUDGET / 1e9:g} GB; got "
            f"{each * FEWEST / 1e9:.3g} GB for D = {start.dimension}."
        )
    return int(min(DRAWS, BUDGET // each))
