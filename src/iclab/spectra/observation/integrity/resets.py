"""Matrices that leave their path at a step: reset, stored transposed, or under the name of another one."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from iclab.spectra.checkpoints.content import transposed
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.observation.integrity.findings import Finding, Record, shown
from iclab.spectra.observation.integrity.samples import Sampled

__all__ = ["resets"]

_NEAR = 0.7  # cosine of neighbors that are states of one matrix
_STEADY = 0.85  # of those before a fall that is not taken back


def resets(records: Sequence[Record], matrices: Sequence[Sampled]) -> Iterator[Finding]:
    """Matrices whose cosine with the state before is one of chance, while the states around are near each other.

    Such a matrix may be the transpose of what it was, or another one under its name. A state that has nothing to do
    with both neighbors is an error where these are near each other, and a fall that lasts a warning: layers are reset
    on purpose. None for fewer than three records, and where steps do not increase.
    """
    steps = [record.step for record in records]
    if np.any(np.diff(steps) <= 0):
        return
    directions = {one.name: one for one in matrices}
    left: dict[tuple[int, int, bool], list[str]] = defaultdict(list)
    moved: dict[tuple[int, int], dict[str, str]] = defaultdict(dict)
    for one in matrices:
        turned = _turned(one)
        if turned:
            at = tuple(steps[one.at[index]] for index in turned)
            text = f"{quoted(one.name)} is stored transposed at {_steps(at)}, by the entries of the other steps"
            yield Finding("transposed tensors", "error", text, at, (one.name,))
            continue
        for index, once in _falls(one, steps):
            before, now = one.at[index - 1], one.at[index]
            other = _owner(one, index, directions)
            if other is None:
                left[before, now, once].append(one.name)
            else:
                moved[before, now][one.name] = other
    yield from _moved(moved, steps)
    yield from _told(left, steps)


def _moved(moved: Mapping[tuple[int, int], Mapping[str, str]], steps: Sequence[int]) -> Iterator[Finding]:
    for (before, now), names in moved.items():
        for name, other in names.items():
            at = (steps[before], steps[now])
            if names.get(other) != name:
                text = f"{quoted(name)} of step {at[1]} continues {quoted(other)} of step {at[0]}"
                yield Finding("swapped tensors", "error", text, at, (name, other))
            elif name < other:
                text = f"{quoted(name)} and {quoted(other)} of step {at[1]} continue each other from step {at[0]}"
                yield Finding("swapped tensors", "error", text, at, (name, other))


def _told(left: Mapping[tuple[int, int, bool], Sequence[str]], steps: Sequence[int]) -> Iterator[Finding]:
    for (before, now, once), names in left.items():
        if once:
            text = (
                f"{shown(names)} at step {steps[now]} has nothing to do with the steps beside it, which are near "
                "each other: it may be reset, of another run, or in another order"
            )
            yield Finding("reset tensors", "error", text, (steps[now],), tuple(names))
        else:
            text = f"{shown(names)} from step {steps[now]} on has nothing to do with step {steps[before]}: a reset"
            yield Finding("reset tensors", "warning", text, (steps[before], steps[now]), tuple(names))


def _turned(one: Sampled) -> list[int]:
    """Places at which a square matrix is the transpose of what it is at most of the others."""
    if len(one.shape) != 2 or one.shape[0] != one.shape[1]:
        return []
    directions = one.directions
    plain = np.sum(directions[1:] * directions[:-1], axis=1)
    across = np.sum(transposed(directions[1:]) * directions[:-1], axis=1)
    changes = (across >= _NEAR) & (plain <= across / 2)
    side = np.concatenate([[0], np.cumsum(changes) % 2])
    fewer = int(np.sum(side) * 2 <= len(side))
    return [int(index) for index in np.flatnonzero(side == fewer)] if np.any(changes) else []


def _falls(one: Sampled, steps: Sequence[int]) -> Iterator[tuple[int, bool]]:
    """Places at which the cosine with the state before is one of chance, and True where the next state is back."""
    directions = one.directions
    cosines = directions @ directions.T
    lengths = np.diff([steps[at] for at in one.at])
    for index in range(1, len(one.at)):
        if abs(cosines[index - 1, index]) > one.chance:
            continue
        last = index == len(one.at) - 1
        if not last and cosines[index - 1, index + 1] >= _NEAR and abs(cosines[index, index + 1]) <= one.chance:
            yield index, True
        elif index > 1:
            before, after = cosines[index - 2, index - 1], 1.0 if last else cosines[index, index + 1]
            pace = max(1.0, lengths[index - 1] / lengths[index - 2]) ** 2
            if min(before, after) >= _STEADY and (1 - before) * pace < 0.5:
                yield index, False


def _owner(one: Sampled, index: int, matrices: Mapping[str, Sampled]) -> str | None:
    """Another matrix of this shape that the state continues, from the record before, or None."""
    now: Float[np.ndarray, "entry"] = one.directions[index]
    for name, other in matrices.items():
        if other.shape == one.shape and name != one.name:
            places = np.flatnonzero(other.at == one.at[index - 1])
            if len(places) and float(other.directions[places[0]] @ now) >= _NEAR:
                return name
    return None


def _steps(steps: Sequence[int]) -> str:
    return f"step {steps[0]}" if len(steps) == 1 else f"steps {', '.join(map(str, steps))}"
