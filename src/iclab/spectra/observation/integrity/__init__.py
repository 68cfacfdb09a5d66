"""Integrity of a series: copies, mix-ups, gaps, and numbers that are not finite, from the contents of its tensors."""

from iclab.spectra.observation.integrity.examining import Integrity, examine
from iclab.spectra.observation.integrity.findings import Finding, Record, Severity, record_of

__all__ = ["Finding", "Integrity", "Record", "Severity", "examine", "record_of"]
