"""Contexts token by token: mixtures of in-context and in-weight data, and inputs and labels as separate tokens."""

from iclab.theory.tokens import mixing, mixture, moments

__all__ = ["mixing", "mixture", "moments"]
