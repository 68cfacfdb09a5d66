"""Series of checkpoints: from folders and files that other people's trainers wrote, or from a list in memory."""

from iclab.spectra.checkpoints.opening import of_states, read
from iclab.spectra.checkpoints.series import Checkpoint, Contents, Series

__all__ = ["Checkpoint", "Contents", "Series", "of_states", "read"]
