"""The labeled outcome: arrays over named axes, in a vocabulary that every study may extend.

A study labels what its witnesses return: `labeled({"tau": tau}, icl=errors.icl, idg=errors.idg)` says which arrays
lie along which axes, and the vocabulary says what each name means.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from iclab.numerics import require

__all__ = [
    "VOCABULARY", "Labeled", "Quantity", "Variable", "labeled", "parts", "quantities", "quantity", "shared",
    "unlabeled", "variables", "vocabulary",
]  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """A name of the vocabulary: its symbol, its meaning in words, its unit."""

    symbol: str
    words: str
    unit: str = ""


class Variable(NamedTuple):
    """An array of a group of the labeled result, before it is labeled."""

    name: str
    axes: tuple[str, ...]
    array: np.ndarray
    notes: dict[str, str]  # meaning in words, symbol, unit
    coordinate: bool = False


def vocabulary(names: Mapping[str, tuple[str, ...]] | None = None, /, **more: tuple[str, ...]) -> dict[str, Quantity]:
    """Quantities by name, each from its symbol, its words and, where it has one, its unit.

    A name that means another thing in one group of a study is given as "group/name".

    >>> vocabulary({"expected/loss": ("E L", "expected loss", "label²")}, hidden=("M", "neurons"))
    {'expected/loss': Quantity(symbol='E L', ...), 'hidden': Quantity(symbol='M', ...)}
    """
    return {name: Quantity(*parts) for name, parts in {**(names or {}), **more}.items()}


VOCABULARY = vocabulary(
    time=("t", "training time", "τ"),
    step=("n", "steps of training"),
    rate=("η", "learning rate"),
    sequences=("P", "training sequences"),
    rank=("R", "key-query pairs of a head"),
    initial=("s", "size of the start"),
    context_length=("N", "labeled examples before the query"),
    noise=("ρ", "variance of the label noise", "label²"),
    tilt=("p", "power of the input eigenvalues"),
    fraction=("p", "fraction of sequences with fresh tasks"),
    dimension=("D", "entries of an input"),
    alpha=("α", "examples of a context for each dimension, N/D"),
    kappa=("κ", "tasks of the pool for each dimension, K/D"),
    tau=("τ", "pretraining sequences for each squared dimension, n/D²"),
    ridge=("λ", "ridge of the readout"),
    loss=("L", "mean squared error", "label²"),
    half_drop=("t½", "half-drop time", "τ"),
    deterministic=("L̄", "mean squared error of descent on the population", "label²"),
    batch_loss=("L_B", "mean squared error on one batch", "label²"),
    answer=("ŷ", "predicted label", "label"),
    icl=("e_ICL", "error on new tasks", "label²"),
    idg=("e_IDG", "error on tasks of the pool", "label²"),
    train=("e_train", "error on the pretraining data", "label²"),
)
"""The names that studies share. A study has others, or other meanings, in its own `vocabulary`."""


@dataclass(frozen=True, eq=False)
class Labeled:
    """Arrays over named axes. Each array is an attribute, and so are the points of each axis that has some."""

    axes: Mapping[str, np.ndarray | None]
    arrays: Mapping[str, tuple[tuple[str, ...], np.ndarray]]

    def __getattr__(self, name: str) -> np.ndarray:
        if not name.startswith("_"):
            if name in self.arrays:
                return self.arrays[name][1]
            if (points := self.axes.get(name)) is not None:
                return points
        raise AttributeError(f"the outcome has no {name!r}; it has {', '.join([*self.axes, *self.arrays])}")


def labeled(axes: Mapping[str, Any], **arrays: Any) -> Labeled:
    """Arrays over named axes, in their order; the axes hold their points, or None where they only count.

    An array lies over all axes, and a single number over none; one that lies over some is a pair of their names and
    the array, as in `step=("moment", steps)` or `gap=(("dimension", "kappa"), gaps)`.

    Raises ValueError where an array does not fit its axes, for anything but real numbers, for an axis whose points
    are no list or repeat, and where there is no array.

    >>> labeled({"rate": [0.1, 0.2], "time": None}, loss=np.ones((2, 3)), best=0.5).loss.shape
    (2, 3)
    """
    require(bool(arrays), f"labeled must be given an array; got only the axes {tuple(axes)}. Add name=array.")
    points = {name: None if given is None else _points(name, given) for name, given in axes.items()}
    lengths = {name: len(given) for name, given in points.items() if given is not None}
    known, placed = tuple(points), {}
    for name, given in arrays.items():
        over, values = given if isinstance(given, tuple) and isinstance(given[0], str | tuple) else (None, given)
        array = _real(name, values)
        names = (known if array.ndim else ()) if over is None else (over,) if isinstance(over, str) else over
        require(name not in known, f"{name} must have another name than the axes, {known}. Rename one of them.")
        require(
            array.ndim == len(names) and set(names) <= set(known),
            f"{name} must have one dimension for each of the axes {tuple(names)}, out of {known}; got shape "
            f"{array.shape}. Name the axes of an array that lies over some: {name}=((...), array).",
        )
        for axis, length in zip(names, array.shape, strict=True):
            require(
                lengths.setdefault(axis, length) == length,
                f"{name} must have {lengths[axis]} entries along {axis}; got shape {array.shape}.",
            )
        placed[name] = (tuple(names), array)
    return Labeled(points, placed)


def _real(name: str, given: Any) -> np.ndarray:
    """Real numbers or truth values as an array. Raises ValueError, with their name, for any others."""
    array, remedy = np.asarray(given), "Number what has names, and label real and imaginary parts apart."
    if array.dtype.kind not in "biuf":  # the text of a large array takes longer than the check
        raise ValueError(f"{name} must be real numbers or truth values; got {given!r:.60}. {remedy}")
    return array


def _points(axis: str, given: Any) -> np.ndarray:
    """The points of an axis. Raises ValueError, with its name, unless they are a list of different real numbers."""
    points, remedy = _real(f"axis {axis}", given), f'For an axis that only counts write {{"{axis}": None}}.'
    require(points.ndim == 1, f"axis {axis} must be a list of points; got shape {points.shape}. {remedy}")
    values, counts = np.unique(points, return_counts=True)
    require(len(values) == len(points), f"axis {axis} must not repeat; got {values[counts > 1]} again. {remedy}")
    return points


def parts(outcome: Any, *names: str) -> dict[str, Any]:
    """Fields of an outcome by name, to be labeled anew: labeled({"tau": tau}, **parts(errors, "icl", "idg"))."""
    return {name: getattr(outcome, name) for name in names}


def quantity(symbol: str, *axes: str, unit: str = "", words: str = "") -> Any:
    """A dataclass field that holds an array over named axes: for outcomes that theory or simulation return."""
    return field(metadata={"axes": axes, "quantity": Quantity(symbol, words, unit)})


def shared(*axes: str) -> Any:
    """A dataclass field that holds an array over named axes and means what the vocabulary says of its name."""
    return field(metadata={"axes": axes, "quantity": None})


def unlabeled() -> Any:
    """A dataclass field for programs alone: it takes no part in labeled results."""
    return field()


def quantities(
    outcome: Any, own: Mapping[str, Quantity] | None = None, *, group: str = ""
) -> Iterator[tuple[str, tuple[str, ...], Quantity, np.ndarray]]:
    """Name, axes, meaning and array of each labeled part of an outcome.

    `own` meanings go before the shared ones, those of the group first; a name without any is labeled with empty
    text. Raises ValueError where an array has not one axis for each name.
    """
    own = own or {}
    for name, axes, array, stated in _parts(outcome):
        meaning = own.get(f"{group}/{name}") or own.get(name) or stated or VOCABULARY.get(name) or Quantity("", "")
        yield name, axes, meaning, array


def variables(outcome: Any, own: Mapping[str, Quantity], group: str, seed: int | None) -> list[Variable]:
    """The variables of an outcome. An array named as its one axis is a coordinate; the others gain a seed axis."""
    arrays, coordinates = [], []
    for name, axes, meaning, array in quantities(outcome, own, group=group):
        notes = {"long_name": meaning.words, "symbol": meaning.symbol, "units": meaning.unit}
        if axes == (name,):
            coordinates.append(Variable(name, axes, array, notes, coordinate=True))
        elif seed is not None:
            arrays.append(Variable(name, ("seed", *axes), array[None], notes))
        else:
            arrays.append(Variable(name, axes, array, notes))
    if seed is not None:
        coordinates.append(Variable("seed", ("seed",), np.array([seed]), {}, coordinate=True))
    return arrays + coordinates


def _parts(outcome: Any) -> Iterator[tuple[str, tuple[str, ...], np.ndarray, Quantity | None]]:
    if isinstance(outcome, Labeled):
        for axis, points in outcome.axes.items():
            if points is not None:
                yield axis, (axis,), points, None
        for name, (axes, array) in outcome.arrays.items():
            yield name, axes, array, None
        return
    for entry in fields(outcome):
        if "quantity" in entry.metadata:
            array, axes = np.asarray(getattr(outcome, entry.name)), entry.metadata["axes"]
            whole = f"{type(outcome).__name__}.{entry.name}"
            require(array.ndim == len(axes), f"{whole} must have the axes {axes}; got shape {array.shape}.")
            yield entry.name, axes, array, entry.metadata["quantity"]
