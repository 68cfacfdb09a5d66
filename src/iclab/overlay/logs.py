"""Logs of training: a clock and a loss, from what trainers write, with restarts and gaps found."""

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, numbers, require
from iclab.overlay.event_files import holds_events, records_of_events

__all__ = ["CLOCKS", "LossLog", "log_of", "read_log"]

CLOCKS = ("step", "steps", "global_step", "iteration", "iter", "epoch", "epochs", "time", "t")
LOSSES = ("loss", "train_loss", "training_loss", "mse", "train_mse", "mean_squared_error")
GAP = 5.0  # times the usual ratio of successive distances between records, from which on a gap is said

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class LossLog:
    """A loss against the clock of a trainer.

    `clock` and `loss` are the records that count, clock increasing. `apart` holds the parts that a restart took back,
    and `notes` says what was found, a sentence each.
    """

    clock: Float[Array, "record"]
    loss: Float[Array, "record"]
    name: str = "step"  # of the clock
    apart: tuple[tuple[Float[Array, "taken"], Float[Array, "taken"]], ...] = ()
    notes: tuple[str, ...] = ()


def read_log(path: Validated[str | Path], *, clock: str | None = None, loss: str | None = None) -> LossLog:
    """The loss and the clock in a log: CSV, JSON lines, the JSON of a trainer's state, or TensorBoard event files.

    Columns are found by their usual names; `clock` and `loss` name others. Rows without a loss are left out.

    Raises ValueError where a column is missing, with the names that there are, where several could be meant, and for
    what is no number; ImportError for event files where no reader of them is installed; OSError for no file.
    """
    place = Path(path)
    rows = list(_rows(place, loss))
    require(bool(rows), f"{place.name} must hold records of training; got none. Log a clock and a loss.")
    names = list(dict.fromkeys(name for _, row in rows for name in row if name is not None))
    time, value = _column("clock", clock, names, CLOCKS, place.name), _column("loss", loss, names, LOSSES, place.name)
    kept = [(line, row[time], row[value]) for line, row in rows if _there(row.get(time)) and _there(row.get(value))]
    require(bool(kept), f"{place.name} must have records with both {time!r} and {value!r}; got none.")
    table = [[_number(place.name, line, entry) for entry in pair] for line, *pair in kept]
    return log_of(*np.array(table).T, name=time)


def log_of(clock: Validated[ArrayLike], loss: Validated[ArrayLike], *, name: str = "step") -> LossLog:
    """A log in memory. Where the clock falls or repeats, training was taken up again: the later records count.

    Raises ValueError for lists of other lengths, a clock that is not finite or below 0, and fewer than 3 records.
    """
    times, losses = numbers(name, clock), np.asarray(loss, dtype=float)
    require(
        times.ndim == 1 and times.shape == losses.shape and len(times) >= 3,
        f"times and losses must be two lists of one length, 3 or more; got shapes {times.shape} and {losses.shape}.",
    )
    require(bool(np.all(times >= 0)), f"{name} must be >= 0; got {np.min(times):g}.")
    notes: list[str] = []
    lost = ~np.isfinite(losses)
    if lost.any():
        first = int(np.argmax(lost))
        notes.append(f"the loss is not finite from {name} {times[first]:g} on: only the records before it count")
        require(first >= 3, f"losses must be finite in 3 records or more; record {first} has another.")
        times, losses = times[:first], losses[:first]
    times, losses, apart = _stitched(times, losses, name, notes)
    notes += _gaps(times, name)
    return LossLog(times, losses, name, apart, tuple(notes))


def _stitched(
    times: Array, losses: Array, name: str, notes: list[str]
) -> tuple[Array, Array, tuple[tuple[Array, Array], ...]]:
    """The records that count, and those that restarts took back."""
    falls = np.flatnonzero(np.diff(times) <= 0) + 1
    parts = list(zip(np.split(times, falls), np.split(losses, falls), strict=True))
    (kept, level), apart = parts[0], []
    for part, found in parts[1:]:
        back = kept >= part[0]
        notes.append(
            f"{name} goes from {kept[-1]:g} back to {part[0]:g}: a restart; {np.sum(back)} records before it are "
            "drawn apart and not judged"
        )
        apart.append((kept[back], level[back]))
        kept, level = np.concatenate([kept[~back], part]), np.concatenate([level[~back], found])
    require(len(kept) >= 3, f"{name} must increase over 3 records or more; got {len(kept)} after the last restart.")
    return kept, level, tuple(apart)


def _gaps(times: Array, name: str) -> list[str]:
    """Notes on distances between records that are larger than those on both sides of them."""
    steps = np.diff(times)
    if len(steps) < 3:
        return []
    beside = np.maximum(np.concatenate([steps[1:2], steps[:-1]]), np.concatenate([steps[1:], steps[-2:-1]]))
    wide = np.flatnonzero(steps > GAP * beside)
    return [f"no records between {name} {times[i]:g} and {times[i + 1]:g}" for i in wide]


def _rows(path: Path, loss: str | None) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Records by name, each with the number of its line."""
    if holds_events(path):
        yield from records_of_events(path, loss, LOSSES)
        return
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    lines = text.lstrip()[:1]
    if lines in ("{", "["):
        yield from _json_rows(text, path.name)
        return
    try:
        delimiter = csv.Sniffer().sniff(text[:4096], delimiters=",;\t").delimiter
    except csv.Error:
        delimiter = ","
    yield from enumerate(csv.DictReader(text.splitlines(), delimiter=delimiter, skipinitialspace=True), start=2)


def _json_rows(text: str, name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Records of JSON lines, of one list, or of the history in the state of a trainer."""
    try:
        whole = json.loads(text)
        listed = whole.get("log_history", [whole]) if isinstance(whole, dict) else whole
        numbered = list(enumerate(listed, start=1))
    except json.JSONDecodeError:
        numbered = [(i, _json(line, i, name)) for i, line in enumerate(text.splitlines(), start=1) if line.strip()]
    for line, row in numbered:
        require(isinstance(row, dict), f"{name} must hold an object in each record; record {line} is {row!r:.40}.")
        yield line, row


def _json(line: str, number: int, name: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{name} must hold JSON in every line; line {number} is none ({error.msg}). Remove what is half-written."
        ) from None


def _column(kind: str, named: str | None, names: Sequence[str], usual: Sequence[str], file: str) -> str:
    """The name of the column that is meant."""
    listed = ", ".join(repr(name) for name in names)
    if named is not None:
        require(named in names, f"{kind} must name a column of {file}; got {named!r}. There are {listed}.")
        return named
    found = [name for name in names if _plain(name) in usual]
    exact = [name for name in found if name == usual[0]] if kind == "loss" else []
    if len(found) == 1 or exact:
        return (exact or found)[0]
    require(bool(found), f"{file} must have a {kind} column; there are {listed}. Name it with --{kind}-column.")
    raise ValueError(
        f"{file} must have one {kind}; got {', '.join(repr(name) for name in found)}. Name one with --{kind}-column."
    )


def _plain(name: str) -> str:
    """A name without the group that trackers put before it: train/loss and trainer/global_step are usual ones."""
    group, _, last = name.strip().lower().rpartition("/")
    return "other" if group not in ("", "train", "trainer", "training") else last.lstrip("_").replace("-", "_")


def _there(entry: Any) -> bool:
    return entry is not None and entry != ""


def _number(file: str, line: int, entry: Any) -> float:
    try:
        return float(entry) if not isinstance(entry, bool) else math.nan
    except (TypeError, ValueError):
        comma = re.fullmatch(r"-?\d+,\d+", str(entry).strip())
        remedy = "Write decimals with a point" if comma else "Remove the line"
        raise ValueError(f"{file} must hold numbers; got {entry!r:.40} in line {line}. {remedy}.") from None
