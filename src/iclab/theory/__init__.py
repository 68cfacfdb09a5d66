"""Theory: pure functions from a problem to an outcome. They draw nothing and take no key."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.theory import depth as depth
    from iclab.theory import dynamics as dynamics
    from iclab.theory import estimators as estimators
    from iclab.theory import finite_size as finite_size
    from iclab.theory import generalization as generalization
    from iclab.theory import integration as integration
    from iclab.theory import modes as modes
    from iclab.theory import population as population
    from iclab.theory import pretraining as pretraining
    from iclab.theory import related as related
    from iclab.theory import sequences as sequences
    from iclab.theory import sgd as sgd
    from iclab.theory import softmax as softmax
    from iclab.theory import tokens as tokens

__all__ = [
    "depth",
    "dynamics",
    "estimators",
    "finite_size",
    "generalization",
    "integration",
    "modes",
    "population",
    "pretraining",
    "related",
    "sequences",
    "sgd",
    "softmax",
    "tokens",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
