"""Integrity of a series: copies, mix-ups, gaps, and numbers that are not finite, from the contents of its tensors."""

from iclab.spectra.observation.integrity.examining import Integrity, examine
from iclab.spectra.observation.integrity.findings import Finding, Record, Severity, record_of
from iclab.spectra.observation.integrity.forms import Beside, beside

__all__ = ["Beside", "Finding", "Integrity", "Record", "Severity", "beside", "examine", "record_of"]
