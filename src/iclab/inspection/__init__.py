"""The command `iclab inspect`: spectra of a folder of checkpoints, in the terminal and in files."""

from iclab.inspection.command import Inspect, inspect

__all__ = ["Inspect", "inspect"]
