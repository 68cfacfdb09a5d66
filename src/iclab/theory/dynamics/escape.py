"""Escape times of small random heads of separate attention, and the drops of the loss that they predict."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.attention import SeparateAttention, restricted_parts
from iclab.numerics import Validated, instance, require
from iclab.theory.dynamics.aligned import half_drop_shift
from iclab.theory.dynamics.commuting import CommutingModes, commuting_modes
from iclab.theory.dynamics.frozen_head import FrozenHead
from iclab.theory.integration import integrate
from iclab.theory.population import Moments

__all__ = ["blow_up_times", "drop_times"]


def blow_up_times(moments: Validated[Moments], start: Validated[SeparateAttention]) -> Float[np.ndarray, "head"]:
    """Time at which each head would blow up if the signal of all modes stayed as at Γ = 0.

    The smallest is the escape from the first plateau; half of that drop is done half_drop_shift earlier. inf for a
    head that never escapes, as one whose key and query lie in directions without signal. Exact for the frozen
    signal, so for small starts. Units: τ.

    Raises ValueError for more than one key-query pair to a head, for covariances that do not commute and for a
    start that does not fit the problem; ArithmeticError for a head that comes to rest on its way.

    Source: derived in docs/derivations/escape.
    """
    instance("moments", moments, Moments)
    modes = commuting_modes(moments)
    heads = _small_heads(moments, modes, start)
    return np.array([head.escape()[0] for head in heads.frozen(modes.signal)])


def drop_times(moments: Validated[Moments], start: Validated[SeparateAttention]) -> Float[np.ndarray, "mode"]:
    """Predicted time at which each of the successive drops of a small random start is half done.

    The head that blows up first learns the mode that grows fastest in it; for the others the signal of that mode
    ends 1/(g v*) before the blow-up, with v*³ = g/h; then the next one escapes. inf for drops that never come: with
    fewer heads than modes the others stay unlearned. Times are in order. Limit of small starts; drops of heads that
    escape together are less exact. Units: τ.

    Raises ValueError as blow_up_times, and where signal and contribution order the modes differently, so that
    heads rotate;
    ArithmeticError for a head that comes to rest on its way.

    Source: derived in docs/derivations/escape.
    """
    instance("moments", moments, Moments)
    modes = commuting_modes(moments)
    signal, best, shift = modes.signal.copy(), modes.best, half_drop_shift(moments)
    require(
        bool(np.all(np.diff(signal) <= 1e-12 * np.max(signal, initial=0.0))),
        "moments must have signals and contributions in the same order, else heads rotate between modes; got signals "
        f"{signal.tolist()} from the mode of largest contribution on. Integrate separate_flow instead.",
    )
    heads, now = _small_heads(moments, modes, start), 0.0
    times = np.full(len(signal), np.inf)
    for drop in range(min(len(heads.value), np.count_nonzero(signal))):
        escapes = [head.escape() for head in heads.frozen(signal)]
        first = int(np.argmin([wait for wait, _ in escapes]))
        wait, positive = escapes[first]
        if np.isinf(wait):
            break
        growing = (heads.sum if positive else heads.difference)[first]
        mode = int(np.argmax(np.where(growing != 0, signal, 0.0)))
        times[drop] = now + wait + shift[mode]
        relief = max(0.0, wait - 1 / (signal[mode] * np.cbrt(best[mode])))
        heads = _rotated(_after(heads.without(first), signal, relief), growing, mode, signal)
        signal[mode], now = 0.0, now + relief
    require(
        bool(np.all(times > 0)),
        f"start must be small, so that every drop comes after time 0; got predicted times {np.sort(times)}. "
        "Integrate separate_flow instead.",
    )
    return np.sort(times)


@dataclass(frozen=True)
class _Heads:
    """Rank-one heads in the directions of the modes: value v, sum k + q and difference k − q."""

    value: Float[np.ndarray, "head"]
    sum: Float[np.ndarray, "head mode"]
    difference: Float[np.ndarray, "head mode"]

    def frozen(self, signal: Float[np.ndarray, "mode"]) -> list[FrozenHead]:
        """Each head under this signal."""
        acting = signal > 0
        sums, differences = self.sum[:, acting] ** 2 / 4, self.difference[:, acting] ** 2 / 4
        return [
            FrozenHead(*parts, signal[acting]) for parts in zip(self.value.tolist(), sums, differences, strict=True)
        ]

    def without(self, head: int) -> "_Heads":
        """The other heads."""
        return _Heads(*(np.delete(part, head, axis=0) for part in (self.value, self.sum, self.difference)))


def _after(heads: _Heads, signal: Float[np.ndarray, "mode"], wait: float) -> _Heads:
    """The heads a time `wait` later, shorter than any blow-up."""
    if not heads.value.size:
        return heads
    sums, differences = heads.sum**2 / 4, heads.difference**2 / 4

    def velocity(state: np.ndarray) -> np.ndarray:
        s, v = state.reshape(2, -1)
        grown = np.exp(2 * np.multiply.outer(s, signal))
        return np.concatenate([v, (sums * grown - differences / grown) @ signal])

    sizes = np.abs(heads.value) + np.sqrt(np.sum(sums + differences, axis=1))
    floor = np.concatenate([np.full_like(sizes, 1 / np.max(signal)), sizes])
    end = integrate(velocity, np.concatenate([np.zeros_like(sizes), heads.value]), np.array([wait]), floor=floor)
    s, v = end.reshape(2, -1)
    grown = np.exp(np.multiply.outer(s, signal))
    return _Heads(v, heads.sum * grown, heads.difference / grown)


def _rotated(
    heads: _Heads, growing: Float[np.ndarray, "mode"], mode: int, signal: Float[np.ndarray, "mode"]
) -> _Heads:
    """The heads in directions of which `mode` is the one learned, where others have the same signal."""
    block = np.flatnonzero(np.abs(signal - signal[mode]) <= 1e-9 * signal[mode])
    learned = growing[block] / np.linalg.norm(growing[block])
    mirror = learned - (block == mode)  # the reflection along it takes the mode to what was learned
    rotated = []
    for part in (heads.sum, heads.difference):
        within = part[:, block]
        rotated.append(part.copy())
        rotated[-1][:, block] = within - 2 * np.outer(within @ mirror, mirror) / (mirror @ mirror or 1.0)
    return _Heads(heads.value, *rotated)


def _small_heads(moments: Moments, modes: CommutingModes, start: SeparateAttention) -> _Heads:
    value, key, query = restricted_parts(start, SeparateAttention, moments.dimension)
    require(
        start.rank == 1,
        f"start must have one key-query pair to each head; got rank {start.rank}, where heads are not solvable. "
        "Integrate separate_flow instead.",
    )
    require(
        bool(np.any(value) or np.any(key) or np.any(query)),
        "start must not be zero; the flow never leaves zero weights. Draw small random weights.",
    )
    key, query = key[:, 0] @ modes.directions, query[:, 0] @ modes.directions
    return _Heads(value, key + query, key - query)
