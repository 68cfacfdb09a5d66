"""The spectra of attention while a model trains, as often as their own cost allows.

The same measures as from checkpoints, of the model in memory: ranks and norms of every circuit, and how far each has
turned since it was last looked at. Distances to the final state need the final state: save checkpoints for them.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclab.files import written_whole
from iclab.numerics import require, whole_number
from iclab.spectra import checkpoints
from iclab.spectra.layouts import Layout, from_config, from_mapping, planned
from iclab.spectra.observation.dynamics import Row
from iclab.spectra.observation.measurements import Comparison
from iclab.spectra.observation.states import failure, snapshot, table, training_selection

if TYPE_CHECKING:
    from transformers import TrainerCallback

Source = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
Clock = Callable[[], tuple[float, ...]]
"""Seconds of one clock or of several, at the time of the call."""
_APART = 1.02  # ratio of the steps of two measurements at least: even on a log axis


def watch(
    model: Any,
    out: str | Path | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    mapping: Mapping[str, Any] | str | Path | None = None,
    k: int = 4,
    share: float = 0.03,
    clock: Clock | None = None,
) -> "Watch":
    """A watcher of a model in training: call it with the number of each step, and `finish` at the end.

    `model` is a PyTorch module, a mapping of names to arrays or PyTorch tensors that training updates in place, or a
    function that returns one. What its tensors are is what `config` says (config.json as a mapping; by default that
    of a Hugging Face model) or `mapping` (a table or TOML file, see `layouts.from_mapping`). Overlaps are of `k`
    leading directions. The watcher measures the first step it sees and then as often as keeps its cost below
    `share` of the run's time, and no closer than two percent in the step. `clock` returns the seconds of each clock
    that the share is held on: by default those of the processors and those that pass.

    Rows go to the folder `out`, one CSV file for each step measured, each whole or not there; without `out` they
    stay in `rows`. When a run goes back to an earlier step, files of later ones are set aside as *.superseded.
    Weights that are not finite get rows that say so; nothing that a watcher meets stops the training.

    Raises ValueError, before training, where the model's tensors cannot be told.
    """
    require(0 < share < 1, f"share must be above 0 and below 1; got {share!r}.")
    source, folder = _source(model), None if out is None else Path(out)
    require(
        folder is None or folder.is_dir() or not folder.exists(),
        "out must be a folder for one file a step; got a file. Give another name.",
    )
    if mapping is not None:
        layout = from_mapping(mapping)
    else:
        layout = from_config(_config_of(model) if config is None else config)
    watcher = Watch(source, layout, folder, whole_number("k", k), TimeBudget(share, clock))
    watcher.check()
    return watcher


class TimeBudget:
    """A share of the time of a run, below which all measurements together stay.

    The first costs what it costs. The next is due when it, and another of its cost, are below the share of all time
    since the start, on each clock.
    """

    def __init__(self, share: float, clock: Clock | None = None) -> None:
        self.share = share
        self._now = clock or _both_clocks
        self._start = self._now()
        self.spent = tuple(0.0 for _ in self._start)
        self._last = self.spent
        self._began = self._start

    def due(self) -> bool:
        """True where there is time for one more measurement."""
        return all(
            spent + last <= self.share * (now - start)
            for spent, last, now, start in zip(self.spent, self._last, self._now(), self._start, strict=True)
        )

    def __enter__(self) -> None:
        self._began = self._now()

    def __exit__(self, *_: object) -> None:
        self._last = tuple(now - began for now, began in zip(self._now(), self._began, strict=True))
        self.spent = tuple(spent + last for spent, last in zip(self.spent, self._last, strict=True))


class Watch:
    """A watcher of one run; made by `watch`."""

    def __init__(self, source: Source, layout: Layout, out: Path | None, k: int, budget: TimeBudget) -> None:
        self._source, self._layout, self._out, self._budget = source, layout, out, budget
        self._selection, self._before = training_selection(k), Comparison(learning=False)
        self._seen: int | None = None
        self.rows: list[Row] = []

    def __call__(self, step: int) -> bool:
        """Measure the model after `step` steps if it is time to; whether it was."""
        if self._seen is not None and (self._seen < step < _APART * self._seen or not self._budget.due()):
            return False
        self._measure(whole_number("step", step, least=0))
        return True

    def finish(self, step: int) -> None:
        """Measure the last state, unless it was the last one measured."""
        if step != self._seen:
            self._measure(whole_number("step", step, least=0))

    def check(self) -> None:
        """Raise ValueError where the tensors of the model do not fit what is said of them."""
        planned(self._contents(0), self._layout)

    def callback(self) -> "TrainerCallback":
        """The watcher as a callback of a Hugging Face Trainer; on the first process of several alone."""
        from transformers import TrainerCallback

        watcher = self

        class _Watching(TrainerCallback):
            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.is_world_process_zero:
                    watcher(state.global_step)

            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.is_world_process_zero:
                    watcher(state.global_step)

            def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.is_world_process_zero:
                    watcher.finish(state.global_step)

        return _Watching()

    def _measure(self, step: int) -> None:
        with self._budget:
            again = self._seen is None or step < self._seen
            if again:
                self._before = Comparison(learning=False)
            try:
                found = snapshot(planned(self._contents(step), self._layout), step, self._selection, self._before)
            except ValueError as error:  # the tensors have changed their shapes or names
                found = failure(step, str(error))
            self._seen = step
            if self._out is None:
                self.rows += found
            else:
                self._write(self._out, step, found, again)

    def _contents(self, step: int) -> checkpoints.Contents:
        state = self._source if isinstance(self._source, Mapping) else self._source()
        return checkpoints.of_states([state], [step])[0].open()

    def _write(self, folder: Path, step: int, found: list[Row], again: bool) -> None:
        try:
            for old in folder.glob("step-*.csv") if again else ():
                if old.stem > f"step-{step:012d}":
                    old.replace(old.with_suffix(".csv.superseded"))
            with written_whole(folder / f"step-{step:012d}.csv") as file:
                file.write_text(table(found), encoding="utf-8")
        except OSError as error:
            warnings.warn(f"the spectra of step {step} could not be written: {error.strerror}", stacklevel=4)


def _source(model: Any) -> Source:
    source: Source | None = getattr(model, "state_dict", model)
    require(
        isinstance(source, Mapping) or callable(source),
        f"model must have a state_dict, or be a mapping or a function; got {type(model).__name__}.",
    )
    assert source is not None
    return source


def _config_of(model: Any) -> Mapping[str, Any]:
    said: Any = getattr(model, "config", None)
    require(
        hasattr(said, "to_dict"),
        "the family of the model must be known; it has no config that says so. Give config= or mapping=.",
    )
    return said.to_dict()


def _both_clocks() -> tuple[float, ...]:
    return time.process_time(), time.perf_counter()
