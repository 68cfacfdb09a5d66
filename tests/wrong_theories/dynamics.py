"""Wrong theories of training dynamics.

Rows of the list that no study of this group can notice have fast tests: `multi_output_loss`, as no study has
several outputs (tests/test_multi_output.py); `conserved`, which the study of conservation has
(tests/test_conserved.py); `growth_rates`, which no study shows, and the term Q6/N² of the moments of mixtures, a
thousandth of their losses (tests/test_mixture.py); drop times whose signal lacks 1/(g v*), less than a thousandth
of the times of small starts and less than the scatter of others (tests/test_escape.py).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from iclab.theory import dynamics, population
from iclab.theory.dynamics import flows
from iclab.theory.tokens import mixture
from tests.wrong_theories.battery import Wrong, scaled

Function = Callable[..., Any]
SEPARATE = ("staircase", "rank-staircase", "initial-scale", "context-lengths", "drop-times", "principal-components")
FLOWS = ("abrupt-drop", "staircase", "rank-staircase", "initial-scale", "context-lengths")


def without_signal_of_the_sample(right: Function) -> Function:
    """Moments of the summary without the part ΛΩΛ/N."""

    def wrong(problem: Any) -> Any:
        law = right(problem)
        return replace(law, second=law.second - law.cross * np.mean(1 / np.array(problem.context_lengths)))

    return wrong


def arithmetic_length(right: Function) -> Function:
    """Moments at the mean context length in place of the harmonic one."""
    return lambda problem: right(replace(problem, context_length=round(np.mean(problem.context_lengths))))


def contributions(factor: float) -> Callable[[Function], Function]:
    """Modes whose contributions are multiplied."""

    def change(right: Function) -> Function:
        def wrong(moments: Any) -> Any:
            found = right(moments)
            return replace(found, contribution=factor * found.contribution)

        return wrong

    return change


def curvature(factor: float) -> Callable[[Function], Function]:
    """The right-hand side of a flow whose curvature is multiplied."""
    return lambda right: lambda law, gamma: right(replace(law, second=factor * law.second), gamma)


def faster(factor: float) -> Callable[[Function], Function]:
    """A curve of time that runs ahead."""
    return lambda right: lambda problem, amplitude, time: right(problem, amplitude, factor * np.asarray(time))


def sooner(right: Function) -> Function:
    """The scalars of merged attention, 2 percent ahead."""

    def wrong(moments: Any, amplitude: Any, time: Any) -> Any:
        return replace(right(moments, amplitude, 1.02 * np.asarray(time)), time=time)

    return wrong


def without_last(right: Function) -> Function:
    """Predictions without the last mode that was learned."""
    return lambda moments, learned, *test: right(moments, list(learned)[:-1], *test)


def without_full_set(right: Function) -> Function:
    """All sets of modes but the largest."""
    return lambda *given, **named: list(right(*given, **named))[:-1]


def signal_of_labels(factor: float) -> Callable[[Function], Function]:
    """A law of contexts whose cross moments are multiplied."""

    def change(right: Function) -> Function:
        def wrong(*given: Any, **named: Any) -> Any:
            law = right(*given, **named)
            return replace(law, cross=factor * law.cross)

        return wrong

    return change


def one_more(right: Function) -> Function:
    """Plateaus with one drop more at the end."""
    return lambda moments: np.append(right(moments), 0.5 * right(moments)[-1])


WRONG = [
    Wrong("no ΛΩΛ/N", population.moments, without_signal_of_the_sample, (*FLOWS, "white-drop", "fixed-points")),
    Wrong("mean length", population.moments, arithmetic_length, ("context-lengths",)),
    Wrong("contributions", population.modes, contributions(1.02), (*SEPARATE, "abrupt-drop", "white-drop")),
    Wrong("plateaus 2 %", dynamics.plateaus, scaled(1.02), SEPARATE),
    Wrong("plateaus 5 %", dynamics.plateaus, scaled(1.05), SEPARATE),
    Wrong("one plateau more", dynamics.plateaus, one_more, ("softmax-dynamics", "staircase")),
    Wrong("least loss", population.best_loss, scaled(1.02), ("abrupt-drop", "white-drop")),
    Wrong("least loss 5 %", population.best_loss, scaled(1.05), ("context-lengths",)),
    Wrong("loss under a shift", population.loss, scaled(1.05), ("context-lengths", "fixed-points")),
    Wrong("curvature 3 %", flows._residual, curvature(1.03), FLOWS),
    Wrong("curvature 1 %", flows._residual, curvature(1.01), FLOWS),
    Wrong("force 3 %", flows._residual, scaled(0.97), FLOWS),
    Wrong("scalars ahead", dynamics.reduced_merged_flow, sooner, ("abrupt-drop",)),
    Wrong("growing amplitude", dynamics.growing_amplitude, scaled(1.05), ("abrupt-drop", "white-drop")),
    Wrong("white rate", dynamics.white_merged_loss, faster(1.03), ("white-drop",)),
    Wrong("white rate 1 %", dynamics.white_merged_loss, faster(1.01), ("white-drop",)),
    Wrong("white half-drop time", dynamics.white_drop_time, scaled(1.03), ("white-drop",)),
    Wrong("drop times", dynamics.drop_times, scaled(1.03), ("drop-times",)),
    Wrong("drop times 1 %", dynamics.drop_times, scaled(1.01), ("drop-times",)),
    Wrong("escape", dynamics.blow_up_times, scaled(1.06), ("initial-scale",)),
    Wrong("no half-drop shift", dynamics.half_drop_shift, scaled(0.0), ("drop-times",)),
    Wrong("aligned values", dynamics.aligned_values, scaled(1.02), ("staircase",)),
    Wrong("prediction 2 %", dynamics.plateau_prediction, scaled(1.02), ("principal-components",)),
    Wrong("no last mode", dynamics.plateau_prediction, without_last, ("principal-components",)),
    Wrong("no full set", dynamics.reachable, without_full_set, ("fixed-points",)),
    Wrong("fixed point", dynamics.fixed_point, scaled(1.01), ("fixed-points", "principal-components")),
    Wrong("force of a mixture", mixture._velocity, scaled(0.97), ("in-weight",)),
    Wrong("signal of a mixture", mixture.mixture_moments, signal_of_labels(1.05), ("in-weight",)),
    Wrong("in-context test", mixture.in_context_test, signal_of_labels(1.05), ("in-weight",)),
    Wrong("in-weight test", mixture.in_weight_test, signal_of_labels(1.05), ("in-weight",)),
]
