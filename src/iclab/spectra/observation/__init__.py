"""Observation: a series of checkpoints, or a model while it trains, as the spectra of its circuits and matrices."""

from iclab.spectra.observation.dynamics import Curve, Row, Shift, SpectralDynamics, Track
from iclab.spectra.observation.observing import observe, observed
from iclab.spectra.observation.selection import Selection
from iclab.spectra.observation.surveying import Survey, survey
from iclab.spectra.observation.watching import Watch, watch

__all__ = [
    "Curve", "Row", "Selection", "Shift", "SpectralDynamics", "Survey", "Track", "Watch", "observe", "observed",
    "survey", "watch",
]  # fmt: skip
