"""Finite pretraining at scale: sequences are drawn, and the readout that ridge regression finds on them is fitted."""

from typing import TYPE_CHECKING

from iclab.moved import refusal
from iclab.simulation.pretraining.costs import ROUTES, RouteCost
from iclab.simulation.pretraining.fitting import Fit, chosen_route, fit, fit_each, law_of_new
from iclab.simulation.pretraining.solver import LOOSEST, REACH, RidgeSolver

__all__ = [
    "LOOSEST",
    "REACH",
    "ROUTES",
    "Fit",
    "RidgeSolver",
    "RouteCost",
    "chosen_route",
    "fit",
    "fit_each",
    "law_of_new",
]  # fmt: skip

if not TYPE_CHECKING:  # else every name would be one
    __getattr__ = refusal(__name__)
