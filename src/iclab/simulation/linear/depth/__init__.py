"""Stacks of linear attention, trained on covariances of contexts, exact in tasks and noise, or on fresh contexts."""

from iclab.simulation.linear.depth.covariances import draw_covariances, orbits
from iclab.simulation.linear.depth.descent import StackRuns, descend, sample_loss
from iclab.simulation.linear.depth.forward import FreshLoss, answers, descended_answers, fresh_loss
from iclab.simulation.linear.depth.fresh import train_fresh

__all__ = [
    "FreshLoss", "StackRuns", "answers", "descend", "descended_answers", "draw_covariances", "fresh_loss", "orbits",
    "sample_loss", "train_fresh",
]  # fmt: skip
