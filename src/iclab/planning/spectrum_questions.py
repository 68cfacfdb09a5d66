"""The questions of `iclab plan` about the tasks to train on: their spectrum, and a chosen pool of it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from iclab.numerics import require, whole_number
from iclab.planning.flags import Answer, ContextFlags, CountFlags, PoolFlags, PretrainingFlags, Question

if TYPE_CHECKING:
    from iclab.planning.pools import DrawnForecast
    from iclab.planning.spectrum import PlannedSpectrum
    from iclab.problem import Ratios

__all__ = ["WhichPool", "WhichSpectrum"]

_AGREE = 1e-6  # difference between ends of descent that is told
_SHOWN = 12  # eigenvalues in a row


@dataclass(frozen=True, kw_only=True)
class WhichSpectrum(Question, CountFlags, PretrainingFlags, PoolFlags, ContextFlags):
    """Which tasks should pretraining be on, for tests of a given spectrum?"""

    test_spectrum: tuple[float, ...] = ()  # relative variances of the tests' tasks, one for each direction
    power: float | None = None  # in place of test_spectrum: variances j^-power of mean 1
    directions: int | None = None  # D, how many of them; the dimension unless given
    ridge: Literal["best"] | float = "best"  # λ, ridge of the readout; best: each spectrum has its own
    test_alpha: float | None = None  # α of the tests; that of pretraining unless given
    test_noise: float | None = None  # ρ of the tests; that of pretraining unless given
    trace: float | None = None  # mean variance of the planned tasks; that of the tests unless given
    pool: Literal["drawn", "chosen"] = "drawn"  # chosen: orthogonal tasks in place of drawn ones

    def answer(self) -> Answer:
        """The planned spectrum beside the test's own and the white one; at a finite size the expected errors too."""
        from iclab.planning import figures
        from iclab.planning.spectrum import planned_spectrum
        from iclab.problem import Ratios
        from iclab.theory.pretraining import Shift

        ratios = Ratios(**self.sizes(), noise=self.noise)
        directions = self.dimension if self.directions is None and not self.test_spectrum else self.directions
        new = _spectrum(self.test_spectrum, self.power, directions, "test_spectrum")
        if self.dimension is not None:
            dimension = whole_number("dimension", self.dimension)
            require(
                len(new) == dimension,
                f"the test spectrum must have as many directions as the dimension, {dimension}; got {len(new)}.",
            )
        given = {
            "test_task_eigenvalues": new, "ridge": self.ridge, "trace": self.trace,
            "shift": Shift(self.test_alpha, self.test_noise),
        }  # fmt: skip
        found = planned_spectrum(ratios, **given, pool=self.pool)
        best = self._chosen(ratios, given) if self.pool == "drawn" else None
        runs = self._runs(found, new)
        return Answer(
            ("pretraining", "error", "ridge λ", "directions", *("this size",) * bool(runs)),
            self._rows(found, runs),
            tuple(_sentences(self, found, best, float(ratios.kappa))),
            asdict(found)
            | {"chosen_error": None if best is None else best.error}
            | {"forecast": {name: asdict(run) for name, run in runs.items()}},
            lambda figure: figures.spectrum_figure(figure, new, found, best),
        )

    def _chosen(self, ratios: "Ratios", given: dict) -> "PlannedSpectrum | None":
        """The plan of a chosen pool of as many tasks, where it has any and is not the limit itself."""
        from iclab.planning.spectrum import planned_spectrum

        least = 1 / len(given["test_task_eigenvalues"])
        possible = least <= float(ratios.kappa) < np.inf
        return planned_spectrum(ratios, **given, pool="chosen") if possible else None

    def _rows(self, found: "PlannedSpectrum", runs: "dict[str, DrawnForecast]") -> tuple[tuple[str, ...], ...]:
        count, all_of = round(found.directions * len(found.task_eigenvalues)), len(found.task_eigenvalues)
        rows = (
            ("planned" if self.pool == "drawn" else "chosen", found.error, found.ridge, f"{count} of {all_of}"),
            ("as the test", found.matched_error, found.matched_ridge, ""),
            ("white", found.white_error, found.white_ridge, str(all_of)),
        )
        shown = [(name, f"{error:.5f}", f"{ridge:.4g}", used) for name, error, ridge, used in rows]
        if runs:
            shown = [(*row, _spread(runs.get(row[0]))) for row in shown]
        return tuple(shown)

    def _runs(self, found: "PlannedSpectrum", new: np.ndarray) -> "dict[str, DrawnForecast]":
        """The expected errors of runs of the counts given, for the plan and for the test's own spectrum."""
        if None in (self.dimension, self.context_length, self.sequences, self.tasks):
            return {}
        from iclab.planning.pools import spectrum_forecast
        from iclab.problem import ContextLaw, Pretraining, SphereTasks

        d, length, count = self.dimension, self.context_length, self.sequences
        assert d is not None
        assert length is not None
        assert count is not None
        size = Pretraining(d, length, count, self.tasks, self.noise, balanced=False)
        test = None
        if self.test_alpha is not None or self.test_noise is not None:
            own = length if self.test_alpha is None else max(1, round(self.test_alpha * d))
            test = ContextLaw(SphereTasks(d), own, self.noise if self.test_noise is None else self.test_noise)
        matched = new * (np.mean(found.task_eigenvalues) / np.mean(new))
        chosen = self.pool == "chosen"
        return {
            "chosen" if chosen else "planned": spectrum_forecast(
                size, task_eigenvalues=found.task_eigenvalues, test_task_eigenvalues=new, ridge=found.ridge, new=test,
                chosen=chosen,
            ),
            "as the test": spectrum_forecast(
                size, task_eigenvalues=matched, test_task_eigenvalues=new, ridge=found.matched_ridge, new=test
            ),
        }  # fmt: skip


def _spread(run: "DrawnForecast | None") -> str:
    return "" if run is None else f"{run.error:.4f} ± {run.deviation:.2g}"


def _sentences(
    question: WhichSpectrum, found: "PlannedSpectrum", best: "PlannedSpectrum | None", kappa: float
) -> list[str]:
    c = found.task_eigenvalues
    shown = " ".join(f"{value:.2f}" if value > 0 else "0" for value in c[:_SHOWN])
    said = [f"Variances: {shown}{' …' if len(c) > _SHOWN else ''}"]
    if np.isinf(found.equivalent_kappa) and np.isfinite(kappa):
        said.append("With the test's own spectrum no pool is large enough for that error.")
    elif found.equivalent_kappa > kappa:
        said.append(f"With the test's own spectrum that takes κ = {found.equivalent_kappa:.3f}.")
    if best is not None:
        count = int(kappa * len(c) * (1 + 1e-12))
        said.append(f"{count} chosen tasks reach {best.error:.4f} at ridge {best.ridge:.3g}, in the limit of many D.")
    if question.dimension is not None and question.dimension < 24 and (best is not None or question.pool == "chosen"):
        said.append(f"At D = {question.dimension} chosen tasks may win nothing over drawn ones; see the last column.")
    said.append(
        f"First-order conditions hold to {found.unlevel:.0e} of the error; {len(found.starts)} starts end within "
        f"{max(found.disagreement, 1e-16):.0e}."
    )
    if found.disagreement > _AGREE:
        ends = ", ".join(f"{end:.5f}" for end in found.starts)
        said.append(f"Warning: starts end at different errors: {ends}. The least is shown; try --ridge best.")
    if found.error > found.null_error:
        said.append(f"Warning: predicting nothing is better, at {found.null_error:.5f}. Raise the ridge.")
    return said


@dataclass(frozen=True, kw_only=True)
class WhichPool(Question):
    """Which tasks make a pool of a given spectrum?

    They are written to a file, to train on.
    """

    tasks: int  # K, tasks of the pool
    out: Path  # file of the task vectors, one a row: .npy, .csv or .safetensors
    spectrum: tuple[float, ...] = ()  # variances of the tasks, one for each direction, as `plan spectrum` finds them
    power: float | None = None  # in place of spectrum: variances j^-power of mean 1
    directions: int | None = None  # D, how many of them

    def answer(self) -> Answer:
        """The pool, written, and how near its second moment is to the spectrum."""
        from iclab.planning import figures
        from iclab.planning.pools import chosen_pool, write_pool

        c = _spectrum(self.spectrum, self.power, self.directions, "spectrum")
        vectors = chosen_pool(self.tasks, task_eigenvalues=c)
        write_pool(self.out, vectors)
        off = float(np.max(abs(vectors.T @ vectors / len(vectors) - np.diag(c))))
        rows = (
            ("tasks K", str(len(vectors))),
            ("directions D", f"{len(c)}, {int(np.sum(c > 0))} of them used"),
            ("off the spectrum by", f"{off:.0e}"),
        )
        numbers = {"tasks": len(vectors), "dimension": len(c), "off": off, "file": str(self.out)}
        few = () if len(c) >= 24 else (f"At D = {len(c)} chosen tasks may win nothing over drawn ones.",)
        said = (f"file: {self.out}", *few)
        return Answer(("pool", "value"), rows, said, numbers, lambda figure: figures.pool_figure(figure, c, vectors))


def _spectrum(given: tuple[float, ...], power: float | None, directions: int | None, name: str) -> np.ndarray:
    """The spectrum of the flags. Raises ValueError for both or neither, and for more than the most directions."""
    from iclab.planning.spectrum import LARGEST

    got = "both" if given else "neither"
    require(bool(given) != (power is not None), f"give {name}, or power with directions; got {got}.")
    if power is None:
        require(
            directions in (None, len(given)), f"directions must be those of {name}, {len(given)}; got {directions}."
        )
        return np.array(given, float)
    if directions is None:
        raise ValueError("directions must be given with power; got none.")
    count = whole_number("directions", directions)
    require(count <= LARGEST, f"directions must be at most {LARGEST}; got {count}. Take fewer for the same shape.")
    with np.errstate(over="ignore"):
        c = np.arange(1, count + 1.0) ** -power
    require(bool(np.all(np.isfinite(c)) and np.all(c > 0)), f"power must give finite variances; got {power}.")
    return c / np.mean(c)
