"""Wrong theories of depth."""

from collections.abc import Callable
from typing import Any

from iclab.theory.depth import contours, flows, laws, losses, noise, optima, other_models, power_laws, problems
from iclab.theory.depth import white as white_forms
from iclab.theory.depth.flows import Flow
from tests.wrong_theories.battery import Wrong, scaled

Function = Callable[..., Any]


def slower(right: Function) -> Function:
    """A flow whose clock is off by 3 percent."""

    def wrong(law: Any, start: Any, time: Any, **named: Any) -> Flow:
        found = right(law, start, 0.97 * time, **named)
        return Flow(time, found.excess, found.layers)

    return wrong


def longer(right: Function) -> Function:
    """One example more than the context has."""
    return lambda dimension, length: right(dimension, length + 1)


def one_layer_more(right: Function) -> Function:
    """The levels of a stack whose first layer counts twice."""
    return lambda law, count, **named: right(law, count + 1, **named)[1:]


def wrong_power(right: Function) -> Function:
    """Modes that fall as k to the power −(ν + .1)."""
    return lambda exponent, *given: right(exponent + 0.1, *given)


WRONG = [
    Wrong("best excess", optima.best_excess, scaled(1.03), ("depth-landscape", "depth-plateau")),
    Wrong("tied excess", optima.tied_excess, scaled(1.03), ("depth-landscape", "depth-plateau")),
    Wrong("closed form of untied layers", white_forms.white_untied_excess, scaled(1.001), ("depth-landscape",)),
    Wrong("closed form of tied layers", white_forms.white_tied_excess, scaled(1.001), ("depth-landscape",)),
    Wrong("loss of a stack", problems.stack_loss, scaled(1.03), ("depth-landscape",)),
    Wrong("one example more", laws.wishart, longer, ("depth-landscape",)),
    Wrong("half-way time", flows.half_way_time, scaled(1.03), ("depth-plateau",)),
    Wrong("clock of the flow", flows.flow, slower, ("depth-staircase",)),
    Wrong("levels of depth", optima.levels, scaled(1.02), ("depth-staircase",)),
    Wrong("one layer too many", optima.levels, one_layer_more, ("depth-staircase",)),
    Wrong("critical noise", noise.critical_noise_ratio, scaled(1.02), ("depth-noise",)),
    Wrong("best noisy layers", optima.best_layers, scaled(1.02), ("depth-noise",)),
    Wrong("excess of given layers", losses.excess, scaled(1.001), ("depth-noise",)),
    Wrong("fall of a power law", power_laws.power_law, wrong_power, ("depth-spectrum",)),
    Wrong("closed form of Bessel", power_laws.untied_bessel_excess, scaled(1.001), ("depth-spectrum",)),
    Wrong("upper edge of finite contexts", contours._edge, scaled(0.8), ("depth-spectrum",)),
    Wrong("label-writing taken for rewriting", other_models.rewriting_excess, scaled(2.0), ("depth-free",)),
]
