"""The least error over sizes: the optimum of answers, and of the advice where they reach nothing."""

from collections.abc import Callable

import numpy as np

from iclab.numerics import LEAST, Validated, Values, magnitude_number, one_of, require
from iclab.numerics.crossings import with_turns
from iclab.problem import Ratios
from iclab.theory.generalization import TARGETS, best_ridge, errors

__all__ = ["BEST", "SCAN", "error_of", "finite_or_zero", "least_of_two", "lowest", "refusal", "remark"]

BEST = "best"  # the optimal ridge at every size
SCAN = np.concatenate([[LEAST], np.unique(np.concatenate([np.geomspace(1e-6, 1e9, 361), [1.0]])), [np.inf]])
_COARSE = np.concatenate([[LEAST], np.geomspace(1e-6, 1e9, 61), [np.inf]])  # of two ratios at once, to start from
_ROUNDS = 20  # of a search along either ratio in turn; two or three do unless the least error lies in a valley


def error_of(ratios: Validated[Ratios], ridge: Validated[float | str], target: Validated[str]) -> Values:
    """ICL or IDG error at a ridge, or at the best ridge for that error if ridge is "best".

    Raises ValueError for another string, a negative ridge and an unknown target.
    """
    one_of("target", target, TARGETS)
    if isinstance(ridge, str):
        require(ridge == BEST, f'ridge must be a number >= 0 or "{BEST}"; got {ridge!r}.')
        strength = best_ridge(ratios, target=target)
    else:
        strength = magnitude_number("ridge", ridge, zero=True, infinite=True)
    return getattr(errors(ratios, ridge=strength), target)


def remark(quantity: str, found: tuple[tuple[float, float], ...], floor: float, best: float) -> str:
    """Sentence on the sizes that reach an error."""
    if found == ((0.0, np.inf),):
        return f"Any {quantity} reaches it."
    if found == ((np.inf, np.inf),):
        return f"It is reached only at {quantity} = inf: the error there is {floor:.4g}."
    if len(found) == 1 and found[0][1] == np.inf:
        return f"Any {quantity} from {found[0][0]:.4g} on reaches it."
    spans = " or ".join(f"{low:.4g}" + f" to {high:.4g}" * (low < high) for low, high in found)
    return f"{quantity} = {spans}: outside the error is larger. It is least, {floor:.4g}, at {quantity} = {best:.4g}."


def refusal(
    quantity: str,
    others: dict[str, float],
    noise: float,
    ridge: Validated[float | str],
    target: str,
    level: float,
    floor: float,
) -> str:
    """Changes that would lower the floor: each other ratio, or the ridge, at its best for the best quantity."""

    def at(strength: Validated[float | str], **sizes: Values) -> Values:
        return error_of(Ratios(**{**others, **sizes}, noise=noise), strength, target)

    quieter = f"Label noise alone costs {noise:g}" if level < noise else ""
    offers = []
    for name in others:
        height, size = least_of_two(lambda one, two, name=name: at(ridge, **{quantity: one, name: two}))
        offers.append((height, f"{name} = {finite_or_zero(size):.4g}"))
    if ridge != BEST:
        height, _ = lowest(*with_turns(lambda size: at(BEST, **{quantity: size}), SCAN))
        offers.append((height, "the best ridge"))
    lower = sorted(offer for offer in offers if f"{offer[0]:.4g}" != f"{floor:.4g}" and offer[0] < floor)
    if not lower:
        return f"{quieter or 'No other ratio and no ridge lowers that'}: only less noise helps."
    offered = (f"{height:.4g}{' (enough)' if height <= level else ''} with {change}" for height, change in lower)
    return f"{quieter and quieter + ', so less of it is needed. '}The least error would be {', '.join(offered)}."


def least_of_two(surface: Callable[[Values, Values], Values]) -> tuple[float, float]:
    """Least error over two ratios, and the second one there: the optimum of one along either in turn."""
    heights = np.asarray(surface(_COARSE, _COARSE[:, None]))
    second, first = (float(_COARSE[index]) for index in np.unravel_index(np.argmin(heights), heights.shape))
    height = before = np.inf
    for _ in range(_ROUNDS):
        height, first = lowest(*with_turns(lambda one, two=second: surface(one, two), SCAN))
        height, second = lowest(*with_turns(lambda two, one=first: surface(one, two), SCAN))
        if height >= before * (1 - 1e-9):
            break
        before = height
    return height, second


def lowest(sizes: np.ndarray, heights: np.ndarray) -> tuple[float, float]:
    """The least of some heights, and the size that has it."""
    index = int(np.argmin(heights))
    return float(heights[index]), float(sizes[index])


def finite_or_zero(size: float) -> float:
    """The size, with the limit 0 for the least size that stands for it."""
    return 0.0 if size <= LEAST else size
