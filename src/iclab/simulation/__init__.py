"""Simulation: draws data and trains. Runs on JAX, on CPU or GPU, and returns NumPy arrays."""
