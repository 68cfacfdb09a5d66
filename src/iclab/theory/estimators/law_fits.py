"""Fits of the law of shares to networks, and of its rivals with as many parameters or fewer, by least squares.

A *cell* is one run at one step. Uncertainty is that of drawing other runs: whole runs are drawn again.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import least_squares
from scipy.special import expit

from iclab.numerics import (
    FIXED_STREAM,
    Validated,
    Values,
    checks_its_fields,
    nonnegative,
    numbers,
    one_of,
    require,
    whole_number,
)
from iclab.theory.estimators.strategy_law import StrategyLaw, strategy_log_odds

__all__ = ["FAMILIES", "Cells", "FittedLaw", "fitted_law"]

Parameters = Float[np.ndarray, "parameter"]
_SPAN = 8.0  # least ratio of the largest and the smallest pool


@checks_its_fields
@dataclass(frozen=True)
class Cells:
    """Cells of runs: steps n, loss gap L_G − L_M = Δ/T in nats, bits C_M of the pool, share, and the run of each.

    Raises ValueError for lists of different lengths, shares outside 0 … 1 and steps that are not positive.
    """

    steps: Float[np.ndarray, "cell"]
    loss_gap: Float[np.ndarray, "cell"]
    bits: Float[np.ndarray, "cell"]
    share: Float[np.ndarray, "cell"]
    run: Int[np.ndarray, "cell"]

    def __post_init__(self) -> None:
        for name in ("steps", "loss_gap", "bits", "share", "run"):
            object.__setattr__(self, name, numbers(name, getattr(self, name)))
        shapes = {getattr(self, name).shape for name in ("steps", "loss_gap", "bits", "share", "run")}
        require(
            len(shapes) == 1 and len(next(iter(shapes))) == 1, f"cells must be lists of one length; got {shapes}."
        )
        require(bool(np.all(self.steps > 0)), "steps must be positive; got 0 or less. Leave out the start.")
        require(bool(np.all(self.bits >= 1)), "bits must be at least 1; got less.")
        nonnegative("loss_gap", self.loss_gap)
        require(bool(np.all((self.share >= 0) & (self.share <= 1))), "share must be within 0 and 1; got another.")

    def at(self, kept: np.ndarray) -> "Cells":
        """Some of the cells, by a mask or by numbers."""
        return Cells(self.steps[kept], self.loss_gap[kept], self.bits[kept], self.share[kept], self.run[kept])


def _law(parameters: Parameters, cells: Cells) -> Values:
    gain, growth, exponent = np.exp(parameters)
    return strategy_log_odds(StrategyLaw(gain, 1 - growth, exponent), cells.steps, cells.loss_gap, cells.bits)


def _linear_complexity(parameters: Parameters, cells: Cells) -> Values:
    return _law(np.array([*parameters, 0.0]), cells)


def _linear_evidence(parameters: Parameters, cells: Cells) -> Values:
    return _law(np.array([parameters[0], 0.0, parameters[1]]), cells)


def _logistic(parameters: Parameters, cells: Cells) -> Values:
    return parameters[0] + parameters[1] * np.log(cells.steps) + parameters[2] * np.log(cells.bits)


FAMILIES: dict[str, tuple[Callable[[Parameters, Cells], Values], tuple[tuple[float, ...], ...]]] = {
    "law": (_law, ((-3.0, 0.0, 3.0), (-2.0, -0.8, -0.1), (-3.0, -2.0, -1.0))),
    "linear complexity": (_linear_complexity, ((-3.0, 0.0, 3.0), (-2.0, -0.8, -0.1))),
    "linear evidence": (_linear_evidence, ((-6.0, -3.0, 0.0), (-3.0, -2.0, -1.0))),
    "logistic": (_logistic, ((0.0, 4.0, 8.0), (0.0, 0.3), (-0.6, -0.2))),
}
"""The log odds of each family and the starts of its parameters: the law with ln γ, ln(1 − a), ln b; the law with
b = 1; with a = 0; and a logistic in ln n and ln C without theory."""


@dataclass(frozen=True)
class FittedLaw:
    """A fitted family: its parameters, the scatter of each when runs are drawn again, and the rmse that is left."""

    family: str
    parameters: Parameters
    deviations: Parameters
    rmse: float

    @property
    def law(self) -> StrategyLaw:
        """The parameters by name. Raises ValueError for a family that is not the law."""
        require(self.family == "law", f"family must be 'law' to have its three parameters; got {self.family!r}.")
        gain, growth, exponent = np.exp(self.parameters)
        return StrategyLaw(gain, 1 - growth, exponent)

    def share(self, cells: Cells) -> Float[np.ndarray, "cell"]:
        """The shares that it predicts; the cells' own are not used."""
        return np.asarray(expit(FAMILIES[self.family][0](self.parameters, cells)))


def fitted_law(cells: Validated[Cells], *, family: Validated[str] = "law", draws: Validated[int] = 0) -> FittedLaw:
    """Least squares on shares from up to 27 starts; with `draws` the scatter over so many new drawings of the runs.

    Raises ValueError for fewer runs than parameters, and for pools that are all at one end: the largest must be eight
    times the smallest.

    Source: wurgaft2025rational, sec. 5 and its app. (the fit); derived in docs/derivations/strategies (rivals).
    """
    one_of("family", family, tuple(FAMILIES))
    odds, starts = FAMILIES[family]
    runs = np.unique(cells.run)
    require(
        len(runs) >= len(starts),
        f"runs must be at least {len(starts)}, as the parameters; got {len(runs)}. Train more pools.",
    )
    span = float(cells.bits.max() / cells.bits.min())
    require(
        span >= _SPAN,
        f"pools must be spread, the largest at least {_SPAN:g} times the smallest; got {span:.3g} times. Fits to "
        "pools at one end do not reach the other.",
    )
    fits = [_fit(odds, np.array(start), cells) for start in itertools.product(*starts)]
    best = min(fits, key=lambda fit: fit[1])
    stream, found = np.random.default_rng(FIXED_STREAM), []
    for _ in range(whole_number("draws", draws, least=0)):
        drawn = stream.choice(runs, len(runs))
        found.append(
            _fit(odds, best[0], cells.at(np.concatenate([np.flatnonzero(cells.run == one) for one in drawn])))[0]
        )
    deviations = np.std(found, axis=0, ddof=1) if len(found) > 1 else np.full(len(starts), np.nan)
    return FittedLaw(family, best[0], deviations, float(np.sqrt(best[1])))


def _fit(odds: Callable[[Parameters, Cells], Values], start: Parameters, cells: Cells) -> tuple[Parameters, float]:
    """Parameters from one start, and the mean square they leave."""

    def residual(parameters: Parameters) -> Float[np.ndarray, "cell"]:
        return np.asarray(expit(odds(parameters, cells))) - cells.share

    bounds = start - 8.0, start + 3.0  # above, powers of bits and steps would overflow
    found = least_squares(residual, start, bounds=bounds, max_nfev=200)
    return found.x, float(np.mean(found.fun**2))
