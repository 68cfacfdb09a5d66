"""Levels and drop times of a problem whose spectrum was measured on data, with the band that sampling leaves open.

Formulas of the spectrum alone, for diagonal covariances: they cost O(D), and answer at dimensions where no flow of
matrices does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.attention import Layer, MergedAttention, SeparateAttention
from iclab.numerics import Validated, instance, require
from iclab.numerics.curves import first_below
from iclab.problem import Regression
from iclab.theory.dynamics.escape import drop_times
from iclab.theory.dynamics.fixed_points import plateaus
from iclab.theory.integration import integrate
from iclab.theory.population import Moments, moments, moments_from

__all__ = ["Band", "drop_band", "level_band", "measured_levels", "merged_drop_time", "spectral_levels"]

Array = np.ndarray
COVERED = 0.95
CHANGE = 0.02  # of an eigenvalue, for the derivative of a drop time
MOST = 12  # modes whose drop times are differentiated
LARGEST = 1000  # numbers in one batch of flows
REACHES, RECORDS = (3.0, 30.0, 300.0), 600  # times the growth of a start, within which its half-drop is looked for


@dataclass(frozen=True)
class Band:
    """Values, and the ends of their 95 % intervals: the values if nothing was sampled, NaN if none are known."""

    value: Float[Array, "entry"]
    low: Float[Array, "entry"]
    high: Float[Array, "entry"]


def spectral_levels(
    problem: Validated[Regression], eigenvalues: Validated[Float[Array, "*draw D"]]
) -> Float[Array, "*draw plateau"]:
    """Losses of the plateaus for each spectrum in the place of that of the problem, from none to all modes learned.

    A mode contributes λ²ω²/(λω(1 + m) + m L₀), with m = ⟨1/N⟩ over context lengths and L₀ = Σ λω + noise; the largest
    contribution comes first. Equal to plateaus().

    Source: zhang2025training, eq. 19; derived in docs/derivations/measured_inputs.
    """
    instance("problem", problem, Regression)
    spectrum, tasks = np.asarray(eigenvalues, dtype=float), np.array(problem.task_spectrum)
    signal, curvature, null = _modes(problem, spectrum, tasks)
    contribution = np.divide(signal**2, curvature, out=np.zeros_like(signal), where=curvature > 0)
    learned = np.cumsum(-np.sort(-contribution, axis=-1), axis=-1)
    return null - np.concatenate([np.zeros_like(null), learned], axis=-1)


def merged_drop_time(
    problem: Validated[Regression], start: Validated[MergedAttention], eigenvalues: Validated[Float[Array, "draw D"]]
) -> Float[Array, "draw"]:
    """Time at which merged attention has made half of its drop from a small start, for each spectrum.

    The D + 1 scalars of reduced_merged_flow. Units: τ. NaN where it is later than three hundred times the growth.

    Raises ValueError for a start of another dimension, and one that does not grow.

    Source: zhang2025training, section 3.2; derived in docs/derivations/measured_inputs.
    """
    instance("problem", problem, Regression)
    instance("start", start, MergedAttention)
    spectra, tasks = np.atleast_2d(np.asarray(eigenvalues, dtype=float)), np.array(problem.task_spectrum)
    signal, curvature, null = _modes(problem, spectra, tasks)
    levels = spectral_levels(problem, spectra)
    amplitude = _amplitude(start, signal)
    batch = max(1, LARGEST // (spectra.shape[1] + 1))
    found = [
        _half_drops(*(part[i : i + batch] for part in (signal, curvature, null[:, 0], levels[:, -1], amplitude)))
        for i in range(0, len(spectra), batch)
    ]
    return np.concatenate(found)


def level_band(problem: Validated[Regression]) -> Band:
    """The plateaus of a problem made by Regression.from_inputs, with the band that the sampling of its rows leaves.

    Source: derived in docs/derivations/measured_inputs.
    """
    return _band(problem, lambda spectra: spectral_levels(problem, spectra))


def measured_levels(problem: Validated[Regression]) -> Float[Array, "plateau"] | None:
    """The plateaus with the fourth moments that the rows of a problem made by Regression.from_inputs have.

    Normal inputs have E[|x|² x xᵀ] = 2Λ² + tr(Λ) Λ; heavy tails have more, and learn less in context. None for a
    problem without rows, of more than 1000 dimensions, shrunk, or whose tasks are not white.

    Source: zhang2025training, eqs. 15 and 19; other inputs derived in docs/derivations/measured_inputs.
    """
    instance("problem", problem, Regression)
    sample = problem.sampling
    white = problem.task_eigenvalues is None or set(problem.task_eigenvalues) == {1.0}
    if sample is None or sample.fourth is None or sample.weight > 0 or not white:
        return None
    law, shorter = moments(problem), float(np.mean(1 / np.array(problem.context_lengths, dtype=float)))
    inputs = law.input_covariance
    second = (1 - shorter) * law.cross + shorter * (sample.fourth + problem.noise * inputs)
    return plateaus(Moments(law.cross, second, inputs, law.null_loss))


def drop_band(problem: Validated[Regression], start: Validated[Layer]) -> Band:
    """The drop times from a start, in the directions of the inputs, with the band that sampling leaves. Units: τ.

    One drop of merged attention, one for each mode of separate attention. Where a draw has no such drop the band is
    NaN.

    Raises ValueError and ArithmeticError as merged_drop_time and drop_times.

    Source: derived in docs/derivations/measured_inputs.
    """
    instance("problem", problem, Regression)
    instance("start", start, MergedAttention | SeparateAttention)
    if isinstance(start, MergedAttention):
        return _band(problem, lambda spectra: merged_drop_time(problem, start, spectra)[:, None])

    value = drop_times(moments(problem), start)
    sample = problem.sampling
    if sample is None or sample.spectra is None or problem.dimension > MOST:
        unknown = value if sample is None or sample.rows is None else np.full_like(value, np.nan)
        return Band(value, unknown, unknown)
    derivative = _derivative(problem, start, value)

    def times(spectra: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.nan_to_num(np.log(spectra / np.array(problem.eigenvalues)))
        return value * np.exp(moved @ derivative.T)

    return _band(problem, times)


def _band(problem: Validated[Regression], measure: Callable[[Array], Array]) -> Band:
    """The basic bootstrap interval of logarithms: how far draws lie from the rows, the rows lie from the truth."""
    instance("problem", problem, Regression)
    value = measure(np.array([problem.eigenvalues]))[0]
    sample = problem.sampling
    if sample is None or sample.rows is None:
        return Band(value, value, value)
    if (spectra := sample.spectra) is None:
        return Band(value, np.full_like(value, np.nan), np.full_like(value, np.nan))
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = (1 - COVERED) / 2
        low, high = np.quantile(np.log(measure(spectra)), [tail, 1 - tail], axis=0)
        return Band(value, np.exp(2 * np.log(value) - high), np.exp(2 * np.log(value) - low))


def _derivative(problem: Regression, start: SeparateAttention, value: Array) -> Float[Array, "drop D"]:
    """Derivatives of the logarithms of drop times by those of the eigenvalues."""
    columns = []
    for mode in range(problem.dimension):
        moved = np.array(problem.eigenvalues)
        moved[mode] *= 1 + CHANGE
        law = moments_from(
            np.diag(moved),
            problem.context_lengths,
            task_covariance=np.diag(problem.task_spectrum),
            noise=problem.noise,
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            columns.append(np.log(drop_times(law, start) / value) / np.log1p(CHANGE))
    return np.array(columns).T


def _modes(
    problem: Regression, spectrum: Float[Array, "*draw D"], tasks: Float[Array, "D"]
) -> tuple[Float[Array, "*draw D"], Float[Array, "*draw D"], Float[Array, "*draw 1"]]:
    """Signal, curvature and null loss."""
    shorter = float(np.mean(1 / np.array(problem.context_lengths, dtype=float)))
    null = np.sum(spectrum * tasks, axis=-1, keepdims=True) + problem.noise
    signal = spectrum**2 * tasks
    return signal, spectrum * (signal * (1 + shorter) + shorter * null * spectrum), null


def _amplitude(start: MergedAttention, signal: Float[Array, "draw D"]) -> Float[Array, "draw"]:
    """Amplitude of the growing mode, as growing_amplitude has it."""
    require(
        start.restricted and start.dimension == signal.shape[1],
        f"start must be restricted and of the dimension of the problem, {signal.shape[1]}; got {start.dimension}.",
    )
    along = np.einsum("hdd,kd->kh", start.key_query, signal / np.linalg.norm(signal, axis=1, keepdims=True))
    amplitude = np.linalg.norm(start.value + along, axis=1) / 2
    require(bool(np.all(amplitude > 0)), "start must grow; got weights without a part along the growing mode.")
    return amplitude


def _half_drops(
    signal: Float[Array, "draw D"], curvature: Float[Array, "draw D"], null: Float[Array, "draw"],
    least: Float[Array, "draw"], amplitude: Float[Array, "draw"],
) -> Float[Array, "draw"]:  # fmt: skip
    """Half-drop times of several flows of D + 1 scalars, integrated as one; time in units of the growth of each."""
    pace = np.linalg.norm(signal, axis=1, keepdims=True)
    g, h = signal / pace, curvature / pace

    def velocity(state: Array) -> Array:
        rows = state.reshape(len(g), -1)
        r, b = rows[:, :1], rows[:, 1:]
        f = g - h * r * b
        return np.concatenate([np.sum(b * f, axis=1, keepdims=True), r * f], axis=1).ravel()

    start = amplitude[:, None] * np.concatenate([np.ones_like(pace), g], axis=1)
    growth = max(1.0, float(np.max(np.log(1 / np.minimum(amplitude, 0.5)))))
    half, found = (null + least) / 2, np.full(len(g), np.nan)
    for reach in REACHES:
        time = np.linspace(0, reach * growth, RECORDS)
        states = integrate(velocity, start.ravel(), time, tolerance=1e-7, floor=np.repeat(amplitude, start.shape[1]))
        rows = states.reshape(len(time), len(g), -1)
        strength = rows[..., :1] * rows[..., 1:]
        loss = null + np.sum(pace[:, 0, None] * (h * strength - 2 * g) * strength, axis=-1)
        found = np.array([first_below(time, loss[:, k], half[k]) for k in range(len(g))])
        if np.all(np.isfinite(found)):
            break
    return found / pace[:, 0]
