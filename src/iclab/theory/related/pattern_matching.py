"""The error floor of attention in classification by patterns: contexts without a relevant example."""

from numpy.typing import ArrayLike

from iclab.numerics import Validated, Values, checked, every, require

__all__ = ["matching_floor"]


def matching_floor(relevant: Validated[ArrayLike], context_length: Validated[ArrayLike]) -> Values:
    """Error of attention that finds every example with the query's pattern and guesses where there is none.

    ½ (1 − α/2)^N with the fraction α of examples that carry one of the two patterns of the task, evenly. A floor for
    classifiers that use the query's own pattern alone; no other closed form is claimed. Both arguments may be arrays.

    Raises ValueError for a fraction outside (0, 1] and for lengths below 1.

    Source: li2024nonlinear (the setting); derived in docs/derivations/pattern_matching.
    """
    fraction = checked("relevant", relevant, above=0.0, advice="It is a fraction of the examples.")
    require(every(fraction <= 1), f"relevant must be at most 1; got {relevant!r}. It is a fraction of the examples.")
    length = checked("context_length", context_length, at_least=1.0)
    return 0.5 * (1 - fraction / 2) ** length
