"""Spectra of a model while it trains, within a budget of time.

The same measures as from checkpoints, of the model in memory: ranks and norms of every circuit, and its overlap with
the state measured before. Distances to the final state need the final state: save checkpoints for them.
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
from iclab.spectra.layouts.canonical import canonical
from iclab.spectra.observation.dynamics import Row
from iclab.spectra.observation.measurements import Comparison
from iclab.spectra.observation.models import Source, adapter_of, config_of, source_of
from iclab.spectra.observation.states import failure, snapshot, table, training_selection

if TYPE_CHECKING:
    from transformers import TrainerCallback

__all__ = ["Clock", "Source", "TimeBudget", "Watch", "watch"]

Clock = Callable[[], tuple[float, ...]]
"""Seconds of one clock or of several, at the time of the call."""
_APART = 1.02  # least ratio of the steps of two measurements: even on a log axis


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
    """Watcher of a model in training: call it with the number of each step, and `finish` at the end.

    `model` is a PyTorch module, a mapping of names to arrays or PyTorch tensors that training updates in place, or a
    function that returns one. The roles of its tensors are those of `config` (config.json as a mapping; by default
    that of a Hugging Face model or of nanoGPT's class) or `mapping` (a table or TOML file, see
    `layouts.from_mapping`). LoRA adapters of a PEFT model are applied. Overlaps are of `k` leading directions. The
    watcher measures the first step and then as often as its cost stays below `share` of the run's time, at steps at
    least two percent apart. `clock` returns the seconds of each clock on which the share holds: by default processor
    time and wall time.

    Rows go to the folder `out`, one CSV file for each measured step, written atomically; without `out` they stay in
    `rows`. When a run returns to an earlier step, files of later ones are set aside as *.superseded. Weights that are
    not finite get rows with that status; no failure of a measurement stops the training.

    Raises ValueError, before training, for a model without a config or mapping, or that does not fit it.
    """
    require(0 < share < 1, f"share must be above 0 and below 1; got {share!r}.")
    source, folder = source_of(model), None if out is None else Path(out)
    require(
        folder is None or folder.is_dir() or not folder.exists(),
        "out must be a folder for one file a step; got a file. Give another name.",
    )
    if mapping is not None:
        layout = from_mapping(mapping)
    else:
        layout = from_config(config_of(model) if config is None else config)
    budget = TimeBudget(share, clock)
    watcher = Watch(source, layout, folder, whole_number("k", k), budget, adapter=adapter_of(model))
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
    """Watcher of one run; made by `watch`."""

    def __init__(
        self,
        source: Source,
        layout: Layout,
        out: Path | None,
        k: int,
        budget: TimeBudget,
        *,
        adapter: Mapping[str, Any] | None = None,
    ) -> None:
        self._source, self._layout, self._out, self._budget = source, layout, out, budget
        self._adapter = adapter
        self._selection, self._before = training_selection(k), Comparison(learning=False)
        self._last_step: int | None = None
        self.rows: list[Row] = []

    def __call__(self, step: int) -> bool:
        """Measure the model after `step` steps if a measurement is due; True where it was."""
        if self._last_step is not None and (
            self._last_step < step < _APART * self._last_step or not self._budget.due()
        ):
            return False
        self._measure(whole_number("step", step, least=0))
        return True

    def finish(self, step: int) -> None:
        """Measure the last state, unless it is measured already."""
        if step != self._last_step:
            self._measure(whole_number("step", step, least=0))

    def check(self) -> None:
        """Raise ValueError where the tensors of the model do not fit its config or mapping."""
        planned(self._contents(0), self._layout)

    def callback(self) -> "TrainerCallback":
        """The watcher as a callback of a Hugging Face Trainer, active on the first process alone."""
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
            again = self._last_step is None or step < self._last_step
            if again:
                self._before = Comparison(learning=False)
            try:
                found = snapshot(planned(self._contents(step), self._layout), step, self._selection, self._before)
            except ValueError as error:  # the tensors have changed their shapes or names
                found = failure(step, str(error))
            self._last_step = step
            if self._out is None:
                self.rows += found
            else:
                self._write(self._out, step, found, again)

    def _contents(self, step: int) -> checkpoints.Contents:
        state = self._source if isinstance(self._source, Mapping) else self._source()
        opened = checkpoints.of_states([state], [step], adapter=self._adapter)[0].open()
        return canonical(opened, family=self._layout.family)

    def _write(self, folder: Path, step: int, found: list[Row], again: bool) -> None:
        try:
            for old in folder.glob("step-*.csv") if again else ():
                if old.stem > f"step-{step:012d}":
                    old.replace(old.with_suffix(".csv.superseded"))
            with written_whole(folder / f"step-{step:012d}.csv") as file:
                file.write_text(table(found), encoding="utf-8")
        except OSError as error:
            warnings.warn(f"the spectra of step {step} could not be written: {error.strerror}", stacklevel=4)


def _both_clocks() -> tuple[float, ...]:
    return time.process_time(), time.perf_counter()
