"""Observation: the spectra of weights, read from checkpoints or taken during training."""
