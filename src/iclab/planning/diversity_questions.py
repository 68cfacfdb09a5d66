"""The question of `iclab plan` about the diversity of tasks, with its answer."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from iclab.planning.flags import Answer, Question

if TYPE_CHECKING:
    from iclab.planning.gaps import Diversity, TaskLaw

__all__ = ["HowManyTasksToRemember"]


@dataclass(frozen=True, kw_only=True)
class HowManyTasksToRemember(Question):
    """Up to how many tasks does memory of the pool pay, and how much at a given number?

    For Bayes predictions with the pool as prior, against those with the law of tasks as prior: what any model can
    gain. `iclab plan regime` asks it of pretrained linear attention.
    """

    law: Literal["urns", "regression", "markov"] = "urns"  # law of tasks
    context_length: int  # draws of an urn, labeled examples of regression, or transitions of a chain
    symbols: int | None = None  # S, symbols of an urn or states of a chain
    concentration: float = 1.0  # α of the Dirichlet law of urns and of rows of chains
    dimension: int | None = None  # D, entries of an input of regression
    tasks: int | None = None  # K, tasks of the pool whose gap is asked for

    def answer(self) -> Answer:
        """The information, both ends of the scale, and at K tasks the gap with its interval."""
        from iclab.planning import figures
        from iclab.planning.gaps import diversity, task_law

        law = task_law(
            self.law,
            context_length=self.context_length,
            symbols=self.symbols,
            dimension=self.dimension,
            concentration=self.concentration,
            noise=self.noise,
        )
        found = diversity(law, tasks=self.tasks)
        rows = [
            ("information I of a context about its task", f"{found.information:.5g} nats"),
            ("memory pays up to K = e^I", f"{found.memory_pays:.4g}"),
            ("memory fades from K = 1 + χ²", f"{found.memory_fades:.4g}"),
            *_rows_at(found),
        ]
        sentences = ("Below e^I the gap is at least I − ln K, beyond 1 + χ² about χ²/2K.", *_shortfall(law, found))
        return Answer(
            ("quantity", "value"),
            tuple(rows),
            sentences,
            asdict(found),
            lambda figure: figures.diversity_figure(figure, law, found),
        )


def _rows_at(found: "Diversity") -> list[tuple[str, str]]:
    """The gap at K tasks; no rows where no K is given."""
    if found.tasks is None:
        return []
    k, drawn = found.tasks, "too many terms; the bounds hold"
    if found.drawn is not None and found.error is not None:
        drawn = f"{found.drawn:.4g} ± {2 * found.error:.2g} nats"
    return [
        (f"gap Δ of a context at K = {k}, bounds", f"{found.least:.4g} to {found.most:.4g} nats"),
        (f"gap Δ at K = {k}, drawn pools", drawn),
        (f"χ²/2K at K = {k}", f"{found.limit:.4g}" if k >= found.chi_square else "holds from K = χ² on"),
        ("gap for each prediction", f"{found.each_prediction:.4g} nats"),
    ]


def _shortfall(law: "TaskLaw", found: "Diversity") -> tuple[str, ...]:
    """The loss that a run at K tasks will lack, by what it learns; nothing where no K is given."""
    from iclab.planning.gaps import RESOLVED

    if found.tasks is None or found.each_prediction is None:
        return ()
    most = "at most " if found.drawn is None else ""
    short = (
        f"On its pool of {found.tasks} a run that learns in context is short of memory by {most}"
        f"{found.each_prediction:.3g} nats for each of {law.context_length} predictions."
    )
    if found.each_prediction < RESOLVED:
        return short, (
            f"That is below the {RESOLVED:g} nats that training at a constant rate leaves: average weights or let "
            "the rate decay, or the run will not show which of both it learned."
        )
    return (short,)
