"""The command `iclab inspect`: spectra of a folder of checkpoints, in the terminal and in files."""
