"""The law of three parameters for the share of the memorizing strategy in training, its rivals, and their fit.

ln odds(M : G) = γ n^(1−a) [L_G − L_M] − ln 2 [C_M^b − C_G^b], with n the optimizer steps, the losses in nats for each
prediction on contexts of the pool, and C in bits. Here C_M = 32 K d, the pool of K tasks with d free numbers each in
single precision, and C_G = 1. Shares are predicted; steps at which they cross ½ are not: shares are so flat in ln n
that .05 of share is a factor of 2 to 5 in steps.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from iclab.numerics import Validated, Values, checked, checked_number, require, whole_number

__all__ = ["StrategyLaw", "crossing_steps", "pool_bits", "strategy_log_odds", "strategy_share"]


@dataclass(frozen=True)
class StrategyLaw:
    """γ, a and b: gain of evidence, decline of its increments with steps, exponent of complexity.

    Raises ValueError unless γ > 0 and a < 1.
    """

    gain: float
    decline: float
    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "gain", checked_number("gain", self.gain, above=0.0))
        decline = checked_number("decline", self.decline)
        require(decline < 1, f"decline must be below 1; got {decline:g}. From 1 on evidence would not grow.")
        object.__setattr__(self, "decline", decline)
        object.__setattr__(self, "exponent", checked_number("exponent", self.exponent))


def pool_bits(tasks: Validated[ArrayLike], free_numbers: Validated[int]) -> Values:
    """C_M = 32 K d, bits of a pool of K tasks with d free numbers each: S − 1 of an urn, D, or S(S − 1) of a chain.

    Raises ValueError for fewer than one task or free number.

    Source: wurgaft2025rational, sec. 5 (the pool as an array of single precision; their code's length left out).
    """
    return 32.0 * checked("tasks", tasks, at_least=1.0) * whole_number("free_numbers", free_numbers)


def strategy_log_odds(
    law: StrategyLaw,
    steps: Validated[ArrayLike],
    loss_gap: Validated[ArrayLike],
    memorizing_bits: Validated[ArrayLike],
    generalizing_bits: Validated[ArrayLike] = 1.0,
) -> Values:
    """ln of the odds of the memorizing strategy after so many steps; loss_gap is L_G − L_M = Δ/T in nats.

    Raises ValueError for negative steps and for bits that are not positive.

    Source: wurgaft2025rational, sec. 5.
    """
    n = checked("steps", steps, at_least=0.0)
    gap = checked("loss_gap", loss_gap)
    return law.gain * n ** (1 - law.decline) * gap - _price(law, memorizing_bits, generalizing_bits)


def strategy_share(
    law: StrategyLaw,
    steps: Validated[ArrayLike],
    loss_gap: Validated[ArrayLike],
    memorizing_bits: Validated[ArrayLike],
    generalizing_bits: Validated[ArrayLike] = 1.0,
) -> Values:
    """The share of the memorizing strategy, logistic of the log odds.

    Raises ValueError as strategy_log_odds does.

    Source: wurgaft2025rational, sec. 5.
    """
    return expit(strategy_log_odds(law, steps, loss_gap, memorizing_bits, generalizing_bits))


def crossing_steps(
    law: StrategyLaw,
    loss_gap: Validated[ArrayLike],
    memorizing_bits: Validated[ArrayLike],
    generalizing_bits: Validated[ArrayLike] = 1.0,
) -> Values:
    """Steps after which both strategies weigh the same: n* = [ln 2 (C_M^b − C_G^b)/(γ (L_G − L_M))]^(1/(1−a)).

    Networks were seen to cross elsewhere, by factors of 2 to 5: predict shares instead. Infinite without a gap.

    Raises ValueError for a negative gap and for bits that are not positive.

    Source: wurgaft2025rational, sec. 5.
    """
    gap = checked("loss_gap", loss_gap, at_least=0.0)
    with np.errstate(divide="ignore"):
        evidence = np.maximum(_price(law, memorizing_bits, generalizing_bits), 0.0) / (law.gain * gap)
    return evidence ** (1 / (1 - law.decline))


def _price(
    law: StrategyLaw, memorizing_bits: Validated[ArrayLike], generalizing_bits: Validated[ArrayLike]
) -> Values:
    """ln 2 times the bits that memory is dearer by."""
    memory = checked("memorizing_bits", memorizing_bits, above=0.0)
    inference = checked("generalizing_bits", generalizing_bits, above=0.0)
    return np.log(2) * (memory**law.exponent - inference**law.exponent)
