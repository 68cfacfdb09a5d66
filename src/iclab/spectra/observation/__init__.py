"""Observation: a series of checkpoints, or a model while it trains, as the spectra of its circuits and matrices."""

from iclab.spectra.observation.dynamics import ChangePoint, Curve, MatrixSeries, Row, SpectralDynamics
from iclab.spectra.observation.observing import observe, observed
from iclab.spectra.observation.selection import Selection
from iclab.spectra.observation.surveying import Survey, survey
from iclab.spectra.observation.watching import Watch, watch

__all__ = [
    "ChangePoint", "Curve", "MatrixSeries", "Row", "Selection", "SpectralDynamics", "Survey", "Watch", "observe",
    "observed", "survey", "watch",
]  # fmt: skip
