"""Sequences of symbols and of states: urns and Markov chains, and strategies that predict them."""

from iclab.theory.sequences.urns import UrnLosses, urn_chi_square, urn_gap, urn_information, urn_losses

__all__ = ["UrnLosses", "urn_chi_square", "urn_gap", "urn_information", "urn_losses"]
