"""Claims that studies of related systems repeat: closeness of one variable, and bounds of it."""

from iclab.claims import Bounded, Within

__all__ = ["above", "below", "close"]


def close(variable: str, meaning: str, *, most: float) -> Within:
    """The claim that a variable, "group/name", is the same in simulation as in theory up to a relative distance."""
    return Within(f"theory/{variable}", f"simulation/{variable}", meaning, most=most)


def above(variable: str, meaning: str, *, bound: float) -> Bounded:
    """The claim that a variable of simulation, "group/name", stays above a bound."""
    return Bounded(f"simulation/{variable}", meaning, bound=bound, at_most=False)


def below(variable: str, meaning: str, *, bound: float) -> Bounded:
    """The claim that a variable of simulation, "group/name", stays below a bound."""
    return Bounded(f"simulation/{variable}", meaning, bound=bound)
