"""A study: one question, put to theory and simulation, whose answers are labeled here and nowhere else."""

import dataclasses
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from iclab.claims import Claim, Resolution, Verdict, answered, asked, excused, finest, noticing
from iclab.numerics import one_of, require
from iclab.outcomes import Quantity, View
from iclab.provenance import simulating
from iclab.study.labels import Outcomes, dataset_at, joined, labeled_tree, seed_numbers
from iclab.study.result import Result, Verdicts

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import PRNGKeyArray as Key
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from iclab.explorer import Page
else:
    Axes = Figure = Key = Any  # for annotations of studies: neither matplotlib nor JAX is loaded for them

__all__ = ["Axes", "Cost", "Figure", "Formula", "Key", "Preset", "Study"]


@dataclass(frozen=True)
class Formula:
    """A formula of theory, in TeX, with the name of each of its symbols."""

    tex: str  # \\quad where a narrow page may break it
    words: str
    symbols: Mapping[str, str] = field(default_factory=dict)  # words of each symbol, by its TeX

    @property
    def lines(self) -> list[str]:
        """The parts between which a narrow page may break the formula."""
        return self.tex.split(r"\quad")


@dataclass(frozen=True)
class Preset:
    """A case to start from, and what it takes to show it."""

    case: Any  # a frozen dataclass
    seeds: int = 4  # seeds that it is shown with
    seconds: Callable[[Any], float] | None = None  # that one seed of a case takes on one core, roughly
    size: tuple[float, float] = (7.0, 3.6)  # of the figure, in inches


@dataclass(frozen=True)
class Cost:
    """The work of one seed of a case, roughly."""

    seconds: float  # on one core
    memory: float  # bytes


@dataclass(frozen=True, repr=False)
class Study:
    """One question, the cases that state it, its witnesses, its figure and the claims about their agreement.

    `theory(case)` and `simulation(case, key=key)` return outcomes by name. With `start(case, seed)` both are
    handed the same initial weights: `theory(case, start)`, `simulation(case, start, key=key)`. Without a
    simulation theory answers alone, however many seeds are asked for; its claims then compare theories.
    `presets` hold the case "quick", of the report, whose class is the form of every case; "full", the published
    one or the largest that runs in minutes; and, where the paper's own is larger still, "published".
    `settle(case, stated, like)` fills in what was not stated of a case made from another, `like`, and follows from
    its problem.
    """

    name: str
    question: str
    version: int  # raised by hand when the answer to the same case changes
    presets: Mapping[str, Preset]
    theory: Callable[..., Outcomes]
    simulation: Callable[..., Outcomes] | None
    figure: Callable[[View, Figure], None]
    claims: tuple[Claim, ...]
    start: Callable[[Any, int], Any] | None = None
    vocabulary: Mapping[str, Quantity] = field(default_factory=dict)  # of its axes and quantities, by name
    headline: bool = False  # whether the short report shows it
    unjudged: Mapping[str, str] = field(default_factory=dict)  # drawn variables of theory, and why no claim has them
    settle: Callable[[Any, frozenset[str], Any], Any] | None = None  # fills in what was not stated of a case
    cost: Callable[[Any], Cost] | None = None  # of one seed of a case
    units: Callable[[Any], Mapping[str, float]] | None = None  # times of a step, and of an epoch of the published run
    answer: Callable[[View], str] | None = None  # the answer of a case in its own numbers, one sentence
    formulas: tuple[Formula, ...] = ()  # of theory, for the page

    def __new__(cls, *_: Any, **given: Any) -> "Study":
        """A study. Raises TypeError, with the successor, for a field of version 0.1.0."""
        if old := sorted({"quick", "full", "published", "seeds", "full_seeds", "estimate", "size"} & given.keys()):
            raise TypeError(
                f"a study has no {', '.join(old)}; cases, seeds and sizes of figures moved to presets. Write "
                'presets={"quick": Preset(Case(), seeds=4), "full": Preset(...)}, with Preset of iclab.study.'
            )
        return object.__new__(cls)

    def __post_init__(self) -> None:
        known = isinstance(self.presets, Mapping) and "quick" in self.presets
        require(
            known and all(isinstance(one, Preset) for one in self.presets.values()),
            f"presets must hold a Preset for each name, quick at least; got {self.presets!r}. Write "
            'presets={"quick": Preset(Case())}.',
        )

    def __repr__(self) -> str:
        seeds = ", ".join(f"{name} ({preset.seeds} seeds)" for name, preset in self.presets.items())
        fields = ", ".join(entry.name for entry in dataclasses.fields(self.quick))
        return "\n".join(
            [
                f"{self.name}: {self.title}",
                f"  presets: {seeds if self.simulation else ', '.join(self.presets) + '; theory alone'}",
                f"  case:    {textwrap.shorten(fields, 100, placeholder=' …')}",
                f"  claims:  {len(self.claims)}",
            ]
        )

    @property
    def quick(self) -> Any:
        """The case of the report."""
        return self.presets["quick"].case

    @property
    def full(self) -> Any:
        """The published case, or the largest one that runs in minutes."""
        return self.presets["full"].case

    @property
    def title(self) -> str:
        """The question itself, the first line of its text."""
        return self.question.strip().split("\n")[0]

    def case(self, preset: str = "quick", /, **changes: Any) -> Any:
        """A case like that of a preset, with some fields changed; what is not stated follows from the problem.

        >>> STUDIES["abrupt-drop"].case(problem=Regression((2.0, 1.0), context_length=10))

        With the problem of the preset its own numbers are kept. Raises ValueError for a name that no preset has, and
        for fields that a case has not or that must not be so.
        """
        like = self.preset(preset).case
        for name in changes:
            one_of("a field of the case", name, [entry.name for entry in dataclasses.fields(like)])
        return self.settled(dataclasses.replace(like, **changes), changes, like=like)

    def settled(self, case: Any, stated: Iterable[str], *, like: Any) -> Any:
        """The case that was made from another by stating some fields, with the others following from its problem."""
        return case if self.settle is None else self.settle(case, frozenset(stated), like)

    def estimate(self, case: Any) -> Cost | None:
        """The work of one seed of a case; None where nothing is known of it."""
        if self.cost is not None:
            return self.cost(case)
        seconds = next((preset.seconds for preset in self.presets.values() if preset.seconds), None)
        return None if seconds is None else Cost(seconds(case), 0.0)

    def clocks(self, case: Any) -> dict[str, float]:
        """The clocks that can tell the time of training of a case, each with the time of its unit, in units of τ."""
        return {"time": 1.0, **(self.units(case) if self.units else {})}

    def run(self, case: Any = None, seeds: int | Iterable[int] | None = None) -> Result:
        """Ask all witnesses: a result that shows itself, with groups `theory/NAME` and `simulation/NAME`.

        The case is one of this study or the name of a preset, "quick" by default. `seeds` is a count, seeds
        0, 1, ..., or the seeds themselves; with none, theory answers alone. By default they are those of the preset.

        Raises ValueError for a case of another study and for impossible seeds, ImportError when seeds are
        asked for and JAX is not installed.
        """
        preset = self.preset(case)
        case = preset.case if case is None or isinstance(case, str) else case
        numbers = self.asked(preset.seeds if seeds is None else seeds)
        if not numbers:
            return Result(self, case, self._labeled(case, {"theory": self._theory(case, 0)}, seed=0))
        return Result(self, case, joined([self._answers(case, seed) for seed in numbers]))

    def explore(self, case: Any = None) -> "Page":
        """The page of the explorer with the view of this study; in a notebook controls move its theory.

        Opened at a case, of the preset "quick" by default. Raises ValueError for a study that no view shows, and
        for a case out of the range of its controls.
        """
        from iclab.explorer import page_of

        return page_of(self, self.preset(case).case if case is None or isinstance(case, str) else case)

    def theorized(self, case: Any, result: "xr.DataTree") -> "xr.DataTree":
        """The result of a case with theory computed again, for the starts of its seeds."""
        seeds = [int(seed) for seed in result.attrs["seeds"]] if self.start is not None else []
        answers = [
            self._labeled(case, {"theory": self._theory(case, seed)}, seed=seed, seconds=0.0) for seed in seeds or [0]
        ]
        simulated = {path: dataset_at(result, path) for path in result.groups if path.startswith("/simulation/")}
        import xarray as xr

        return xr.DataTree.from_dict({**joined(answers).to_dict(), **simulated})

    def preset(self, case: Any = None) -> Preset:
        """The preset of a name or of a case; "quick" for a case that is no preset's.

        Raises ValueError for a case of another study, and for a name that no preset has.
        """
        if isinstance(case, str):
            one_of("case", case, self.presets)
            return self.presets[case]
        if case is not None:
            self._require_own(case)
        return next((one for one in self.presets.values() if one.case == case), self.presets["quick"])

    def asked(self, seeds: int | Iterable[int]) -> tuple[int, ...]:
        """The seeds put to simulation: those given; none where theory is alone."""
        numbers = seed_numbers(seeds)
        return () if self.simulation is None else numbers

    def outcomes(self, case: Any, seed: int | None) -> dict[str, Outcomes]:
        """The outcomes of each witness for one seed of a case; of theory alone without a seed.

        Raises ImportError where a simulation is asked and JAX is not installed, and the errors of the witnesses.
        """
        theory = {"theory": self._theory(case, seed or 0)}
        if seed is None or self.simulation is None:
            return theory
        return theory | {"simulation": self._simulated(self.simulation, case, seed)}

    def verdicts(self, result: "Result | xr.DataTree") -> Verdicts:
        """The verdict on each claim that the case allows; none where a simulation was not asked for.

        One that does not hold because the run is unstable, or not finished, is open and says what to try.
        """
        tree = _tree(result)
        whole = self.simulation is None or "simulation" in tree.children
        allowed = [claim for claim in self.claims if asked(claim, tree)] if whole else []
        return Verdicts(excused(claim, noticing(claim, tree), tree) for claim in allowed)

    def answered(self, case: Any, result: "Result | xr.DataTree", verdicts: Sequence[Verdict]) -> str:
        """The answer of a case in its own numbers, where the study has words for it, and how many claims hold."""
        view = View(case, _tree(result))
        own = self.answer(view) if self.answer is not None and view.simulation else ""
        return f"{own} {answered(verdicts)}".strip()

    def resolution(self, result: "Result | xr.DataTree") -> dict[str, Resolution]:
        """The smallest errors of theory that claims which hold would have exposed, by variable of theory.

        A variable that no claim covers, or only claims that do not hold, is not in it.
        """
        found: dict[str, Resolution] = {}
        for verdict in self.verdicts(result):
            for name, one in verdict.notices.items():
                found[name] = finest(found[name], one) if name in found else one
        return found

    def _require_own(self, case: Any) -> None:
        require(
            type(case) is type(self.quick),
            f"case must be a Case of the study {self.name!r}; got {type(case).__module__}.{type(case).__qualname__}. "
            "Build one with dataclasses.replace(study.quick, ...).",
        )

    def _answers(self, case: Any, seed: int) -> "xr.DataTree":
        begun = time.perf_counter()
        answers = self.outcomes(case, seed)
        return self._labeled(case, answers, seed=seed, seconds=time.perf_counter() - begun)

    def _labeled(
        self, case: Any, answers: Mapping[str, Outcomes], *, seed: int, seconds: float | None = None
    ) -> "xr.DataTree":
        return labeled_tree(self, case, answers, seed=seed, seconds=seconds)

    def _theory(self, case: Any, seed: int) -> Outcomes:
        return _once(self.theory, case) if self.start is None else self.theory(case, self.start(case, seed))

    def _simulated(self, simulation: Callable[..., Outcomes], case: Any, seed: int) -> Outcomes:
        with simulating("ask theory alone with no seeds (--seeds 0)"):
            from iclab.simulation.keys import key_of
            from iclab.simulation.memory import exhaustion_reported
        arguments = () if self.start is None else (self.start(case, seed),)
        with exhaustion_reported():
            return simulation(case, *arguments, key=key_of(seed))


def _tree(result: "Result | xr.DataTree") -> "xr.DataTree":
    return result.tree if isinstance(result, Result) else result


@lru_cache(maxsize=4)
def _once(theory: Callable[..., Outcomes], case: Any) -> Outcomes:
    """Outcomes of theory for a case, computed once for all seeds."""
    return theory(case)
