"""Series of checkpoints: folders and files that any trainer wrote, or a list of state dicts in memory."""

from iclab.spectra.checkpoints.opening import of_states, read
from iclab.spectra.checkpoints.series import Checkpoint, Contents, Series

__all__ = ["Checkpoint", "Contents", "Series", "of_states", "read"]
