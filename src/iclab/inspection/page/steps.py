"""Axis of training steps that all panels share: logarithmic, with step 0."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Real

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["StepAxis", "short"]


class StepAxis:
    """Axis log(1 + step / first), with the smallest step above 0 as `first`."""

    def __init__(self, steps: Real[np.ndarray, "step"]) -> None:
        positive = steps[steps > 0]
        self.first = float(np.min(positive)) if len(positive) else 1.0
        self.ends = float(np.min(steps)), float(np.max(steps))

    def position(self, step: Real[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """Position of a step on the axis."""
        return np.asarray(np.log1p(np.maximum(step, 0.0) / self.first))

    def step(self, position: Real[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """Step at a position on the axis."""
        return self.first * np.expm1(position)

    def edges(self, steps: Real[np.ndarray, "step"]) -> Float[np.ndarray, "edge"]:
        """Steps halfway between their neighbors on the axis, with an end on either side."""
        positions = self.position(steps)
        if len(positions) == 1:
            return self.step(positions[0] + np.array([-0.1, 0.1]))
        middle = (positions[1:] + positions[:-1]) / 2
        outer = (2 * positions[0] - middle[0], 2 * positions[-1] - middle[-1])
        return self.first * np.expm1(np.concatenate([outer[:1], middle, outer[1:]]))

    def ticks(self, labels: int) -> list[float]:
        """Round steps at a distance, about as many as `labels`."""
        low, high = self.ends
        rounds = [factor * 10.0**power for power in range(16) for factor in (1, 2, 5)]
        inside = [step for step in rounds if max(low, self.first) <= step <= high] or [high]
        decades = [step for step in inside if f"{step:e}"[0] == "1"]
        kept = [low] if low == 0 else []
        apart = float(self.position(np.array(high)) - self.position(np.array(low))) / labels
        for step in decades if len(decades) >= 3 else inside:
            if not kept or self.position(np.array(step)) - self.position(np.array(kept[-1])) >= apart:
                kept.append(step)
        return kept

    def apply(self, axes: "Axes", *, labels: int) -> None:
        """Give a panel this axis."""
        from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

        low, high = self.ends
        ticks = self.ticks(labels)
        axes.set_xscale("function", functions=(self._forward, self._back))
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_major_formatter(FixedFormatter([short(step) for step in ticks]))
        axes.xaxis.set_minor_locator(NullLocator())
        if high > low:
            axes.set_xlim(low, high)
        else:
            axes.set_xlim(*self.step(self.position(np.array([low])) + np.array([-0.2, 0.2])))

    def _forward(self, step: np.ndarray) -> np.ndarray:
        return np.log1p(np.maximum(np.asarray(step, dtype=float) / self.first, -0.9))

    def _back(self, position: np.ndarray) -> np.ndarray:
        return self.first * np.expm1(np.asarray(position, dtype=float))


def short(step: float) -> str:
    """A step as a label: 1000 is 1k, 2000000 is 2M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if step >= size:
            return f"{step / size:g}{letter}"
    return f"{step:g}"
