"""Finite pretraining at scale: sequences are drawn, and the readout that ridge regression finds on them is fitted."""

from iclab.simulation.pretraining.fitting import ITERATIVE, LOOSEST, REACH, Fit, fit, fit_each, law_of_new, plan

__all__ = [
    "ITERATIVE",
    "LOOSEST",
    "REACH",
    "Fit",
    "fit",
    "fit_each",
    "law_of_new",
    "plan",
]  # fmt: skip
