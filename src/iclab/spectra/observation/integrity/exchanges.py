"""Checkpoints that stand in each other's place, by the distances between all states of a series."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Float

from iclab.spectra.observation.integrity.findings import Finding, Record
from iclab.spectra.observation.integrity.samples import Sampled

__all__ = ["exchanged"]

_LONGEST = 500  # checkpoints, of which all pairs are tried
_NEARER = 1.25  # ratio by which squared distances to next neighbors fall by the exchange
_BEYOND = 1.05  # the same for neighbors but one
_TWICE = 2.0  # ratio at both sides of one place that outweighs the other place, where the path falls by the next
_SHORTER = 1.5
_ONWARD, _ENDING = 1.15, 1.25  # ratio by which two steps lead farther than one after it, and for a place at an end
_BENT = 6  # one in this many states may be left for one behind it
_FLAT = 3.0  # dimensions of a walk, by the participation of its normed increments
_RARE = 4  # one exchange in this many checkpoints, at most
_UNEVEN = 4.0  # ratio of squared distances of two places to the one between them, at most
_MORE = 1.01  # ratio by which an exchange of places farther apart must save more


def exchanged(records: Sequence[Record], matrices: Sequence[Sampled]) -> Iterator[Finding]:
    """Pairs of checkpoints that have more in common with the neighbors of each other than with their own.

    On a walk and on a line, states are farther from each other the more steps are between them. An exchange is
    found where it brings all neighbors nearer, and where after it two steps lead farther than one. It is a warning
    within the first three and the last three, where one neighbor alone has a say. Nothing is said of fewer than four
    checkpoints, and where steps do not increase.
    """
    steps = np.array([record.step for record in records])
    whole = [one for one in matrices if len(one.at) == len(records)]
    if not 4 <= len(records) <= _LONGEST or np.any(np.diff(steps) <= 0) or len(whole) < 2:
        return
    squares = np.mean([_scaled(one.distances()) for one in whole], axis=0)
    pairs, ending = _pairs(squares)
    for pair in pairs:
        one, two = (int(steps[index]) for index in pair)
        text = f"steps {one} and {two} are each nearer to the neighbors of the other than to their own: "
        if pair in ending:
            text += "they may have been exchanged, or " + (
                "noise died down at the end" if one else "the start went back"
            )
        else:
            text += "the two checkpoints may have been exchanged"
        yield Finding("exchanged checkpoints", "warning" if pair in ending else "error", text, (one, two))


def _pairs(squares: Float[np.ndarray, "step step"]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Exchanged pairs, none in a path that turns back all the same, and those of them with one neighbor alone."""
    count = len(squares)
    order, pairs = np.arange(count), []
    while (pair := _best(squares[np.ix_(order, order)])) is not None and len(pairs) < max(count // _RARE, 1):
        pairs.append((int(min(order[list(pair)])), int(max(order[list(pair)]))))
        order[list(pair)] = order[list(pair)[::-1]]
    ending = [(one, two) for one, two in pairs if two - one < 3 and (one == 0 or two == count - 1)]
    least = _ENDING if any(pair[0] == 0 or pair[1] == count - 1 for pair in pairs) else _ONWARD
    return (pairs, ending) if pairs and _onward(squares[np.ix_(order, order)], least) else ([], [])


def _scaled(squares: Float[np.ndarray, "step step"]) -> Float[np.ndarray, "step step"]:
    mean = float(np.mean(squares))
    return squares / mean if mean > 0 else squares


def _best(squares: Float[np.ndarray, "step step"]) -> tuple[int, int] | None:
    """The exchange that shortens the path most, among those that bring all neighbors nearer, or None."""
    rows, found, gain = squares.tolist(), None, 0.0
    for pair in sorted(combinations(range(len(rows)), 2), key=lambda pair: pair[1] - pair[0]):
        sides = [_sides(rows, *pair), _sides(rows, *pair[::-1])]
        saved = sum(before - after for side in sides for before, after in side)
        if saved > _MORE * gain and _shorter(rows, sides, *pair):
            found, gain = pair, saved
    return found


def _sides(rows: Sequence[Sequence[float]], place: int, other: int) -> list[tuple[float, float]]:
    """Squared distances of a place to its neighbors, before and after the exchange with another place.

    The distance of next neighbors stays, and so does the sum of those to one state between the two.
    """
    beside = [one for one in (place - 1, place + 1) if 0 <= one < len(rows) and abs(one - other) > 1 and one != other]
    return [(rows[place][one], rows[other][one]) for one in beside]


def _shorter(
    rows: Sequence[Sequence[float]], sides: Sequence[Sequence[tuple[float, float]]], one: int, two: int
) -> bool:
    """True where the exchange brings all neighbors nearer, or those of one place by far more than the others away."""
    touched = [pair for side in sides for pair in side]
    if two == one + 2 and not 1 / _UNEVEN < rows[one][one + 1] / (rows[two][one + 1] or 1.0) < _UNEVEN:
        return False  # one of the two is far from all
    if len(touched) == 1:  # a place at an end: the neighbor but one has to agree
        beyond = [one for one in (one - 2, two + 2) if 0 <= one < len(rows)]
        further = [(rows[one][at], rows[two][at]) if at < one else (rows[two][at], rows[one][at]) for at in beyond]
        return len(rows) > 4 and _all_nearer(touched, _NEARER) and bool(further) and _all_nearer(further, _BEYOND)
    before, after = (sum(pair[index] for pair in touched) for index in (0, 1))
    far = any(len(side) == 2 and _all_nearer(side, _TWICE) for side in sides) and before > _SHORTER * after
    return bool(touched) and (far or _all_nearer(touched, _NEARER))


def _all_nearer(pairs: Sequence[tuple[float, float]], ratio: float) -> bool:
    return all(before > ratio * after for before, after in pairs)


def _onward(squares: Float[np.ndarray, "step step"], least: float) -> bool:
    """True where two steps lead farther than the longer one of them, nearly everywhere and by `least` as a rule.

    A path that turns back elsewhere too may turn back here, and a walk in few dimensions often does: there all
    increments must have an acute angle with the next.
    """
    gram = (squares[:-1, 1:] + squares[1:, :-1] - squares[:-1, :-1] - squares[1:, 1:]) / 2  # of the increments
    single = np.diag(gram)
    cosines = gram / np.sqrt(np.maximum(np.outer(single, single), np.finfo(float).tiny))
    flat = len(gram) ** 2 < min(_FLAT, 0.8 * len(gram)) * np.sum(cosines**2)
    if flat and np.any(np.diag(gram, 1) <= 0):
        return False
    longer = np.maximum(single[:-1], single[1:])
    ratios = np.divide(np.diag(squares, 2), longer, out=np.zeros_like(longer), where=longer > 0)
    return float(np.median(ratios)) >= least and int(np.sum(ratios < 1)) <= len(ratios) // _BENT
