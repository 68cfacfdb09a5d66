"""Claims that studies of networks repeat: bounds of one variable of the simulation, "group/name"."""

from iclab.claims import Bounded

__all__ = ["above", "below"]


def above(variable: str, meaning: str, bound: float) -> Bounded:
    """The claim that a variable stays above a bound."""
    return Bounded(f"simulation/{variable}", meaning, bound, at_most=False)


def below(variable: str, meaning: str, bound: float) -> Bounded:
    """The claim that a variable stays below a bound."""
    return Bounded(f"simulation/{variable}", meaning, bound)
