"""Engines of sweeps on real schedulers: `make engines`. Not collected by a plain run of pytest."""
