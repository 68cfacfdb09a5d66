"""Wrong theories of related systems and networks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from iclab.theory import population, softmax
from iclab.theory.estimators import one_context
from iclab.theory.related import rank_limited
from iclab.theory.softmax import window
from tests.wrong_theories.battery import Wrong, scaled

Function = Callable[..., Any]


def bias_scaled(right: Function) -> Function:
    """The bias of affine functions, larger by 2 percent."""
    return lambda *given: (1.02 * right(*given)[0], right(*given)[1])


def longer(right: Function) -> Function:
    """One example more than the context has."""
    return lambda size, length, dimension: right(size, length + 1, dimension)


def cross_scaled(right: Function) -> Function:
    """Tests whose target is larger by 1 percent."""

    def wrong(*given: Any, **named: Any) -> Any:
        tested = right(*given, **named)
        return replace(tested, cross=1.01 * tested.cross) if hasattr(tested, "cross") else tested

    return wrong


WRONG = [
    Wrong("test loss of a rank", rank_limited.test_loss, scaled(1.02), ("rank-robustness",)),
    Wrong("critical noise", rank_limited.critical_noise, scaled(1.03), ("rank-robustness",)),
    Wrong("least loss of a rank", population.best_loss, scaled(1.02), ("rank-robustness",)),
    Wrong("target of relabeled contexts", rank_limited.relabeled_contexts, cross_scaled, ("rank-robustness",)),
    Wrong("bias of affine functions", window._affine_parts, bias_scaled, ("softmax-window",)),
    Wrong("one example more", window._affine_parts, longer, ("softmax-window",)),
    Wrong("best scale", softmax.best_scale, scaled(1.03), ("softmax-window",)),
    Wrong("best scale with a kink", softmax.best_kernel_scale, scaled(1.04), ("softmax-window",)),
    Wrong("law of long contexts", softmax.scale_law, scaled(1.01), ("softmax-window",)),
    Wrong("squared weights in long contexts", softmax.gaussian_squared_weights, scaled(1.02), ("low-rank-tasks",)),
    Wrong("error of ridge", one_context.finite_ridge_error, scaled(1.04), ("regression-training",)),
    Wrong("error of one step", one_context.one_step_error, scaled(1.04), ("regression-training",)),
]
