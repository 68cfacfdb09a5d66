"""Wrong theories of the design of pretraining, and the verdicts that must notice them.

`design_gradient`, `mixed_lengths_error` and `other_inputs_error` are called by no study; each has its witnesses in
tests/test_task_design.py.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from iclab.planning import planned_spectrum
from iclab.theory import generalization
from iclab.theory.generalization import chosen_pool_errors, low_rank_errors
from iclab.theory.pretraining import leverage_errors
from tests.wrong_theories.battery import Wrong


def parts_times(**factors: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of which some of the numbers that it returns are off by factors."""

    def change(right: Callable[..., Any]) -> Callable[..., Any]:
        def wrong(*given: Any, **more: Any) -> Any:
            found = right(*given, **more)
            return replace(found, **{name: factor * getattr(found, name) for name, factor in factors.items()})

        return wrong

    return change


def costs_times(factor: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Costs that are off by a factor."""

    def change(right: Callable[..., Any]) -> Callable[..., Any]:
        def wrong(*given: Any, **more: Any) -> Any:
            constant, costs = right(*given, **more)
            return constant, factor * costs

        return wrong

    return change


WRONG = [
    Wrong("costs × 1.02", generalization.test_costs, costs_times(1.02), ("task-alignment",)),
    Wrong("low rank inside × 1.02", low_rank_errors, parts_times(in_distribution=1.02), ("rank-transition",)),
    Wrong("low rank outside × 1.02", low_rank_errors, parts_times(out_of_distribution=1.02), ("rank-transition",)),
    Wrong("low rank matched × 1.02", low_rank_errors, parts_times(matched=1.02), ("rank-transition",)),
    Wrong("chosen pools × 1.02", chosen_pool_errors, parts_times(icl=1.02), ("chosen-pool",)),
    Wrong("planned error × 0.98", planned_spectrum, parts_times(error=0.98), ("task-design",)),
    Wrong("leverage × 1.06", leverage_errors, parts_times(icl=1.06), ("chosen-pool", "rank-transition")),
]
