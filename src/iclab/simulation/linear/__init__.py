"""Linear attention trained on drawn contexts: by gradient descent, on statistics or tokens, and by one-pass SGD."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.simulation.linear import contexts as contexts
    from iclab.simulation.linear import depth as depth
    from iclab.simulation.linear import descent as descent
    from iclab.simulation.linear import loop as loop
    from iclab.simulation.linear import mixtures as mixtures
    from iclab.simulation.linear import one_pass as one_pass
    from iclab.simulation.linear import predictions as predictions
    from iclab.simulation.linear import routes as routes
    from iclab.simulation.linear import scalar_sgd as scalar_sgd
    from iclab.simulation.linear import softmax as softmax
    from iclab.simulation.linear import stationary as stationary
    from iclab.simulation.linear import statistics as statistics
    from iclab.simulation.linear import summaries as summaries
    from iclab.simulation.linear import transformer_sgd as transformer_sgd
    from iclab.simulation.linear import two_factor as two_factor

__all__ = [
    "contexts",
    "depth",
    "descent",
    "loop",
    "mixtures",
    "one_pass",
    "predictions",
    "routes",
    "scalar_sgd",
    "softmax",
    "stationary",
    "statistics",
    "summaries",
    "transformer_sgd",
    "two_factor",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
